"""A tick: what is read at it, of whom, and what is concluded from it."""
