"""What the core works without: a folder each, with its model, commands, pages and output."""
