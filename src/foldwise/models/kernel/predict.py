"""A fitted model and new rows: their distances to the means, which are sums over the rows of the fit, or of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.recut import RecutSource, cut
from foldwise.data.row_pairs import from_arrays, rescaling_of, stored_like
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import DenseTargets, Labels, rescaling_around
from foldwise.models.base import RowOutput, open_for_use
from foldwise.models.kernel.features import FeatureSource, feature_map
from foldwise.models.kernel.functions import Kernel, kernel_class
from foldwise.models.kernel.geometry import Means, coefficients, effective_weights
from foldwise.models.kernel.kernel_matrix import STRIPE, diagonal_of, kernel_sums, matrix_sums

# ---------------------------------------------------------------- how rows are compared with the means


class Comparison(Protocol):
    """Squared distances of a block's rows to all means, their labels, and what rows are divided by, if at all."""

    def __call__(self, block: Block) -> tuple[Floats, Labels, Floats | None]:
        """For one block."""


@dataclass(frozen=True)
class ToMembers:
    """Means that are known by their members: the kernel of each row with the rows of the fit, times coefficients.

    Without a kernel the rows are those of a precomputed matrix, of which `diagonal` is known for the rows of the fit alone.
    """

    coefficients: Floats
    means: Means
    kernel: Kernel | None
    rows: Block | None
    diagonal: Floats | None = None

    def __call__(self, block: Block) -> tuple[Floats, Labels, Floats | None]:
        """In stripes, as in the fit."""
        block = block.with_rows(block.rows)  # which must be finite
        found = [self._stripe(part) for part in cut(block, STRIPE)]
        sums = np.concatenate([part for part, _ in found])
        own = None if found[0][1] is None else np.concatenate([np.asarray(part) for _, part in found])
        return *self.means.distances(sums, own), self.means.degrees(sums)

    def _stripe(self, part: Block) -> tuple[Floats, Floats | None]:
        if self.kernel is None or self.rows is None:
            own = None if self.diagonal is None else self.diagonal[part.start : part.start + part.n_rows]
            return matrix_sums(self.coefficients, None, part), own
        prepared = self.kernel.prepare(stored_like(self.rows, part))
        return kernel_sums(self.kernel, self.rows, self.coefficients, prepared), self.kernel.diagonal(prepared)


@dataclass(frozen=True)
class ToCentres:
    """Means of features, which are points."""

    targets: DenseTargets

    def __call__(self, block: Block) -> tuple[Floats, Labels, Floats | None]:
        """By ordinary distances."""
        values = block.dense()
        labels = np.full(len(values), -1, dtype=np.int32)
        self.targets.nearest(values, labels)
        return self.targets.distances(values).astype(np.float64) ** 2, labels, None


# ---------------------------------------------------------------- tasks


def labels_of(compare: Comparison, block: Block) -> Labels:
    """The nearest mean of each row."""
    return compare(block)[1]


def distances_of(compare: Comparison, dtype: np.dtype[Any], block: Block) -> NDArray[Any]:
    """The distance of each row to each mean."""
    return np.asarray(np.sqrt(np.maximum(compare(block)[0], 0.0)).astype(dtype))


def nearest_squares(compare: Comparison, block: Block) -> Floats:
    """The squared distance of each row to its mean and, in a second column, how much the row counts, if rows differ."""
    squares, labels, degrees = compare(block)
    own = squares[np.arange(len(labels)), labels]
    if block.weights is None and degrees is None:
        return own[:, None]
    weights = np.ones(len(own)) if block.weights is None else np.array(block.weights)
    return np.stack([own, effective_weights(weights, degrees)], axis=1)


def records_of(compare: Comparison, dtype: np.dtype[Any], block: Block) -> NDArray[Any]:
    """The cluster of each row and the distance to its mean."""
    squares, labels, _ = compare(block)
    records = np.empty(block.n_rows, dtype)
    records["cluster"] = labels
    records["distance"] = np.sqrt(np.maximum(squares[np.arange(len(labels)), labels], 0.0))
    return records


# ---------------------------------------------------------------- what the model offers


