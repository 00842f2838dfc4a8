"""Which solver runs: the one that svd_solver names or, for "auto", the cheapest. Nothing else decides this."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from foldwise.data.source import Source, count_rows
from foldwise.models.pca.costs import FEW_COLUMNS, cheapest, decisive_rows
from foldwise.models.pca.solver import Solver
from foldwise.models.pca.solvers import BY_PARAMETER, SOLVERS


def solver_for(asked: str, n_components: Any, source: Source) -> Solver:
    """The solver that a PCA with svd_solver=`asked` runs on these data."""
    d = source.n_columns
    if asked == "auto":
        k, fill = int(n_components) if isinstance(n_components, Integral) else None, getattr(source, "fill", 1.0)
        n = d if d <= FEW_COLUMNS else count_rows(source, decisive_rows(d, k))
        wide = source.dtype != np.float32 or not isinstance(n_components, Integral | None)
        return SOLVERS[cheapest(n, d, k, sparse=source.sparse, fill=fill, wide=wide)]
    if asked == "covariance_eigh" and not source.sparse and d > FEW_COLUMNS and count_rows(source, d) < d:
        return SOLVERS["gram"]  # the same decomposition seen from the smaller side
    return BY_PARAMETER[asked]
