"""Do two versions of the code find the same models, to the last bit? A hash for each of many small fits.

`python -m benchmarks.same_bits --write hashes.json` fits every model of the public interface in many ways and keeps the
hashes; `--compare hashes.json`, run with the other version, names the cases that came out different and what differs
in them, in the order in which it was hashed, and ends with 1 if there are any. Attributes that are new do not matter,
those that are gone are named.

What is hashed: the figures that a fit leaves behind, those of every step, and what the model says of its rows; not
times, manifests, paths or words. Whole numbers may change their width. A case that raises has the name of the error
instead of a hash. Cases with many blocks run with one and with three threads, which must agree.

Hashes are those of one set of libraries and one kind of processor. FOLDWISE_ISA=avx2 (or baseline) in the environment
chooses kernels that most machines have; what was chosen is kept beside the hashes.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import copy
import dataclasses
import hashlib
import importlib.metadata as metadata
import inspect
import json
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

import foldwise as fw

F32, F64 = "float32", "float64"
DENSE = ("array", "npy", "csv", "parquet", "pandas")
ALL = (*DENSE, "csr")
_ONE, _THREE = ", n_threads=1", ", n_threads=3"


class Case(NamedTuple):
    """One fit: `run` gives what is to be hashed, by name."""

    name: str
    run: Callable[[], Mapping[str, Any]]


class Rows(NamedTuple):
    """Rows as some form holds them, and the weights to give to `fit` beside them."""

    X: Any
    weight: Any = None


Found = dict[str, str]  # the hash of each part of a case
Cases = Iterator[Case]

# ---------------------------------------------------------------- hashes

_NOT_FIGURES = {"seconds", "manifest", "manifest_", "meaning", "known", "source", "feature_names_in_"}
_TOLD = (  # of rows
    "predict", "transform", "predict_proba", "score_samples", "score", "scores", "reconstruction_error", "cos2",
    "contributions", "criteria",
)  # fmt: skip
_KNOWN = ("get_covariance", "get_precision", "centers_in_data_units", "means_in_data_units")  # without rows


def digest(value: Any) -> str:
    """The hash of bytes, or of numbers: dtype, shape and bytes, whole numbers as int64."""
    if not isinstance(value, bytes):
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        if array.dtype.kind in "biu":
            array = array.astype(np.int64)
        value = f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()
    return hashlib.sha256(value).hexdigest()[:24]


def numbers(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def taken_apart(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The names and hashes of all numbers in a value; words are passed over."""
    if name.rpartition(".")[2] in _NOT_FIGURES or isinstance(value, str):
        return
    if value is None:
        yield name, "none"
    elif isinstance(value, BaseException):
        yield name, f"raised {type(value).__name__}"
    elif isinstance(value, bytes) or numbers(value):
        yield name, digest(value)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "biufc":
            yield name, digest(value)
    elif sp.issparse(value):
        rows = value.tocsr()
        yield from taken_apart(name, {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr})
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from taken_apart(f"{name}.{key}", one)
    elif isinstance(value, (list, tuple)):
        yield from each_of(name, value)
    elif hasattr(value, "get_params"):
        yield from taken_apart(name, attributes(value))
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from taken_apart(f"{name}.{field.name}", getattr(value, field.name))
        if hasattr(value, "converged"):
            yield f"{name}.converged", digest(bool(value.converged))


def each_of(name: str, values: Any) -> Iterator[tuple[str, str]]:
    """A list: of numbers, of the figures of each step, or of anything."""
    if all(map(numbers, values)):
        yield name, digest(np.array(values))
    elif all(isinstance(step, Mapping) for step in values):
        yield f"{name}.steps", digest(len(values))
        for key in dict.fromkeys(key for step in values for key in step):  # figure by figure: new ones do no harm
            some = [(at, step[key]) for at, step in enumerate(values) if key in step]
            yield from taken_apart(f"{name}.{key}", tuple(one for _, one in some))
            if len(some) < len(values):
                yield f"{name}.{key}.at", digest(np.array([at for at, _ in some]))
    else:
        for at, one in enumerate(values):
            yield from taken_apart(f"{name}.{at}", one)


def attributes(model: Any) -> dict[str, Any]:
    """What a fit left behind, and what the class makes of it."""
    getattr(model, "components_", None)  # a PCA fed by partial_fit is worked out when it is asked
    names = [*vars(model), *sorted(set(dir(type(model))) - set(vars(model)))]
    names = [name for name in names if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def told(model: Any, X: Any) -> dict[str, Any]:
    """A fitted model: its attributes, and what it says of the rows of the fit."""
    found = attributes(model)
    for name in (*_TOLD, *_KNOWN):
        if hasattr(model, name):
            found[f"{name}()"] = tried(getattr(model, name), *(() if name in _KNOWN else (X,)))
    if hasattr(model, "inverse_transform") and isinstance(found["transform()"], np.ndarray):
        found["inverse_transform()"] = tried(model.inverse_transform, found["transform()"])
    if hasattr(model, "sample") and isinstance(model.random_state, int):
        found["sample()"] = tried(model.sample, 20)
    return found


def tried(run: Callable[..., Any], *given: Any) -> Any:
    try:
        return run(*given)
    except Exception as error:
        return error


def picked(result: Any, names: str) -> dict[str, Any]:
    """Some attributes of a result, those that are there."""
    return {name: getattr(result, name) for name in names.split() if hasattr(result, name)}


def words(texts: Any) -> bytes:
    return "\n".join(map(str, texts)).encode()


def parts_of(case: Case) -> Found:
    try:
        values = case.run()
        return {name: hashed for key, value in values.items() for name, hashed in taken_apart(key, value)}
    except Exception as error:
        return {"raised": type(error).__name__}


def whole(parts: Found) -> str:
    """One hash for all parts of a case; for one that raised, the name of the error."""
    if set(parts) == {"raised"}:
        return parts["raised"]
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()


# ---------------------------------------------------------------- data


def weight_name(function: Callable[..., Any]) -> str:
    """What the parameter for weights is called."""
    known = inspect.signature(function).parameters
    return "sample_weight" if "sample_weight" in known else "weights"


def scan(x: Any, weight: Any = None, **options: Any) -> Any:
    return fw.scan(x, **options, **({} if weight is None else {weight_name(fw.scan): weight}))


def blobs(n: int, d: int, k: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((k, d))
    x = centres[rng.integers(k, size=n)] + rng.standard_normal((n, d))
    return x * np.resize([1.0, 3.0, 0.5, 2.0], d)


def duplicates() -> np.ndarray:
    return np.random.default_rng(1).permutation(np.repeat(blobs(12, 4, 3), 25, axis=0))


def constant() -> np.ndarray:
    x = blobs(500, 5, 4)
    x[:, 2] = 7.25
    return x


def rings() -> np.ndarray:
    rng = np.random.default_rng(2)
    turn, radius = rng.uniform(0, 2 * np.pi, 240), np.repeat([1.0, 3.0], 120)
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn)]) + 0.1 * rng.standard_normal((240, 2))


