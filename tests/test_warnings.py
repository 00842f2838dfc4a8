"""Warnings point at the line of the user, however deep in the package they are issued."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldwise as fw
from foldwise import errors

ROWS = np.random.default_rng(0).normal(size=(60, 3))
FEW = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)


@pytest.fixture
def told() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def line() -> int:
    return sys._getframe(1).f_lineno


SHARES = np.full(60, 0.05)
CASES: dict[str, Callable[[], Any]] = {
    "k-means stopped": lambda: fw.KMeans(4, max_iter=1, search="none", random_state=0).fit(ROWS),
    "fit_predict stopped": lambda: fw.KMeans(4, max_iter=1, search="none", random_state=0).fit_predict(ROWS),
    "fewer distinct rows": lambda: fw.KMeans(4, random_state=0).fit(FEW),
    "mixture stopped": lambda: fw.GaussianMixture(3, max_iter=1, tol=1e-14, random_state=0).fit(ROWS),
    "mixture fit_predict": lambda: fw.GaussianMixture(3, max_iter=1, tol=1e-14, random_state=0).fit_predict(ROWS),
    "a step of a pipeline": lambda: make_pipeline(
        StandardScaler(), fw.KMeans(4, max_iter=1, search="none", random_state=0)
    ).fit(ROWS),
    "ensemble of shares": lambda: fw.ClusterEnsemble(2, n_base=3, random_state=0).fit(ROWS, sample_weight=SHARES),
    "curve of few rows": lambda: fw.inertia_curve(FEW, 4, random_state=0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_line_of_the_user(case: str, told: list[warnings.WarningMessage]) -> None:
    CASES[case]()
    ours = [one for one in told if issubclass(one.category, errors.FoldwiseWarning)]
    assert ours
    assert {one.filename for one in ours} == {__file__}
    assert {one.lineno for one in ours} <= {at for *_, at in CASES[case].__code__.co_lines()}


def test_new_rows_without_names(told: list[warnings.WarningMessage]) -> None:
    model = fw.PCA(2).fit(pd.DataFrame(ROWS, columns=["a", "b", "c"]))
    model.transform(ROWS), (wanted := line())  # wrapped by scikit-learn's set_output
    assert [(one.filename, one.lineno) for one in told] == [(__file__, wanted)]
    fw.KMeans(2, random_state=0).fit(pd.DataFrame(ROWS)).predict(ROWS)
    assert {one.filename for one in told} == {__file__}


def test_unseen_levels(told: list[warnings.WarningMessage]) -> None:
    table = pd.DataFrame({"size": ROWS[:, 0], "colour": ["red", "blue", "red"] * 20})
    recipe = fw.prepare(table, categories="encode").recipe
    model = fw.PCA(2).fit(recipe.open(table))
    model.transform(table.assign(colour="green"))
    assert told
    assert {one.filename for one in told} == {__file__}


def test_a_thread_that_works_for_a_fit(told: list[warnings.WarningMessage]) -> None:
    """Only lines of the package and of threading are below it: the main thread, which waits for it, is told."""
    worker = threading.Thread(target=errors.warn, args=("from a worker",))
    worker.start()
    worker.join()
    assert [one.filename for one in told] == [__file__]


def test_each_line_is_told_once_by_default() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            fw.KMeans(4, random_state=0).fit(FEW)
        fw.KMeans(4, random_state=0).fit(FEW)
    assert len(caught) == 2