def labels(model: Any, X: Any) -> Labels:
    """The nearest mean of each row."""
    source = _open(model, X)
    passes, compare = _passes(model, source, distances=False)
    with blas.single():
        return passes.rows(partial(labels_of, compare))


def distances(model: Any, X: Any) -> NDArray[Any]:
    """The distance of each row to each mean, in the dtype of the rows."""
    source = _open(model, X)
    passes, compare = _passes(model, source)
    with blas.single():
        return passes.rows(partial(distances_of, compare, source.dtype))


def inertia(model: Any, X: Any, sample_weight: Any) -> float:
    """The sum of squared distances of rows to their means."""
    passes, compare = _passes(model, _open(model, X, sample_weight))
    with blas.single():
        own, *weights = np.ascontiguousarray(passes.rows(partial(nearest_squares, compare)).T)
    return float(own @ weights[0] if weights else own.sum())


def row_output(model: Any, source: Source) -> RowOutput:
    """Records of cluster and distance."""
    if kernel_class(model.kernel).precomputed:
        raise ParameterError("a model of a precomputed kernel has no distances for new rows; use predict.")
    dtype = np.dtype([("cluster", np.int32), ("distance", source.dtype)])
    source = _seen(model, source)
    return RowOutput(source, ("cluster", "distance"), dtype, partial(records_of, _comparison(model, source), dtype))


def _open(model: Any, X: Any, sample_weight: Any = None) -> Source:
    if not kernel_class(model.kernel).precomputed:
        return open_for_use(model, X, sample_weight)
    source = scan(X, weights=sample_weight)
    if source.n_columns != model.n_features_in_:
        raise DataError(
            f"X has {source.n_columns} features, but KernelKMeans is expecting {model.n_features_in_} features as input",
            advice="Precomputed: one column for each row of the fit",
        )
    return source


def _passes(model: Any, source: Source, *, distances: bool = True) -> tuple[Passes, Comparison]:
    """Passes over rows as they are compared, and how."""
    if distances and kernel_class(model.kernel).precomputed and not _is_fitted_matrix(model, source):
        raise ParameterError(
            "distances need the kernel of each new row with itself, which a precomputed matrix of new rows with those of "
            "the fit does not contain; predict works, and so does the matrix of the fit itself."
        )
    seen = _seen(model, source)
    compare = _comparison(model, seen, distances=distances)
    # Work on a row grows with the rows of the fit, so threads share even one block.
    low = RecutSource(seen, STRIPE) if isinstance(compare, ToMembers) else seen
    return Passes(low, n_threads=model.n_threads), compare


def _is_fitted_matrix(model: Any, source: Source) -> bool:
    """Whether a precomputed matrix is the one of the fit: its diagonal tells."""
    if source.n_rows != source.n_columns:
        return False
    return np.array_equal(Passes(source, n_threads=model.n_threads).rows(diagonal_of), model.diagonal_)


def _seen(model: Any, source: Source) -> Source:
    """The rows, or their features, as the model compares them."""
    centres = getattr(model, "cluster_centers_", None)
    if centres is None:
        return source
    return FeatureSource(source, feature_map(model), dtype=np.promote_types(source.dtype, centres.dtype))


def _comparison(model: Any, source: Source, *, distances: bool = True) -> Comparison:
    centres = getattr(model, "cluster_centers_", None)
    if centres is not None:
        points = np.ascontiguousarray(centres, dtype=source.dtype)
        return ToCentres(DenseTargets(points, rescaling_around(points)))
    weights = np.ones(len(model.members_)) if model.row_weights_ is None else model.row_weights_
    sides = coefficients(model.members_, weights, model.n_clusters)
    means = Means(model.mean_weights_, model.mean_norms_, bool(model.normalize))
    if model.rows_ is None:
        return ToMembers(sides, means, None, None, model.diagonal_ if distances else None)
    rows = from_arrays(model.rows_)
    kernel = kernel_class(model.kernel).of(model, model.gamma_ or 1.0, rescaling_of(rows))
    return ToMembers(sides, means, kernel, kernel.prepare(rows))
