"""The slowest requests and stalls: which they were, what they share."""
