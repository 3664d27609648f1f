"""A recording as a report: HTML, Markdown, CSV, JSON."""
