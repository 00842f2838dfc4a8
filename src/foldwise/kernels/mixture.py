"""The arithmetic of EM for Gaussians: densities, responsibilities and weighted sums, one block of rows at a time."""

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
    """Gaussian components, packed once for a pass and then applied to rows of one dtype.

    `whiten` holds the transformation of x - mean to independent unit normals: full (k, d, d), upper triangular U with U U' the
    inverse covariance, applied as U'(x - mean); tied one such (d, d); diag (k, d) and spherical (k,) the inverse
    standard deviations. `log_weights` holds the constant terms: log weight + log det U - d/2 log 2 pi.

    `pivot` lies near the middle of the data and has values of their dtype. Rows are used as x - pivot, and sums are taken
    about the component's own mean, so nothing cancels, however far from zero the data are.

    `scatter` is the kind of squares that `step` sums: "full" a (d, d) matrix per component, "tied" one matrix for all
    components, "diag" only the diagonals, (k, d), "none" none.

    Arithmetic is in float64, except that `step` processes float32 rows in float32 where that is accurate enough: `narrow`
    says whether it is, and can forbid it. Accurate enough means log densities correct to about 1e-6 per row and other sums to
    1e-6 of a standard deviation; this fails if columns are nearly dependent, or more than 64, or a mean is over 32 of its
    standard deviations from the pivot. Rows far from all components are always computed in float64.
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
        return partial(Components, **options), given  # repacked when unpickled

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
