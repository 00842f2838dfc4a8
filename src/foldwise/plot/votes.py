"""The votes for a number of clusters or components, as a picture."""

from __future__ import annotations

from typing import Any

from foldwise.plot.axes import FAINT, INK, MUTED, ORANGE, PALE, axes, part_of, refuse, titled, whole_ticks
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.components import ComponentChoice


def kvotes(choice: Any, ax: Any = None) -> Any:
    """How many votes each number of clusters (or components) has, and from which criteria; the number chosen is orange.

    `choice` is the result of `fw.choose_clusters` or `fw.choose_components`, or what `fw.explore` found.
    """
    found = part_of(choice, "number")
    if isinstance(found, ClusterChoice):
        what, agreed = "cluster", found.n_clusters
    elif isinstance(found, ComponentChoice):
        what, agreed = "component", found.agreed
    else:
        raise refuse(
            "kvotes", choice, "the result of fw.choose_clusters or fw.choose_components, or what fw.explore found"
        )
    counted = [vote for vote in found.votes if vote.counts]
    numbers = sorted({vote.chosen for vote in counted if vote.chosen is not None})
    ax, most = axes(ax, 7.2, max(1.8, 1.1 + 0.62 * len(numbers))), 0.0
    for place, number in enumerate(numbers):
        from_ = 0.0
        for vote in sorted((one for one in counted if one.chosen == number), key=lambda one: -one.weight):
            ink = ORANGE if number == agreed else PALE
            ax.barh(place, vote.weight, left=from_, height=0.72, color=ink, edgecolor="white", linewidth=1.5)
            ax.text(
                from_ + vote.weight / 2,
                place,
                _broken(vote.rule),
                ha="center",
                va="center",
                fontsize=8 if vote.weight >= 1 else 6.5,
                rotation=0 if vote.weight >= 1 else 90,  # narrow
                color="white" if number == agreed else INK,
                linespacing=0.95,
            )
            from_ += vote.weight
        most = max(most, from_)
    ax.set_yticks(range(len(numbers)), [f"{number} {what}{'s' * (number != 1)}" for number in numbers])
    ax.set_xlim(0, 1.02 * most or 1.0)
    ax.invert_yaxis()
    ax.grid(axis="x", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    whole_ticks(ax.xaxis)
    silent = [vote.rule for vote in found.votes if not vote.counts]
    if silent:
        ax.annotate(
            f"not counted: {', '.join(silent)}",
            (1.0, 1.0),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            fontsize=8,
            color=MUTED,
        )
    answer = "no answer" if agreed is None else f"{agreed} {what}{'s' * (agreed != 1)}"
    if what == "cluster" and agreed == 1:
        answer = "no clusters"
    return titled(ax, f"Votes: {answer}", "weight of the votes")


def _broken(words: str) -> str:
    """The name of a criterion in two lines if it is long.

    >>> _broken("prediction strength"), _broken("gap")
    ('prediction\\nstrength', 'gap')
    """
    for mark in (" ", "-"):
        if len(words) > 9 and mark in words:
            first, _, rest = words.partition(mark)
            return f"{first}{mark.strip()}\n{rest}"
    return words
