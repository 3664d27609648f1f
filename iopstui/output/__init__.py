"""The session's events as text: table, JSON lines, CSV. A sink has handle(event) and close()."""
