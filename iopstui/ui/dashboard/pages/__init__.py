"""The pages that keys open over the dashboard: lists and maps, each on one subject."""
