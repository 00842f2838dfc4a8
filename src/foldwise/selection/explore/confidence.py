"""How often every row keeps its cluster in fits to other rows, where there are more rows than take part in these fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.fold.row_arrays import WithRowArray
from foldwise.models.base import n_clusters_of, with_missing
from foldwise.models.kmeans import KMeans
from foldwise.models.pca.normal_model import inverse_of
from foldwise.selection.refit import Refit
from foldwise.selection.resample import Draw
from foldwise.selection.stability import METHODS, matched
from foldwise.stats.contingency import Contingency

_FITS, _FITS_THAT_READ = 25, 8


def confidence_of(
    model: Any, sample: Source, rows: Source, labels: NDArray[np.int32], seed: int
) -> NDArray[np.float32]:
    """The share of fits to rows drawn from the sample in which each of all rows keeps the cluster it has in `labels`.

    The clusters of each fit are matched with those of the model over the sample. For k-means all rows are read once; for other
    models once for each of fewer fits. NaN for rows in no cluster.
    """
    refit = Refit.of(model, seed)
    passes = Passes(with_missing(model, sample), n_threads=model.n_threads)
    own, k = refit.labels(model, passes), n_clusters_of(model)
    quick = isinstance(model, KMeans) and not sample.sparse
    fits, matches = [], []
    for number in range(_FITS if quick else _FITS_THAT_READ):
        try:
            drawn = Draw(True, METHODS["bootstrap"], seed, number).rows(passes)
            fitted = refit.fit(drawn, number)
        except DataError:  # too few different rows were drawn
            continue
        found = refit.labels(fitted, passes)
        fits.append(fitted)
        matches.append(matched(Contingency.of(own, found, (k, n_clusters_of(fitted)))))
    if not fits:
        return np.full(len(labels), np.nan, dtype=np.float32)
    if quick:
        task = _ShareKept.of(fits, matches)
        kept = Passes(with_missing(model, rows), n_threads=model.n_threads).rows(WithRowArray(task, labels))
    else:
        agree = [
            matches[i][refit.labels(one, Passes(with_missing(model, rows)))] == labels for i, one in enumerate(fits)
        ]
        kept = np.asarray(np.mean(agree, axis=0, dtype=np.float32))
    return np.asarray(np.where(labels >= 0, kept, np.nan), dtype=np.float32)


@dataclass(frozen=True)
class _ShareKept:
    """Nearest centres by several k-means at once: squared distances are products with all their centres side by side.

    Each fit sees rows in units of its own (`shifts`, `inverses`), or by their directions (`cosine`).
    """

    centres: tuple[Floats, ...]
    shifts: tuple[Floats, ...]
    inverses: tuple[Floats, ...]
    matches: tuple[NDArray[np.int32], ...]
    cosine: bool

    @classmethod
    def of(cls, fits: list[Any], matches: list[NDArray[np.int32]]) -> _ShareKept:
        """For fitted k-means."""
        d = fits[0].cluster_centers_.shape[1]
        inverses = [
            np.ones(d) if one.scale_ is None else inverse_of(np.asarray(one.scale_, dtype=np.float64)) for one in fits
        ]
        means = [np.zeros(d) if one.mean_ is None else np.asarray(one.mean_, dtype=np.float64) for one in fits]
        centres = [np.asarray(one.cluster_centers_, dtype=np.float64) for one in fits]
        return cls(tuple(centres), tuple(means), tuple(inverses), tuple(matches), fits[0].metric == "cosine")

    def __call__(self, block: Block, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """The share of the fits in which each row is with the cluster of its label."""
        rows = block.dense().astype(np.float64)
        gaps = np.isnan(rows)
        some = bool(gaps.any())
        kept = np.zeros(len(rows), dtype=np.float32)
        for centres, shift, inverse, match in zip(self.centres, self.shifts, self.inverses, self.matches, strict=True):
            x = (rows - shift) * inverse
            if some:
                x[gaps] = 0.0
            products = x @ centres.T
            if not self.cosine:  # of directions, the nearest is that of the largest product
                squares = (~gaps).astype(np.float64) @ (centres**2).T if some else (centres**2).sum(axis=1)
                products = products - 0.5 * squares
            kept += match[np.argmax(products, axis=1)] == labels
        return kept / np.float32(len(self.centres))
