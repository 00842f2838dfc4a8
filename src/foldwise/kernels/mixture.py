"""The arithmetic of EM for Gaussians: densities, responsibilities and the sums they weigh, a block of rows at a time."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core

Floats = NDArray[np.float64]
Kind: TypeAlias = Literal["full", "tied", "diag", "spherical"]
Scatter: TypeAlias = Literal["full", "tied", "diag", "none"]

_KINDS, _SCATTERS = get_args(Kind), get_args(Scatter)  # numbered as in cpp/components.h


class Components:
    """Gaussians that rows are compared with: packed once for a pass, then given rows of one dtype.

    `whiten` holds what turns x - mean into independent unit normals: full (k, d, d), upper triangular U with U U' the
    inverse covariance, applied as U'(x - mean); tied one such (d, d); diag (k, d) and spherical (k,) the inverse
    standard deviations. `log_weights` holds all that is constant: log weight + log det U - d/2 log 2 pi.

    `pivot` lies near the middle of the data and has values of their dtype. Rows are looked at as x - pivot, and sums are
    taken about the component's own mean: nothing cancels, however far from zero the data are.

    `scatter` says which squares `step` sums up: "full" a (d, d) matrix of each component, "tied" one matrix for all of
    them together, "diag" only the diagonals, (k, d), "none" none.

    float64 is computed in, except that `step` takes float32 rows in float32 where that is good enough: `narrow` says whether
    it is, and may forbid it. Good enough means sums of log densities right to about 1e-6 per row, the others to 1e-6 of a
    standard deviation; where columns are nearly dependent, or more than 64, or a mean is over 32 of its standard deviations
    from the pivot, it is not. Rows far from all components are computed in float64 all the same.
    """

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
        single = np.dtype(dtype) == np.float32
        self._core = _core.Components(
            _KINDS.index(kind), _SCATTERS.index(scatter), log_weights, means, whiten, pivot, single, narrow
        )

    def __reduce__(self) -> tuple[Any, ...]:
        given, options = self._given
        return partial(Components, **options), given  # packed again wherever it is unpickled

    @property
    def narrow(self) -> bool:
        """Whether `step` computes in float32."""
        return self._core.narrow

    def step(
        self, rows: NDArray[Any], weights: Floats | None, counts: Floats, shift: Floats, scatter: Floats | None
    ) -> float:
        """Add to `counts` the sums of w r, to `shift` of w r (x - mean), to `scatter` of w r (x - mean)(x - mean)'.

        r is the responsibility of the component for the row, w the row's weight. Matrices are filled on both sides of
        the diagonal. Returns the weighted sum of the log densities.
        """
        return self._core.step(rows, weights, counts, shift, scatter)

    def logs(self, rows: NDArray[Any], total: Floats, each: Floats | None = None) -> None:
        """Write the log density of each row to `total` (n,), and the log responsibilities to `each` (n, k)."""
        self._core.logs(rows, total, each)
