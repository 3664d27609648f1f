"""A watch as text: a live table and the summary at its end."""
