"""A fitted model and new rows: their distances to the means, which are sums over the rows of the fit, or of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import n_threads as threads
from foldwise.data.block import Block, Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import DenseTargets, Rescaling, rescaling_around
from foldwise.models.base import EachRow, open_for_use
from foldwise.models.kernel import centring, features, functions
from foldwise.models.kernel.geometry import Means, coefficients, mass
from foldwise.models.kernel.kernel_matrix import NewRows, tiled


def storable(rows: Any) -> Any:
    """Rows as a file can keep them: an array, or the parts of a CSR matrix."""
    if isinstance(rows, np.ndarray):
        return rows
    return rows.data, rows.indices, rows.indptr, np.array(rows.shape)


def restored(rows: Any) -> Any:
    """The rows again."""
    if isinstance(rows, np.ndarray):
        return rows
    import scipy.sparse as sp

    data, indices, indptr, shape = rows
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def judged(
    model: Any, X: Any, sample_weight: Any = None, *, distances: bool = True
) -> tuple[Floats, NDArray[np.int32], np.dtype[Any], Floats | None]:
    """Squared distances and labels of new rows, the dtype to tell distances in, and how much each row counts."""
    if model.kernel == "precomputed":
        source = scan(X, weights=sample_weight)
        if source.n_columns != model.n_features_in_:
            raise DataError(
                f"X has {source.n_columns} features, but KernelKMeans is expecting {model.n_features_in_} features as input",
                advice="Precomputed: one column for each row of the fit",
            )
        if distances and not _is_that_of_the_fit(model, source):
            raise ParameterError(
                "distances need the kernel of each new row with itself, which a precomputed matrix of new rows with those of "
                "the fit has not; predict works, and the matrix of the fit itself."
            )
    else:
        source = open_for_use(model, X, sample_weight)
    if getattr(model, "cluster_centers_", None) is not None:
        found: tuple[Floats, NDArray[np.int32], np.dtype[Any], Floats | None] = _judged_by_features(model, source)
        return found
    judge = _judge(model, threads.count(model.n_threads), distances=distances)
    squares, labels, weights = [], [], []
    for piece in source.pieces():  # one at a time: threads are at work inside
        block = piece.load()
        far, near, degrees = judge(block)
        squares.append(far)
        labels.append(near)
        if block.weights is not None or degrees is not None:
            weights.append(mass(np.ones(len(near)) if block.weights is None else np.array(block.weights), degrees))
    return np.concatenate(squares), np.concatenate(labels), source.dtype, np.concatenate(weights) if weights else None


def _is_that_of_the_fit(model: Any, source: Source) -> bool:
    """Whether a precomputed matrix is the one of the fit: its diagonal tells."""
    if source.n_rows != source.n_columns:
        return False
    for piece in source.pieces():
        block = piece.load()
        place = np.arange(block.start, block.start + block.n_rows)
        if not np.array_equal(block.rows[np.arange(block.n_rows), place], model.diagonal_[place]):
            return False
    return True


def _judged_by_features(model: Any, source: Source) -> Any:
    seen = as_features(model, source)
    judge = _feature_judge(model, seen.dtype)
    found: dict[int, Any] = {}
    Passes(seen, n_threads=model.n_threads).visit(lambda block: (*judge(block)[:2], block.weights), found.__setitem__)
    squares, labels, weights = zip(*(found[number] for number in sorted(found)), strict=True)
    return (
        np.concatenate(squares),
        np.concatenate(labels),
        source.dtype,
        None if weights[0] is None else np.concatenate(weights),
    )


def each_row(model: Any, source: Source) -> EachRow:
    """Records of cluster and distance."""
    if model.kernel == "precomputed":
        raise ParameterError("a model of a precomputed kernel has no distances for new rows; use predict.")
    dtype = np.dtype([("cluster", np.int32), ("distance", source.dtype)])
    if getattr(model, "cluster_centers_", None) is not None:
        source = as_features(model, source)
        judge = _feature_judge(model, source.dtype)
    else:
        judge = _judge(model, 1)

    def of(block: Block) -> NDArray[Any]:
        squares, labels, _ = judge(block)
        told = np.empty(block.n_rows, dtype)
        told["cluster"] = labels
        told["distance"] = np.sqrt(np.maximum(squares[np.arange(len(labels)), labels], 0.0))
        return told

    return EachRow(source, ("cluster", "distance"), dtype, of)


def _judge(model: Any, n_threads: int, *, distances: bool = True) -> Any:
    members = model.members_
    weights = np.ones(len(members)) if model.row_weights_ is None else model.row_weights_
    sides = coefficients(members, weights, model.n_clusters)
    means = Means(model.mean_weights_, model.mean_norms_, bool(model.normalize))
    if model.rows_ is None:

        def given(block: Block) -> Any:
            sums = np.concatenate(
                [
                    tiled(type(block)(block.rows[first : first + 256], block.start + first), sides)
                    for first in range(0, block.n_rows, 256)
                ]
            )
            own = model.diagonal_[block.start : block.start + len(sums)] if distances else None
            return *means.judge(sums, own), means.degrees(sums)

        return given
    rows = restored(model.rows_)
    function = functions.make(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0, centring.frame_of(rows))
    new = NewRows(function, rows, n_threads)

    def computed(block: Block) -> Any:
        sums, own = new.times(_as(rows, block.rows), sides)
        return *means.judge(sums, own), means.degrees(sums)

    return computed


def _as(known: Any, rows: Any) -> Any:
    """Rows, dense or sparse as those of the fit were."""
    if isinstance(known, np.ndarray):
        return rows if isinstance(rows, np.ndarray) else rows.toarray()
    import scipy.sparse as sp

    return sp.csr_array(rows)


def feature_map(model: Any) -> Any:
    """How an approximate model makes features of rows."""
    frame = Rescaling(model.pivot_, model.frame_scale_)
    if model.landmarks_ is None:
        return features.random_features(model.basis_, model.gamma_, frame)
    function = functions.make(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0, frame)
    landmarks = restored(model.landmarks_)
    of = features.nystroem(function, landmarks, model.basis_)
    return lambda rows: of(_as(landmarks, rows))


def as_features(model: Any, source: Source) -> features.FeatureSource:
    """The rows as an approximate model compares them."""
    dtype = np.promote_types(source.dtype, model.cluster_centers_.dtype)
    return features.FeatureSource(source, feature_map(model), model.cluster_centers_.shape[1], (), dtype)


def _feature_judge(model: Any, dtype: np.dtype[Any]) -> Any:
    centres = np.ascontiguousarray(model.cluster_centers_, dtype=dtype)
    targets = DenseTargets(centres, rescaling_around(centres))

    def judge(block: Block) -> Any:
        values = block.dense()
        labels = np.full(len(values), -1, dtype=np.int32)
        targets.nearest(values, labels)
        return targets.distances(values).astype(np.float64) ** 2, labels, None

    return judge
