"""The command `foldwise`: one thin file per command, which parses its arguments and calls public functions."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; errors of Foldwise become one message and exit code 2, not a traceback."""
    from foldwise.cli.app import app
    from foldwise.errors import FoldwiseError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            return int(app(arguments, result_action="return_value") or 0)
    except FoldwiseError as error:
        print(f"foldwise: {_as_options(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the pipe has gone
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("foldwise: interrupted; no file was left incomplete", file=sys.stderr)
        return 130


def _show(message: Any, *_: Any, **__: Any) -> None:
    """A warning as one line, without its place in the code."""
    print(f"foldwise: {_as_options(str(message))}", file=sys.stderr)


def _as_options(text: str) -> str:
    """A message with its parameters renamed to command-line options.

    >>> _as_options('where="a > 0" leaves rows out; choose with column=, or fw.scan(x, columns=[...])')
    '--where "a > 0" leaves rows out; choose with --column'
    """
    text = text.replace(", or fw.scan(x, columns=[...])", "")
    text = re.sub(r"\b(columns|column|where|weights)=(?=[\"'])", r"--\1 ", text)
    text = re.sub(r"\bcovariance_type=(?=['\"])", "--type ", text)
    text = re.sub(r"\breg_covar\b", "--ridge", text)
    return re.sub(r"\b(columns|column|where|weights)=(?=[\s.,;:)]|$)", r"--\1", text)
