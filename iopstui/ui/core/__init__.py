"""What the screen stands on: the terminal, its keys, the pace of painting."""
