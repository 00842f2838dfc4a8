"""What a direction means: the columns that make it up, in a phrase."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.explore.words import listed, name_of
from foldwise.selection.explore.result import Exploration

_NAMED = 3  # columns that a phrase names at most
_SMALL = 0.35  # of the largest loading: less is not named
_POLE = 0.5  # of the largest loading, of the other sign
_MIX = "a mix of many columns"
_FEW = 0.4  # of a direction's variance: if the columns named hold less, it is spread over many


def directions_of(found: Exploration) -> Floats:
    """The directions as unit vectors, one to a row, each turned so that its largest part is positive."""
    vectors = np.asarray(found.pca.components_, dtype=np.float64)
    if not vectors.size:
        return vectors
    largest = vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)]
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0)[:, None])


def meaning(vector: Floats, names: tuple[str, ...]) -> str:
    """The columns that a direction is mainly made of, those that go the other way after "against".

    >>> import numpy as np
    >>> meaning(np.array([0.7, 0.1, -0.7]), ("length", "colour", "depth"))
    'length against depth'
    >>> meaning(np.array([0.58, 0.55, 0.46, -0.40]), ("flipper", "mass", "length", "depth"))
    'flipper, mass and length against depth'
    """
    order = np.argsort(-np.abs(vector), kind="stable")[:_NAMED]
    named = [int(j) for j in order if abs(vector[j]) >= _SMALL * abs(vector[order[0]]) and vector[j] != 0]
    if not named:
        return "nothing in particular"
    if not any(vector[j] < 0 for j in named) or not any(vector[j] > 0 for j in named):
        named += _other_pole(vector, vector[named[0]])
    if len(vector) > 3 and len(named) >= _NAMED and float((vector[named] ** 2).sum()) < _FEW:
        return f"{_MIX}, above all {listed([name_of(names[j]) for j in named])}"
    along = [name_of(names[j]) for j in named if vector[j] > 0]
    against = [name_of(names[j]) for j in named if vector[j] < 0]
    return listed(along) + (f" against {listed(against)}" if against else "")


def _other_pole(vector: Floats, largest: float) -> list[int]:
    """The column that goes most the other way, if it does so at least half as strongly as the strongest."""
    across = vector * (-1.0 if largest > 0 else 1.0)
    j = int(across.argmax())
    return [j] if across[j] >= _POLE * abs(largest) else []


def mainly(vector: Floats, names: tuple[str, ...]) -> str:
    """The same as part of a sentence: "mainly length against depth", or "a mix of many columns, above all ..."."""
    words = meaning(vector, names)
    return words if words.startswith(_MIX) else f"mainly {words}"
