"""`python -m foldwise.cli`."""

import sys

from foldwise.cli import main

sys.exit(main())
