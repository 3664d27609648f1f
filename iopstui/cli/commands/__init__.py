"""One file for each command: its arguments and its actions.

Every module here is called as its command is, and has a ``COMMAND``; that is all it takes. They are
all imported to show the help, so each imports what it needs only when it is run."""
