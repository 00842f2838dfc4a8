"""Targets for sparse rows: products over the stored values only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels.targets import Floats, Frame, Grid, Labels


class SparseTargets:
    """The interface of DenseTargets for CSR rows; nothing is made dense but the targets."""

    def __init__(self, points: NDArray[Any], frame: Frame) -> None:
        self.points, self.frame = points, frame
        self._wide = points.astype(np.float64) * frame.scale
        self._half = 0.5 * np.einsum("ij,ij->i", self._wide, self._wide)

    def nearest(
        self, rows: Any, labels: Labels, near: NDArray[Any] | None = None, next_: NDArray[Any] | None = None
    ) -> tuple[int, int, int]:
        wide = rows.astype(np.float64) * self.frame.scale
        scores = wide @ self._wide.T - self._half
        new = scores.argmax(axis=1).astype(np.int32)
        moved = int(np.count_nonzero(new != labels))
        labels[:] = new
        square = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        if near is not None:
            near[:] = np.maximum(square - 2 * scores.max(axis=1), 0)
        if next_ is not None:
            scores[np.arange(len(new)), new] = -np.inf
            next_[:] = np.maximum(square - 2 * scores.max(axis=1), 0)
        return moved, len(labels), 0

    def transfer(
        self,
        rows: Any,
        weights: Floats | None,
        weight_scale: float,
        before: Labels | None,
        after: Labels,
        slots: Labels,
        grid: Grid,
        sums: tuple[Floats, Floats, Floats],
    ) -> None:
        high, low, weight = sums
        m, d = high.shape
        old = np.full(len(after), -1, dtype=np.int32) if before is None else before
        moved = np.flatnonzero(old != after)
        factor = np.ones(len(moved)) if weights is None else weights[moved] * weight_scale
        some = rows[moved].astype(np.float64)
        lengths = np.diff(some.indptr)
        parts = grid.cut(some.data * self.frame.scale * np.repeat(factor, lengths))
        weight_parts = grid.cut(factor)
        for labels, sign in ((after[moved], 1.0), (old[moved], -1.0)):
            use = labels >= 0
            place = np.where(use, slots[labels], 0)
            keep = np.repeat(use, lengths)
            flat = np.repeat(place, lengths).astype(np.int64) * d + some.indices
            for out, part in zip((high, low), parts, strict=True):
                out += sign * np.bincount(flat[keep], part[keep], minlength=m * d).reshape(m, d)
            for line, part in enumerate(weight_parts):
                weight[line] += sign * np.bincount(place[use], part[use], minlength=m)

    def residuals(self, rows: Any, weights: Floats | None, labels: Labels, each: Floats | None = None) -> Floats:
        wide = rows.astype(np.float64) * self.frame.scale
        found = np.empty(len(labels))
        for label in np.unique(labels):
            here = np.flatnonzero(labels == label)
            some = wide[here]
            own = self._wide[label]
            # |x - c|^2 = |c|^2 + sum over stored values of (x - c)^2 - c^2
            gap = (some.data - own[some.indices]) ** 2 - own[some.indices] ** 2
            start = np.concatenate([[0.0], np.cumsum(gap)])
            found[here] = np.maximum(start[some.indptr[1:]] - start[some.indptr[:-1]] + own @ own, 0.0)
        if each is not None:
            each[:] = found
        return np.bincount(labels, found if weights is None else found * weights, minlength=len(self.points))

    def closer(self, rows: Any, weights: Floats | None, taken: int, closest: NDArray[Any]) -> tuple[float, Floats]:
        wide = rows.astype(np.float64) * self.frame.scale
        square = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        distances = np.maximum(square[:, None] - 2 * (wide @ self._wide.T - self._half), 0.0)
        if taken:
            closest[:] = np.minimum(closest, distances[:, :taken].min(axis=1))
        factor = np.ones(len(closest)) if weights is None else weights
        trial = np.minimum(closest[:, None], distances[:, taken:])
        return float(factor @ closest), np.asarray(factor @ trial)

    def distances(self, rows: Any) -> NDArray[Any]:
        wide = rows.astype(np.float64) * self.frame.scale
        square = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        found = np.sqrt(np.maximum(square[:, None] - 2 * (wide @ self._wide.T - self._half), 0.0))
        return np.asarray((found / self.frame.scale).astype(rows.dtype))
