"""Promised figures of providers' volumes, instances and drives, as values."""
