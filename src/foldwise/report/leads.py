"""Sentences that pages begin with, and words that several of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.formats import counted
from foldwise.report.labels import shortened
from foldwise.selection.votes import listed

_LONGEST = 280.0  # pixels of a name in a sentence
_TELLING = 0.2  # share of a column's variance between the clusters, below which they hardly differ in it
_APART = ((0.7, "far apart"), (0.5, "well separated"), (0.25, "overlap in part"), (-1.0, "run into each other"))


def short_name(name: str) -> str:
    """A name that is not too long for a sentence."""
    return shortened(name, _LONGEST)


def names_of(names: Sequence[str], places: Sequence[int]) -> str:
    """Some of the names, as part of a sentence.

    >>> names_of(["ash", "hue", "proline"], [2, 0])
    'proline and ash'
    """
    return listed([short_name(names[j]) for j in places])


def fall_into(rows: int, clusters: int, names: Sequence[str], separation: Floats, *, said: str = "fall into") -> str:
    """How many rows there are in how many clusters, and in which columns these differ.

    >>> fall_into(178, 3, ["ash", "hue", "proline"], np.array([0.1, 0.5, 0.7]))
    '178 rows fall into 3 clusters, which differ most in proline and hue.'
    """
    if clusters == 1:
        return f"All {counted(rows, 'row')} are in one cluster." if rows != 1 else "There is one row."
    if not names:  # pixels of images, which say nothing one by one
        return f"{counted(rows, 'row')} {said} {counted(clusters, 'cluster')}."
    order = np.argsort(-np.nan_to_num(separation), kind="stable")[:2]
    telling = [int(j) for j in order if separation[j] >= _TELLING]
    most = "most " if len(names) > len(telling) else ""
    differ = f"which differ {most}in {names_of(names, telling)}" if telling else "which differ little in any one column"
    return f"{counted(rows, 'row')} {said} {counted(clusters, 'cluster')}, {differ}."


def apart(silhouette: float | None) -> list[str]:
    """How far apart the clusters are.

    >>> apart(0.28), apart(None)
    (['The clusters overlap in part (mean silhouette 0.28; 1 is far apart, 0 is between two clusters).'], [])
    """
    if silhouette is None or np.isnan(silhouette):
        return []
    words = next(words for least, words in _APART if silhouette >= least)
    verb = "are " if words in ("far apart", "well separated") else ""
    return [
        f"The clusters {verb}{words} (mean silhouette {silhouette:.2f}; 1 is far apart, 0 is between two clusters)."
    ]


def agreement(categories: Sequence[Any]) -> list[str]:
    """How well the clusters agree with labels that were given."""
    found = []
    for one in categories:
        if one.is_label:
            how = "closely" if one.agreement >= 0.8 else "in part" if one.agreement >= 0.3 else "hardly"
            name = short_name(one.name)
            found.append(
                f"They agree {how} with {name} (adjusted Rand index {one.agreement:.2f}, 1 is the same groups)."
            )
    return found
