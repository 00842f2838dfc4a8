"""The rows of a fit and what one pass over them tells: number, weights, the automatic gamma."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.subset import gather
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Rescaling
from foldwise.models.kernel import centring, functions
from foldwise.models.kernel.exact import sampled
from foldwise.models.kernel.neighbours import automatic_gamma
from foldwise.models.kernel.start import SAMPLE
from foldwise.models.kmeans.assignment import Assignment

_NARROWER = 1.5
_LARGEST = 1e300  # and its inverse: a gamma beyond has not all its digits, or is 0 or infinite


class KernelFitData:
    """One source, looked at once."""

    def __init__(self, run: Passes, model: Any) -> None:
        self._model = model
        self.seen = Assignment(run)
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
            (piece,) = _one_block(gather(self.seen.source, which))
            return piece
        return self.seen.take(which)

    def sample(self, size: int) -> tuple[Any, Floats | None]:
        """Rows that count, drawn without repetition, and their weights."""
        weights = np.ones(self.n) if self.weights is None else self.weights
        which = sampled(weights, size, self.seed)
        return self.some_rows(which), None if self.weights is None else weights[which]

    @cached_property
    def frame(self) -> Rescaling:
        """From where the rows are seen."""
        return centring.frame_for(self.seen)

    def function(self, frame: Rescaling) -> functions.Function:
        """The model's kernel, for rows seen in a frame."""
        model = self._model
        return functions.make(model.kernel, self.gamma or 1.0, model.degree, model.coef0, frame)

    @cached_property
    def gamma(self) -> float | None:
        """The gamma asked for, or found; None for kernels without."""
        model = self._model
        if callable(model.kernel) or model.kernel == "linear":
            return None
        if model.gamma != "auto":
            return float(model.gamma)
        found = self._found_gamma()
        if not 1 / _LARGEST < found < _LARGEST:
            where = self.seen.source.where
            raise DataError(
                f"gamma='auto' is {found:.3g} for these rows, which leaves the range of float64",
                where=None if where == "array" else where,
                advice=f"{'Divide' if found < 1 else 'Multiply'} the data by a constant, so that values are nearer to 1",
            )
        return found

    def _found_gamma(self) -> float:
        model, frame = self._model, self.frame
        if model.kernel == "poly":  # products of centred rows are then about 1
            scale = self.seen.frame.scale
            spread = float(self.seen.squares.sum() / self.seen.extent.columns.weight)
            return 1.0 / spread * scale * scale if spread > 0 else 1.0
        rows, weights = self.sample(SAMPLE)
        if model.kernel == "laplacian":
            function = functions.Laplacian(frame.scale, frame)  # e^-|y - y'|
            squares = _lengths(function.seen(rows)) ** 2
        else:
            squares = _squares(rows, frame)
        if not squares.any():  # all equal: any gamma will do
            return 1.0
        found = automatic_gamma(squares, weights)
        if model.kernel == "laplacian":
            # Sums of differences fall off more slowly than squares, and a narrower kernel makes up for it.
            return float(_NARROWER * np.sqrt(found)) * frame.scale
        return found * frame.scale * frame.scale


def _lengths(y: Any) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(y, y, "cityblock"))


def _squares(rows: Any, frame: Rescaling) -> Floats:
    """Squared distances times scale squared."""
    from scipy.spatial.distance import cdist

    y = centring.seen(rows, frame)
    if isinstance(y, np.ndarray):
        return np.asarray(cdist(y, y, "sqeuclidean"))
    own = np.asarray(y.multiply(y).sum(axis=1)).ravel()
    squares = own[:, None] + own - 2 * (y @ y.T).toarray()
    np.fill_diagonal(squares, 0.0)
    return np.asarray(np.maximum(squares, 0.0))


def _one_block(source: Any) -> list[Any]:
    import scipy.sparse as sp

    return [sp.vstack([piece.load().rows for piece in source.pieces()], format="csr")]
