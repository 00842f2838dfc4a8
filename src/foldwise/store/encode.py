"""Conversion of values to JSON and arrays, and back; a file can contain only the types listed here."""

from __future__ import annotations

import importlib
import os
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import FoldwiseWarning, StoreError, warn
from foldwise.store.shapes import check_shapes

# The classes that can be saved, alone or as part of another, by their names in files. Loading creates no others.
MODELS = {
    "Autoencoder": "foldwise.models.autoencoder",
    "BisectingKMeans": "foldwise.models.kmeans",
    "ClusterEnsemble": "foldwise.models.ensemble",
    "ExplorationModel": "foldwise.models.exploration",
    "FeatureSelector": "foldwise.selection.features",
    "GaussianMixture": "foldwise.models.mixture",
    "ImageQuantizer": "foldwise.models.images.quantizer",
    "KMeans": "foldwise.models.kmeans",
    "KernelKMeans": "foldwise.models.kernel",
    "LinearAutoencoder": "foldwise.models.autoencoder",
    "MiniBatchKMeans": "foldwise.models.kmeans",
    "PCA": "foldwise.models.pca",
    "SoftKMeans": "foldwise.models.mixture",
}
RESULTS = {
    "ClusterScores": "foldwise.selection.scores",
    "CodeComparison": "foldwise.selection.code_comparison",
    "Comparison": "foldwise.models.likelihood",
    "ComponentChoice": "foldwise.selection.components",
    "ConsensusChoice": "foldwise.models.ensemble",
    "FittedDistribution": "foldwise.models.likelihood",
    "Goodness": "foldwise.models.likelihood.goodness",
    "InertiaCurve": "foldwise.selection.curve",
    "LabelledMatrix": "foldwise.models.labelled_matrix",
    "ClusterChoice": "foldwise.selection.clusters.result",
    "MixtureChoice": "foldwise.selection.choose_mixture",
    "RankChoice": "foldwise.models.pca.rank",
    "SelectionPath": "foldwise.selection.features",
    "Silhouette": "foldwise.selection.silhouette_result",
    "TaskScores": "foldwise.selection.component_task",
    "Vote": "foldwise.selection.votes",
    "Stability": "foldwise.selection.stability_result",
}
_RECORDS = RESULTS | {
    "BooleanFormat": "foldwise.data.column_text",
    "DateFormat": "foldwise.data.column_dates",
    "Ingredient": "foldwise.prepare.recipe",
    "Levels": "foldwise.prepare.encode",
    "Note": "foldwise.data.notes",
    "NumberFormat": "foldwise.data.column_text",
    "Reading": "foldwise.data.reading",
    "Recipe": "foldwise.prepare.recipe",
    "WordFormat": "foldwise.data.column_text",
    "MixtureEntry": "foldwise.selection.choose_mixture",
    "IndicatorGroup": "foldwise.prepare.encode",
    "Judgement": "foldwise.selection.clusters.criterion",
    "Logs": "foldwise.stats.logs",
    "Layer": "foldwise.models.autoencoder.network",
    "Manifest": "foldwise.fold.manifest",
    "Merging": "foldwise.models.mixture.merging",
    "Network": "foldwise.models.autoencoder.network",
    "Outcome": "foldwise.fold.outcome",
    "Rounding": "foldwise.stats.rounding",
    "SelectionStep": "foldwise.selection.features",
    "SufficientStatistics": "foldwise.models.likelihood.families.base",
}
_ENUMS = {"Reason": "foldwise.fold.outcome"}
# Names of classes and fields in older files.
_RENAMED = {"Known": "SufficientStatistics", "known": "statistics", "second": "second_sums"}


def find(kind: str) -> Any:
    """The class with this name."""
    return getattr(importlib.import_module((MODELS | _RECORDS)[kind]), kind)


def encode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """`value` as JSON; its arrays go to `arrays` and are referred to by name."""
    kind = type(value).__name__
    if isinstance(value, Enum):
        return {"enum": kind, "value": value.value}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.generic):
        return encode(value.item(), arrays)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"texts": [str(item) for item in value]}
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[key, encode(item, arrays)] for key, item in value.items()]}
    if is_dataclass(value) and kind in _RECORDS:
        parts = {field.name: encode(getattr(value, field.name), arrays) for field in fields(value)}
        return {"record": kind, "fields": parts}
    if kind in MODELS and type(value) is find(kind):
        return {"model": kind, **encode_model(value, arrays)}
    raise StoreError(f"a {kind} cannot be saved. If it is random_state, give a whole number or None instead.")


def encode_model(model: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The parameters and the attributes of a fitted model."""
    getattr(model, "components_", None)  # after partial_fit, they are computed on first access
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    if not set(fitted) - {"n_features_in_", "feature_names_in_"}:  # these may be set even if a fit failed
        raise StoreError(f"this {type(model).__name__} is not fitted yet. Call fit first.")
    parameters = model.get_params(deep=False)
    unsaved = [
        name for name in getattr(model, "UNSAVED", ()) if not isinstance(parameters[name], str | int | float | None)
    ]
    if unsaved:  # objects that only a fit needs: a loaded model is applied without them
        parameters |= dict.fromkeys(unsaved)
        warn(
            f"the parameters {', '.join(unsaved)} of this {type(model).__name__} are objects and not saved; a loaded model is "
            "applied without them, and needs them only to be fitted again.",
            FoldwiseWarning,
        )
    return {"parameters": encode(parameters, arrays), "fitted": encode(fitted, arrays)}


def decode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The inverse of `encode`."""
    if not isinstance(value, dict):
        return value
    match value:
        case {"array": name}:
            return arrays[name]
        case {"texts": texts}:
            return np.asarray(texts, dtype=object)
        case {"float": text}:
            return float(text)
        case {"list": items}:
            return [decode(item, arrays) for item in items]
        case {"tuple": items}:
            return tuple(decode(item, arrays) for item in items)
        case {"dict": pairs}:
            return {key: decode(item, arrays) for key, item in pairs}
        case {"enum": name, "value": text} if name in _ENUMS:
            return getattr(importlib.import_module(_ENUMS[name]), name)(text)
        case {"record": str(name), "fields": parts} if _RENAMED.get(name, name) in _RECORDS:
            kind = find(_RENAMED.get(name, name))
            known = {field.name for field in fields(kind)}
            given = {key if key in known else _RENAMED.get(key, key): item for key, item in parts.items()}
            # Unknown fields of a later version are ignored; fields missing in an older file take their defaults.
            record = kind(**{key: decode(item, arrays) for key, item in given.items() if key in known})
            check_shapes(record)
            return record
        case {"model": name, "parameters": _, "fitted": _} if name in MODELS:
            return decode_model(name, value, arrays)
    raise StoreError(f"the file contains something that this version of Foldwise does not know: {str(value)[:80]}")


def decode_model(kind: str, value: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """A fitted model, from the result of `encode_model`."""
    make = find(kind)
    known, parameters = make().get_params(), decode(value["parameters"], arrays)
    model = make(**{name: one for name, one in parameters.items() if name in known})
    for name, one in decode(value["fitted"], arrays).items():
        setattr(model, name, one)
    check_shapes(model)
    return model
