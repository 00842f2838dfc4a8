"""How far two labelings of the same rows agree: figures of their contingency table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldwise.data import check
from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.selection.label_numbers import not_ignored, numbered, one_per_row
from foldwise.stats.contingency import Contingency

_MEANS: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "geometric": lambda a, b: (a * b) ** 0.5,
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}
_SQUARES_FIT = 3_000_000_000  # the square of a larger total leaves the range of int64


def adjusted_rand(truth: Any, labels: Any, *, sample_weight: Any = None, ignore: Any = None) -> float:
    """The adjusted Rand index (Hubert and Arabie 1985): 1 for the same groups, 0 on average for unrelated ones.

    Both are one label per row, of any type; their names do not matter, and neither does their order here. A weight counts as
    repetition of its row; if some are not whole numbers, only their ratios count: pairs of different rows are then weighted by
    the product of their weights. Every label is a group, also -1, as in scikit-learn; with `ignore=-1`, rows that have that
    label in either labeling are left out. Missing labels (None or NaN) are refused, or left out with `ignore=float("nan")`.

    >>> import foldwise as fw
    >>> round(fw.adjusted_rand([0, 0, 1, 1, 2], ["b", "b", "a", "a", "a"]), 4)
    0.5455
    """
    return adjusted_rand_of(compared(truth, labels, sample_weight, ignore))


def normalized_mutual_info(
    truth: Any, labels: Any, *, average_method: str = "arithmetic", sample_weight: Any = None, ignore: Any = None
) -> float:
    """Mutual information over the mean of both entropies: 1 for the same groups, 0 for independent ones.

    `average_method` is that mean: "arithmetic", "geometric", "min" or "max". It is not corrected for chance: many small groups
    raise it (`adjusted_rand` is). Labels, weights and `ignore` are as for `adjusted_rand`.

    >>> import foldwise as fw
    >>> round(fw.normalized_mutual_info([0, 0, 1, 1, 2], ["b", "b", "a", "a", "a"]), 4)
    0.779
    """
    if average_method not in _MEANS:
        raise ParameterError(f"average_method={average_method!r}: give one of {', '.join(_MEANS)}.")
    return normalized_mutual_info_of(compared(truth, labels, sample_weight, ignore), average_method)


def v_measure(truth: Any, labels: Any, *, beta: float = 1.0, sample_weight: Any = None, ignore: Any = None) -> float:
    """The harmonic mean of `homogeneity` and `completeness` (Rosenberg and Hirschberg 2007).

    `beta` above 1 gives completeness more weight. Labels, weights and `ignore` are as for `adjusted_rand`.

    >>> import foldwise as fw
    >>> round(fw.v_measure([0, 0, 1, 1, 2], ["b", "b", "a", "a", "a"]), 4)
    0.779
    """
    if not beta >= 0:
        raise ParameterError(f"beta={beta!r}: give a number of at least 0.")
    return v_measure_of(compared(truth, labels, sample_weight, ignore), beta)


def homogeneity(truth: Any, labels: Any, *, sample_weight: Any = None, ignore: Any = None) -> float:
    """1 if every cluster has rows of one true group only: 1 less the entropy of the groups within clusters over their entropy.

    >>> import foldwise as fw
    >>> fw.homogeneity([0, 0, 1, 1], [0, 1, 2, 3])
    1.0
    """
    return homogeneity_of(compared(truth, labels, sample_weight, ignore))


def completeness(truth: Any, labels: Any, *, sample_weight: Any = None, ignore: Any = None) -> float:
    """1 if all rows of every true group are in one cluster: homogeneity with the two labelings exchanged.

    >>> import foldwise as fw
    >>> fw.completeness([0, 0, 1, 1], [0, 1, 2, 3])
    0.5
    """
    return homogeneity_of(compared(labels, truth, sample_weight, ignore))


def compared(truth: Any, labels: Any, sample_weight: Any = None, ignore: Any = None) -> Contingency:
    """The contingency table of two labelings."""
    first, second = one_per_row(truth, "truth"), one_per_row(labels)
    if len(first) != len(second):
        raise DataError(
            f"there are {len(first)} labels in the first labeling and {len(second)} in the second",
            advice="Pass one label per row in both",
        )
    weights = None if sample_weight is None else check.weights(sample_weight, "labels", len(first))
    keep = not_ignored(first, ignore) & not_ignored(second, ignore)
    if not keep.all():
        first, second, weights = first[keep], second[keep], None if weights is None else weights[keep]
    if not len(first):
        raise DataError("there are no labels to compare")
    if weights is not None and not (weights == np.rint(weights)).all():
        weights = weights / weights.max()  # squares of tiny ones would be 0; no figure depends on the unit
    a, of_a = numbered(first)
    b, of_b = numbered(second)
    return Contingency.of(a, b, (len(of_a), len(of_b)), weights)


# ---------------------------------------------------------------- figures of a table


def adjusted_rand_of(table: Contingency) -> float:
    """The adjusted Rand index; for whole weights, worked out in whole numbers and rounded once.

    Whole weights are repetitions: pairs are of all rows, repeated ones too. Other weights cannot be repeated, so pairs are of
    different rows, and a pair counts as much as the product of its weights: the same for all multiples of the weights, and for
    equal weights the same as without.
    """
    counts, total = table.counts, table.counts.sum(keepdims=True)
    both: float
    first: float
    second: float
    everything: float  # a whole number of any size, if the weights are
    if table.whole:
        both, first, second, everything = (_pairs(part, float(total[0])) for part in (counts, *table.margins, total))
    else:
        squares = counts if table.squares is None else table.squares
        sizes, own = (counts, *table.margins, total), (squares, *table.margins_of(squares), squares.sum(keepdims=True))
        both, first, second, everything = (
            float(np.maximum(part * part - less, 0.0).sum()) for part, less in zip(sizes, own, strict=True)
        )
    above, below = 2 * (both * everything - first * second), (first + second) * everything - 2 * first * second
    return min(float(above / below), 1.0) if below > 0 else 1.0


def _pairs(counts: Floats, total: float) -> int:
    """Twice the number of pairs of rows within groups of these sizes, which are whole numbers of any size."""
    if total < _SQUARES_FIT:
        whole = counts.astype(np.int64)
        return int((whole * (whole - 1)).sum())
    return sum(int(one) * (int(one) - 1) for one in counts)


def normalized_mutual_info_of(table: Contingency, average_method: str = "arithmetic") -> float:
    """Mutual information over the mean of both entropies; 1 if both labelings have one group."""
    first, second = (_entropy(part) for part in table.margins)
    if first == 0.0 and second == 0.0:
        return 1.0
    mean = float(_MEANS[average_method](first, second))
    shared = first - _conditional(table)
    return float(np.clip(shared / mean, 0.0, 1.0)) if mean > 0 and shared > _ROUNDING else 0.0


def homogeneity_of(table: Contingency) -> float:
    """1 less the entropy of the first labeling within the groups of the second, over its entropy; 1 if it has one group."""
    entropy = _entropy(table.margins[0])
    return float(np.clip(1.0 - _conditional(table) / entropy, 0.0, 1.0)) if entropy > 0 else 1.0


def completeness_of(table: Contingency) -> float:
    """Homogeneity with the two labelings exchanged."""
    return homogeneity_of(exchanged(table))


def v_measure_of(table: Contingency, beta: float = 1.0) -> float:
    """The weighted harmonic mean of homogeneity and completeness."""
    h, c = homogeneity_of(table), completeness_of(table)
    return (1 + beta) * h * c / (beta * h + c) if beta * h + c > 0 else 0.0


def exchanged(table: Contingency) -> Contingency:
    """The table with the labelings exchanged."""
    first, second = np.divmod(table.cells, table.shape[1])
    cells = second * table.shape[0] + first
    order = np.argsort(cells)
    squares = None if table.squares is None else table.squares[order]
    return Contingency((table.shape[1], table.shape[0]), cells[order], table.counts[order], squares, table.whole)


_ROUNDING = 1e-15  # of a mutual information, in nats


def _entropy(counts: Floats) -> float:
    some = counts[counts > 0]
    if len(some) < 2:
        return 0.0
    share = some / some.sum()
    return float(-(share * np.log(share)).sum())


def _conditional(table: Contingency) -> float:
    """The entropy of the first labeling within the groups of the second: exactly 0 if these settle it."""
    sizes = table.margins[1][table.cells % table.shape[1]] if len(table.cells) else table.counts
    return float(-(table.counts * np.log(table.counts / sizes)).sum() / table.counts.sum()) + 0.0
