"""Choices by held-out cells: how strong the prior of a normal distribution should be, and how many components there are.

Each observed cell is predicted from the others of its row, by a model without that row, and the squared errors (in standard
deviations of the column, at most 3) are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.models.hashing import scrambled
from foldwise.models.pca.rank import RankChoice
from foldwise.stats.array_sum import ArraySum
from foldwise.stats.completed_moments import CompletedMoments

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 4.0, 16.0, 64.0)
_GROUPS = 5
_ALL_NUMBERS = 20  # of columns up to which every number of components is tried
_MOST_WORK = 2e8  # multiplications to choose a strength; beyond, a sample of rows is looked at
_MOST_WORK_FOR_COMPONENTS = 1e9


@dataclass(frozen=True)
class Fit:
    """A normal distribution over rows in `units`: its mean, and the expected scatter of the complete rows."""

    units: Units
    prior: Floats
    weight: float
    observed: float
    mean: Floats
    expected: Floats
    strength: float = 0.0


def choose_strength(passes: Passes, fit: Fit, rows: tuple[NDArray[Any], Floats | None] | None) -> tuple[float, Floats]:
    """The strength of the prior, of those in STRENGTHS, with the least error, and the errors of all.

    A row is taken out of the scatter in closed form (a change of rank one). Other rows' missing cells were filled with its
    help, too; for that it is taken out as if it counted 1 / share^2 times, where `share` is the share of cells observed.
    """
    with blas.single():
        inverses = np.stack([np.linalg.inv(fit.expected + np.diag(one * fit.prior)) for one in STRENGTHS])
    removed = fit.weight / max(fit.weight - 1.0, 1.0) / fit.observed**2
    if rows is not None:
        sums = missing_cells.left_out(*rows, fit.units, fit.mean, inverses, removed)
    else:
        share = _MOST_WORK / (fit.weight * len(STRENGTHS) * len(fit.mean) ** 2)
        task = partial(_errors, fit=fit, inverses=inverses, removed=removed, share=share)
        sums = passes.fold(task).value
    errors = sums[:-1] / max(float(sums[-1]), 1.0)
    best = int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
    return STRENGTHS[best], errors


def _errors(block: Block, fit: Fit, inverses: Floats, removed: float, share: float) -> ArraySum:
    block = sample(block, share)
    return ArraySum(missing_cells.left_out(block.dense(), block.weights, fit.units, fit.mean, inverses, removed))


def sample(block: Block, share: float) -> Block:
    """About this share of the rows, which depends on what is in a row, not on where it is."""
    if share >= 1.0:
        return block
    keep = hashes(block.dense()) < np.uint64(share * 2.0**64)
    weights = None if block.weights is None else block.weights[keep]
    return DenseBlock(np.ascontiguousarray(block.dense()[keep]), block.start, weights)


def hashes(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row that looks random, and is the same for equal rows; missing cells are all alike."""
    wide = np.where(np.isnan(rows), np.nan, rows.astype(np.float64)) + 0.0  # -0 becomes 0
    bits: NDArray[np.uint64] = np.ascontiguousarray(wide).view(np.uint64)
    places = np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    each = scrambled(np.add(bits, places, dtype=np.uint64))
    return scrambled(np.asarray(each.sum(axis=1, dtype=np.uint64)))


# ---------------------------------------------------------------- the number of components


