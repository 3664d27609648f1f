"""The session's events as text: table, JSON lines, CSV."""
