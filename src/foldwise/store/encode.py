"""Values to JSON and arrays, and back; only kinds that are named here can be in a file."""

from __future__ import annotations

import importlib
import os
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import StoreError

MODELS = {
    "BisectingKMeans": "foldwise.models.kmeans",
    "GaussianMixture": "foldwise.models.mixture",
    "KMeans": "foldwise.models.kmeans",
    "KernelKMeans": "foldwise.models.kernel",
    "MiniBatchKMeans": "foldwise.models.kmeans",
    "PCA": "foldwise.models.pca",
    "SoftKMeans": "foldwise.models.mixture",
}
# The records that models keep, under the names that stand in files. A file can make none but these.
_RECORDS = {
    "Comparison": "foldwise.models.likelihood.result",
    "FittedDistribution": "foldwise.models.likelihood.result",
    "Known": "foldwise.models.likelihood.families.base",
    "Logs": "foldwise.stats.logs",
    "Manifest": "foldwise.fold.manifest",
    "Merging": "foldwise.models.mixture.merging",
    "MixtureChoice": "foldwise.selection.choose_mixture",
    "MixtureEntry": "foldwise.selection.choose_mixture",
    "Outcome": "foldwise.fold.outcome",
    "RankChoice": "foldwise.models.pca.rank",
}
_ENUMS = {"Reason": "foldwise.fold.outcome"}


def encode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """`value` as JSON; its arrays go to `arrays` and are referred to by name."""
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
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
    if is_dataclass(value) and type(value).__name__ in _RECORDS:
        parts = {field.name: encode(getattr(value, field.name), arrays) for field in fields(value)}
        return {"record": type(value).__name__, "fields": parts}
    if type(value).__name__ in MODELS and hasattr(value, "get_params"):
        return {"model": type(value).__name__, **encode_model(value, arrays)}
    raise StoreError(
        f"a {type(value).__name__} cannot be kept in a model file. "
        "If it is random_state, give a whole number or None instead."
    )


def decode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The value that `encode` was given."""
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
        case {"record": name, "fields": parts} if name in _RECORDS:
            kind = getattr(importlib.import_module(_RECORDS[name]), name)
            known = {field.name for field in fields(kind)}
            # A field that a later version added is left out here; one that an older file lacks has its default.
            return kind(**{key: decode(item, arrays) for key, item in parts.items() if key in known})
        case {"model": name, "parameters": _, "fitted": _} if name in MODELS:
            return decode_model(name, value, arrays)
    raise StoreError(f"the file holds something that this version of Foldwise does not know: {str(value)[:80]}")


def encode_model(model: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The parameters of a model and what its fit has left."""
    getattr(model, "components_", None)  # a model fed by partial_fit is finished when it is asked for
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    if not set(fitted) - {"n_features_in_", "feature_names_in_"}:  # those are there even after a fit that failed
        raise StoreError(f"this {type(model).__name__} is not fitted yet. Call fit first.")
    return {"parameters": encode(model.get_params(deep=False), arrays), "fitted": encode(fitted, arrays)}


def decode_model(kind: str, parts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """The model that `encode_model` was given; parameters that this version does not have are left out."""
    make = getattr(importlib.import_module(MODELS[kind]), kind)
    known = make().get_params()
    parameters = decode(parts["parameters"], arrays)
    model = make(**{name: value for name, value in parameters.items() if name in known})
    for name, value in decode(parts["fitted"], arrays).items():
        setattr(model, name, value)
    return model
