"""The state of a session for the screen, made from its events."""
