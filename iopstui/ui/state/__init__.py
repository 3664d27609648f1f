"""State of a session for the screen, folded from its events."""
