"""EM for Gaussians over rows with missing cells, which are NaN: marginal densities, and expected sums of what is missing."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from foldwise.kernels import _core
from foldwise.kernels.mixture import _SCATTERS, Components, Floats, Kind, Scatter


class GapComponents:
    """`Components` for rows some of whose cells are missing; it takes the same arguments, and does the same for complete rows.

    A row's density is that of its observed cells. In `step`, missing cells count as what they are expected to be, given the
    observed ones and the component, and the scatter has their conditional covariance added. Incomplete rows are always
    processed in float64. A row without any observed cell has a density of 1, and belongs to components by their weights.
    """

    takes_gaps: ClassVar[bool] = True

    def __init__(
        self,
        kind: Kind,
        log_weights: Floats,
        means: Floats,
        whiten: Floats,
        pivot: Floats,
        dtype: np.dtype[Any],
        *,
        scatter: Scatter,
        narrow: bool = True,
    ) -> None:
        self.kind, self.scatter, self.means = kind, scatter, means
        options: dict[str, Any] = {"scatter": scatter, "narrow": narrow}
        self._given = (kind, log_weights, means, whiten, pivot, dtype), options
        self.whole = Components(kind, log_weights, means, whiten, pivot, dtype, **options)
        self._sorts = kind in ("full", "tied")  # so that rows alike share a factorisation
        prepared = (
            _independent(kind, whiten, *means.shape) if kind in ("diag", "spherical") else _matrices(whiten, len(means))
        )
        self._core = _core.GapComponents(_SCATTERS.index(scatter), log_weights, means, pivot, **prepared)

    def __reduce__(self) -> tuple[Any, ...]:
        given, options = self._given
        return partial(GapComponents, **options), given  # prepared anew when unpickled

    def step(
        self, rows: NDArray[Any], weights: Floats | None, counts: Floats, shift: Floats, scatter: Floats | None
    ) -> float:
        """As `Components.step`, with the expected sums of rows that have missing cells."""
        complete, others = gap_order(rows, by_gaps=self._sorts)
        if not len(others):
            return self.whole.step(rows, weights, counts, shift, scatter)
        value = self._core.step(rows, weights, others, counts, shift, scatter)
        if len(complete):
            some = None if weights is None else weights[complete]
            value += self.whole.step(rows[complete], some, counts, shift, scatter)
        return value

    def logs(self, rows: NDArray[Any], total: Floats, each: Floats | None = None) -> None:
        """As `Components.logs`, with the densities of what is observed."""
        complete, others = gap_order(rows, by_gaps=self._sorts)
        if not len(others):
            self.whole.logs(rows, total, each)
            return
        if len(complete):
            part, parts = np.empty(len(complete)), None if each is None else np.empty((len(complete), each.shape[1]))
            self.whole.logs(rows[complete], part, parts)
            total[complete] = part
            if each is not None:
                each[complete] = parts
        self._core.logs(rows, others, total, each)

    def completed(self, rows: NDArray[Any]) -> tuple[Floats, Floats]:
        """The rows with expected values for missing cells, and the standard deviations of these; 0 for observed cells."""
        out, deviations = rows.astype(np.float64), np.zeros(rows.shape)
        _, others = gap_order(rows, by_gaps=self._sorts)
        if len(others):
            self._core.complete(rows, others, out, deviations, None, None)
        return out, deviations

    def drawn(self, rows: NDArray[Any], uniform: Floats, noise: Floats) -> Floats:
        """The rows with missing cells drawn from their conditional distribution.

        `uniform` numbers, one for each row, choose the component, and unit normals, `noise`, one for each cell, the values.
        """
        out = rows.astype(np.float64)
        _, others = gap_order(rows, by_gaps=self._sorts)
        if len(others):
            total, each = np.empty(len(rows)), np.zeros((len(rows), len(self.means)))
            self._core.logs(rows, others, total, each)
            chosen = (np.exp(each).cumsum(axis=1)[:, :-1] < uniform[:, None]).sum(axis=1, dtype=np.int32)
            self._core.complete(rows, others, out, None, noise, chosen)
        return out


def gap_order(rows: NDArray[Any], *, by_gaps: bool = True) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The numbers of complete rows, in order, and those of the others, `by_gaps` sorted by which of their cells are missing."""
    order = np.empty(len(rows), dtype=np.int32)
    complete = _core.gap_order(rows, by_gaps, order)
    return order[:complete], order[complete:]


def _independent(kind: Kind, whiten: Floats, k: int, d: int) -> dict[str, Any]:
    each = whiten[:, None] if kind == "spherical" else whiten
    names = ("whiten", "factors", "precisions", "correlations", "deviations", "log_determinants")
    return {"lengths": np.ascontiguousarray(np.broadcast_to(each, (k, d))), **dict.fromkeys(names)}


def _matrices(whiten: Floats, k: int) -> dict[str, Any]:
    """What the kernel needs of U: everything about its precision and its covariance in units of their diagonals."""
    each = np.ascontiguousarray(whiten if whiten.ndim == 3 else whiten[None])
    size = np.abs(each).max(axis=2, keepdims=True)  # squares of very large or small values would leave float64
    lengths = (size * np.linalg.norm(each / size, axis=2, keepdims=True))[:, :, 0]
    factors = each / lengths[:, :, None]
    # U = diag(lengths) factors, so the covariance is a product of the factors' inverses in units of 1 / lengths.
    roots = np.stack([dtrtri(one.T, lower=1)[0] for one in factors])
    scaled = np.sqrt(np.einsum("kij,kij->ki", roots, roots))
    roots = roots / scaled[:, :, None]
    logs = np.log(np.diagonal(each, axis1=1, axis2=2)).sum(axis=1)
    return {
        "lengths": lengths,
        "whiten": each,
        "factors": np.ascontiguousarray(factors),
        "precisions": _unit(factors @ factors.transpose(0, 2, 1)),
        "correlations": _unit(roots @ roots.transpose(0, 2, 1)),
        "deviations": np.ascontiguousarray(scaled / lengths),
        "log_determinants": np.ascontiguousarray(np.broadcast_to(logs, (k,))),
    }


def _unit(matrices: Floats) -> Floats:
    """Matrices with ones on their diagonals, which rounding has left a little beside."""
    out = np.ascontiguousarray(matrices)
    out[:, np.arange(out.shape[1]), np.arange(out.shape[1])] = 1.0
    return out