@dataclass(frozen=True)
class _Groups:
    """The completed moments of the rows of each group."""

    parts: tuple[CompletedMoments, ...]

    def merge(self, other: _Groups) -> _Groups:
        return _Groups(tuple(a.merge(b) for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class _Judged:
    """Errors for each number of components: mean squares, and the standard errors of the distance from the least."""

    numbers: NDArray[np.intp]
    sums: Floats
    mean: Floats
    spread: Floats
    best: int

    @classmethod
    def of(cls, numbers: NDArray[np.intp], sums: Floats) -> _Judged:
        groups = sums[sums[:, -1] > 0]
        errors = groups[:, :-1] / groups[:, -1:]
        mean = groups[:, :-1].sum(axis=0) / max(float(groups[:, -1].sum()), 1.0)
        best = int(np.argmin(mean))
        away = errors - errors[:, best : best + 1]
        spread = away.std(axis=0, ddof=1) / np.sqrt(len(away)) if len(away) > 1 else np.zeros(len(numbers))
        return cls(numbers, sums, mean, spread, best)

    def least(self, standard_errors: float) -> int:
        """The least number that is no more than so many standard errors from the best."""
        return int(self.numbers[np.argmax(self.mean - self.mean[self.best] <= standard_errors * self.spread)])


def choose_components(
    passes: Passes, fit: Fit, rows: tuple[NDArray[Any], Floats | None] | None, scale: Floats, precision: Floats
) -> RankChoice:
    """The least number of components whose error is within one standard error of the least.

    Rows fall into five groups by a hash of what is in them, so that equal rows stay together. Each group is predicted by
    probabilistic PCAs, of 0, 1, ... components, of the other four, with the prior of the fit; missing cells of these are as the
    fit expects them. The standard error is that of the differences between the groups.
    """
    d = len(fit.mean)
    gather = partial(_grouped, fit=fit, precision=precision)
    block = None if rows is None else DenseBlock(rows[0], 0, rows[1])
    parts = _split(block) if block is not None else None
    found = gather(block, parts) if block is not None else passes.fold(gather)

    def errors_of(numbers: NDArray[np.intp]) -> Floats:
        """Sums of squared errors, group by number of components, and the number of cells."""
        with blas.single():
            models = _models(fit, found.parts, scale, numbers)
        share = _MOST_WORK_FOR_COMPONENTS / (fit.weight * len(numbers) * d**2)
        compare = partial(_group_errors, fit=fit, models=models, share=share)
        whole = parts if share >= 1.0 else None
        return (compare(block, whole) if block is not None else passes.fold(compare)).value

    numbers = np.arange(d)
    if d > _ALL_NUMBERS:  # all small ones, fewer of the large ones; then all around what these choose
        numbers = np.union1d(np.round(np.geomspace(1, d, _ALL_NUMBERS)).astype(int) - 1, np.arange(_ALL_NUMBERS // 2))
    judged = _Judged.of(numbers, errors_of(numbers))
    if d > _ALL_NUMBERS:
        place = int(np.searchsorted(numbers, judged.least(1.0)))
        near = np.arange(numbers[max(place - 1, 0)] + 1, numbers[min(place + 1, len(numbers) - 1)])
        more = np.setdiff1d(near, numbers)
        if more.size:
            both = np.hstack([judged.sums[:, :-1], errors_of(more)])
            order = np.argsort(np.concatenate([numbers, more]))
            numbers = np.concatenate([numbers, more])[order]
            judged = _Judged.of(numbers, np.hstack([both[:, :-1][:, order], both[:, -1:]]))
    return RankChoice(
        rule="held-out",
        chosen=judged.least(1.0),
        low=judged.least(2.0),
        high=int(numbers[judged.best]),
        meaning="numbers from within two standard errors of the least error of held-out cells to that with the least error",
        figures={
            "n_components": numbers.astype(np.float64),
            "held_out_error": np.sqrt(judged.mean),
            "standard_error": judged.spread,
            "share_of_rows": np.array([min(1.0, _MOST_WORK_FOR_COMPONENTS / (fit.weight * len(numbers) * d**2))]),
        },
    )


def _grouped(block: Block, parts: list[Block] | None = None, *, fit: Fit, precision: Floats) -> _Groups:
    parts = parts or _split(block)
    return _Groups(tuple(CompletedMoments.of(part, fit.units, fit.mean, precision) for part in parts))


def _split(block: Block) -> list[Block]:
    rows, weights = block.dense(), block.weights
    group = hashes(rows) % np.uint64(_GROUPS)
    masks = [group == number for number in range(_GROUPS)]
    return [DenseBlock(rows[mask], block.start, None if weights is None else weights[mask]) for mask in masks]


def _models(
    fit: Fit, parts: tuple[CompletedMoments, ...], scale: Floats, numbers: NDArray[np.intp]
) -> list[tuple[Floats, Floats]]:
    """For each group, mean and precisions of probabilistic PCAs, with each of the numbers of components, of all other rows."""
    weight = np.array([part.moments.weight for part in parts])
    first = np.stack([part.shift for part in parts]) * weight[:, None]
    second = (
        np.stack([part.expected for part in parts])
        + first[:, :, None] * first[:, None, :] / np.maximum(weight, 1e-300)[:, None, None]
    )  # about the mean of the fit, near which all groups lie
    rest = np.maximum(weight.sum() - weight, 1e-300)
    shift = (first.sum(axis=0) - first) / rest[:, None]
    scatter = (second.sum(axis=0) - second) - shift[:, :, None] * shift[:, None, :] * rest[:, None, None]
    matrices = (scatter + np.diag(fit.strength * fit.prior)) / (rest + fit.strength)[:, None, None]
    values, vectors = np.linalg.eigh(matrices * np.outer(scale, scale))
    return [
        (fit.mean + shift[group], _precisions(values[group, ::-1], vectors[group, :, ::-1], scale, numbers))
        for group in range(_GROUPS)
    ]


def _precisions(values: Floats, vectors: Floats, scale: Floats, numbers: NDArray[np.intp]) -> Floats:
    """Precisions in the units of the fit, where `scale` leads to those of the eigenvalues (falling) and their vectors."""
    d = len(scale)
    values = np.maximum(values, 1e-14 * values[0])
    noise = np.cumsum(values[::-1])[::-1][numbers] / (d - numbers)
    axes = vectors * scale[:, None]
    if len(numbers) == d:
        plain = np.zeros((d, d, d))
        plain[1:] = (axes.T[:, :, None] * axes.T[:, None, :])[:-1]
        kept = plain.copy()
        kept[1:] /= values[:-1, None, None]
        np.cumsum(plain, axis=0, out=plain)
        np.cumsum(kept, axis=0, out=kept)
        return np.asarray((np.diag(scale**2) - plain) / noise[:, None, None] + kept)
    result = np.empty((len(numbers), d, d))
    for place, k in enumerate(numbers):
        lead = axes[:, :k]
        result[place] = (np.diag(scale**2) - lead @ lead.T) / noise[place] + (lead / values[:k]) @ lead.T
    return result


def _group_errors(
    block: Block, parts: list[Block] | None = None, *, fit: Fit, models: list[tuple[Floats, Floats]], share: float
) -> ArraySum:
    parts = parts or _split(sample(block, share))
    sums = [
        missing_cells.left_out(part.dense(), part.weights, fit.units, mean, precisions, 0.0)
        for part, (mean, precisions) in zip(parts, models, strict=True)
    ]
    return ArraySum(np.stack(sums))
