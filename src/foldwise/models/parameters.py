"""Declarations of parameters: the values each may take, and whether it affects the result of a fit.

scikit-learn's checks and the key that ties a checkpoint to its parameters are derived from them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
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


def identity(value: Any) -> str:
    """A string that distinguishes values; `repr` would omit digits of arrays, and show the address of functions."""
    if value is None or isinstance(value, (str, bool, int, float, np.generic)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {identity(item)}" for key, item in value.items()) + "}"
    code = getattr(value, "__code__", None)
    if code is not None:  # a function: its code, and the values it captures
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        held += [*(value.__defaults__ or ()), value.__kwdefaults__]
        owner = getattr(value, "__self__", None)  # the object of a bound method
        held += [] if owner is None else [vars(owner) if hasattr(owner, "__dict__") else repr(owner)]
        return f"{value.__qualname__} {_digest(_code(code).encode())} {[identity(one) for one in held]}"
    if callable(value):
        try:
            return f"{type(value).__qualname__} {_digest(pickle.dumps(value))}"
        except Exception:
            return f"{type(value).__qualname__} {identity(vars(value)) if hasattr(value, '__dict__') else ''}"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    try:
        array = np.ascontiguousarray(value)
    except (TypeError, ValueError):
        return repr(value)
    if array.dtype == object:  # its bytes would be addresses
        return repr(value)
    return f"{array.dtype} {array.shape} {_digest(array.tobytes())}"


def _code(code: Any) -> str:
    constants = [_code(one) if hasattr(one, "co_code") else repr(one) for one in code.co_consts]
    return f"{code.co_code!r} {constants} {code.co_names}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
