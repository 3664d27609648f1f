"""TODO: name this folder."""
