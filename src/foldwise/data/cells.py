"""Python values to columns: what the cells of a spreadsheet or of SQLite hold decides the type of their column."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.column_text import TOKENS

# What stands for a missing cell among numbers, dates and truth values.
MISSING = frozenset(("", *(token.lower() for token in TOKENS)))
_LARGEST = 2**53  # beyond it, a float may stand for several integers


@dataclass
class Census:
    """What was seen in a column so far; `update` may be called for batch after batch."""

    missing_values: frozenset[str] = MISSING
    present: int = 0
    integers: int = 0  # also floats without fraction
    reals: int = 0
    truths: int = 0
    days: int = 0
    moments: int = 0
    numbers_as_text: int = 0
    integers_as_text: int = 0
    tokens: int = 0
    words: int = 0
    example: str = ""  # the first number that is stored as text
    seen_tokens: tuple[str, ...] = ()
    huge: bool = False  # whether an integer needs more than 64 bits
    mixed: bool = False  # whether cells must be converted one by one although all are of one kind

    def update(self, values: Iterable[Any]) -> None:
        """Take in some cells."""
        for value in values:
            if value is None or value == "":
                continue
            self.present += 1
            if isinstance(value, bool):
                self.truths += 1
            elif isinstance(value, int):
                self.integers += 1
                self.huge = self.huge or not -(2**63) <= value < 2**63
            elif isinstance(value, float):
                whole = math.isfinite(value) and value == int(value) and abs(value) <= _LARGEST
                self.integers += whole
                self.reals += not whole
            elif isinstance(value, dt.datetime):
                self.moments += 1
            elif isinstance(value, dt.date):
                self.days += 1
            else:
                self._text(value)

    def _text(self, value: Any) -> None:
        text = value.strip() if isinstance(value, str) else None
        if text is not None and text.lower() in self.missing_values:
            self.tokens += 1
            if text not in self.seen_tokens and len(self.seen_tokens) < 5:
                self.seen_tokens = (*self.seen_tokens, text)
        elif text is not None and _number(text) is not None:
            self.numbers_as_text += 1
            self.integers_as_text += text.lstrip("+-").isdigit()
            self.example = self.example or text
        else:
            self.words += 1

    @property
    def type(self) -> str:
        """The SQL type that holds all cells: numbers with a few that are stored as text are numbers."""
        numbers = self.integers + self.reals
        dates = self.days + self.moments
        if self.words or (self.tokens and not numbers + dates + self.truths):
            return "VARCHAR"
        if numbers and not dates and not self.truths and self.numbers_as_text <= numbers:
            if self.huge:
                return "DOUBLE" if self.reals or self.numbers_as_text else "HUGEINT"
            return "DOUBLE" if self.reals or self.numbers_as_text > self.integers_as_text else "BIGINT"
        if self.numbers_as_text or numbers:
            return "VARCHAR"
        if dates and not self.truths:
            return "TIMESTAMP" if self.moments else "DATE"
        if self.truths and not dates:
            return "BOOLEAN"
        return "VARCHAR"


def _number(text: str) -> float | None:
    """The number that a text is, if it is one as a program would write it."""
    if not text or text[0] not in "+-.0123456789" or "_" in text or _padded(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _padded(text: str) -> bool:
    """Whether zeros stand in front, as in codes, which lose them as numbers."""
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


_MOMENT = np.dtype("M8[us]")  # DuckDB takes no arrays of days
_DTYPES: dict[str, Any] = {
    "BIGINT": np.int64,
    "DOUBLE": np.float64,
    "BOOLEAN": np.bool_,
    "DATE": _MOMENT,
    "TIMESTAMP": _MOMENT,
}


def column(values: Sequence[Any], kind: str) -> NDArray[Any]:
    """The cells of a column as an array of its type, missing ones masked."""
    if kind in ("VARCHAR", "HUGEINT"):
        texts = np.empty(len(values), dtype=object)
        texts[:] = [None if value is None or value == "" else shown(value) for value in values]
        return texts
    convert = _CONVERSIONS[kind]
    found = [None if value is None or value == "" else convert(value) for value in values]
    mask = np.fromiter((value is None for value in found), dtype=bool, count=len(found))
    filler: Any = np.datetime64("NaT") if kind in ("DATE", "TIMESTAMP") else 0
    dense = np.array([filler if value is None else value for value in found], dtype=_DTYPES[kind])
    return dense if kind in ("DATE", "TIMESTAMP") else np.ma.masked_array(dense, mask=mask)


def is_plain(census: Census) -> bool:
    """Whether all cells are of the type of their column, so that NumPy can convert them at once."""
    alike = max(census.integers + census.reals, census.words) == census.present
    return alike and not census.mixed and not census.huge and census.type in ("BIGINT", "DOUBLE", "VARCHAR")


def plain_column(values: Sequence[Any], kind: str) -> NDArray[Any]:
    """The cells of a column that `is_plain`."""
    if kind == "DOUBLE":
        return np.array(values, dtype=np.float64)  # None becomes NaN, which DuckDB takes for NULL
    if kind == "BIGINT" and None not in values:
        return np.array(values, dtype=np.int64)
    if kind == "BIGINT":
        return column(values, kind)
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts


def _as_float(value: Any) -> float | None:
    return _number(value.strip()) if isinstance(value, str) else float(value)


def _as_integer(value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.lstrip("+-").isdigit() else None
    return int(value)


def _as_date(value: Any) -> Any:
    return np.datetime64(value) if isinstance(value, dt.date) else None


def _as_truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_CONVERSIONS: dict[str, Any] = {
    "BIGINT": _as_integer,
    "DOUBLE": _as_float,
    "BOOLEAN": _as_truth,
    "DATE": _as_date,
    "TIMESTAMP": _as_date,
}


def shown(value: Any) -> str:
    """A cell as text, as a spreadsheet shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
        return str(int(value)) if whole else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)
