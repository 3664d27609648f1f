"""The report of a fleet's recording."""
