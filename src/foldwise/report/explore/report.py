"""The report on an exploration, for a page and for a terminal."""

from __future__ import annotations

from foldwise.report.explore.cautions import has_long_tails
from foldwise.report.explore.directions import direction_parts, direction_pictures
from foldwise.report.explore.groups import cards, group_parts, group_total
from foldwise.report.explore.images import image_shape_in, without_pixels
from foldwise.report.explore.made import made_part
from foldwise.report.explore.overview import overview_parts
from foldwise.report.explore.rows import row_table, scatter_parts
from foldwise.report.explore.sentences import sentences
from foldwise.report.explore.sureness import sureness_parts
from foldwise.report.explore.terminal import terminal_parts
from foldwise.report.explore.words import group_count, place_of
from foldwise.report.values import Fact, Part, Report
from foldwise.selection.explore.result import Exploration


def explore_report(found: Exploration) -> Report:
    """Five sentences, then the data, the rows, the directions, the groups, the rows worth a look and how it was made.

    What an exploration did not reach is left out of the report, and named in its sentences.
    """
    found = without_pixels(found)
    return Report(
        "What is in these data?"
        if found.overview.where in _NAMELESS
        else f"What is in {place_of(found.overview.where, 80)}?",
        facts=_facts(found),
        parts=[
            *terminal_parts(found),
            *_pictures(found),
            *overview_parts(found),
            *scatter_parts(found),
            *direction_parts(found),
            *group_parts(found),
            *sureness_parts(found),
            *row_table(found),
            made_part(found),
        ],
        lead=sentences(found),
    )


_NAMELESS = ("array", "sparse matrix", "data frame")


def _pictures(found: Exploration) -> list[Part]:
    """What a page on images begins with: the groups and the directions as images."""
    return [] if image_shape_in(found) is None else [*cards(found), *direction_pictures(found)]


def _facts(found: Exploration) -> list[Fact]:
    used = sum(one.role == "used" for one in found.overview.columns) or len(found.names)
    agreed, k = found.n_components, group_count(found)
    matter = "not known" if agreed is None else f"{agreed:,}" if agreed else "none"
    facts = [
        Fact("rows", found.overview.rows, f"{found.overview.rows:,}", only="page"),
        Fact("columns compared", used, f"{used:,}", f"of {len(found.overview.columns):,}", only="page"),
        Fact("directions that matter", agreed, matter, only="page"),
        Fact("groups", k, group_total(found), only="page"),
    ]
    if found.outliers is not None and not has_long_tails(found):
        far = found.outliers.count
        facts.append(Fact("unusual rows", far, f"{far:,}", "far from the others", only="page"))
    return facts
