"""`iopstui serve`: the screen in a browser, for a presenter and many viewers."""
