"""What each column of a table is: number, category, boolean, identifier, date, text, constant, empty or nested.

`kind_of` has the rules: a function of a column's name, what its cells hold, and its profile. Every decision has a reason in a
few words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from foldwise.data.column_dates import ISO, DateFormat
from foldwise.data.column_text import BooleanFormat, Format, NumberFormat
from foldwise.data.duckdb_sql import Column
from foldwise.data.text_columns import TextColumn
from foldwise.prepare import column_names
from foldwise.prepare.profile import ColumnProfile

Kind = Literal["number", "category", "boolean", "identifier", "date", "text", "constant", "empty", "nested"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_FEW_RUNNING = 10  # rows below which numbers that run on are rather small data
_LONG = 6  # words, above which a text names nothing
_SEVERAL = 4  # words that make free text of cells that mostly differ
_MOSTLY = 0.5


@dataclass(frozen=True)
class Facts:
    """What is known of a column when its kind is decided."""

    column: Column
    profile: ColumnProfile
    text: TextColumn | None = None  # if its cells are text
    unique: bool = False  # no two cells alike, none missing, as far as the first rows tell
    running: bool = False

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name


@dataclass(frozen=True)
class Decision:
    """What a column is, why, and the SQL that gives its values.

    `expression` is an SQL expression over the column of type DOUBLE for a number, BOOLEAN, TIMESTAMP (UTC if it had a zone)
    or, for all other kinds, VARCHAR; missing cells are NULL, and a cell that does not fit the format is an error of the query.
    """

    name: str
    kind: Kind
    reason: str
    column: Column
    expression: str
    profile: ColumnProfile
    unit: str = ""
    zoned: bool = False
    asked: bool = False
    format: Format | None = None  # how the cells are read if they are text

    @property
    def is_number(self) -> bool:
        """Whether the cells are numbers, whatever they stand for."""
        return self.profile.holds == "numbers"

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} ({self.reason})"


def kind_of(facts: Facts) -> tuple[Kind, str]:
    """The kind of a column, and the reason.

    >>> from foldwise.prepare.profile import ColumnProfile
    >>> kind_of(Facts(Column("cyl", "cyl", "INTEGER"), ColumnProfile.of([4, 6, 8, 4])))
    ('number', 'whole numbers, 3 different')
    """
    seen = facts.profile
    if seen.holds == "nested":
        return "nested", "lists or objects"
    if seen.present == 0:
        return "empty", "no value"
    if seen.distinct == 1 and (seen.exact or seen.minimum == seen.maximum):
        return "constant", "one value" if not seen.missing else "one value where there is any"
    if seen.holds == "dates":
        return "date", _dates(facts)
    if seen.holds == "booleans":
        return "boolean", _pair(facts)
    return _of_numbers(facts) if seen.holds == "numbers" else _of_words(facts)


def _dates(facts: Facts) -> str:
    form = facts.text.format if facts.text is not None else None
    if not isinstance(form, DateFormat):
        return "dates"
    if form.pattern == ISO:
        return "dates with a zone, in UTC" if form.zoned else "dates"
    letters = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year"}
    order = "/".join(
        letters[form.pattern[k : k + 2]] for k in range(len(form.pattern)) if form.pattern[k : k + 2] in letters
    )
    return f"dates, {order}"


def _pair(facts: Facts) -> str:
    form = facts.text.format if facts.text is not None else None
    return f"{form.yes} and {form.no}" if isinstance(form, BooleanFormat) else "true and false"


def _of_numbers(facts: Facts) -> tuple[Kind, str]:
    seen, name = facts.profile, facts.name
    if not seen.whole:
        return "number", _written(facts, "numbers")
    if (seen.minimum, seen.maximum) == (0, 1):
        return "boolean", "0 and 1"
    timely = column_names.says_time(name)
    named = column_names.says_identifier(name)
    if facts.unique and facts.running and not timely and (seen.rows >= _FEW_RUNNING or named):
        return "identifier", "running number"
    if facts.unique and named:
        return "identifier", "no two alike, and its name says so"
    if column_names.says_code(name) and seen.distinct <= _MOSTLY * seen.present and not _has_unit(facts):
        return "category", "codes, as its name says"
    different = f"whole numbers, {seen.distinct:,} different" if seen.distinct <= 12 else "whole numbers"
    return "number", _written(facts, different)


def _has_unit(facts: Facts) -> bool:
    form = facts.text.format if facts.text is not None else None
    return isinstance(form, NumberFormat) and bool(form.prefix or form.suffix)


def _written(facts: Facts, plainly: str) -> str:
    """A reason that says how numbers are written, if not plainly."""
    form = facts.text.format if facts.text is not None else None
    if not isinstance(form, NumberFormat):
        return plainly
    unit = form.prefix or form.suffix
    said = f"{plainly} in {unit}" if unit else plainly
    marks = []
    if form.decimal == ",":
        marks.append("decimal comma")
    if form.thousands:
        mark = {",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}[form.thousands]
        marks.append(f"{mark} between thousands")
    if form.parentheses:
        marks.append("(…) is minus")
    return ", ".join([said, *marks])


def _of_words(facts: Facts) -> tuple[Kind, str]:
    seen, name, text = facts.profile, facts.name, facts.text
    wordy = seen.words_per_cell
    if text is not None and text.units:
        return _repeated(seen, f"numbers in different units ({', '.join(text.units[:4])})")
    if text is not None and text.leading_zeros:
        kind: Kind = "identifier" if facts.unique else "category"
        return kind, "digits with zeros in front"
    if text is not None and text.long_digits:
        return "identifier" if facts.unique else "category", "more digits than numbers have"
    if facts.unique and wordy <= _LONG:
        return "identifier", "no two alike"
    share = seen.distinct / seen.present
    if column_names.says_remarks(name) and wordy >= 2:
        return "text", "free text"
    if column_names.says_name(name) and share >= _MOSTLY and wordy <= _LONG and seen.distinct > 2:
        return "identifier", f"names of rows, {seen.distinct:,} different"
    if wordy >= _SEVERAL and share >= _MOSTLY:
        return "text", f"{wordy:.0f} words each, mostly different"
    return _repeated(seen, "words that repeat")


def _repeated(seen: ColumnProfile, why: str) -> tuple[Kind, str]:
    if seen.distinct == seen.present and seen.words_per_cell >= 2:
        return "text", f"several words, no two alike, {seen.missing:,} missing"
    if seen.distinct > _MOSTLY * seen.present:
        return "category", f"{seen.distinct:,} levels, few repeat"
    return "category", why
