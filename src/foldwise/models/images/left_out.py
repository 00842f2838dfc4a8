"""Components without one image, for every image in turn: exactly, at the cost of a few small products each.

In the space of all components the scatter matrix is diagonal, and leaving an image out takes a matrix of rank one away from it.
The eigenvalues of a diagonal matrix less one of rank one are the roots of a rational function between its poles (Golub 1973),
and the eigenvectors have a closed form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.data import n_threads as threads_to_use
from foldwise.data.block import Floats
from foldwise.fold import blas, events, serial, threads

_STEPS = 80  # at most; bisection alone would be done
MOST_WORK = 3e11  # multiplications for all images


def work_of(n_images: int, rank: int, n_components: int) -> float:
    """The multiplications that `nearest_without_itself` takes, roughly."""
    return float(n_images) * n_components * rank * (n_images + 40)


def nearest_without_itself(scores: Floats, counts: Sequence[int], *, n_threads: int | None = None) -> NDArray[np.intp]:
    """For each row and each count, the nearest other row in as many first components of the rows without it.

    `scores` are the rows on all components that have any variance.
    """
    n = len(scores)
    squares = np.einsum("ij,ij->j", scores, scores)
    found = np.zeros((n, len(counts)), np.intp)
    wanted, done = np.asarray(counts) - 1, 0

    def work(_: int, row: int) -> tuple[int, NDArray[np.intp]]:
        taken = scores[row] * np.sqrt(n / (n - 1))
        directions = leading_without(squares, taken, max(counts))
        gaps = (scores - scores[row]) @ directions
        distances = np.cumsum(gaps * gaps, axis=1)[:, np.minimum(wanted, gaps.shape[1] - 1)]
        distances[row] = np.inf
        return row, distances.argmin(axis=0)

    def take(_: int, result: tuple[int, NDArray[np.intp]]) -> None:
        nonlocal done
        found[result[0]] = result[1]
        done += 1
        if done % 16 == 0 and events.heard():
            events.emit(events.RowsRead(done, n, 1))

    used = threads_to_use.count(n_threads)
    with blas.single():
        (serial.run if used == 1 else threads.run)(range(n), work, take, used)
    return found


def leading_without(diagonal: Floats, taken: Floats, k: int) -> Floats:
    """The `k` leading eigenvectors, as columns, of diag(`diagonal`) - `taken` `taken`^T; `diagonal` falls.

    >>> leading_without(np.array([4.0, 1.0]), np.array([0.0, 1.0]), 1).round(6).tolist()
    [[1.0], [0.0]]
    """
    d = len(diagonal)
    k = min(k, d)
    if d == 1:
        return np.ones((1, 1))
    size = float(np.linalg.norm(taken))
    gaps = diagonal[:-1] - diagonal[1:]
    # Equal poles, or one without a weight, leave a direction as it is: a general solver for them, which are rare.
    if not size > 0 or gaps[: min(k, d - 1)].min() <= 1e-10 * diagonal[0] or np.abs(taken).min() <= 1e-12 * size:
        _, vectors = np.linalg.eigh(np.diag(diagonal) - np.outer(taken, taken))
        return np.asarray(vectors[:, ::-1][:, :k])
    weights = taken * taken
    last = np.arange(k) == d - 1  # below the last pole there is none, but no root further away than this
    low = np.append(diagonal[1:], diagonal[-1] - float(weights.sum()))[:k]
    width = diagonal[:k] - low
    # A root is told by its distance from the pole it is nearer to: differences of poles are exact, and so is what is added.
    upper = _Between(diagonal, weights, diagonal[:k]).smooth(0.5 * width) >= 0
    origin = np.where(upper | last, diagonal[:k], low)
    near = np.where(upper | ~last, 0.0, 0.5 * width)
    far = np.where(upper, 0.5 * width, np.where(last, width, -0.5 * width))
    between = _Between(diagonal, weights, origin)
    vectors = taken / (between.poles + between.roots(near, far)[:, None])
    return np.asarray((vectors / np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]).T)


class _Between:
    """The function 1 - sum of weights / (pole - x) at x = origin - shift, one row for each root that is looked for.

    It rises with the shift from one pole to the next. The pole at shift 0 is taken out by a factor, so that secants find the
    root in a few steps.
    """

    def __init__(self, diagonal: Floats, weights: Floats, origin: Floats) -> None:
        self.poles = diagonal - origin[:, None]
        own = self.poles == 0
        self._others = np.where(own, np.inf, self.poles)
        self._weights, self._own = weights, own @ weights

    def smooth(self, shift: Floats) -> Floats:
        """The function times the shift."""
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = np.reciprocal(self._others + shift[:, None]) @ self._weights
        return np.asarray(shift - shift * sums - self._own)

    def roots(self, a: Floats, b: Floats) -> Floats:
        """Where it is zero between two shifts, by secants that are kept inside a shrinking bracket (Ridders 1979)."""
        fa, fb = self.smooth(a), self.smooth(b)
        for _ in range(_STEPS):
            m = 0.5 * (a + b)
            fm = self.smooth(m)
            root = np.sqrt(np.maximum(fm * fm - fa * fb, 0.0))
            towards = (m - a) * np.where(fa >= fb, fm, -fm)
            x = m + np.divide(towards, root, out=np.zeros_like(m), where=root > 0)
            before = np.abs(b - a)
            for point, value in ((m, fm), (x, self.smooth(x))):
                inside = (point - a) * (point - b) <= 0
                left = inside & (np.sign(value) == np.sign(fa))
                right = inside & ~left
                a, fa = np.where(left, point, a), np.where(left, value, fa)
                b, fb = np.where(right, point, b), np.where(right, value, fb)
            now = np.abs(b - a)
            if np.all((now <= 1e-13 * np.abs(b)) | (now == before) | (fa == 0) | (fb == 0)):
                break
        return np.where(np.abs(fb) <= np.abs(fa), b, a)
