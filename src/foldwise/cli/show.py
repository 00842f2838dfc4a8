"""Text to the terminal, or to a pipe, the same."""

from __future__ import annotations

import os
import sys


def show(text: str) -> None:
    """Print to standard output; if its reader has gone (as `head` does), what is still to be written to files is not lost."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
