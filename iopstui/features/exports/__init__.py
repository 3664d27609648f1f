"""Export figures during a measurement, for Prometheus and others."""
