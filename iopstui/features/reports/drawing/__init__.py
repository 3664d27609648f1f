"""Drawings of a report: SVG charts and the pieces of a page."""
