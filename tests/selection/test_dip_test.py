from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw
from foldwise.selection.dip_test import p_value


@pytest.mark.parametrize("n", [15, 80, 300])
def test_uniform_values_are_judged_rightly(n):
    """The share of uniform samples with a probability below p is p."""
    rng = np.random.default_rng(n)
    found = np.array([fw.dip_test(rng.random(n)).p_value for _ in range(2000)])
    for level in (0.05, 0.1, 0.3, 0.5):
        assert np.mean(found <= level) == pytest.approx(level, abs=4 * np.sqrt(level / 2000) + 0.005)


def test_one_and_two_peaks():
    rng = np.random.default_rng(1)
    for one in (rng.standard_normal(500), rng.exponential(size=500), rng.standard_t(3, 500)):
        assert fw.dip_test(one).p_value > 0.2
    two = np.concatenate([rng.standard_normal(250), rng.standard_normal(250) + 4])
    assert fw.dip_test(two).p_value < 1e-3


def test_probability_falls_with_the_dip():
    for n in (8, 50, 1000, 1e6):
        chances = [p_value(dip / np.sqrt(n), n) for dip in np.linspace(0.0, 3.0, 200)]
        assert chances[0] == 1.0
        assert np.all(np.diff(chances) <= 0)
        assert chances[-1] < 1e-9


def test_weights_are_repetition():
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal(60), rng.integers(0, 4, 60)
    assert fw.dip_test(x, w) == fw.dip_test(np.repeat(x, w))


def test_too_few_values_prove_nothing():
    assert fw.dip_test([0.0, 0.0, 1.0, 1.0]).p_value == 1.0
    assert fw.dip_test([]) == fw.selection.dip_test.DipTest(0.0, 1.0)


@pytest.mark.parametrize(
    ("x", "w"), [([1.0, np.nan], None), ([1.0, np.inf], None), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0])]
)
def test_bad_input(x, w):
    with pytest.raises(fw.errors.DataError):
        fw.dip_test(x, w)
