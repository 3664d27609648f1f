"""Let Prometheus and others read the figures while they are measured."""
