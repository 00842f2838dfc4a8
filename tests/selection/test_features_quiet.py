"""Warnings of single fits, which run in several threads, do not reach the user of a search."""

import warnings

import numpy as np

import foldwise as fw


def test_clusterings_of_few_different_rows_are_quiet():
    x = (
        np.random.default_rng(0).integers(0, 2, (40, 12)).astype(float)
    )  # one column has 2 different rows, and 6 clusters
    before = list(warnings.filters)
    for _ in range(5):
        selector = fw.FeatureSelector(3, criterion="cluster", n_clusters=6, random_state=0, n_threads=8).fit(x)
    assert selector.n_features_ == 3
    assert warnings.filters == before
