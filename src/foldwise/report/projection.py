"""The rows of a table on two principal components: points while they are few, counts on a grid when they are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.report.biplot import draw_arrows
from foldwise.report.formats import percent
from foldwise.report.plane import MOST_POINTS, Grid, window, with_room
from foldwise.report.svg import BLUE, MUTED, PAPER, Plot, colour, line, stroke, text

_SIZE = 460

Ellipse = tuple[Floats, Floats, int]


@dataclass(frozen=True)
class _Scores:
    """The rows of a block on two directions: a task that can be sent to other machines."""

    directions: Floats
    mean: Floats
    scale: Floats | None

    def __call__(self, block: Block) -> Floats:
        return block.times(self.directions.T, self.mean, self.scale)


class Projection:
    """The rows on the first two components of a fitted PCA; memory and drawing stay small for any number of rows."""

    def __init__(self, pca: Any, source: Source, labels: NDArray[Any] | None = None, groups: int = 1) -> None:
        """`labels` are the numbers of the rows' groups, which are drawn in their colours."""
        self.pca, self.directions = pca, np.asarray(pca.components_[:2], dtype=np.float64)
        self._run, self._labels, self._groups = Passes(source, n_threads=pca.n_threads), labels, groups
        self._points: list[tuple[Floats, NDArray[Any]]] = []
        self._grid: Grid | None = None
        if pca.manifest_.rows <= MOST_POINTS:
            self._each(lambda scores, numbers: self._points.append((scores, numbers)))
            every = np.vstack([np.zeros((1, 2)), *(scores for scores, _ in self._points)])
            self._low, self._high = every.min(axis=0), every.max(axis=0)
        else:
            ends = [np.zeros((2, 2))]
            self._each(lambda scores, _: ends.append(_ends(np.vstack([ends.pop(), scores]))))
            low, high = ends[0]
            self._low, self._high = window(low, high, np.zeros(2), np.sqrt(pca.explained_variance_[:2]))
            self._grid = Grid(self._low, self._high, groups)
            self._each(self._grid.add)

    def _each(self, take: Callable[[Floats, NDArray[Any]], None]) -> None:
        """Pass the scores of the rows on, with the numbers of their groups; a row with nothing observed has no place."""
        seen = 0

        def some(scores: Floats) -> None:
            nonlocal seen
            here, seen = slice(seen, seen + len(scores)), seen + len(scores)
            groups = np.zeros(len(scores), dtype=np.int32) if self._labels is None else np.array(self._labels[here])
            take(scores[groups >= 0], groups[groups >= 0])

        self._run.in_order(_Scores(self.directions, self.pca.mean_, self.pca.scale_), some)

    def points(self, points: Floats) -> Floats:
        """Points in the plane."""
        return np.asarray((points - self.pca.mean_) @ self._directions_of_columns.T)

    def covariance(self, matrix: Floats) -> Floats:
        """A covariance as it is seen in the plane."""
        return np.asarray(self._directions_of_columns @ matrix @ self._directions_of_columns.T)

    @property
    def _directions_of_columns(self) -> Floats:
        """The directions, for columns that were not scaled yet."""
        return self.directions if self.pca.scale_ is None else self.directions / self.pca.scale_

    def draw(
        self,
        arrows: Sequence[tuple[float, float, str]] = (),
        centres: Floats | None = None,
        ellipses: Sequence[Ellipse] = (),
    ) -> str:
        """The rows, with columns as arrows from the middle, or the centres of groups with their numbers.

        The longest arrow has length 1. An ellipse is a mean, a covariance and the number of its group: what lies within
        two standard deviations. The frame holds all of them.
        """
        outlines = [(_outline(mean, covariance), group) for mean, covariance, group in ellipses]
        long = 0.8 * float(np.abs([self._low, self._high]).max()) or 1.0
        ends = long * np.array([(x, y) for x, y, _ in arrows]).reshape(-1, 2)
        shown = [self._low, self._high, *(outline for outline, _ in outlines), ends]
        every = np.vstack([*shown, *([] if centres is None else [centres])])
        plot = self._plot(every.min(axis=0), every.max(axis=0))
        for scores, groups in self._points:
            for group in np.unique(groups):
                xs, ys = scores[groups == group].T
                plot.dots(xs, ys, self._ink(group), 3, opacity=0.55)
        if self._grid is not None:
            self._grid.draw(plot, self._ink)
        for outline, group in outlines:
            plot.line(outline[:, 0], outline[:, 1], self._ink(group), 1.8, tint=0.08)
        for number, (x, y) in enumerate([] if centres is None else centres):
            ring = f'fill-opacity="0.9" {stroke(colour(number), 2, PAPER)}'
            plot.add(f'<circle cx="{plot.x(x):.1f}" cy="{plot.y(y):.1f}" r="10" {ring}/>')
            plot.add(text(plot.x(x), plot.y(y) + 4, str(number), "middle"))
        draw_arrows(plot, ends, [name for _, _, name in arrows])
        return plot.svg()

    def _plot(self, low: Floats, high: Floats) -> Plot:
        names, shares = self.pca.get_feature_names_out()[:2], self.pca.explained_variance_ratio_
        below, beside = (f"{name} ({percent(share)})" for name, share in zip(names, shares, strict=False))
        plot = Plot(*with_room(low, high), below, _SIZE, beside=beside, equal=True)
        plot.add(line(plot.x(0), plot.top, plot.x(0), plot.bottom, MUTED, 0.5))
        plot.add(line(plot.left, plot.y(0), plot.right, plot.y(0), MUTED, 0.5))
        return plot

    def _ink(self, group: int) -> str:
        return colour(int(group)) if self._groups > 1 else BLUE


def _ends(places: Floats) -> Floats:
    return np.array([places.min(axis=0), places.max(axis=0)])


def _outline(mean: Floats, covariance: Floats) -> Floats:
    """Points around what lies within two standard deviations."""
    values, vectors = np.linalg.eigh(covariance)
    turn = np.linspace(0.0, 2 * np.pi, 61)
    circle = np.column_stack([np.cos(turn), np.sin(turn)]) * (2 * np.sqrt(np.maximum(values, 0.0)))
    return np.asarray(mean + circle @ vectors.T)
