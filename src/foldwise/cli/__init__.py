"""The command `foldwise`: one thin file per command, which parses its arguments and calls public functions."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; errors of Foldwise become one message and exit code 2, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may have bytes that are no text
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if arguments is None:  # a process that ends: with its work done, Ctrl-C must not make it look as if it had failed
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return code
    except BrokenPipeError:  # the reader of the pipe has gone
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:  # also while modules are imported
        print("foldwise: interrupted; no file was left incomplete", file=sys.stderr)
        return 130


def _run(given: list[str]) -> int:
    from foldwise.cli.app import app
    from foldwise.cli.options import STANDARD_INPUT
    from foldwise.cli.words import as_options
    from foldwise.errors import FoldwiseError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            return int(app([STANDARD_INPUT if one == "-" else one for one in given], result_action="return_value") or 0)
    except FoldwiseError as error:
        print(f"foldwise: {as_options(str(error))}", file=sys.stderr)
        return 2


def _show(message: Any, *_: Any, **__: Any) -> None:
    """A warning as one line, without its place in the code."""
    from foldwise.cli.words import as_options

    print(f"foldwise: {as_options(str(message))}", file=sys.stderr)
