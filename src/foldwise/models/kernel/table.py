"""The rows of a fit and what one pass over them tells: number, weights, the automatic gamma."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.part import gathered
from foldwise.fold.run import Run
from foldwise.kernels.targets import Frame
from foldwise.models.kernel import functions
from foldwise.models.kernel.exact import sampled
from foldwise.models.kernel.neighbours import automatic_gamma
from foldwise.models.kernel.start import SAMPLE
from foldwise.models.kmeans.rows import Rows

_NARROWER = 1.5


class Table:
    """One source, looked at once."""

    def __init__(self, run: Run, model: Any) -> None:
        self._model = model
        self.seen = Rows(run)
        self.n, self.d, self.weights = self.seen.n, self.seen.d, self.seen.weights
        self.counted = self.seen.extent.columns.rows
        self.seed = model._seed()

    @property
    def figures(self) -> tuple[Any, ...]:
        """What ties a checkpoint to these values."""
        columns = self.seen.extent.columns
        return columns.weight, columns.centre, columns.squares, self.seen.extent.low, self.seen.extent.high

    def all_rows(self) -> Any:
        """All rows in memory: an array or a CSR matrix."""
        return self.some_rows(np.arange(self.n))

    def some_rows(self, which: NDArray[np.intp]) -> Any:
        """Some rows, by rising numbers: an array or a CSR matrix."""
        if self.seen.source.sparse:
            (piece,) = _one_block(gathered(self.seen.source, which))
            return piece
        return self.seen.take(which)

    def sample(self, size: int) -> tuple[Any, Floats | None]:
        """Rows that count, drawn without repetition, and their weights."""
        weights = np.ones(self.n) if self.weights is None else self.weights
        which = sampled(weights, size, self.seed)
        return self.some_rows(which), None if self.weights is None else weights[which]

    def function(self, frame: Frame) -> functions.Function:
        """The model's kernel, for rows seen in a frame."""
        model = self._model
        return functions.make(model.kernel, self.gamma or 1.0, model.degree, model.coef0, frame)

    @cached_property
    def gamma(self) -> float | None:
        """The gamma asked for, or found; None for kernels without."""
        model, columns = self._model, self.seen.extent.columns
        if callable(model.kernel) or model.kernel == "linear":
            return None
        if model.gamma != "auto":
            return float(model.gamma)
        if model.kernel == "poly":  # products of centred rows are then about 1
            spread = float(columns.squares.sum() / columns.weight)
            return 1.0 / spread if 1e-300 < spread < 1e300 else 1.0
        rows, weights = self.sample(SAMPLE)
        frame = self.seen.frame
        if model.kernel == "laplacian":
            function = functions.Laplacian(frame.scale, frame)  # e^-|y - y'|
            lengths = _lengths(function.seen(rows))
            # Sums of differences fall off more slowly than squares, and a narrower kernel makes up for it.
            return float(_NARROWER * np.sqrt(automatic_gamma(lengths**2, weights)) * frame.scale)
        return float(automatic_gamma(_squares(rows, frame), weights) * frame.scale * frame.scale)


def _lengths(y: Any) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(y, y, "cityblock"))


def _squares(rows: Any, frame: Frame) -> Floats:
    """Squared distances times scale squared."""
    from scipy.spatial.distance import cdist

    if isinstance(rows, np.ndarray):
        y = frame.seen(rows)
        return np.asarray(cdist(y, y, "sqeuclidean"))
    y = rows.astype(np.float64) * frame.scale
    own = np.asarray(y.multiply(y).sum(axis=1)).ravel()
    squares = own[:, None] + own - 2 * (y @ y.T).toarray()
    np.fill_diagonal(squares, 0.0)
    return np.asarray(np.maximum(squares, 0.0))


def _one_block(source: Any) -> list[Any]:
    import scipy.sparse as sp

    return [sp.vstack([piece().rows for piece in source.pieces()], format="csr")]
