"""What all pictures share: axes to draw into, colours, and how objects of the wrong kind are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from foldwise.errors import MissingDependencyError, ParameterError
from foldwise.report import svg
from foldwise.selection.explore.result import Exploration

_HEX = re.compile(r"#[0-9a-fA-F]{3,8}")


def plain(ink: str) -> str:
    """A colour of a page, which may have a name for its light and its dark, as one that matplotlib knows.

    >>> plain("var(--c0, #0072b2)"), plain("#0072b2")
    ('#0072b2', '#0072b2')
    """
    found = _HEX.search(ink)
    return found.group() if found else ink


PALETTE = tuple(plain(one) for one in svg.PALETTE)
INK, MUTED, FAINT, BLUE, ORANGE = map(plain, (svg.INK, svg.MUTED, svg.FAINT, svg.BLUE, svg.ORANGE))
PALE = "#c9d8ea"


def ink_of(group: int) -> str:
    """The colour of a cluster, as in reports; grey for rows in none."""
    return MUTED if group < 0 else PALETTE[group % len(PALETTE)]


def axes(ax: Any, width: float = 6.4, height: float = 4.4) -> Any:
    """The axes that were given, or those of a new figure, with as little ink as is needed."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise MissingDependencyError("fw.plot needs matplotlib. Install it: pip install 'foldwise[plot]'") from None
        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(color=MUTED, labelcolor=INK)
    return ax


def titled(ax: Any, title: str, below: str = "", beside: str = "", pad: float | None = None) -> Any:
    """The same axes with words."""
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=pad)
    ax.set_xlabel(below, color=INK)
    ax.set_ylabel(beside, color=INK)
    return ax


def whole_ticks(axis: Any) -> None:
    """Only whole numbers on an axis."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins=12))


def percent_ticks(axis: Any) -> None:
    """Shares as per cent on an axis."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def legend(ax: Any, names: Sequence[str], inks: Sequence[str], title: str = "") -> None:
    """Dots with names, beside the picture where they hide nothing."""
    from matplotlib.lines import Line2D

    dots = [Line2D([], [], marker="o", linestyle="", color=ink, markersize=6) for ink in inks]
    ax.legend(
        dots,
        [cut(name) for name in names],
        title=title or None,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        handletextpad=0.3,
    )


def cut(words: object, most: int = 24) -> str:
    """Words short enough for a label, and with no dollar sign that matplotlib would take for mathematics."""
    text = str(words)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")


def part_of(given: Any, name: str) -> Any:
    """What was given or, of what `fw.explore` found, the part of this name."""
    if not isinstance(given, Exploration):
        return given
    found = getattr(given, name)
    if found is None:
        reason = "it was stopped before" if given.unfinished else "it found no clusters"
        raise ParameterError(f"this exploration has no {name}: {reason}.")
    return found


def refuse(function: str, given: Any, accepted: str) -> ParameterError:
    """The error for an object of the wrong kind."""
    return ParameterError(f"fw.plot.{function} takes {accepted}, not {type(given).__name__}.")
