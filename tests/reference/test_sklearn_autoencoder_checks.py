"""scikit-learn's checks of estimators, with a small network and a few epochs."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw

pytest.importorskip("torch")

_REASON = (
    "held-out rows and batches are drawn among rows, and repeated rows are others; see test_a_weight_is_a_repetition"
)
MEANT = {f"check_sample_weight_equivalence_on_{kind}_data": _REASON for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        fw.Autoencoder(2, encoder=[4], max_iter=3),
        fw.Autoencoder(2, encoder=[4], max_iter=3, linear=False, scale=True, missing="model", validation_fraction=0.2),
    ],
    expected_failed_checks=lambda _: MEANT,
)
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
