"""Which shapes and types the arrays of a model or a result have, so that those in a file are checked against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.errors import StoreError

# Attributes, with the kind of their numbers (f: floating, i: whole, u: whole and not negative, b: yes or no, O: names) and a
# letter for each axis. Within one object a letter stands for one length everywhere; an attribute without a kind is a sequence
# or the length itself. Attributes that are None or absent are left out.
_COLUMNS = {"n_features_in_": "d", "feature_names_in_": "O d", "mean_": "f d", "scale_": "f d"}
_CLUSTERS = {"labels_": "i n", "cluster_weights_": "f k", "cluster_inertias_": "f k"}
_CENTRES = _COLUMNS | _CLUSTERS | {"cluster_centers_": "f k d"}
_SHAPES: dict[str, dict[str, str]] = {
    "Autoencoder": _COLUMNS,
    "BisectingKMeans": _CENTRES | {"tree_children_": "i t 2", "tree_centers_": "f t d", "tree_labels_": "i t"},
    "ClusterEnsemble": _COLUMNS
    | {"labels_": "i n", "item_consensus_": "f n", "confidence_": "f n", "base_sizes_": "t"}
    | {"cluster_weights_": "f k", "cluster_consensus_": "f k"}
    | {"cluster_sums_": "f k l", "table_": "f l g", "offset_": "f g", "merged_": "i g", "directions_": "f l e"}
    | {"consensus_cdf_": "f 101", "known_rows_": "i u t", "known_labels_": "i u"},
    "ExplorationModel": _COLUMNS,
    "FeatureSelector": _COLUMNS
    | {"support_": "b d", "selected_": "m", "explained_": "f d", "coefficients_": "f m d"}
    | {"correlations_": "f m d", "losses_": "f m"},
    "GaussianMixture": _COLUMNS
    | {"weights_": "f k", "means_": "f k d", "ridge_": "f d", "clusters_": "i k", "constant_columns_": "i c"},
    "ImageQuantizer": {"palette_": "u k c", "codebook_": "u k b b c"},
    "KMeans": _CENTRES,
    "KernelKMeans": _COLUMNS
    | _CLUSTERS
    | {"cluster_centers_": "f k p", "landmarks_": "f l d", "pivot_": "f d", "members_": "i m", "rows_": "f m d"}
    | {"row_weights_": "f m", "diagonal_": "f m", "mean_weights_": "f k", "mean_norms_": "f k"},
    "LinearAutoencoder": _COLUMNS | {"encoder_weights_": "f k d", "decoder_weights_": "f d k", "n_components_": "k"},
    "MiniBatchKMeans": _CENTRES,
    "PCA": _COLUMNS
    | {
        "components_": "f k d",
        "n_components_": "k",
        "column_variances_": "f d",
        "residuals_": "f k",
        "variance_errors_": "f k",
    }
    | {"fill_scale_": "f d", "fill_precision_": "f d d"}
    | dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), "f k"),
    "SoftKMeans": _CENTRES,
    "TaskScores": {"n_components": "k", "mean": "f k", "error": "f k", "fold_scores": "f s k"},
    "CodeComparison": {"sizes": "k", "pca_curve": "f c"}
    | dict.fromkeys(("pca_errors", "autoencoder_errors", "standard_errors", "seconds"), "f k"),
    "ConsensusChoice": {"numbers": "k", "pac": "f k", "null_pac": "f k", "gain": "f k", "cdfs": "f k 101"},
    "InertiaCurve": {"n_clusters": "k", "centers": "k", "inertias": "f k", "silhouettes": "f k", "depths": "f k"},
    "Layer": {"weights": "f o i", "bias": "f o"},
    "LabelledMatrix": {"values": "f r c", "rows": "r", "columns": "c"},
    "Merging": {"numbers": "k", "entropies": "k", "merged_weight": "k"},
    "Network": {"shortcut": "f o i"},
    "Stability": {"labels": "i n", "confidence": "f n", "row_weights": "f n", "overlaps": "f r k"}
    | dict.fromkeys(("weights", "jaccard", "by_chance", "dissolved"), "f k"),
    "Silhouette": {"clusters": "k", "cluster_means": "f k", "cluster_weights": "f k", "values": "f n", "rows": "i n"},
}
_BY_COVARIANCE_TYPE = {
    "full": "f k d d",
    "ppca": "f k d d",
    "tied": "f d d",
    "diag": "f k d",
    "diag-tied": "f d",
    "spherical": "f k",
}


def check_shapes(loaded: Any) -> None:
    """Raise a StoreError if the arrays of a loaded model or result do not fit each other."""
    kind = type(loaded).__name__
    expected = _SHAPES.get(kind, {})
    if kind == "GaussianMixture":
        shape = _BY_COVARIANCE_TYPE[loaded.covariance_type]
        expected = expected | dict.fromkeys(("covariances_", "precisions_", "precisions_cholesky_"), shape)
    lengths: dict[str, tuple[int, str]] = {}
    for name, told in expected.items():
        value = vars(loaded).get(name)
        if value is None:
            continue
        axes = told.split()
        if len(axes) > 1 and axes[0] in ("f", "i", "u", "O", "b"):
            found = _shape_of(kind, name, value, axes.pop(0))
        else:
            found = (int(value) if isinstance(value, int) else len(value),)
        if len(found) != len(axes):
            raise StoreError(f"{kind}.{name} has {len(found)} dimensions instead of {len(axes)}: this file is damaged.")
        for axis, length in zip(axes, found, strict=True):
            known, where = lengths.setdefault(axis, (int(axis) if axis.isdigit() else length, name))
            if length != known:
                raise StoreError(
                    f"{kind}.{name} of shape {found} does not fit {where}, which needs {known}: this file is damaged."
                )


def _shape_of(kind: str, name: str, value: Any, numbers: str) -> tuple[int, ...]:
    if isinstance(value, tuple) and numbers == "f":
        return _shape_of_sparse(kind, name, value)
    if not isinstance(value, np.ndarray) or value.dtype.kind != numbers:
        what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        wanted = {"f": "floating-point numbers", "i": "whole numbers", "u": "whole numbers from 0"}
        wanted |= {"O": "names", "b": "true or false"}
        raise StoreError(f"{kind}.{name} is {what} instead of an array of {wanted[numbers]}: this file is damaged.")
    return tuple(value.shape)


def _shape_of_sparse(kind: str, name: str, parts: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of sparse rows, kept as values, columns, where each row begins, and the shape."""
    if len(parts) == 4 and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        values, columns, starts, shape = parts
        whole = all(part.dtype.kind == "i" for part in (columns, starts, shape))
        if whole and values.dtype.kind == "f" and len(shape) == 2 and len(starts) == shape[0] + 1:
            ends = len(columns) == len(values) == starts[-1] and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
            if ends and (len(columns) == 0 or 0 <= columns.min() <= columns.max() < shape[1]):
                return tuple(int(length) for length in shape)
    raise StoreError(f"the parts of the sparse {kind}.{name} do not fit each other: this file is damaged.")
