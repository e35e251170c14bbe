"""Runs the command line with ``python -m barnabas``."""

import sys

from barnabas.cli import main

if __name__ == "__main__":
    sys.exit(main())