def factors(n: int, d: int, rank: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    signal = rng.standard_normal((n, rank)) * np.linspace(9, 3, rank) @ rng.standard_normal((rank, d))
    return signal + rng.standard_normal((n, d)) + 5.0


def few() -> np.ndarray:
    """Rows among which Gaussians collapse: few, and some alike."""
    return np.concatenate([blobs(24, 3, 2, 4), np.repeat(blobs(2, 3, 2, 5), 4, axis=0)])


def zeros(n: int, d: int, filled: float) -> np.ndarray:
    """Rows that are mostly zeros, about groups of columns."""
    rng = np.random.default_rng(6)
    near = (np.arange(d) % 4 == rng.integers(4, size=n)[:, None]) * 0.9 + 0.1
    x = np.where(rng.random((n, d)) < 2.5 * filled * near, rng.gamma(2.0, 1.0, (n, d)), 0.0)
    x[~x.any(axis=1), 0] = 1.0  # a row of zeros has no direction
    return x


DATA: dict[str, Callable[[], np.ndarray]] = {
    "blobs": lambda: blobs(500, 5, 4),
    "offset": lambda: blobs(500, 5, 4) + 1e8,
    "small offset": lambda: blobs(500, 5, 4) + 1e4,
    "tiny": lambda: blobs(500, 5, 4) * 1e-20,
    "huge": lambda: blobs(500, 5, 4) * 1e20,
    "duplicates": duplicates,
    "constant": constant,
    "line": lambda: blobs(200, 1, 3),
    "groups": lambda: blobs(3000, 8, 25, 7),
    "wide": lambda: factors(40, 150, 3),
    "factors": lambda: factors(400, 12, 3),
    "rings": rings,
    "few": few,
    "zeros": lambda: zeros(400, 40, 0.1),
    "wide zeros": lambda: zeros(60, 300, 0.05),
    "300,000 x 4": lambda: blobs(300_000, 4, 5, 8),
    "120,000 x 8": lambda: blobs(120_000, 8, 6, 9),
    "10,000 x 300": lambda: factors(10_000, 300, 4),
    "40,000 x 50": lambda: zeros(40_000, 50, 0.05),
}


@cache
def table(name: str, dtype: str) -> np.ndarray:
    x = np.ascontiguousarray(DATA[name](), dtype=dtype)
    x.setflags(write=False)
    return x


@cache
def weights(n: int) -> np.ndarray:
    """One for each row, of which some are 0."""
    return np.random.default_rng(n).integers(0, 6, n) / 2


class Folder:
    """Data in the forms they can have, on disk where that is meant."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def rows(self, name: str, dtype: str, form: str = "array", weighted: bool = False) -> Rows:
        """A table, with weights beside it or in it."""
        x = table(name, dtype)
        w = weights(len(x)) if weighted else None
        if form == "array":
            return Rows(x, w)
        if form == "csr":
            return Rows(sp.csr_array(np.where(np.abs(x) > 1.0, x, 0) if name == "blobs" else x), w)
        if form == "pandas":
            return Rows(named(x), w)
        path = self.path / f"{name} {dtype} {weighted and form == 'parquet'}.{form}"
        if form == "npy":
            return Rows(self.kept(path, lambda: np.save(path, x)), w)
        if form == "csv":
            self.kept(path, lambda: named(x).to_csv(path, index=False))
            return Rows(str(path), w) if dtype == F64 else Rows(scan(path, w, dtype=np.float32))
        frame = named(x) if w is None else named(x).assign(w=w)
        return Rows(self.kept(path, lambda: frame.to_parquet(path)), None if w is None else "w")

    def kept(self, path: Path, write: Callable[[], object]) -> str:
        """The file of that name, written if it is not there yet."""
        if not path.exists():
            write()
        return str(path)

    def new(self) -> str:
        """A name for a file that is not there."""
        return str(Path(tempfile.mkdtemp(dir=self.path)) / "file")


def named(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])


# ---------------------------------------------------------------- cases


def fitted(kind: Any, options: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    model = kind(**copy.deepcopy(dict(options)))  # what is drawn from must be the same in every case
    model.fit(rows.X) if rows.weight is None else model.fit(rows.X, sample_weight=rows.weight)
    return told(model, rows.X)


def titled(*words: str) -> str:
    return ", ".join(word for word in words if word)


def forms(folder: Folder, kind: Any, options: Mapping[str, Any], known: tuple[str, ...]) -> Cases:
    """Both widths, with and without weights, in every form."""
    for form in known:
        for dtype in (F32, F64):
            for weighted in (False, True):
                name = f"{kind.__name__}: form {titled(form, dtype, 'weighted' if weighted else '')}"
                yield Case(
                    name, lambda f=form, d=dtype, w=weighted: fitted(kind, options, folder.rows("blobs", d, f, w))
                )


def ways(folder: Folder, kind: Any, options: Mapping[str, tuple[str, dict[str, Any]]], known: tuple[str, ...]) -> Cases:
    """Each way of fitting: arrays of both widths, with and without weights, and one other form, taking turns."""
    for number, (label, (data, given)) in enumerate(options.items()):
        sparse, others = (
            "zeros" in data,
            ("npy", "pandas") if data == "wide" else known[1:],
        )  # text of many columns is slow
        own = [("csr" if sparse else "array", dtype, weighted) for dtype in (F32, F64) for weighted in (False, True)]
        if not sparse and not callable(given.get("init")):  # a start as a function wants to see an array
            turn, which = divmod(number, len(others))
            own.append((others[which], (F32, F64)[(turn + number) % 2], turn % 2 == 1))
        for form, dtype, weighted in own:
            name = f"{kind.__name__}: {titled(label, form, dtype, 'weighted' if weighted else '')}"
            yield Case(
                name,
                lambda form=form, data=data, dtype=dtype, weighted=weighted, given=given: fitted(
                    kind, given, folder.rows(data, dtype, form, weighted)
                ),
            )


def in_batches(folder: Folder, kind: Any, options: Mapping[str, Any], known: tuple[str, ...], label: str = "") -> Cases:
    """Fed by partial_fit: batches of unequal sizes, the first ones very small."""
    cuts = [0, 2, 3, 40, 41, 250, 500]

    def run(dtype: str, form: str, weighted: bool) -> dict[str, Any]:
        rows = folder.rows("blobs", dtype, form, weighted)
        model = kind(**options)
        for start, stop in pairwise(cuts):
            model.partial_fit(
                rows.X[start:stop], sample_weight=None if rows.weight is None else rows.weight[start:stop]
            )
        return told(model, rows.X)

    for form in known:
        for dtype in (F32, F64):
            for weighted in (False, True):
                name = titled(f"{kind.__name__}: partial_fit", label, form, dtype, "weighted" if weighted else "")
                yield Case(name, partial(run, dtype, form, weighted))


def taken_up(folder: Folder, kind: Any, options: Mapping[str, Any], data: str, cap: int) -> Cases:
    """Stopped after a few steps, and taken up from the checkpoint."""

    def run(dtype: str) -> dict[str, Any]:
        x, path = table(data, dtype), folder.new()
        kind(**{**options, "checkpoint": path, "max_iter": cap}).fit(x)
        return told(kind(**{**options, "checkpoint": path}).fit(x), x)

    for dtype in (F32, F64):
        yield Case(f"{kind.__name__}: taken up after {cap} steps, {dtype}", partial(run, dtype))


def reloaded(folder: Folder, kind: Any, options: Mapping[str, Any], data: str = "blobs") -> Cases:
    """Saved and loaded."""

    def run(dtype: str) -> dict[str, Any]:
        x, path = table(data, dtype), folder.new()
        fw.save(kind(**options).fit(x), path)
        return told(fw.load(path), x)

    for dtype in (F32, F64):
        yield Case(f"{kind.__name__}: loaded, {dtype}", partial(run, dtype))


def pca(folder: Folder) -> Cases:
    kind = fw.PCA
    options: dict[str, tuple[str, dict[str, Any]]] = {}
    for solver in ("full", "covariance_eigh", "arpack", "randomized", "krylov", "power"):
        options[solver] = "factors", {"svd_solver": solver, "n_components": 3}
        options[f"{solver}, wide"] = "wide", {"svd_solver": solver, "n_components": 4, "random_state": 1}
        options[f"{solver}, scale, whiten"] = "factors", {
            "svd_solver": solver, "n_components": 2, "scale": True, "whiten": True, "random_state": 5,
        }  # fmt: skip
    for rule in (None, 0, 4, 0.9, 0.999, "mle", "parallel", "gavish-donoho"):
        options[f"n_components={rule}"] = "factors", {"n_components": rule}
    for rule in (None, 5, 0.8, "parallel", "gavish-donoho", "mle"):
        options[f"n_components={rule}, wide"] = "wide", {"n_components": rule, "scale": rule is None}
    options |= {
        "scale": ("blobs", {"scale": True}),
        "whiten": ("blobs", {"whiten": True, "n_components": 3}),
        "ddof=0": ("blobs", {"ddof": 0}),
        "one column": ("line", {}),
        "sparse": ("zeros", {"n_components": 3}),
        "sparse, covariance_eigh, scale": ("zeros", {"svd_solver": "covariance_eigh", "scale": True}),
        "sparse, krylov": ("zeros", {"n_components": 3, "svd_solver": "krylov", "random_state": 2}),
        "sparse, power": ("zeros", {"n_components": 2, "svd_solver": "power", "max_iter": 50}),
        "sparse, wide": ("wide zeros", {"n_components": 4}),
        "krylov, two steps": ("factors", {"n_components": 2, "svd_solver": "krylov", "max_iter": 2}),
        "krylov, tol": ("factors", {"n_components": 2, "svd_solver": "krylov", "tol": 1e-3}),
    }
    for data in ("offset", "small offset", "tiny", "huge", "duplicates", "constant", "few"):
        options[data] = data, {}
        options[f"{data}, scale"] = data, {"scale": True, "n_components": 2}
        options[f"{data}, krylov"] = data, {"svd_solver": "krylov", "n_components": 2}
    yield from forms(folder, kind, {}, ALL)
    yield from ways(folder, kind, options, DENSE)
    yield from in_batches(folder, kind, {"n_components": 3}, ("array", "csr"))
    yield from in_batches(folder, kind, {"n_components": 0.9, "scale": True, "whiten": True}, ("array",), "scale")
    yield from taken_up(folder, kind, {"n_components": 2, "svd_solver": "power"}, "factors", 3)
    yield from taken_up(folder, kind, {"n_components": 2, "svd_solver": "krylov"}, "factors", 1)
    yield from reloaded(folder, kind, {"n_components": 3, "scale": True})


def some_rows(X: Any, n_clusters: int, random_state: Any) -> Any:
    """A start as a function."""
    return X[random_state.permutation(X.shape[0])[:n_clusters]]


def far_start(k: int) -> np.ndarray:
    """Centres for five columns, of which some will have no rows."""
    start = blobs(k, 5, 4, 11)
    start[1], start[-1] = 1e6, start[0]
    return start


def kmeans(folder: Folder) -> Cases:
    kind, start = fw.KMeans, blobs(5, 5, 5, 10)
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "defaults": ("blobs", {}),
        "k-means++": ("blobs", {"n_clusters": 6, "random_state": 3}),
        "k-means||": ("blobs", {"n_clusters": 6, "init": "k-means||"}),
        "random": ("blobs", {"n_clusters": 6, "init": "random"}),
        "start given": ("blobs", {"n_clusters": 5, "init": start}),
        "start given, far": ("blobs", {"n_clusters": 6, "init": far_start(6)}),
        "function": ("blobs", {"n_clusters": 5, "init": some_rows, "n_init": 2}),
        "n_init=3": ("blobs", {"n_clusters": 7, "n_init": 3, "random_state": 4}),
        "n_init=3, k-means||": ("groups", {"n_clusters": 12, "n_init": 3, "init": "k-means||"}),
        "random_state drawn": ("blobs", {"n_clusters": 5, "random_state": np.random.RandomState(5)}),
        "breathing": ("groups", {"n_clusters": 9, "search": "breathing"}),
        "split-merge": ("groups", {"n_clusters": 9, "search": "split-merge"}),
        "breathing, n_init=2, random": (
            "blobs",
            {"n_clusters": 6, "search": "breathing", "n_init": 2, "init": "random"},
        ),
        "cosine": ("blobs", {"n_clusters": 5, "metric": "cosine"}),
        "cosine, breathing": ("blobs", {"n_clusters": 5, "metric": "cosine", "search": "breathing"}),
        "cosine, scale": ("blobs", {"n_clusters": 5, "metric": "cosine", "scale": True}),
        "cosine, start given": ("blobs", {"n_clusters": 5, "metric": "cosine", "init": start}),
        "scale": ("blobs", {"n_clusters": 5, "scale": True}),
        "scale, start given": ("blobs", {"n_clusters": 5, "scale": True, "init": start}),
        "lloyd": ("groups", {"n_clusters": 25, "algorithm": "lloyd", "tol": 0.0}),
        "bounded": ("groups", {"n_clusters": 25, "algorithm": "bounded", "tol": 0.0}),
        "bounded, k-means||": ("groups", {"n_clusters": 40, "algorithm": "bounded", "init": "k-means||"}),
        "auto": ("groups", {"n_clusters": 25, "tol": 0.0}),
        "two steps": ("groups", {"n_clusters": 10, "max_iter": 2}),
        "one cluster": ("blobs", {"n_clusters": 1}),
        "one column": ("line", {"n_clusters": 4}),
        "more clusters than points": ("duplicates", {"n_clusters": 15}),
        "more clusters than points, random": ("duplicates", {"n_clusters": 14, "init": "random"}),
        "duplicates": ("duplicates", {"n_clusters": 6}),
        "duplicates, breathing": ("duplicates", {"n_clusters": 6, "search": "breathing"}),
        "constant": ("constant", {"n_clusters": 4, "scale": True}),
        "sparse": ("zeros", {"n_clusters": 5}),
        "sparse, cosine": ("zeros", {"n_clusters": 5, "metric": "cosine"}),
        "sparse, scale": ("zeros", {"n_clusters": 5, "scale": True}),
        "sparse, breathing": ("zeros", {"n_clusters": 6, "search": "breathing"}),
        "sparse, bounded": ("zeros", {"n_clusters": 12, "algorithm": "bounded", "tol": 0.0}),
        "sparse, k-means||, wide": ("wide zeros", {"n_clusters": 4, "init": "k-means||"}),
    }
    for data in ("offset", "small offset", "tiny", "huge"):
        options[data] = data, {"n_clusters": 5}
        options[f"{data}, bounded"] = data, {"n_clusters": 9, "algorithm": "bounded"}
        options[f"{data}, breathing, scale"] = data, {"n_clusters": 5, "search": "breathing", "scale": True}
        options[f"{data}, k-means||"] = data, {"n_clusters": 5, "init": "k-means||"}
    yield from forms(folder, kind, {"n_clusters": 4}, ALL)
    yield from ways(folder, kind, options, DENSE)
    yield from in_batches(folder, kind, {"n_clusters": 4}, ("array", "csr"))
    yield from in_batches(folder, kind, {"n_clusters": 4, "scale": True}, ("array",), "scale")
    yield from in_batches(folder, kind, {"n_clusters": 4, "metric": "cosine"}, ("array",), "cosine")
    yield from taken_up(folder, kind, {"n_clusters": 12, "tol": 0.0}, "groups", 3)
    yield from reloaded(folder, kind, {"n_clusters": 4, "scale": True})


def minibatch(folder: Folder) -> Cases:
    kind = fw.MiniBatchKMeans
    small: dict[str, Any] = {"n_clusters": 5, "batch_size": 64}
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "defaults": ("groups", {}),
        "small batches": ("groups", small),
        "k-means||": ("groups", {**small, "init": "k-means||"}),
        "random": ("groups", {**small, "init": "random"}),
        "start given": ("blobs", {**small, "init": blobs(5, 5, 5, 10)}),
        "start given, far": ("blobs", {**small, "n_clusters": 6, "init": far_start(6)}),
        "function": ("blobs", {**small, "init": some_rows}),
        "n_init=3": ("groups", {**small, "n_init": 3, "random_state": 1}),
        "cosine": ("groups", {**small, "metric": "cosine"}),
        "without labels": ("groups", {**small, "compute_labels": False}),
        "until nothing moves": ("groups", {**small, "max_no_improvement": None}),
        "tol": ("groups", {**small, "tol": 1e-2}),
        "one pass": ("groups", {**small, "max_iter": 1}),
        "init_size": ("groups", {**small, "init_size": 500, "random_state": 6}),
        "more clusters than points": ("duplicates", {**small, "n_clusters": 15}),
        "sparse": ("zeros", small),
        "sparse, cosine": ("zeros", {**small, "metric": "cosine"}),
        "offset": ("offset", small),
        "tiny": ("tiny", small),
        "huge": ("huge", small),
    }
    yield from forms(folder, kind, small, ALL)
    yield from ways(folder, kind, options, DENSE)
    yield from in_batches(folder, kind, {"n_clusters": 4}, ("array", "csr"))
    yield from reloaded(folder, kind, small)


def bisecting(folder: Folder) -> Cases:
    kind = fw.BisectingKMeans
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "defaults": ("groups", {}),
        "largest": ("groups", {"n_clusters": 12, "bisecting_strategy": "largest_cluster"}),
        "random": ("blobs", {"n_clusters": 6, "init": "random"}),
        "k-means||": ("blobs", {"n_clusters": 6, "init": "k-means||", "random_state": 2}),
        "n_init=3": ("groups", {"n_clusters": 6, "n_init": 3}),
        "n_init=auto, random": ("blobs", {"n_clusters": 4, "n_init": "auto", "init": "random"}),
        "cosine": ("blobs", {"n_clusters": 6, "metric": "cosine"}),
        "lloyd": ("groups", {"n_clusters": 10, "algorithm": "lloyd", "tol": 0.0}),
        "bounded": ("groups", {"n_clusters": 10, "algorithm": "bounded", "tol": 0.0}),
        "two steps": ("groups", {"n_clusters": 6, "max_iter": 2}),
        "one cluster": ("blobs", {"n_clusters": 1}),
        "more clusters than points": ("duplicates", {"n_clusters": 15}),
        "sparse": ("zeros", {"n_clusters": 6}),
        "sparse, cosine": ("zeros", {"n_clusters": 6, "metric": "cosine"}),
        "offset": ("offset", {"n_clusters": 6}),
        "tiny": ("tiny", {"n_clusters": 6}),
        "huge": ("huge", {"n_clusters": 6}),
    }
    yield from forms(folder, kind, {"n_clusters": 5}, ALL)
    yield from ways(folder, kind, options, DENSE)
    yield from reloaded(folder, kind, {"n_clusters": 5})


def soft(folder: Folder) -> Cases:
    kind = fw.SoftKMeans
    options: dict[str, tuple[str, dict[str, Any]]] = {f"beta={beta:g}": ("blobs", {"n_clusters": 4, "beta": beta})
                                                      for beta in (0.001, 0.1, 1.0, 20.0)}  # fmt: skip
    options |= {
        "anneal": ("blobs", {"n_clusters": 6}),
        "anneal, groups": ("groups", {"n_clusters": 10, "random_state": 1}),
        "anneal, scale": ("blobs", {"n_clusters": 5, "scale": True}),
        "anneal, short": ("blobs", {"n_clusters": 5, "max_iter": 3}),
        "anneal, more clusters than points": ("duplicates", {"n_clusters": 15}),
        "scale": ("blobs", {"n_clusters": 5, "beta": 1.0, "scale": True}),
        "random, n_init=3": ("blobs", {"n_clusters": 5, "beta": 0.5, "init": "random", "n_init": 3}),
        "k-means||": ("blobs", {"n_clusters": 5, "beta": 0.5, "init": "k-means||"}),
        "start given": ("blobs", {"n_clusters": 5, "beta": 0.5, "init": blobs(5, 5, 5, 10)}),
        "function": ("blobs", {"n_clusters": 5, "beta": 0.5, "init": some_rows}),
        "two steps": ("blobs", {"n_clusters": 5, "beta": 0.5, "max_iter": 2}),
        "duplicates": ("duplicates", {"n_clusters": 6, "beta": 0.5}),
        "offset": ("offset", {"n_clusters": 4, "beta": 0.5}),
        "small offset, anneal": ("small offset", {"n_clusters": 4}),
        "tiny": ("tiny", {"n_clusters": 4, "beta": 1e40}),
        "tiny, anneal": ("tiny", {"n_clusters": 4}),
        "huge": ("huge", {"n_clusters": 4, "beta": 1e-40}),
        "huge, anneal": ("huge", {"n_clusters": 4}),
        "huge, start given": ("huge", {"n_clusters": 5, "beta": 1e-40, "init": blobs(5, 5, 5, 10) * 1e20}),
        "huge, beta too large": ("huge", {"n_clusters": 4, "beta": 1.0}),
    }
    yield from forms(folder, kind, {"n_clusters": 4, "beta": 0.3}, DENSE)
    yield from forms(folder, kind, {"n_clusters": 4}, ("csr",))
    yield from ways(folder, kind, options, DENSE)
    yield from taken_up(folder, kind, {"n_clusters": 5, "beta": 0.1, "tol": 0.0}, "blobs", 3)
    yield from reloaded(folder, kind, {"n_clusters": 4, "scale": True})


def inverse_distance(rows: Any, other: Any) -> Any:
    """A kernel as a function."""
    apart = ((np.asarray(rows, dtype=np.float64)[:, None] - np.asarray(other, dtype=np.float64)) ** 2).sum(axis=2)
    return 1.0 / (1.0 + apart)


def kernel_kmeans(folder: Folder) -> Cases:
    kind = fw.KernelKMeans
    nystroem: dict[str, Any] = {"approximation": "nystroem", "n_features": 40}
    waves: dict[str, Any] = {"approximation": "random-features", "n_features": 60}
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "rbf": ("rings", {"n_clusters": 2}),
        "rbf, gamma": ("rings", {"n_clusters": 3, "gamma": 0.7}),
        "rbf, blobs": ("blobs", {"n_clusters": 5}),
        "laplacian": ("rings", {"n_clusters": 2, "kernel": "laplacian"}),
        "poly": ("rings", {"n_clusters": 3, "kernel": "poly", "degree": 2, "gamma": 0.5}),
        "linear": ("blobs", {"n_clusters": 4, "kernel": "linear"}),
        "function": ("rings", {"n_clusters": 3, "kernel": inverse_distance}),
        "function, normalize": ("rings", {"n_clusters": 2, "kernel": inverse_distance, "normalize": True}),
        "normalize": ("rings", {"n_clusters": 2, "normalize": True}),
        "normalize, laplacian": ("rings", {"n_clusters": 3, "kernel": "laplacian", "normalize": True}),
        "k-means++": ("rings", {"n_clusters": 3, "init": "k-means++", "n_init": 3, "random_state": 1}),
        "random": ("rings", {"n_clusters": 3, "init": "random", "n_init": 2}),
        "spectral": ("blobs", {"n_clusters": 4, "init": "spectral", "kernel": "rbf", "random_state": 2}),
        "labels given": ("rings", {"n_clusters": 3, "init": np.arange(240) % 3}),
        "two steps": ("rings", {"n_clusters": 4, "init": "random", "n_init": 1, "max_iter": 2}),
        "tol": ("rings", {"n_clusters": 4, "init": "k-means++", "tol": 0.05}),
        "in tiles": ("rings", {"n_clusters": 3, "memory_budget": 2**18}),
        "nystroem": ("rings", {"n_clusters": 2, **nystroem}),
        "nystroem, laplacian": ("rings", {"n_clusters": 2, "kernel": "laplacian", **nystroem}),
        "nystroem, poly": ("blobs", {"n_clusters": 4, "kernel": "poly", "degree": 2, **nystroem}),
        "nystroem, function": ("rings", {"n_clusters": 2, "kernel": inverse_distance, **nystroem}),
        "nystroem, k-means++": ("groups", {"n_clusters": 6, "init": "k-means++", "n_init": 2, **nystroem}),
        "nystroem, to disk": ("groups", {"n_clusters": 4, "memory_budget": 1000.0, **nystroem}),
        "random features": ("rings", {"n_clusters": 2, **waves}),
        "random features, groups": ("groups", {"n_clusters": 6, "random_state": 3, **waves}),
        "more clusters than points": ("duplicates", {"n_clusters": 15, "init": "k-means++"}),
        "sparse": ("zeros", {"n_clusters": 4}),
        "sparse, linear": ("zeros", {"n_clusters": 4, "kernel": "linear"}),
        "sparse, poly": ("zeros", {"n_clusters": 4, "kernel": "poly"}),
        "sparse, normalize": ("zeros", {"n_clusters": 4, "normalize": True}),
        "sparse, nystroem": ("zeros", {"n_clusters": 4, **nystroem}),
        "sparse, random features": ("zeros", {"n_clusters": 4, **waves}),
        "sparse, laplacian": ("zeros", {"n_clusters": 4, "kernel": "laplacian"}),
        "offset": ("offset", {"n_clusters": 4}),
        "tiny": ("tiny", {"n_clusters": 4}),
        "huge": ("huge", {"n_clusters": 4}),
        "huge, linear": ("huge", {"n_clusters": 4, "kernel": "linear"}),
        "huge, nystroem": ("huge", {"n_clusters": 4, **nystroem}),
    }
    yield from forms(folder, kind, {"n_clusters": 4}, ALL)
    yield from ways(folder, kind, options, DENSE)

    def precomputed(dtype: str, weighted: bool, **given: Any) -> dict[str, Any]:
        x = table("rings", F64)
        matrix = np.exp(-((x[:, None] - x) ** 2).sum(axis=2)).astype(dtype)
        rows = Rows(matrix, weights(len(x)) if weighted else None)
        return fitted(kind, {"n_clusters": 3, "kernel": "precomputed", **given}, rows)

    for label, given in {"": {}, "normalize": {"normalize": True}, "k-means++": {"init": "k-means++"}}.items():
        for dtype in (F32, F64):
            for weighted in (False, True):
                name = titled("KernelKMeans: precomputed", label, dtype, "weighted" if weighted else "")
                yield Case(name, partial(precomputed, dtype, weighted, **given))
    yield from taken_up(folder, kind, {"n_clusters": 5, "init": "random", "n_init": 1}, "blobs", 2)
    yield from reloaded(folder, kind, {"n_clusters": 3}, "rings")
    for approximation in ("nystroem", "random-features"):
        for case in reloaded(
            folder, kind, {"n_clusters": 3, "approximation": approximation, "n_features": 30}, "rings"
        ):
            yield Case(f"{case.name}, {approximation}", case.run)


TYPES = ("full", "tied", "diag", "spherical", "ppca")


def mixture(folder: Folder) -> Cases:
    kind = fw.GaussianMixture
    means = blobs(3, 5, 3, 12)
    options: dict[str, tuple[str, dict[str, Any]]] = {}
    for shape in TYPES:
        base = {"covariance_type": shape, "n_components": 3, "random_state": 0}
        options |= {
            shape: ("blobs", {**base, "n_components": 4}),
            f"{shape}, tol": ("factors", {**base, "tol": 1e-6, "max_iter": 40}),
            f"{shape}, n_init=3": ("blobs", {**base, "n_init": 3, "init_params": "random_from_data"}),
            f"{shape}, scale": ("blobs", {**base, "scale": True}),
            f"{shape}, reg_covar": ("blobs", {**base, "reg_covar": 1e-3}),
            f"{shape}, means given": ("blobs", {**base, "means_init": means}),
            f"{shape}, collapsing": ("few", {**base, "n_components": 6}),
            f"{shape}, without a ridge": ("blobs", {**base, "reg_covar": 0.0, "n_components": 4}),
            f"{shape}, duplicates": ("duplicates", {**base, "n_components": 5}),
            f"{shape}, constant": ("constant", base),
            f"{shape}, huge": ("huge", base),
            f"{shape}, tiny": ("tiny", base),
            f"{shape}, offset": ("offset", base),
            f"{shape}, small offset": ("small offset", base),
        }
        for start in ("k-means++", "random"):
            options[f"{shape}, {start}"] = "blobs", {**base, "init_params": start, "max_iter": 30}
    options |= {
        "one component": ("blobs", {}),
        "one column": ("line", {"n_components": 3}),
        "ppca, three directions": ("factors", {"covariance_type": "ppca", "n_latent": 3, "n_components": 2}),
        "ppca, wide": ("wide", {"covariance_type": "ppca", "n_latent": 2, "n_components": 2}),
        "two steps": ("blobs", {"n_components": 3, "max_iter": 2}),
        "no steps": ("blobs", {"n_components": 3, "max_iter": 0}),
        "all given": (
            "blobs",
            {
                "n_components": 3,
                "covariance_type": "diag",
                "weights_init": [0.5, 0.3, 0.2],
                "means_init": means,
                "precisions_init": np.ones((3, 5)),
            },
        ),
    }
    yield from forms(folder, kind, {"n_components": 3}, ALL)
    yield from ways(folder, kind, options, DENSE)
    yield from taken_up(folder, kind, {"n_components": 5, "tol": 1e-6}, "groups", 3)
    for shape in TYPES:
        for case in reloaded(folder, kind, {"n_components": 3, "covariance_type": shape, "scale": shape == "diag"}):
            yield Case(f"{case.name}, {shape}", case.run)

    def warm(dtype: str, shape: str) -> dict[str, Any]:
        x = table("blobs", dtype)
        model = kind(4, covariance_type=shape, warm_start=True, max_iter=2, random_state=1)
        return told(model.fit(x).fit(x).fit(x[::2]), x)

    def merged(dtype: str, shape: str, weighted: bool, n_clusters: int | None) -> dict[str, Any]:
        rows = folder.rows("groups", dtype, "array", weighted)
        model = kind(7, covariance_type=shape, random_state=0).fit(rows.X, sample_weight=rows.weight)
        return told(model.merge(rows.X, n_clusters, sample_weight=rows.weight), rows.X)

    for dtype in (F32, F64):
        for shape in TYPES:
            yield Case(f"GaussianMixture: warm start, {shape}, {dtype}", partial(warm, dtype, shape))
        for shape in ("full", "diag"):
            for weighted in (False, True):
                for n_clusters in (None, 3):
                    name = titled(
                        f"GaussianMixture: merged, {shape}, {n_clusters}", dtype, "weighted" if weighted else ""
                    )
                    yield Case(name, partial(merged, dtype, shape, weighted, n_clusters))


# ---------------------------------------------------------------- cases: distributions


class Values(NamedTuple):
    """Values of a family: how to draw them, what must be known, and what could be."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    fixed: dict[str, float]
    needed: dict[str, float] = {}
    counts: bool = False


FAMILIES = {
    "normal": Values(lambda rng, n: 3 + 2 * rng.standard_normal(n), {"sigma": 2.0}),
    "logistic": Values(lambda rng, n: rng.logistic(1.0, 2.0, n), {"scale": 2.0}),
    "laplace": Values(lambda rng, n: rng.laplace(1.0, 2.0, n), {"scale": 2.0}),
    "cauchy": Values(lambda rng, n: 1.0 + rng.standard_cauchy(n), {"scale": 1.0}),
    "gumbel": Values(lambda rng, n: rng.gumbel(1.0, 2.0, n), {"location": 1.0}),
    "uniform": Values(lambda rng, n: rng.uniform(-1.0, 4.0, n), {"low": -1.5}),
    "exponential": Values(lambda rng, n: rng.exponential(3.0, n), {"rate": 0.3}),
    "gamma": Values(lambda rng, n: rng.gamma(2.5, 1.5, n), {"shape": 2.5}),
    "weibull": Values(lambda rng, n: 2.0 * rng.weibull(1.7, n), {"shape": 1.7}),
    "lognormal": Values(lambda rng, n: rng.lognormal(0.5, 0.8, n), {"mu": 0.5}),
    "inverse-gaussian": Values(lambda rng, n: rng.wald(2.0, 3.0, n), {"mean": 2.0}),
    "rayleigh": Values(lambda rng, n: rng.rayleigh(2.0, n), {"scale": 2.0}),
    "pareto": Values(lambda rng, n: 2.0 * (1.0 + rng.pareto(3.0, n)), {"scale": 1.5}),
    "beta": Values(lambda rng, n: rng.beta(2.0, 5.0, n), {"a": 2.0}),
    "bernoulli": Values(lambda rng, n: rng.binomial(1, 0.3, n), {"p": 0.3}, counts=True),
    "binomial": Values(lambda rng, n: rng.binomial(12, 0.4, n), {"n": 12, "p": 0.4}, {"n": 12}, counts=True),
    "geometric": Values(lambda rng, n: rng.geometric(0.3, n), {"p": 0.3}, counts=True),
    "poisson": Values(lambda rng, n: rng.poisson(4.0, n), {"rate": 4.0}, counts=True),
    "negative-binomial": Values(lambda rng, n: rng.negative_binomial(3, 0.4, n), {"size": 3.0}, counts=True),
}


@cache
def values(family: str, dtype: str, n: int = 600) -> np.ndarray:
    x = FAMILIES[family].draw(np.random.default_rng([n, *FAMILIES].index(family)), n).astype(dtype)
    x.setflags(write=False)
    return x


def distribution(x: Any, family: Any, weight: Any = None, **options: Any) -> Any:
    given = {} if weight is None else {weight_name(fw.fit_distribution): weight}
    return fw.fit_distribution(x, family, **options, **given)


FIT = "parameters standard_errors intervals confidence covariance max_log_likelihood n aic bic discrete trace outcome"


def told_of(fit: Any, *, fresh: bool = True) -> dict[str, Any]:
    """A fitted distribution, and what can be asked of it."""
    found = picked(fit, FIT)
    found["fixed"] = words(fit.fixed)
    found["quantile()"] = tried(fit.quantile, [0.1, 0.5, 0.9])
    found["pdf()"] = tried(lambda: fit.pdf(fit.quantile([0.1, 0.5, 0.9])))
    found["cdf()"] = tried(lambda: fit.cdf(fit.quantile([0.1, 0.5, 0.9])))
    found["sample()"] = tried(fit.sample, 5, 0)
    if fresh:
        found["log_likelihood()"] = tried(fit.log_likelihood)
        found["curve()"] = tried(partial(fit.curve, points=7))
    return found


def told_of_all(comparison: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"order": words(fit.family for fit in comparison), "refused": words(comparison.refused)}
    for fit in comparison:
        found[fit.family] = told_of(fit, fresh=False)
    return found


def distributions(folder: Folder) -> Cases:
    for family, known in FAMILIES.items():
        need = {"fixed": known.needed} if known.needed else {}
        options: dict[str, dict[str, Any]] = {
            "": need,
            "fixed": {"fixed": known.fixed},
            "newton": {**need, "method": "newton"},
            "gradient": {**need, "method": "gradient", "max_iter": 300},
            "gradient, fixed": {"fixed": known.fixed, "method": "gradient", "max_iter": 300},
            "confidence": {**need, "confidence": 0.8},
        }
        if known.needed:
            options["nothing known"] = {}
        for label, given in options.items():
            for dtype in (F32, F64):
                for weighted in (False, True):
                    name = titled(f"fit_distribution: {family}", label, dtype, "weighted" if weighted else "")
                    w = weights(600) if weighted else None
                    yield Case(
                        name, lambda f=family, d=dtype, w=w, g=given: told_of(distribution(values(f, d), f, w, **g))
                    )
        for factor in (1e-20, 1e20) if not known.counts else ():
            name = f"fit_distribution: {family}, times {factor:g}"
            yield Case(name, lambda f=family, by=factor: told_of(distribution(values(f, F64) * by, f)))
        yield Case(
            f"fit_distribution: {family}, goodness of fit",
            lambda f=family, given=need: {
                "": picked(
                    distribution(values(f, F64, 200), f, **given).goodness_of_fit(resamples=9), "statistics p_values n"
                )
            },
        )
    yield from columns(folder)
    yield from comparisons(folder)


def columns(folder: Folder) -> Cases:
    """One column, whatever holds it."""

    def run(family: str, dtype: str, form: str, weighted: bool) -> dict[str, Any]:
        x, w = values(family, dtype), weights(600) if weighted else None
        frame = pd.DataFrame({"a": x, "b": np.arange(600.0), "w": weights(600)})
        path = folder.path / f"{family} {dtype}.{form}"
        if form == "npy":
            return told_of(distribution(folder.kept(path, lambda: np.save(path, x)), family, w))
        if form == "series":
            return told_of(distribution(frame["a"], family, w))
        if form == "pandas":
            return told_of(distribution(frame, family, w, column="a"))
        if form == "scan":
            return told_of(distribution(scan(frame[["a", "w"]], "w" if weighted else None, columns=["a"]), family))
        write = frame.to_parquet if form == "parquet" else partial(frame.to_csv, index=False)
        return told_of(
            distribution(folder.kept(path, lambda: write(path)), family, "w" if weighted else None, column="a")
        )

    for family in ("normal", "gamma", "weibull", "poisson"):
        for form in ("npy", "csv", "parquet", "pandas", "series", "scan"):
            for dtype in (F32, F64):
                for weighted in (False, True):
                    name = titled(f"fit_distribution: form {form}", family, dtype, "weighted" if weighted else "")
                    yield Case(name, partial(run, family, dtype, form, weighted))


def comparisons(folder: Folder) -> Cases:
    """Several families at once."""
    for family in ("normal", "gamma", "beta", "bernoulli", "poisson", "cauchy"):
        for dtype in (F32, F64):
            for weighted in (False, True):
                name = titled("fit_distribution: all", family, dtype, "weighted" if weighted else "")
                w = weights(600) if weighted else None
                yield Case(name, lambda f=family, d=dtype, w=w: told_of_all(distribution(values(f, d), "all", w)))
    some = ["normal", "gamma", "weibull"]
    known = {"normal": {"sigma": 3.0}, "gamma": {"shape": 2.0}}
    yield Case(
        "fit_distribution: some, bic, fixed",
        lambda: told_of_all(distribution(values("gamma", F64), some, criterion="bic", fixed=known)),
    )

    def taken_up_again(family: str) -> dict[str, Any]:
        path = folder.new()
        distribution(values(family, F64), family, checkpoint=path, max_iter=2, method="newton")
        return told_of(distribution(values(family, F64), family, checkpoint=path, method="newton"))

    def loaded(family: Any) -> dict[str, Any]:
        path = folder.new()
        fw.save(distribution(values("gamma", F64), family), path)
        return told_of(fw.load(path)) if isinstance(family, str) else told_of_all(fw.load(path))

    for family in ("weibull", "logistic", "cauchy", "gumbel"):
        yield Case(f"fit_distribution: taken up, {family}", partial(taken_up_again, family))
    for family in ("gamma", "weibull", some):
        yield Case(f"fit_distribution: loaded, {family}", partial(loaded, family))


# ---------------------------------------------------------------- cases: judging

# The one of squared distances had the name of the classical one before.
squared_silhouette = getattr(fw, "squared_silhouette", None) or fw.silhouette
CURVE = "ks inertias silhouettes depths knee centers converged"
SILHOUETTE = "mean clusters cluster_means cluster_weights values"
# The parameter had another name before.
NUMBERS = "n_components" if "n_components" in inspect.signature(fw.choose_components).parameters else "numbers"
CHOICE = "numbers mean error fold_scores best simplest"
ENTRY = "n_components log_likelihood parameters bic icl aic entropy collapsed"


def choose_mixture(X: Any, *given: Any, **options: Any) -> dict[str, Any]:
    choose = getattr(fw, "choose_mixture", None) or fw.select_mixture
    found = choose(X, *given, **options)
    entries = {f"{one.covariance_type} {one.n_components}": picked(one, ENTRY) for one in found.entries}
    best = {"type": words([found.best.covariance_type]), "n_components": found.best.n_components}
    return {"entries": entries, "best": best, "best_model": told(found.best_model, X)}


def judging(folder: Folder) -> Cases:
    settings: dict[str, tuple[str, str, dict[str, Any]]] = {
        "": ("blobs", "array", {}),
        "random, no search": ("blobs", "array", {"search": "none", "init": "random", "n_init": 2}),
        "scale": ("blobs", "array", {"scale": True}),
        "cosine": ("blobs", "array", {"metric": "cosine"}),
        "sparse": ("zeros", "csr", {}),
        "csv": ("blobs", "csv", {}),
        "parquet": ("blobs", "parquet", {}),
        "npy": ("blobs", "npy", {"search": "split-merge"}),
        "pandas": ("blobs", "pandas", {}),
        "duplicates": ("duplicates", "array", {}),
        "huge": ("huge", "array", {}),
        "offset": ("offset", "array", {}),
    }

    def curve(data: str, dtype: str, form: str, weighted: bool, **given: Any) -> dict[str, Any]:
        rows = folder.rows(data, dtype, form, weighted)
        return picked(fw.inertia_curve(rows.X, range(1, 7), sample_weight=rows.weight, **given), CURVE)

    def labelled(data: str, dtype: str, form: str, weighted: bool, **given: Any) -> dict[str, Any]:
        rows = folder.rows(data, dtype, form, weighted)
        labels = np.random.default_rng(0).integers(5, size=len(table(data, dtype)))
        if given.get("scale"):
            labels = np.array(["red", "green", "blue"])[labels % 3]
        return picked(squared_silhouette(rows.X, labels, sample_weight=rows.weight, values=True), SILHOUETTE)

    def of_model(data: str, dtype: str, form: str, weighted: bool, **given: Any) -> dict[str, Any]:
        rows = folder.rows(data, dtype, form, weighted)
        model = fw.KMeans(4, **given).fit(rows.X, sample_weight=rows.weight)
        return picked(squared_silhouette(rows.X, model, sample_weight=rows.weight, values=True), SILHOUETTE)

    for title, run in (("inertia_curve:", curve), ("silhouette: labels", labelled), ("silhouette: KMeans", of_model)):
        for label, (data, form, given) in settings.items():
            for dtype in (F32, F64):
                for weighted in (False, True):
                    words = [f"{title} {label}", dtype, "weighted" if weighted else ""]
                    yield Case(titled(*words), partial(run, data, dtype, form, weighted, **given))
    for other in (fw.MiniBatchKMeans, fw.BisectingKMeans, fw.SoftKMeans):
        yield Case(
            f"silhouette: {other.__name__}",
            lambda kind=other: picked(
                squared_silhouette(table("blobs", F64), kind(4).fit(table("blobs", F64)), values=True), SILHOUETTE
            ),
        )
    yield from components()
    yield from mixtures(folder)


def components() -> Cases:
    from sklearn.linear_model import Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    settings: dict[str, tuple[Any, dict[str, Any]]] = {
        "classes": (GaussianNB(), {}),
        "classes, scale": (GaussianNB(), {"scale": True, "cv": 3}),
        "classes, numbers": (KNeighborsClassifier(), {NUMBERS: [2, 5, 7], "random_state": 1}),
        "classes, loss": (GaussianNB(), {"scoring": "neg_log_loss"}),
        "line": (Ridge(), {"scoring": "r2", NUMBERS: range(1, 8)}),
        "clusters": (fw.KMeans(3), {"numbers": range(1, 5), "cv": 4}),
        "mixture": (fw.GaussianMixture(2, covariance_type="diag"), {"numbers": range(1, 4), "cv": 3}),
    }

    def run(data: str, dtype: str, label: str) -> dict[str, Any]:
        estimator, given = settings[label]
        x = table(data, dtype)
        y: Any = x[:, 0] + 0.5 * x[:, -1]
        y = None if label in ("clusters", "mixture") else y if label == "line" else (y > np.median(y)).astype(int)
        choice = fw.choose_components(x, y, estimator=estimator, **given)
        return picked(getattr(choice, "task", choice), CHOICE)

    for label in settings:
        for data in ("factors", "wide"):
            for dtype in (F32, F64):
                yield Case(f"choose_components: {titled(label, data, dtype)}", partial(run, data, dtype, label))


def mixtures(folder: Folder) -> Cases:
    settings: dict[str, tuple[str, str, dict[str, Any]]] = {
        "bic": ("blobs", "array", {}),
        "icl": ("blobs", "array", {"criterion": "icl", "random_state": 2}),
        "aic, ppca": ("blobs", "array", {"criterion": "aic", "covariance_types": ("ppca", "diag")}),
        "scale": ("blobs", "array", {"scale": True, "covariance_types": "diag", "n_init": 2}),
        "parquet": ("blobs", "parquet", {"covariance_types": ("full", "spherical")}),
        "csv": ("blobs", "csv", {"covariance_types": ("tied",)}),
        "npy": ("blobs", "npy", {"covariance_types": ("spherical", "diag")}),
        "pandas": ("blobs", "pandas", {"covariance_types": ("spherical", "diag"), "max_iter": 10}),
        "collapsing": ("few", "array", {}),
        "duplicates": ("duplicates", "array", {"covariance_types": ("full", "diag"), "max_iter": 100}),
    }

    def run(data: str, dtype: str, form: str, weighted: bool, **given: Any) -> dict[str, Any]:
        rows = folder.rows(data, dtype, form, weighted)
        return choose_mixture(rows.X, range(1, 5), sample_weight=rows.weight, **{"max_iter": 200, "tol": 1e-5, **given})

    for label, (data, form, given) in settings.items():
        for dtype in (F32, F64):
            for weighted in (False, True):
                name = titled(f"choose_mixture: {label}", dtype, "weighted" if weighted else "")
                yield Case(name, partial(run, data, dtype, form, weighted, **given))


# ---------------------------------------------------------------- cases: reading


def reading(folder: Folder) -> Cases:
    """What `scan` makes of columns, conditions, several files and queries."""
    import duckdb
    import polars as pl

    def files(ending: str, dtype: str) -> list[str]:
        frame, made = named(table("blobs", dtype)).assign(w=weights(500), text="t"), []
        for number, part in enumerate((frame[:123], frame[123:])):
            path = folder.path / f"part {dtype} {number}.{ending}"
            write = {
                "csv": partial(part.to_csv, index=False),
                "parquet": part.to_parquet,
                "jsonl": partial(part.to_json, orient="records", lines=True, double_precision=15),
            }[ending]
            made.append(folder.kept(path, lambda write=write, path=path: write(path)))
        return made

    def mask(dtype: str) -> np.ndarray:
        return table("blobs", dtype)[:, 0] > 0

    def frame(dtype: str) -> pd.DataFrame:
        return named(table("blobs", dtype)).assign(w=weights(500))

    def sql(dtype: str) -> str:
        return f"SELECT c0, c1 + c2 AS s, w FROM '{files('parquet', dtype)[1]}' WHERE c3 < 1"

    chosen = {"columns": ["c3", "c0", "c2"], "where": "c1 > 0"}
    sources: dict[str, Callable[[str], Any]] = {
        "array, columns": lambda d: scan(table("blobs", d), columns=[3, 0]),
        "array, mask": lambda d: scan(table("blobs", d), where=mask(d)),
        "array, row numbers": lambda d: scan(table("blobs", d), where=np.arange(0, 500, 7)),
        "array, mask, weights": lambda d: scan(table("blobs", d), weights(500)[mask(d)], where=mask(d)),
        "array, other width": lambda d: scan(table("blobs", d), dtype=F32 if d == F64 else F64),
        "array, turned": lambda d: scan(np.asfortranarray(table("blobs", d))),
        "array, every other row": lambda d: scan(table("blobs", d)[::2, ::-1]),
        "integers": lambda d: scan(np.round(table("blobs", d)).astype(np.int32 if d == F64 else np.int8)),
        "lists": lambda d: scan(table("blobs", d).tolist()),
        "memory map": lambda d: scan(np.load(folder.rows("blobs", d, "npy").X, mmap_mode="r")),
        "npy, columns": lambda d: scan(folder.rows("blobs", d, "npy").X, columns=[1, 2, 4]),
        "polars": lambda d: scan(pl.from_pandas(frame(d)), "w"),
        "polars, lazy, chosen": lambda d: scan(pl.from_pandas(frame(d)).lazy(), **chosen),
        "pandas, chosen": lambda d: scan(frame(d), "w", **chosen),
        "arrow": lambda d: scan(pl.from_pandas(frame(d)).to_arrow(), "w", columns=["c0", "c1"]),
        "relation": lambda d: scan(duckdb.from_df(frame(d)), "w"),
        "query": lambda d: scan(sql(d)),
        "query, weights": lambda d: scan(sql(d), "w"),
        "csc": lambda d: scan(sp.csc_array(table("zeros", d)), weights(400)),
        "coo, columns": lambda d: scan(sp.coo_array(table("zeros", d)), columns=list(range(5, 30))),
        "csr, mask": lambda d: scan(sp.csr_array(table("zeros", d)), where=np.arange(400) % 3 > 0),
    }
    for ending in ("csv", "parquet", "jsonl"):
        sources |= {
            f"{ending}, two files": lambda d, e=ending: scan(files(e, d), "w"),
            f"{ending}, pattern": lambda d, e=ending: scan(files(e, d)[0].replace(" 0.", " *."), columns=["c0", "c4"]),
            f"{ending}, chosen": lambda d, e=ending: scan(files(e, d)[0], "w", **chosen),
            f"{ending}, float32": lambda d, e=ending: scan(files(e, d), dtype=np.float32, columns=["c0", "c1", "c2"]),
        }
    models = {"PCA": partial(fw.PCA, 2), "KMeans": partial(fw.KMeans, 3)}
    for label, make in sources.items():
        for dtype in (F32, F64):
            for title, model in models.items():
                name = f"scan: {label}, {dtype}, {title}"
                yield Case(name, lambda make=make, model=model, d=dtype: fitted(model, {}, Rows(make(d))))


# ---------------------------------------------------------------- cases: many blocks


def blocks(folder: Folder) -> Cases:
    """Rows of several blocks, with one and with three threads."""

    def pair(name: str, run: Callable[[int], Mapping[str, Any]]) -> Cases:
        for n_threads, ending in ((1, _ONE), (3, _THREE)):
            yield Case(f"many rows: {name}{ending}", partial(run, n_threads))

    def model(kind: Any, data: str, dtype: str, form: str, weighted: bool, n_threads: int, **given: Any) -> Any:
        return fitted(kind, {**given, "n_threads": n_threads}, folder.rows(data, dtype, form, weighted))

    tall, broad, wide, sparse = "300,000 x 4", "120,000 x 8", "10,000 x 300", "40,000 x 50"
    nystroem = {"approximation": "nystroem", "n_features": 20, "init": "k-means++", "n_init": 1, "max_iter": 10}
    waves = {**nystroem, "approximation": "random-features", "n_features": 10}
    settings: list[tuple[Any, str, str, str, bool, dict[str, Any]]] = [
        (fw.PCA, tall, F32, "array", False, {}),
        (fw.PCA, tall, F32, "parquet", True, {"scale": True}),
        (fw.PCA, broad, F64, "array", True, {"whiten": True, "n_components": "parallel"}),
        (fw.PCA, broad, F64, "csv", False, {"svd_solver": "power", "n_components": 2}),
        (fw.PCA, broad, F32, "npy", False, {"svd_solver": "full", "n_components": 3}),
        (fw.PCA, wide, F32, "array", True, {"svd_solver": "krylov", "n_components": 3}),
        (fw.PCA, wide, F64, "npy", False, {"svd_solver": "randomized", "n_components": 2}),
        (fw.PCA, sparse, F32, "csr", False, {}),
        (fw.PCA, sparse, F64, "csr", True, {"svd_solver": "krylov", "n_components": 2}),
        (fw.KMeans, tall, F32, "array", False, {"n_clusters": 5}),
        (fw.KMeans, tall, F32, "npy", True, {"n_clusters": 8, "init": "k-means||", "max_iter": 10}),
        (fw.KMeans, tall, F64, "parquet", False, {"n_clusters": 4, "scale": True, "max_iter": 10}),
        (fw.KMeans, broad, F64, "array", True, {"n_clusters": 20, "algorithm": "bounded", "max_iter": 15}),
        (
            fw.KMeans,
            broad,
            F32,
            "array",
            False,
            {"n_clusters": 12, "algorithm": "lloyd", "init": "random", "n_init": 2},
        ),
        (fw.KMeans, broad, F32, "csv", True, {"n_clusters": 6, "metric": "cosine", "max_iter": 10}),
        (fw.KMeans, broad, F64, "pandas", False, {"n_clusters": 5, "search": "breathing", "max_iter": 5}),
        (fw.KMeans, broad, F32, "array", False, {"n_clusters": 5, "search": "split-merge", "max_iter": 5}),
        (fw.KMeans, sparse, F32, "csr", True, {"n_clusters": 6, "max_iter": 10}),
        (fw.KMeans, sparse, F64, "csr", False, {"n_clusters": 4, "metric": "cosine", "max_iter": 10}),
        (fw.MiniBatchKMeans, tall, F32, "array", False, {"n_clusters": 6, "max_iter": 5}),
        (fw.MiniBatchKMeans, broad, F64, "npy", True, {"n_clusters": 6, "max_iter": 5}),
        (fw.MiniBatchKMeans, sparse, F32, "csr", False, {"n_clusters": 5, "max_iter": 5}),
        (fw.BisectingKMeans, tall, F32, "array", True, {"n_clusters": 4}),
        (fw.BisectingKMeans, broad, F64, "npy", False, {"n_clusters": 3}),
        (fw.BisectingKMeans, sparse, F64, "csr", False, {"n_clusters": 3, "max_iter": 10}),
        (fw.SoftKMeans, tall, F32, "array", False, {"n_clusters": 4, "beta": 0.3, "max_iter": 8}),
        (fw.SoftKMeans, broad, F64, "parquet", True, {"n_clusters": 4, "beta": 0.2, "max_iter": 8}),
        (fw.SoftKMeans, broad, F32, "array", False, {"n_clusters": 3, "max_iter": 3}),
        (fw.KernelKMeans, broad, F32, "array", False, {"n_clusters": 4, **nystroem}),
        (fw.KernelKMeans, broad, F64, "npy", True, {"n_clusters": 3, **waves}),
        (fw.KernelKMeans, sparse, F32, "csr", False, {"n_clusters": 3, **nystroem}),
        (fw.KernelKMeans, "groups", F64, "array", True, {"n_clusters": 5, "memory_budget": 2**22}),
        (fw.GaussianMixture, tall, F32, "array", False, {"n_components": 3, "max_iter": 6}),
        (fw.GaussianMixture, tall, F32, "npy", True, {"n_components": 3, "max_iter": 5, "covariance_type": "tied"}),
        (fw.GaussianMixture, broad, F64, "array", True, {"n_components": 4, "max_iter": 5, "covariance_type": "diag"}),
        (fw.GaussianMixture, broad, F64, "csv", False, {"n_components": 3, "max_iter": 4, "scale": True}),
        (
            fw.GaussianMixture,
            broad,
            F32,
            "parquet",
            False,
            {"n_components": 3, "max_iter": 5, "covariance_type": "ppca"},
        ),
        (
            fw.GaussianMixture,
            broad,
            F32,
            "array",
            True,
            {"n_components": 3, "max_iter": 5, "covariance_type": "spherical"},
        ),
        (fw.GaussianMixture, wide, F32, "array", False, {"n_components": 2, "max_iter": 2, "covariance_type": "ppca"}),
    ]
    for kind, data, dtype, form, weighted, given in settings:
        shown = ", ".join(f"{name}={value}" for name, value in given.items())
        name = titled(kind.__name__, data, dtype, form, "weighted" if weighted else "", shown)
        yield from pair(name, partial(model, kind, data, dtype, form, weighted, **given))

    def batches(n_threads: int) -> dict[str, Any]:
        x, model = table(tall, F32), fw.PCA(2, n_threads=n_threads)
        for start in range(0, len(x), 70_001):
            model.partial_fit(x[start : start + 70_001])
        return told(model, x)

    def curve(n_threads: int) -> dict[str, Any]:
        x, w = table(broad, F32), weights(120_000)
        return picked(
            fw.inertia_curve(x, range(2, 5), sample_weight=w, search="none", max_iter=10, n_threads=n_threads), CURVE
        )

    def silhouette(n_threads: int) -> dict[str, Any]:
        labels = np.random.default_rng(1).integers(4, size=300_000)
        return picked(squared_silhouette(table(tall, F32), labels, values=True, n_threads=n_threads), SILHOUETTE)

    def choice(n_threads: int) -> dict[str, Any]:
        return choose_mixture(table(broad, F32), (1, 2), ("diag", "full"), max_iter=4, n_threads=n_threads)

    def merge(n_threads: int) -> dict[str, Any]:
        x = table(broad, F64)
        return told(fw.GaussianMixture(4, max_iter=3, n_threads=n_threads).fit(x).merge(x), x)

    def family(name: str, dtype: str, weighted: bool, n_threads: int) -> dict[str, Any]:
        x = values(name, dtype, 600_000)
        return told_of(distribution(x, name, weights(len(x)) if weighted else None, n_threads=n_threads))

    def every_family(name: str, n_threads: int) -> dict[str, Any]:
        return told_of_all(distribution(values(name, F32, 600_000), "all", n_threads=n_threads))

    yield from pair("PCA, partial_fit", batches)
    yield from pair("inertia_curve", curve)
    yield from pair("silhouette", silhouette)
    yield from pair("choose_mixture", choice)
    yield from pair("GaussianMixture, merged", merge)
    for name in ("normal", "gamma", "weibull", "laplace", "negative-binomial"):
        yield from pair(f"fit_distribution, {name}, float64", partial(family, name, F64, False))
        yield from pair(f"fit_distribution, {name}, float32, weighted", partial(family, name, F32, True))
    yield from pair("fit_distribution, all, gamma", partial(every_family, "gamma"))
    yield from pair("fit_distribution, all, poisson", partial(every_family, "poisson"))


MAKERS = (pca, kmeans, minibatch, bisecting, soft, kernel_kmeans, mixture, distributions, judging, reading, blocks)

# ---------------------------------------------------------------- the two commands


def run_all(word: str, slow: int) -> dict[str, Found]:
    """Every case whose name has the word in it."""
    found: dict[str, Found] = {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as path, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        folder = Folder(path)
        for make in MAKERS:
            for case in make(folder):
                if word not in case.name:
                    continue
                if case.name in found:
                    raise ValueError(f"two cases are called {case.name!r}")
                began = time.perf_counter()
                found[case.name] = parts_of(case)
                seconds[case.name] = time.perf_counter() - began
    raised = sum(set(parts) == {"raised"} for parts in found.values())
    print(f"{len(found)} cases in {sum(seconds.values()):.0f} s, of which {raised} raised an error", flush=True)
    for name in sorted(seconds, key=lambda name: -seconds[name])[:slow]:
        print(f"  {seconds[name]:6.2f} s  {name}")
    return found


def about() -> dict[str, str]:
    """What hashes depend on besides the code."""
    names = ("numpy", "scipy", "scikit-learn", "duckdb", "pandas")
    manifest = getattr(fw.PCA(1).fit(table("line", F64)), "manifest_", None)
    kernels = str(getattr(manifest, "instruction_set", "unknown"))
    return {"machine": platform.machine(), "kernels": kernels, **{name: metadata.version(name) for name in names}}


def unequal_threads(found: dict[str, Found]) -> int:
    """Name the cases that came out different with another number of threads; how many there are."""
    wrong = 0
    for name, parts in found.items():
        other = found.get(name.removesuffix(_ONE) + _THREE) if name.endswith(_ONE) else None
        if other is not None and other != parts:
            wrong += 1
            differ = [part for part in {**parts, **other} if parts.get(part) != other.get(part)]
            print(f"with three threads: {name.removesuffix(_ONE)}: {listed(differ)}")
    return wrong


def listed(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def write(path: Path, found: dict[str, Found]) -> None:
    hashes = {name: whole(parts) for name, parts in found.items()}
    path.write_text(json.dumps({"about": about(), "hashes": hashes, "parts": found}, indent=0) + "\n")


def compare(path: Path, found: dict[str, Found], word: str, *, allow_missing: bool) -> int:
    """Name the cases that differ; how many there are."""
    kept = json.loads(path.read_text())
    for what, here in about().items():
        if kept["about"].get(what) != here:
            print(f"hashes cannot be compared: {what} was {kept['about'].get(what)}, and here it is {here}")
    wrong = 0
    gone: dict[str, int] = {}
    for name, old in kept["parts"].items():
        if word not in name:
            continue
        new = found.get(name)
        if new is None:
            wrong += 1
            print(f"not run: {name}")
            continue
        if "raised" in {*old, *new} and old != new:
            wrong += 1
            print(f"differs: {name}: raised {old.get('raised', 'nothing')} before, {new.get('raised', 'nothing')} now")
            continue
        missing = [part for part in old if part not in new]
        differ = [part for part in old if part in new and new[part] != old[part]]
        for part in missing:
            gone[part] = gone.get(part, 0) + 1
        if differ or (missing and not allow_missing):
            wrong += 1
            told = [f"{listed(differ)}"] if differ else []
            told += [f"missing: {listed(missing)}"] if missing else []
            print(f"differs: {name}: {'; '.join(told)}")
    for part, count in sorted(gone.items(), key=lambda item: -item[1]):
        print(f"missing in {count} cases: {part}")
    new_cases = sum(name not in kept["parts"] for name in found)
    print(f"{wrong} cases differ" + (f"; {new_cases} are new" if new_cases else ""))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE", help="fit everything and keep the hashes")
    what.add_argument("--compare", type=Path, metavar="FILE", help="fit everything and compare with hashes kept before")
    parser.add_argument("--only", default="", metavar="WORD", help="only cases whose name has this in it")
    parser.add_argument("--slow", type=int, default=0, metavar="N", help="name the N cases that took longest")
    parser.add_argument("--allow-missing", action="store_true", help="attributes that are gone are named, no more")
    given = parser.parse_args()
    found = run_all(given.only, given.slow)
    wrong = unequal_threads(found)
    if given.write is not None:
        write(given.write, found)
    else:
        wrong += compare(given.compare, found, given.only, allow_missing=given.allow_missing)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
