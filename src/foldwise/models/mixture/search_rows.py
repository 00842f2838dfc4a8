"""The rows that the search for a start works on: all of a small table, a sample of a large one, in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, dense_rows
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Kind, Scatter
from foldwise.kernels.short_runs import COLLAPSED, em_improve, em_run, kmeans_labels, label_moments
from foldwise.models.mixture.covariance import CovarianceType
from foldwise.models.mixture.fit_data import FitData

KINDS = ("full", "tied", "diag", "spherical")  # what the compiled runs know
_EACH = 100  # rows for each component and column, and one: enough to tell one model from another
_LEAST, _MOST = 1000, 20_000
_AREA = 10_000  # rows times components, at least
_CENTRE = 40  # rows for each centre of k-means
_WHOLE = 1.5  # so much more than the sample would be is taken whole
_MANY, _MUCH = 5, 0.5  # as in collapse.py: so many rows that are alike are no accident
_ROWS = 2  # times the rows that determine a covariance: fewer are a spike, whose likelihood says nothing
_LIGHT = 0.1  # of an even share of the weight
_FLAT = 0.5  # the share of the ridge in a variance at which a component is suspected to be flat


class Model(NamedTuple):
    """Weights, means (about the centre) and covariances, and the bound that the step before found."""

    bound: float
    weights: Floats
    means: Floats
    covariances: Floats


def sample_size(n: int, k: int, d: int) -> int:
    """How many of `n` rows the search looks at."""
    size = min(max(_LEAST, _EACH * k * (d + 1), _AREA // k), _MOST)
    return n if n < _WHOLE * size else size


@dataclass(frozen=True)
class SearchRows:
    """Rows less one of them, in float64, and what runs of EM over them need."""

    x: Floats
    weights: Floats | None
    covariance: CovarianceType
    share: float  # all rows over those that were looked at
    k: int
    ratio: Floats  # from the units of the fit to those of the data
    centre: Floats  # what was subtracted

    @classmethod
    def of(cls, data: FitData, k: int, seed: int) -> SearchRows:
        """The sample of the data for k components."""
        which, share = chosen(data, k, seed)
        return cls.made(data, *taken(data.passes, which), k, share)

    @classmethod
    def made(cls, data: FitData, x: NDArray[Any], weights: Floats | None, k: int, share: float) -> SearchRows:
        """From these rows."""
        x, weights = _merged(x.astype(np.float64), weights)
        centre = x[len(x) // 2]  # any row: the mean would be rounded by the order in which it was added up
        x = x - centre
        factor = data.units.factor
        return cls(np.ascontiguousarray(x), weights, data.covariance, share, k, factor.min() / factor, centre)

    @property
    def total(self) -> float:
        """The weight of these rows."""
        return float(len(self.x)) if self.weights is None else float(self.weights.sum())

    @property
    def has_atom(self) -> bool:
        """Whether so many rows are equal that a component may well be for them alone."""
        if self.weights is None:
            return False
        heaviest = float(self.weights.max(initial=0.0))
        return heaviest >= max(_MANY * self.covariance.least_rows(), _MUCH * self.total / self.k)

    @cached_property
    def whole(self) -> Floats:
        """The covariance matrix of these rows."""
        away = self.x - self.mean
        return np.asarray((away * self._shares[:, None]).T @ away)

    @cached_property
    def mean(self) -> Floats:
        """The mean of these rows."""
        return np.asarray(self._shares @ self.x)

    @cached_property
    def _shares(self) -> Floats:
        return np.full(len(self.x), 1.0 / len(self.x)) if self.weights is None else self.weights / self.weights.sum()

    @cached_property
    def views(self) -> tuple[str, ...]:
        """How k-means is to see the rows: columns in equal units, in their own, and without correlations."""
        if self.covariance.compares_columns:
            return ("own",)
        own = self._width * self.ratio
        differ = ("own",) if own.max() > 1.1 * own.min() else ()
        return ("scaled", *differ, "white") if self.covariance.d > 1 else ("scaled",)

    @cached_property
    def _width(self) -> Floats:
        width = np.sqrt(np.diagonal(self.whole))
        return np.where(width > 0, width, 1.0)

    @cached_property
    def _views(self) -> dict[str, Floats]:
        return {}

    def view(self, name: str) -> Floats:
        """The rows in one of the views, transposed."""
        if name not in self._views:
            seen = self.x * self.ratio if name == "own" else self.x / self._width
            if name == "white":
                width = self._width
                try:
                    factor = np.linalg.cholesky(self.whole / width / width[:, None])
                    seen = np.linalg.solve(factor, seen.T).T
                except np.linalg.LinAlgError:  # some column follows from others
                    pass
            self._views[name] = np.ascontiguousarray(seen.T)
        return self._views[name]

    def labels(self, view: str, steps: int, swaps: int, trials: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Clusters of k-means in one of the views."""
        every = max(1, len(self.x) // max(_LEAST, _CENTRE * self.k))
        return kmeans_labels(
            self.view(view), self.weights, self.k, rng, trials=trials, steps=steps, swaps=swaps, every=every
        )

    def moments(self, labels: NDArray[np.int32]) -> tuple[Floats, Floats, Floats]:
        """Weights, means and covariance matrices of labelled rows; those with too few have the shape of all."""
        counts, means, scatter = label_moments(self.x, self.weights, labels, self.k)
        few = counts < self.covariance.d + 1
        matrices = scatter / np.maximum(counts, 1e-300)[:, None, None]
        if few.any():
            matrices[few] = self.whole * self.k ** (-2 / self.covariance.d)
        return counts, means, matrices


@dataclass(frozen=True)
class Runs:
    """Runs of EM over the rows with one ridge."""

    rows: SearchRows
    ridge: Floats
    limit: float
    least: float  # the weight below which a component has collapsed
    many: float = math.inf  # the weight from which a component may be flat

    @classmethod
    def of(cls, rows: SearchRows, ridge: Floats) -> Runs | None:
        """None if not even one component has a density with this ridge."""
        kind = rows.covariance
        try:
            one = kind.with_ridge(kind.of_matrices(rows.whole[None], np.ones(1)), ridge)
            # Where all rows are flat, no component is at fault for being so.
            flat = float(np.max(kind.traces(kind.whiten(one), ridge)))
        except np.linalg.LinAlgError:
            return None
        # A shared covariance has no spikes: a component of one row is as good as any.
        least = min(_LIGHT if kind.shared else _ROWS * kind.least_rows(), _LIGHT * rows.total / rows.k)
        return cls(rows, ridge, _FLAT + flat, least)

    def with_flat(self) -> Runs:
        """Runs in which a component may be flat if it has so many rows that this is no accident (as in collapse.py)."""
        rows = self.rows
        return replace(self, many=min(_ROWS * rows.covariance.least_rows(), _MUCH * rows.total / rows.k))

    def model(self, weights: Floats, means: Floats, matrices: Floats) -> Model:
        """A model of the kind that is fitted, from covariance matrices."""
        kind = self.rows.covariance
        covariances = kind.with_ridge(kind.of_matrices(matrices, weights), self.ridge)
        return Model(-np.inf, weights, means, np.ascontiguousarray(covariances))

    def __call__(self, model: Model, steps: int, tol: float) -> tuple[Model, int]:
        """The model after at most so many steps, and how many it took; collapsed ones have a bound of -inf."""
        bound, after, done, status = em_run(
            *self._fixed, model[1:], steps=steps, tol=tol, least=self.least, limit=self.limit, many=self.many
        )
        return Model(-np.inf if status == COLLAPSED else bound, *after), done

    def improved(self, model: Model, **options: Any) -> tuple[Model, float]:
        """The best that moves away from a model find (see `em_improve` for the options), and the steps it took."""
        bound, after, done = em_improve(
            *self._fixed, model[1:], model.bound, **options, least=self.least, limit=self.limit, many=self.many
        )
        return Model(bound, *after), done

    @property
    def _fixed(self) -> tuple[Kind, Scatter, Floats, Floats | None, Floats]:
        rows, kind = self.rows, self.rows.covariance
        return kind.layout, kind.scatter, rows.x, rows.weights, self.ridge


def _comfortable(weights: Floats) -> Floats:
    """Weights whose products stay in range: multiplied by a power of two if they are very large or small."""
    power = math.frexp(float(weights.max(initial=1.0)))[1]
    return weights if abs(power) <= 30 else np.ldexp(weights, -power)


def _merged(x: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Rows in an order of their own, equal ones as one: neither the order they came in nor repetition should matter."""
    order = np.lexsort(x.T)
    x, weights = x[order], None if weights is None else weights[order]
    fresh = np.r_[True, (x[1:] != x[:-1]).any(axis=1)]
    if not fresh.all():
        weights = np.bincount(np.cumsum(fresh) - 1, weights).astype(np.float64)
        x = x[fresh]
    return x, None if weights is None else _comfortable(weights)


def _places(data: FitData) -> NDArray[np.intp] | None:
    """The numbers of the rows that have weight; None if all have."""
    n, rows = data.extent.count, data.passes.block_rows
    if data.extent.columns.rows == n and not data.blank:
        return None
    found = data.passes.ask(_with_something, dict.fromkeys(range(-(-n // rows))))
    return np.concatenate([found[number] + number * rows for number in sorted(found)])


def _with_something(block: Block, state: Any, nothing: None) -> NDArray[np.intp]:
    blank = np.isnan(dense_rows(block.unchecked)).all(axis=1)
    return np.flatnonzero(~blank if block.weights is None else (block.weights > 0) & ~blank)


def chosen(data: FitData, k: int, seed: int) -> tuple[NDArray[np.intp], float]:
    """The numbers of the rows that the search looks at, and how many times as many there are.

    Drawn by row number, so that it does not matter where the rows are.
    """
    places = _places(data)  # rows of weight 0 are as if they were not there, and so are those without any value
    n = data.extent.count if places is None else len(places)
    size = sample_size(n, k, data.covariance.d)
    which = np.arange(n) if size == n else np.sort(np.random.default_rng([seed, 4]).choice(n, size, replace=False))
    return which if places is None else places[which], n / size


def taken(passes: Passes, which: NDArray[np.intp]) -> tuple[NDArray[Any], Floats | None]:
    """Some rows by number, in order, and their weights."""
    of_block = which // passes.block_rows
    inside = {int(number): which[of_block == number] - number * passes.block_rows for number in np.unique(of_block)}
    found = passes.ask(_rows_and_weights, inside)
    parts = [found[number] for number in sorted(found)]
    rows = np.concatenate([part[0] for part in parts])
    if any(part[1] is None for part in parts):
        return rows, None
    return rows, np.concatenate([part[1] for part in parts])


def _rows_and_weights(block: Block, state: Any, inside: NDArray[np.intp]) -> tuple[NDArray[Any], Floats | None]:
    return dense_rows(block.unchecked[inside]), None if block.weights is None else block.weights[inside]
