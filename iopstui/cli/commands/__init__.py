"""One file for each command: its arguments and its actions.

A module here has the name of its command, and a ``COMMAND``; nothing else is needed to add one. All
of these modules are imported to show the help, so each of them imports further modules only when
its command runs."""
