"""Estimators of other libraries, whose random numbers are to come from our seed."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every random_state that is None, also of estimators inside others, is the seed.

    >>> from sklearn.cluster import KMeans
    >>> seeded(KMeans(), 5).random_state, seeded(KMeans(random_state=1), 5).random_state
    (5, 1)
    """
    known = estimator.get_params(deep=True)
    open_ = {name: seed for name, value in known.items() if value is None and name.split("__")[-1] == "random_state"}
    return clone(estimator).set_params(**open_)
