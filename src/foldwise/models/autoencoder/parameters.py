"""What each parameter of the autoencoder may be."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval

from foldwise.errors import ParameterError
from foldwise.models.autoencoder.activations import ACTIVATIONS
from foldwise.models.parameters import ARRAY_OR_NONE, BOOLEAN, Parameter, is_whole, number, one_of, shared, whole, words

PARAMETERS: dict[str, Parameter] = {
    "n_components": whole(1),
    "encoder": ARRAY_OR_NONE,
    "decoder": ARRAY_OR_NONE,
    "activation": one_of(*ACTIVATIONS),
    "linear": BOOLEAN,
    "noise": number(0, None, "left"),
    "dropout": number(0, 1, "left"),
    "batch_size": whole(1),
    "learning_rate": number(0, None, "neither"),
    "weight_decay": number(0, None, "left"),
    "max_iter": whole(1, words("auto")),
    "validation_fraction": number(0, 1, "left", words("auto")),
    "patience": whole(1, words("auto")),
    "reduce_to": Parameter((Interval(Integral, 1, None, closed="left"), words("auto"), None)),
    **shared("scale", "missing", "prepare", "random_state", "time_budget", "checkpoint", "n_threads"),
}


def widths_of(name: str, given: Any) -> tuple[int, ...]:
    """The widths of hidden layers that a user gave."""
    found = tuple(given.tolist() if hasattr(given, "tolist") else given)
    if not all(is_whole(width) and width >= 1 for width in found):
        raise ParameterError(f"{name}={given!r}: give the widths of hidden layers as whole numbers, such as [256, 64].")
    return tuple(int(width) for width in found)
