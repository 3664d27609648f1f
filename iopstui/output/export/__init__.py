"""Export live measurements to monitoring systems: Prometheus and OpenMetrics."""
