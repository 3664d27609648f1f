"""The state of a session that the screen shows, made from the session's events."""
