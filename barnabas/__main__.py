"""``python -m barnabas`` is ``barnabas``."""

import sys

from barnabas.cli import main

if __name__ == "__main__":
    sys.exit(main())
