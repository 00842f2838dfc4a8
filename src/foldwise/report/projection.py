"""The rows of a table on two principal components: points while they are few, counts on a grid when they are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.report.formats import percent
from foldwise.report.plane import CELLS, MOST_POINTS, squares
from foldwise.report.svg import BLUE, MUTED, ORANGE, PAPER, Plot, colour, line, stroke, text

_SIZE = 520


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
        self._few = pca.manifest_.rows <= MOST_POINTS
        self._points: list[tuple[Floats, NDArray[Any]]] = []
        self._counts = np.zeros((groups, CELLS, CELLS), dtype=np.int32)
        run = Passes(source, n_threads=pca.n_threads)
        scores = _Scores(self.directions, pca.mean_, pca.scale_)
        reach = 1.03 * np.abs(run.rows(scores)).max(axis=0) if self._few else 2.8 * np.sqrt(pca.explained_variance_[:2])
        self._reach = np.where(reach > 0, reach, 1.0)
        self._labels, self._rows = labels, 0
        run.in_order(scores, self._add)

    def _add(self, scores: Floats) -> None:
        """Take the next rows."""
        here, self._rows = slice(self._rows, self._rows + len(scores)), self._rows + len(scores)
        groups = np.zeros(len(scores), dtype=np.int32) if self._labels is None else np.array(self._labels[here])
        scores, groups = scores[groups >= 0], groups[groups >= 0]  # a row with nothing observed has no place
        if self._few:
            self._points.append((scores, groups))
        else:  # what lies outside is counted at the edge
            cells = np.clip((scores / self._reach + 1) / 2 * CELLS, 0, CELLS - 1).astype(int)
            np.add.at(self._counts, (groups, cells[:, 0], cells[:, 1]), 1)

    def points(self, points: Floats) -> Floats:
        """Points in the plane."""
        return np.asarray((points - self.pca.mean_) @ self.directions.T)

    def covariance(self, matrix: Floats) -> Floats:
        """A covariance as it is seen in the plane."""
        return np.asarray(self.directions @ matrix @ self.directions.T)

    def draw(
        self,
        arrows: Sequence[tuple[float, float, str]] = (),
        centres: Floats | None = None,
        ellipses: Sequence[tuple[Floats, Floats, int]] = (),
    ) -> str:
        """The rows, with columns as arrows from the middle, or the centres of groups with their numbers.

        An ellipse is a mean, a covariance and the number of its group: what lies within two standard deviations.
        """
        (x, y), shares = self._reach, self.pca.explained_variance_ratio_
        below, beside = (
            f"{name} ({percent(share)})"
            for name, share in zip(self.pca.get_feature_names_out()[:2], shares, strict=False)
        )
        plot = Plot((-x, x), (-y, y), below, _SIZE, _SIZE, beside=beside)
        plot.add(line(plot.x(0), plot.top, plot.x(0), plot.bottom, MUTED, 0.5))
        plot.add(line(plot.left, plot.y(0), plot.right, plot.y(0), MUTED, 0.5))
        for scores, groups in self._points:
            for group in np.unique(groups):
                xs, ys = scores[groups == group].T
                plot.dots(xs, ys, self._ink(group), 3, opacity=0.55)
        plot.add(*squares(plot, self._counts, self._ink))
        for mean, covariance, group in ellipses:
            values, vectors = np.linalg.eigh(covariance)
            turn = np.linspace(0.0, 2 * np.pi, 61)
            circle = np.column_stack([np.cos(turn), np.sin(turn)]) * (2 * np.sqrt(np.maximum(values, 0.0)))
            xs, ys = (mean + circle @ vectors.T).T
            plot.line(xs, ys, self._ink(group), 1.8, tint=0.08)
        for number, (x, y) in enumerate([] if centres is None else centres):
            ring = f'fill-opacity="0.9" {stroke(colour(number), 2, PAPER)}'
            plot.add(f'<circle cx="{plot.x(x):.1f}" cy="{plot.y(y):.1f}" r="10" {ring}/>')
            plot.add(text(plot.x(x), plot.y(y) + 4, str(number), "middle"))
        taken: list[tuple[float, float]] = []
        for x, y, name in arrows:
            end_x, end_y = plot.x(x * self._reach[0]), plot.y(y * self._reach[1])
            plot.add(line(plot.x(0), plot.y(0), end_x, end_y, ORANGE, 1.6))
            at = end_y + (-5 if y >= 0 else 13)
            while any(abs(at - other) < 13 and abs(end_x - ox) < 90 for ox, other in taken):
                at += 13 if y < 0 else -13  # labels keep apart
            taken.append((end_x, at))
            plot.add(text(min(max(end_x, plot.left + 40), _SIZE - 50), at, name, "middle", ORANGE))
        return plot.svg()

    def _ink(self, group: int) -> str:
        return colour(int(group)) if len(self._counts) > 1 else BLUE
