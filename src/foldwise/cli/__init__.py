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
    from foldwise.cli.options import STANDARD_INPUT
    from foldwise.errors import FoldwiseError

    given = list(sys.argv[1:] if arguments is None else arguments)
    given = [STANDARD_INPUT if one == "-" else one for one in given]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            return int(app(given, result_action="return_value") or 0)
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


_OPTIONS = {
    "ids": "--id",
    "labels": "--label",
    "as_": "--as",
    "svd_solver": "--solver",
    "n_components": "--components",
    "n_clusters": "--clusters",
    "covariance_type": "--type",
    "reg_covar": "--ridge",
    "n_init": "--starts",
    "random_state": "--seed",
    **{name: f"--{name}" for name in ("columns", "column", "where", "weights", "exclude", "categories", "missing", "metric")},
    **{name: f"--{name}" for name in ("header", "delimiter", "decimal", "encoding", "sheet", "table", "skip", "search")},
    **{name: "--" + name.replace("_", "-") for name in ("missing_values", "max_iter", "time_budget")},
}
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))


def _as_options(text: str) -> str:
    """A message with its parameters renamed to command-line options.

    >>> _as_options('where="a > 0" leaves rows out; choose with column=, or fw.scan(x, columns=[...])')
    '--where "a > 0" leaves rows out; choose with --column'
    >>> _as_options("missing='model' deals with them, or exclude=['x']; as_={'zip': 'category'} or scale=True; header=False")
    '--missing model deals with them, or --exclude x; --as zip=category or --scale; --header no'
    """
    text = text.replace(", or fw.scan(x, columns=[...])", "")
    text = re.sub(r"\bas_=\{'([^']*)': '([^']*)'\}", r"--as \1=\2", text)
    text = re.sub(rf"\b({_NAMES})=\['([^']*)'\]", lambda m: f"{_OPTIONS[m[1]]} {m[2]}", text)
    text = re.sub(rf"\b({_NAMES})=(['\"])(.*?)\2", lambda m: f"{_OPTIONS[m[1]]} {_quoted(m[3], m[2])}", text)
    text = re.sub(r"\b(header)=(True|False)", lambda m: f"--header {'yes' if m[2] == 'True' else 'no'}", text)
    text = re.sub(r"\b(scale|whiten|whole)=True", r"--\1", text)
    text = re.sub(rf"\b({_NAMES})=(?=[0-9])", lambda m: f"{_OPTIONS[m[1]]} ", text)
    return re.sub(rf"\b({_NAMES})=(?=[\s.,;:)]|$)", lambda m: _OPTIONS[m[1]], text)


def _quoted(value: str, mark: str) -> str:
    """A value as it is typed: in quotes if it has blanks or other marks."""
    return value if re.fullmatch(r"[\w.:+/|-]+", value) else f"{mark}{value}{mark}"
