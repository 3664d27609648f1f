"""Test whether a volume delivers what its provider promised."""
