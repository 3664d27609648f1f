"""What is measured, for a monitoring system while it is measured: Prometheus and OpenMetrics."""
