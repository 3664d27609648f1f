"""`python -m iopstui`."""

import sys

from iopstui.cli import main

if __name__ == "__main__":
    sys.exit(main())
