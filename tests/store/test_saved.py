"""Files of earlier versions stay readable: each was written by the version in its name and never anew.

`tests/saved/pca-0.1.0.fw` was made by this script, with foldwise 0.1.0 on Python 3.11 and NumPy 2:

    import numpy as np, foldwise as fw
    x = np.array([[i % 3, (i * i) % 7, i] for i in range(12)], dtype=float) + 100
    fw.save(fw.PCA(0.7, scale=True, whiten=True, ddof=0).fit(x), "tests/saved/pca-0.1.0.fw")

and `comparison-0.1.0.fw`, in which records and fields had other names, by this one:

    x = np.random.default_rng(0).gamma(2.0, 3.0, 60).round(3)
    fw.save(fw.fit_distribution(x, ["gamma", "weibull", "laplace"]), "tests/saved/comparison-0.1.0.fw")
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import UncheckedFileWarning

SAVED = Path(__file__).resolve().parents[1] / "saved"
X = np.array([[i % 3, (i * i) % 7, i] for i in range(12)], dtype=float) + 100


def test_pca_of_version_0_1_0() -> None:
    with pytest.warns(UncheckedFileWarning, match=r"pca-0\.1\.0\.fw: .*without a digest.*Save it again"):
        pca = fw.load(SAVED / "pca-0.1.0.fw")
    assert (pca.n_components, pca.scale, pca.whiten, pca.ddof) == (0.7, True, True, 0)
    assert pca.n_components_ == 2
    np.testing.assert_allclose(pca.mean_, [101.0, 101.91666666666667, 105.5], rtol=1e-14)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [0.486264505542741, 0.28553288072821276], rtol=1e-12)
    np.testing.assert_allclose(
        pca.transform(X[:2]),
        [[-1.9840097712731863, -0.34734732166974375], [-0.8710680713121658, -0.7114737796278134]],
        rtol=1e-10,
    )
    assert pca.rank_.rule == "share 0.7"
    assert pca.outcome_.converged
    assert pca.manifest_.rows == 12
    assert pca.score(X) == pytest.approx(-5.538488353553799, rel=1e-10)


def test_comparison_of_version_0_1_0() -> None:
    with pytest.warns(UncheckedFileWarning, match="without a digest"):
        found = fw.load(SAVED / "comparison-0.1.0.fw")
    assert isinstance(found, fw.Comparison)
    assert [fit.family for fit in found] == ["weibull", "gamma", "laplace"]
    assert found["weibull"].max_log_likelihood == pytest.approx(-156.5577776400507, rel=1e-12)
    assert found["gamma"].log_likelihood() == pytest.approx(found["gamma"].max_log_likelihood, rel=1e-12)
    assert found["laplace"].statistics.second_sums == pytest.approx(175.948, rel=1e-12)
    assert "shape 1.5859" in repr(found)
