"""Where Krylov starts for sparse data with more columns than rows: the directions that the Gram matrix of the rows gives.

The Gram matrix costs little and its eigenvectors give the leading directions, up to rounding, at once; from random vectors it
takes dozens of steps. What it loses where columns are far from zero, the steps make good.
"""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats, SparseBlock
from foldwise.fold.passes import Passes

_MOST_ROWS = 500  # of more, the steps from the side of the rows (row_side.py) are quicker
_MOST_WORK = 5e8  # multiplications for the Gram matrix, which SciPy makes one by one


def is_wide(passes: Passes) -> bool:
    """Whether rows are sparse and so few that their Gram matrix is cheap."""
    source = passes.source
    n, d, fill = source.n_rows, source.n_columns, float(getattr(source, "fill", 1.0))
    return bool(source.sparse and n is not None and n < d and n <= _MOST_ROWS and n * n * d * fill**2 <= _MOST_WORK)


def directions(passes: Passes, centre: Floats, scale: Floats | None, width: int, seed: int) -> Floats:
    """Orthonormal columns: the `width` leading directions of the rows less the centre, and any others if there are fewer."""
    import scipy.sparse as sp
    from scipy.linalg import eigh

    blocks = [piece.load() for piece in passes.source.pieces()]
    rows = sp.vstack([block.matrix for block in blocks if isinstance(block, SparseBlock)], format="csr").astype(
        np.float64
    )
    middle = centre if scale is None else centre / scale
    if scale is not None:
        rows.data /= scale[rows.indices]
    roots = np.sqrt(np.concatenate([np.ones(b.n_rows) if b.weights is None else b.weights for b in blocks]))
    along = np.asarray(rows @ middle)
    gram = (rows @ rows.T).toarray() - along[:, None] - along + float(middle @ middle)
    gram *= roots[:, None] * roots
    n, d = rows.shape
    _, codes = eigh(gram, subset_by_index=[max(0, n - width), n - 1], check_finite=False)
    codes = codes[:, ::-1] * roots[:, None]
    found = np.asarray(rows.T @ codes) - np.outer(middle, codes.sum(axis=0))
    further = np.random.default_rng(seed).standard_normal((d, max(0, width - codes.shape[1])))
    return np.asarray(np.linalg.qr(np.hstack([found, further]))[0])
