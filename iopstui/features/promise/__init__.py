"""Test whether a volume delivers what was promised."""
