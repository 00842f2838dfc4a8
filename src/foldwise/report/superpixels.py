"""The report on superpixels: how many, how large, how well they describe the picture, and how it looks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.images.segments import on_outlines
from foldwise.models.images.superpixels import OUTLINE, Superpixels, for_screen
from foldwise.report.formats import counted, percent
from foldwise.report.pictures import picture, smaller
from foldwise.report.svg import BLUE, Plot
from foldwise.report.values import Chart, Column, Fact, Part, Report, Table

_SIDE = 1000  # pixels of the longer side of pictures on a page
_MOST_ROWS = 2000
_ENDED = {"converged": " (centres at rest)", "capped": "", "interrupted": " (interrupted)"}
_SPACES = {"lab": "CIE Lab", "raw": "the channels as they are"}


def superpixels_report(found: Superpixels) -> Report:
    """What was asked and what came of it, the picture with outlines and in mean colours, sizes and a table."""
    height, width = found.labels.shape
    channels = "grey" if len(found.channels) == 1 else counted(len(found.channels), "channel")
    steps = f"{counted(found.outcome.steps, 'iteration')}{_ENDED[found.outcome.reason]}"
    about = [
        f"{found.name}: {width:,} x {height:,} pixels, {channels} ({found.image.dtype}), compared in {_SPACES[found.space]}",
        f"SLIC, compactness {found.compactness:g}, {steps}, {found.outcome.seconds:.2f} s",
    ]
    sizes = found.sizes
    low, middle, high = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
    facts = [
        Fact("segments", found.n_segments, f"{found.n_segments:,}", f"({found.asked:,} asked for)"),
        Fact("pixels in each", middle, f"{middle:,.0f}", f"(median; {low:,} to {high:,})"),
        Fact(
            "explained variation",
            found.explained_variation,
            percent(found.explained_variation),
            "(of the pixels, by the mean of each segment)",
        ),
        Fact(
            "isoperimetric quotient",
            found.isoperimetric_quotient,
            f"{found.isoperimetric_quotient:.3f}",
            "(how compact; squares have 0.785)",
        ),
    ]
    alt = f"{counted(found.n_segments, 'segment')} of {found.name}"
    parts: list[Part] = [
        Chart("Outlines", lambda: picture(_outlined(found)), wide=True, alt=f"The picture with the outlines of {alt}"),
        Chart(
            "Mean colours",
            lambda: picture(smaller(for_screen(found.mean_image()), _SIDE)),
            "Each segment in the mean of its pixels.",
            alt=f"The mean colours of {alt}",
        ),
        Chart("Sizes", lambda: _histogram(sizes), "Pixels in a segment.", alt=f"Histogram of the sizes of {alt}"),
        _table(found),
    ]
    title = f"{counted(found.n_segments, 'superpixel')} of {os.path.basename(found.name)}"
    return Report(title, about, facts, parts)


def _outlined(found: Superpixels) -> NDArray[np.uint8]:
    """The picture with outlines, made small first: then lines stay lines."""
    by = -(-max(found.labels.shape) // _SIDE)
    shown = smaller(for_screen(found.image), _SIDE)
    labels = found.labels[by // 2 :: by, by // 2 :: by][: shown.shape[0], : shown.shape[1]]
    shown, (h, w) = np.array(shown), labels.shape
    shown[:h, :w][on_outlines(labels)] = OUTLINE
    return shown


def _histogram(sizes: NDArray[Any]) -> str | None:
    if len(sizes) < 2:
        return None
    counts, edges = np.histogram(sizes, bins=min(40, max(5, round(len(sizes) ** 0.5))))
    plot = Plot((float(edges[0]), float(edges[-1])), (0.0, 1.05 * float(counts.max())), "pixels")
    plot.bars(edges.tolist(), counts.tolist(), BLUE, "{low:,.0f} to {high:,.0f} pixels: {height:,.0f} segments", gap=1)
    return plot.svg()


def _table(found: Superpixels) -> Table:
    n = min(found.n_segments, _MOST_ROWS)
    top, left, bottom, right = found.boxes[:n].T
    columns = [
        Column("segment", list(range(n))),
        Column("pixels", found.sizes[:n].tolist(), "{:,}".format),
        Column("row", found.centres[:n, 0].tolist(), "{:.1f}".format),
        Column("column", found.centres[:n, 1].tolist(), "{:.1f}".format),
    ]
    columns += [
        Column(name.replace("_", " "), found.means[:n, c].tolist(), "{:.4g}".format)
        for c, name in enumerate(found.channels)
    ]
    columns += [
        Column("rows", [f"{a} to {b}" for a, b in zip(top, bottom, strict=True)]),
        Column("columns", [f"{a} to {b}" for a, b in zip(left, right, strict=True)]),
        Column("quotient", found.quotients[:n].tolist(), "{:.3f}".format),
    ]
    more = f"The first {n:,} of {found.n_segments:,}. " * (n < found.n_segments)
    caption = f"{more}Mean of each channel; quotient: 4 pi area / outline²."
    return Table("Segments", columns, caption, most=_MOST_ROWS, searchable=True, wide=True, only="page")
