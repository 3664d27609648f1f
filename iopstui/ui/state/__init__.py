"""What the screen knows of a session: its events, folded."""
