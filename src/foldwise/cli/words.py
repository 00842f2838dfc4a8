"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

_OPTIONS = {
    "ids": "--id",
    "labels": "--label",
    "as_": "--as",
    "svd_solver": "--solver",
    "n_components": "--components",
    "n_clusters": "--clusters",
    "n_features": "--features",
    "n_base": "--clusterings",
    "n_colors": "--colors",
    "n_segments": "--segments",
    "block": "--blocks",
    "diversity": "--diversity",
    "consensus": "--consensus",
    "covariance_type": "--type",
    "reg_covar": "--ridge",
    "n_init": "--starts",
    "random_state": "--seed",
    **{
        name: f"--{name}"
        for name in (
            "columns",
            "column",
            "where",
            "weights",
            "exclude",
            "categories",
            "missing",
            "metric",
            "criterion",
            "scoring",
        )
    },
    **{
        name: f"--{name}" for name in ("header", "delimiter", "decimal", "encoding", "sheet", "table", "skip", "search")
    },
    **{name: "--" + name.replace("_", "-") for name in ("missing_values", "max_iter", "time_budget", "image_size")},
}
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))


def as_options(text: str) -> str:
    """A message with its parameters renamed to command-line options.

    >>> as_options('where="a > 0" leaves rows out; choose with column=, or fw.scan(x, columns=[...])')
    '--where "a > 0" leaves rows out; choose with --column'
    >>> as_options("missing='model' deals with them, or exclude=['x']; as_={'zip': 'category'} or scale=True; header=False")
    '--missing model deals with them, or --exclude x; --as zip=category or --scale; --header no'
    """
    text = text.replace(", or fw.scan(x, columns=[...])", "")
    text = re.sub(r"\bas_=\{'([^']*)': '([^']*)'\}", r"--as \1=\2", text)
    text = re.sub(rf"\b({_NAMES})=\['([^']*)'\]", lambda m: f"{_OPTIONS[m[1]]} {m[2]}", text)
    text = re.sub(rf"\b({_NAMES})=(['\"])(.*?)\2", lambda m: f"{_OPTIONS[m[1]]} {_quoted(m[3], m[2])}", text)
    text = re.sub(r"\b(header)=(True|False)", lambda m: f"--header {'yes' if m[2] == 'True' else 'no'}", text)
    text = re.sub(r"\b(scale|whiten|whole|grey)=True", r"--\1", text)
    text = re.sub(rf"\b({_NAMES})=(?=[0-9])", lambda m: f"{_OPTIONS[m[1]]} ", text)
    return re.sub(rf"\b({_NAMES})=(?=[\s.,;:)]|$)", lambda m: _OPTIONS[m[1]], text)


def _quoted(value: str, mark: str) -> str:
    """A value as it is typed: in quotes if it has blanks or other marks."""
    return value if re.fullmatch(r"[\w.:+/|-]+", value) else f"{mark}{value}{mark}"
