"""Arrays of the caller beside blocks, and tasks that can be sent away: an engine that pickles whatever it is given."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data.block import Block
from foldwise.data.source import Source, block_rows, n_blocks
from foldwise.fold.engine import Engine
from foldwise.fold.local import LocalBlocks
from foldwise.fold.passes import Passes
from foldwise.fold.row_arrays import WithRowArray, for_blocks
from foldwise.stats.array_sum import ArraySum


class Elsewhere:
    """Two halves of the blocks, each with tasks that came through pickle."""

    remote = True

    def __init__(self, source: Source) -> None:
        count = n_blocks(source)
        assert count is not None
        self.rows = block_rows(source)
        self.halves = [LocalBlocks(source, 1, 0, count // 2), LocalBlocks(source, 1, count // 2, count)]
        self.sent = 0

    def _sent(self, task: Any, half: LocalBlocks) -> Any:
        assert half.last is not None
        data = pickle.dumps(for_blocks(task, half.first, half.last, self.rows))
        self.sent += len(data)
        return pickle.loads(data)

    def nodes(self, task: Any) -> Any:
        return [node for half in self.halves for node in half.nodes(self._sent(task, half))]

    def each(self, task: Any) -> Any:
        return [found for half in self.halves for found in half.each(self._sent(task, half))]

    def total(self, task: Any, zero: Any, split: int = 0, progress: Any = None) -> Any:
        raise NotImplementedError

    def ask(self, task: Any, requests: Any) -> Any:
        found = {}
        for half in self.halves:
            mine = {n: one for n, one in requests.items() if half.first <= n < (half.last or 0)}
            found |= half.ask(pickle.loads(pickle.dumps(task)), mine)
        return found


class Pickling(Engine):
    remote = True

    def __init__(self) -> None:
        self.placed: list[Elsewhere] = []

    def place(self, source: Source, n_threads: int) -> Any:
        self.placed.append(Elsewhere(source))
        return self.placed[-1]


def by_label(block: Block, labels: np.ndarray) -> ArraySum:
    return ArraySum(np.bincount(labels, block.dense()[:, 0], 3).astype(np.float64))


def starts(block: Block, labels: np.ndarray) -> tuple[int, int]:
    return int(labels[0]), len(labels)


X = np.random.default_rng(0).standard_normal((400_000, 4))
LABELS = np.random.default_rng(1).integers(3, size=len(X)).astype(np.int32)


def test_each_block_gets_its_slice() -> None:
    here, away = Passes(fw.scan(X)), Pickling()
    there = Passes(fw.scan(X), engine=away)
    expected = here.fold(by_label, beside=LABELS).value
    np.testing.assert_allclose(expected, np.bincount(LABELS, X[:, 0]), rtol=1e-12)
    assert there.fold(by_label, beside=LABELS).value.tobytes() == expected.tobytes()
    numbers = np.arange(len(X))
    rows = here.block_rows
    assert here.each(starts, beside=numbers) == [(at, min(rows, len(X) - at)) for at in range(0, len(X), rows)]
    assert there.each(starts, beside=numbers) == here.each(starts, beside=numbers)


def test_only_the_entries_of_their_blocks_travel() -> None:
    away = Pickling()
    Passes(fw.scan(X), engine=away).fold(by_label, beside=LABELS)
    assert away.placed[0].sent < LABELS.nbytes + 2000
    part = WithRowArray(by_label, LABELS).for_rows(1000, 3000)
    assert part.array.base is LABELS  # a view: nothing is copied here
    assert (len(part.array), part.start) == (2000, 1000)
    assert part.for_rows(1500, 1600).array.tobytes() == LABELS[1500:1600].tobytes()
    assert for_blocks(by_label, 0, 1, 100) is by_label


def test_passes_that_are_not_over_the_data_do_not_count() -> None:
    passes = Passes(fw.scan(X))
    passes.over(fw.scan(X[:10])).fold(_first)
    assert passes.counter.passes == 1
    passes.over(fw.scan(X[:10]), here=True).fold(_first)
    assert passes.counter.passes == 1


def _first(block: Block) -> ArraySum:
    return ArraySum(block.dense()[0])


def hashed(values: dict[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(value).tobytes() for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "krylov", "power"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pca_elsewhere(solver: str, weighted: bool) -> None:
    x = (X[:150_000] * [4, 3, 2, 1]).astype(np.float32)
    w = np.random.default_rng(2).integers(0, 3, len(x)) if weighted else None
    pca = fw.PCA(2, svd_solver=solver, scale=True, whiten=True).fit(x, sample_weight=w)
    away = Pickling()
    there = fw.PCA(2, svd_solver=solver, scale=True, whiten=True).fit(x, sample_weight=w, engine=away)
    assert away.placed
    assert hashed(vars(there)) == hashed(vars(pca))
    for name in ("transform", "scores", "reconstruction_error", "cos2", "score_samples"):
        with fw.engine(Pickling()):
            found = getattr(there, name)(x)
        assert found.tobytes() == getattr(pca, name)(x).tobytes()
    with fw.engine(Pickling()):
        assert there.inverse_transform(x[:, :2]).tobytes() == pca.inverse_transform(x[:, :2]).tobytes()


def test_wide_pca_elsewhere() -> None:
    x = np.random.default_rng(3).standard_normal((1500, 3000)).astype(np.float32)
    pca, there = (fw.PCA(3, svd_solver="covariance_eigh").fit(x, engine=one) for one in (None, Pickling()))
    assert pca.manifest_.algorithm == "gram"
    assert pca.manifest_.passes == there.manifest_.passes == 2
    assert hashed(vars(there)) == hashed(vars(pca))


def test_distributions_elsewhere() -> None:
    x = np.random.default_rng(4).gamma(2.0, 3.0, 300_000)
    here, there = fw.fit_distribution(x, "all"), fw.fit_distribution(x, "all", engine=Pickling())
    assert [fit.family for fit in there] == [fit.family for fit in here]
    for one, other in zip(here, there, strict=True):
        assert one.parameters == other.parameters
        assert one.max_log_likelihood == other.max_log_likelihood
        assert one.covariance.tobytes() == other.covariance.tobytes()
        assert one.manifest.passes == other.manifest.passes
    with fw.engine(Pickling()):
        assert there["weibull"].log_likelihood(shape=2.0) == here["weibull"].log_likelihood(shape=2.0)
    assert there["gamma"].goodness_of_fit(resamples=5, engine=Pickling()) == here["gamma"].goodness_of_fit(resamples=5)


@pytest.mark.parametrize("family", ["negative-binomial", "poisson"])
def test_counts_elsewhere(family: str) -> None:
    x = np.random.default_rng(5).negative_binomial(3, 0.00001, 300_000).astype(np.float64)  # too large to be tallied
    here, there = fw.fit_distribution(x, family), fw.fit_distribution(x, family, engine=Pickling())
    assert there.parameters == here.parameters
    assert there.goodness_of_fit(engine=Pickling()) == here.goodness_of_fit()


def test_silhouettes_elsewhere() -> None:
    here, there = (fw.silhouette(X, LABELS, sample_size=50, engine=engine) for engine in ("threads", Pickling()))
    assert (there.mean, there.cluster_errors.tobytes()) == (here.mean, here.cluster_errors.tobytes())
    here, there = (fw.squared_silhouette(X, LABELS, values=True, engine=engine) for engine in ("threads", Pickling()))
    assert here.values is not None
    assert there.values is not None
    assert there.values.tobytes() == here.values.tobytes()
    assert (there.mean, there.cluster_means.tobytes()) == (here.mean, here.cluster_means.tobytes())
