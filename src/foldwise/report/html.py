"""A report as one self-contained web page, or as a piece of one for a notebook: nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import foldwise
from foldwise.data.atomic import replacing
from foldwise.report.html_filters import filters
from foldwise.report.scatter import pack
from foldwise.report.svg import PALETTE
from foldwise.report.values import Group, Part, Report, Scatter, Table

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_BYTES = 8_000_000  # of a page
_POINT_BYTES = 6_000_000  # of all scatters of a page


def as_html(report: Report, *, page: bool = True) -> str:
    """The report as a whole page, or without `page` as an element to put into one, without any script; charts are drawn now.

    >>> from foldwise.report.values import Note
    >>> "<p>a &lt; b</p>" in as_html(Report("A title", parts=[Note("a < b")]))
    True
    """
    environment = _environment()
    facts, parts = report.for_("page")
    shown = list(_inner(parts))
    scatters = [part for part in shown if isinstance(part, Scatter)]
    # Points get what room the rest of the page leaves them, so their places are marked (by names no data can have guessed).
    mark = f"points-{secrets.token_hex(12)}-"
    places = {id(part): f"{mark}{i}-" for i, part in enumerate(scatters)}
    linked = page and bool(scatters)
    html = environment.get_template("report.html").render(
        report=report,
        facts=facts,
        parts=parts,
        page=page,
        lead=report.lead if report.lead_only in (None, "page") else (),
        points=linked,
        linked=linked and all(len(part.clusters) <= len(PALETTE) for part in scatters),  # beyond, colours repeat
        place=lambda part: places[id(part)],
        scripts=_scripts(linked, any(isinstance(part, Table) and part.searchable for part in shown)) if page else (),
        version=foldwise.__version__,
    )
    room = min(_POINT_BYTES, MOST_BYTES - 100_000 - len(html.encode()))
    for part in scatters:
        packed = pack(part, room // len(scatters)) if page else None
        drawn = environment.get_template("scatter.html").render(part=part, packed=packed)
        html = html.replace(places[id(part)], drawn)
    return html


def write_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    text = as_html(report)
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # names of files may have bytes that are no text


def _inner(parts: list[Part]) -> Iterator[Part]:
    """The parts, and those in groups in place of these."""
    for part in parts:
        yield from (one for one in part.parts if one.only != "text") if isinstance(part, Group) else [part]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("foldwise.report"), autoescape=True, trim_blocks=True)
    environment.filters.update(filters())
    return environment


def _scripts(points: bool, tables: bool) -> list[str]:
    """What a page needs: the theme always, sorting if a table can be searched, and the large script only for points."""
    from markupsafe import Markup

    names = ["theme.js", *(["sort.js"] if tables else []), *(["page.js"] if points else [])]
    return [Markup(files("foldwise.report").joinpath("assets", name).read_text(encoding="utf-8")) for name in names]
