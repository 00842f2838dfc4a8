"""A report as a value: made once for a result, then rendered as text, web page, JSON or notebook output."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from foldwise.selection.explore.result import Points

Only: TypeAlias = Literal["text", "page"] | None  # where something is shown; None: everywhere


@dataclass(frozen=True)
class Fact:
    """One headline figure: its name, its value, how it is written, and a remark such as its units."""

    name: str
    value: Any
    text: str
    remark: str = ""
    only: Only = None


@dataclass(frozen=True)
class Column:
    """A column of a table: values, and how each is written (a function of the value, or the texts themselves).

    NaN is written as "-". `bar` is the value that fills a bar beside the figure on a page.

    >>> Column("share", [0.25, float("nan")], "{:.0%}".format).cells
    ['25%', '-']
    """

    name: str
    values: Sequence[Any]
    show: Callable[[Any], str] | Sequence[str] = str
    left: bool = False
    bar: float | None = None

    @property
    def cells(self) -> list[str]:
        """The values as they are written."""
        if not callable(self.show):
            return list(self.show)
        return [self.show(value) if value == value else "-" for value in self.values]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Where a part is shown, whether it takes the whole width of a page, and whether a page shows it only when asked to."""

    only: Only = None
    wide: bool = False
    collapsed: bool = False


@dataclass(frozen=True)
class Table(Shown):
    """Columns of equal length; rows beyond `most` (half as many again on a page) are counted but not shown.

    With `total`, the last row sums up the others and is always shown. `colours` has the colour of each row's dot and bar.
    With `searchable`, a page can sort the rows and search them.
    """

    title: str
    columns: Sequence[Column]
    caption: str = ""
    most: int = 40
    total: bool = False
    colours: Sequence[str] = ()
    searchable: bool = False

    def rows(self, most: int) -> tuple[list[tuple[str, ...]], int]:
        """The rows as they are written, and how many more there are."""
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        end = [rows.pop()] if self.total else []
        return rows[:most] + end, max(0, len(rows) - most)


@dataclass(frozen=True)
class Chart(Shown):
    """A picture, drawn as SVG when a page asks for it; a drawing function that gives None has nothing to show.

    One that gives "" has no picture, but its title and caption are shown all the same. `alt` says what the picture shows to
    those who cannot see it.
    """

    title: str
    draw: Callable[[], str | None]
    caption: str = ""
    colour: str = ""
    alt: str = ""


@dataclass(frozen=True)
class Scatter(Shown):
    """Rows on any two components, which a page draws so that they can be zoomed, selected, coloured and pointed at.

    `components` are the names of the columns of `points.scores`, `clusters` those of the clusters, `fallback` a picture for
    print and for pages whose scripts do not run.
    """

    title: str
    points: Points
    components: Sequence[str]
    clusters: Sequence[str] = ()
    fallback: Callable[[], str | None] | None = None
    caption: str = ""
    alt: str = ""


@dataclass(frozen=True)
class Note(Shown):
    """Sentences, one to a line."""

    text: str


@dataclass(frozen=True)
class Group(Shown):
    """Parts that belong together: one card of a page, below each other or, as small panels, side by side."""

    parts: Sequence[Table | Chart | Note | Scatter]
    title: str = ""
    caption: str = ""
    panels: bool = False


Part: TypeAlias = Table | Chart | Note | Scatter | Group


@dataclass(frozen=True)
class Report:
    """What is known about a result: the data (`data`), what ran (`about`), headline figures, tables, charts and notes.

    >>> print(Report("Two numbers", parts=[Table("Numbers", [Column("n", [1, 20])])]))
     n
     1
    20
    """

    title: str
    about: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    parts: Sequence[Part] = ()
    data: Sequence[str] = ()  # what was read, and what was decided about the columns
    lead: Sequence[str] = ()  # the answer in a few plain sentences
    lead_only: Only = None  # where it is shown

    def for_(self, where: Literal["text", "page"]) -> tuple[list[Fact], list[Part]]:
        """The facts and parts that are shown there."""
        facts = [fact for fact in self.facts if fact.only in (None, where)]
        return facts, [part for part in self.parts if part.only in (None, where)]

    def __str__(self) -> str:
        from foldwise.report.text import as_text

        return as_text(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a web page that needs nothing else, whole or not at all."""
        from foldwise.report.html import write_html

        write_html(self, path)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from foldwise.report.html import as_html

        return as_html(self, page=False)
