"""What all estimators share."""

from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw


def test_parameters_that_passed_once_do_not_excuse_others() -> None:
    """Plain values are remembered by value and type, arrays are checked at every fit."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    for _ in range(2):
        fw.KMeans(3).fit(x)
        fw.KMeans(3, init=x[:3].copy()).fit(x)
    for wrong in (3.0, -3, "3", None):
        with pytest.raises(ValueError, match="n_clusters"):
            fw.KMeans(wrong).fit(x)
    with pytest.raises(ValueError, match="tol"):
        fw.GaussianMixture(2, tol=-1.0).fit(x)
    with pytest.raises(ValueError, match="init"):
        fw.KMeans(3, init=x[:2].copy()).fit(x)
