"""Features without which the core also works. Each is a folder with its own model, commands, pages
and output."""
