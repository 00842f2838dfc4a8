"""Declarations of parameters: the values each may take, and whether it affects the result of a fit.

scikit-learn's checks and the key that ties a checkpoint to its parameters are derived from them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from numbers import Integral, Real
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions


@dataclass(frozen=True)
class Parameter:
    """The values a parameter may take, as scikit-learn constraints, and whether it can affect the result."""

    may_be: tuple[Any, ...]
    affects_result: bool = True


def one_of(*names: str, **options: Any) -> Parameter:
    """One of several strings."""
    return Parameter((StrOptions(set(names)),), **options)


def number(low: float | None = 0, high: float | None = None, closed: str = "left", *others: Any) -> Parameter:
    """A real number of at least `low`, or one of the alternatives listed."""
    return Parameter((Interval(Real, low, high, closed=closed), *others))


def whole(low: int | None = 1, *others: Any) -> Parameter:
    """A whole number of at least `low`, or one of the alternatives listed."""
    return Parameter((Interval(Integral, low, None, closed="left"), *others))


def words(*names: str) -> StrOptions:
    """Strings, as one of several alternatives."""
    return StrOptions(set(names))


BOOLEAN = Parameter(("boolean",))
IGNORED = Parameter(("boolean",), affects_result=False)  # accepted for compatibility with scikit-learn
ARRAY_OR_NONE = Parameter(("array-like", None))

# Shared by all models.
SHARED: dict[str, Parameter] = {
    "n_clusters": whole(),
    "n_init": whole(1, words("auto")),
    "max_iter": whole(),
    "tol": number(),
    "random_state": Parameter(("random_state",)),
    "scale": BOOLEAN,
    "missing": one_of("error", "drop", "mean", "model"),
    "prepare": Parameter((StrOptions({"auto"}), None)),
    "time_budget": Parameter((Interval(Real, 0, None, closed="left"), None), affects_result=False),
    "checkpoint": Parameter((str, os.PathLike, None), affects_result=False),
    "n_threads": Parameter((Interval(Integral, 1, None, closed="left"), None), affects_result=False),
    "verbose": Parameter(("verbose",), affects_result=False),
}


def shared(*names: str) -> dict[str, Parameter]:
    """Some of the parameters that all models share."""
    return {name: SHARED[name] for name in names}


def constraints(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The declarations as scikit-learn's `_parameter_constraints`."""
    return {name: list(parameter.may_be) for name, parameter in parameters.items()}


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def seed_of(random_state: Any) -> int:
    """The seed for a random_state; None is a fixed seed, so that equal calls give bit-identical results."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


@lru_cache(maxsize=256)
def compiled_seed(*given: int) -> int:
    """The seed of a compiled search. To draw this one number takes as long as a descent of a small table, and seeds are few."""
    return int(np.random.default_rng(given).integers(2**63))


def identity(value: Any, _inside: tuple[int, ...] = ()) -> str:
    """A text that distinguishes values, and is the same in every process.

    The printed form of an array omits digits, and that of a function or object is an address. A function is known by its code,
    what it holds on to and the arguments bound to it; global variables that it reads are not looked at.
    """
    if value is None or isinstance(value, (str, bytes, bool, int, float, complex, np.generic)):
        return repr(value)
    if id(value) in _inside:  # a function that refers to itself
        return "..."
    inside = (*_inside, id(value))
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{identity(key, inside)}: {identity(item, inside)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__} {sorted(identity(item, inside) for item in value)}"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, partial):
        return f"partial {[identity(one, inside) for one in (value.func, value.args, value.keywords)]}"
    if isinstance(value, CodeType):
        constants = [identity(one, inside) for one in value.co_consts]
        return _digest(f"{value.co_code!r} {constants} {value.co_names}".encode())
    if hasattr(value, "__code__"):
        held = [_contents(cell) for cell in value.__closure__ or ()]
        held += [value.__code__, *(value.__defaults__ or ()), value.__kwdefaults__, getattr(value, "__self__", None)]
        return f"{value.__qualname__} {[identity(one, inside) for one in held]}"
    if isinstance(value, (list, tuple)) and not all(isinstance(one, (int, float)) for one in value):
        return f"{type(value).__name__} {[identity(one, inside) for one in value]}"
    if isinstance(value, (type, ModuleType)):
        return f"{value.__module__ if isinstance(value, type) else ''}.{value.__name__}"
    if hasattr(value, "__array__") or isinstance(value, (list, tuple)):
        array = np.ascontiguousarray(value)
        if array.dtype != object:  # whose bytes are addresses
            return f"{array.dtype} {array.shape} {_digest(array.tobytes())}"
        return f"object {array.shape} {[identity(one, inside) for one in array.ravel().tolist()]}"
    return f"{type(value).__qualname__} {identity(vars(value), inside) if hasattr(value, '__dict__') else repr(value)}"


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
