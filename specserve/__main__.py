"""`python -m specserve` is `specserve`."""

import sys

from specserve.cli import main

if __name__ == "__main__":
    sys.exit(main())
