"""``python -m jaxbandit.cli`` is the command ``jaxbandit``."""

import sys

from jaxbandit.cli import main

if __name__ == "__main__":
    sys.exit(main())
