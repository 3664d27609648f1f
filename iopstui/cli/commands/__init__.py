"""One file for each command: its arguments and its actions.

Every module here has a ``COMMAND``, and that is all it takes. They are all imported to show the
help, so each imports what it needs only when it is run.
"""
