"""The pages that a key opens over the dashboard: lists and maps of one subject."""
