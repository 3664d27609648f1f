"""The words and rows that all kinds of reports share."""
