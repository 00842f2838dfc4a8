"""`python -m foldwise`."""

import sys

from foldwise.cli import main

sys.exit(main())
