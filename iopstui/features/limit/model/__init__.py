"""The search for the rate and its statistics, pure."""
