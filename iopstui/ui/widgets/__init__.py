"""The dashboard's parts: pure builders of rows, and the widget that shows rows."""
