"""The slowest requests and stalls, and what they have in common."""
