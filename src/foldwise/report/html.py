"""A report as one self-contained web page, or as a piece of one for a notebook: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import os

import foldwise
from foldwise.data.atomic import replacing
from foldwise.report.values import Report


def as_html(report: Report, *, page: bool = True) -> str:
    """The report as a whole page, or without `page` as an element to put into one; charts are drawn now.

    >>> from foldwise.report.values import Note
    >>> "<p>a &lt; b</p>" in as_html(Report("A title", parts=[Note("a < b")]))
    True
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("foldwise.report"), autoescape=True, trim_blocks=True)
    facts, parts = report.for_("page")
    template = environment.get_template("report.html")
    return template.render(report=report, facts=facts, parts=parts, page=page, version=foldwise.__version__)


def write_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    text = as_html(report)
    with replacing(path) as file:
        file.write(text.encode())
