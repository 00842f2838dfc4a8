"""Short rules that tell the rows of one cluster from the others: one to three conditions, in the units of the data.

A rule is looked for greedily: of all conditions on one column (a number above or below a threshold, or a level), the one that
makes the F measure of precision and recall largest; then another that improves it clearly, and perhaps a third.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, dense_rows
from foldwise.fold.passes import Passes
from foldwise.selection.explore.result import Condition, Rule
from foldwise.stats.array_sum import ArraySum

_MOST_CONDITIONS = 3
_LEAST_GAIN = 0.02  # in the F measure, for which another condition is worth reading
_WORTH_A_DIGIT = 0.003  # in the F measure: digits of a threshold that gain less are rounded away
_THRESHOLDS = 64  # that are tried in a column
_MOST_COLUMNS = 40

Category = tuple[
    str, tuple[str, ...], NDArray[np.int32]
]  # its name, its levels, and the code of each row (-1: missing)


def find_rule(
    inside: NDArray[np.bool_],
    names: Sequence[str],
    values: Floats,
    categories: Sequence[Category] = (),
    weights: Floats | None = None,
) -> Rule | None:
    """The best short rule for the rows that are `inside`; None if there are none, or no others.

    `values` has one column for each name, NaN where a cell is missing: no condition holds there.

    >>> inside = np.array([True, True, True, False, False, False])
    >>> print(find_rule(inside, ["length"], np.array([[1.0], [1.5], [1.2], [4.0], [5.0], [3.5]])))
    length <= 2
    """
    weight = np.ones(len(inside)) if weights is None else weights
    total = float(weight[inside].sum())
    if total <= 0 or total >= weight.sum():
        return None
    apart = _separating(inside, values)
    chosen: list[Condition] = []
    picked, score = np.ones(len(inside), dtype=bool), 0.0
    while len(chosen) < _MOST_CONDITIONS:
        best: tuple[float, Condition, NDArray[np.bool_]] | None = None
        for j in apart:
            found = _best_threshold(values[:, j], inside, picked, weight, total)
            if found is not None and (best is None or found[0] > best[0]):
                sign, threshold = found[1:]
                with np.errstate(invalid="ignore"):
                    holds = values[:, j] <= threshold if sign == "<=" else values[:, j] > threshold
                best = found[0], Condition(names[j], sign, threshold), holds
        for name, levels, codes in categories:
            level, worth = _best_level(codes, len(levels), inside, picked, weight, total)
            if level >= 0 and (best is None or worth > best[0]):
                best = worth, Condition(name, "=", levels[level]), codes == level
        if best is None or best[0] < score + (_LEAST_GAIN if chosen else 0.0):
            break
        score = best[0]
        chosen.append(best[1])
        picked = picked & best[2]
        if score > 1 - 1e-12:
            break
    if not chosen:
        return None
    return Rule(_merged(chosen), *precision_and_recall(inside, picked, weight))


def holds(rule: Rule, names: Sequence[str], values: Floats, categories: Sequence[Category] = ()) -> NDArray[np.bool_]:
    """The rows that satisfy a rule."""
    own = {name: (levels, codes) for name, levels, codes in categories}
    place = {name: j for j, name in enumerate(names)}
    out = np.ones(len(values), dtype=bool)
    for one in rule.conditions:
        if one.sign == "=":
            levels, codes = own[one.column]
            out &= codes == levels.index(str(one.value))
            continue
        cells = values[:, place[one.column]]
        with np.errstate(invalid="ignore"):
            out &= cells <= float(one.value) if one.sign == "<=" else cells > float(one.value)
    return out


@dataclass(frozen=True)
class _CountPicked:
    """For each rule the weight of the rows of a block that it picks, of those inside its cluster, and of both."""

    rules: tuple[Rule | None, ...]
    places: dict[str, int]

    def __call__(self, block: Block, labels: NDArray[np.int32]) -> ArraySum:
        """One row of figures for each rule."""
        weight = np.ones(block.n_rows) if block.weights is None else block.weights
        out = np.zeros((len(self.rules), 3))
        for number, rule in enumerate(self.rules):
            inside = labels == number
            picked = np.ones(block.n_rows, dtype=bool) if rule is not None else np.zeros(block.n_rows, dtype=bool)
            for one in () if rule is None else rule.conditions:
                name = f"{one.column}={one.value}" if one.sign == "=" else one.column
                cells = dense_rows(block.unchecked[:, [self.places[name]]])[:, 0].astype(np.float64)
                with np.errstate(invalid="ignore"):
                    picked &= cells <= float(one.value) if one.sign == "<=" else cells > _threshold(one)
            out[number] = weight[picked].sum(), weight[inside].sum(), weight[inside & picked].sum()
        return ArraySum(out)


def _threshold(condition: Condition) -> float:
    """What a cell must exceed; the column of a level is above 0 where a row has that level."""
    return 0.0 if condition.sign == "=" else float(condition.value)


def measured(
    rules: Sequence[Rule | None], passes: Passes, names: Sequence[str], labels: NDArray[Any]
) -> list[Rule | None]:
    """The rules with precision and recall over all rows, in one pass."""
    task = _CountPicked(tuple(rules), {name: j for j, name in enumerate(names)})
    counts = passes.fold(task, beside=labels).value
    out = []
    for rule, (picked, inside, both) in zip(rules, counts.tolist(), strict=True):
        known = None if rule is None else replace(rule, precision=both / picked if picked else 0.0)
        out.append(known if known is None else replace(known, recall=both / inside if inside else 0.0))
    return out


def precision_and_recall(inside: NDArray[np.bool_], picked: NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """The share of the picked rows that are inside, and the share of the rows inside that are picked."""
    both = float(weight[inside & picked].sum())
    taken, total = float(weight[picked].sum()), float(weight[inside].sum())
    return both / taken if taken else 0.0, both / total if total else 0.0


def _separating(inside: NDArray[np.bool_], values: Floats) -> list[int]:
    """The columns in which the rows inside differ most from the others; few are enough."""
    if values.shape[1] <= _MOST_COLUMNS:
        return list(range(values.shape[1]))
    with np.errstate(invalid="ignore"):
        size = np.nanmax(np.abs(values), axis=0, initial=1e-300)
        scaled = values / size
        gap = np.abs(np.nanmean(scaled[inside], axis=0) - np.nanmean(scaled[~inside], axis=0))
        worth = np.nan_to_num(gap / np.maximum(np.nanstd(scaled, axis=0), 1e-12))
    return [int(j) for j in np.argsort(-worth, kind="stable")[:_MOST_COLUMNS]]


def _best_threshold(
    cells: Floats, inside: NDArray[np.bool_], picked: NDArray[np.bool_], weight: Floats, total: float
) -> tuple[float, str, float] | None:
    """The F measure, sign and threshold of the best condition on a column, among the rows picked so far."""
    here = np.flatnonzero(picked & np.isfinite(cells))
    if len(here) < 2:
        return None
    order = here[np.argsort(cells[here], kind="stable")]
    ordered = cells[order]
    last = np.flatnonzero(ordered[1:] > ordered[:-1])  # places after which a threshold may lie
    if not len(last):
        return None
    if len(last) > 4 * _THRESHOLDS and len(order) > 20_000:
        last = last[np.unique(np.linspace(0, len(last) - 1, 16 * _THRESHOLDS).astype(np.intp))]
    w = weight[order]
    taken = np.cumsum(w)
    both = np.cumsum(np.where(inside[order], w, 0.0))
    best: tuple[float, str, float] | None = None
    for sign in ("<=", ">"):
        hit = both[last] if sign == "<=" else both[-1] - both[last]
        size = taken[last] if sign == "<=" else taken[-1] - taken[last]
        measure = 2 * hit / (size + total)
        at = int(np.argmax(measure))
        if best is None or measure[at] > best[0] + 1e-12:
            low, high = float(ordered[last[at]]), float(ordered[last[at] + 1])
            best = float(measure[at]), sign, round_between(low, high)
    return None if best is None else _rounded(best, ordered, both, taken, total)


def _rounded(
    best: tuple[float, str, float], ordered: Floats, both: Floats, taken: Floats, total: float
) -> tuple[float, str, float]:
    """The condition with as few digits in its threshold as cost hardly anything."""
    measure, sign, threshold = best
    spread = float(ordered[-1] / 2 - ordered[0] / 2)
    if not (math.isfinite(spread) and spread > 0):
        return best
    for digits in range(3):
        rounded = round(threshold, digits - math.floor(math.log10(spread)))
        under = int(np.searchsorted(ordered, rounded, side="right"))
        if not 0 < under < len(ordered):
            continue
        hit, size = both[under - 1], taken[under - 1]
        if sign == ">":
            hit, size = both[-1] - hit, taken[-1] - size
        found = float(2 * hit / (size + total))
        if found >= measure - _WORTH_A_DIGIT:
            return found, sign, float(rounded)
    return best


def _best_level(
    codes: NDArray[np.int32],
    levels: int,
    inside: NDArray[np.bool_],
    picked: NDArray[np.bool_],
    weight: Floats,
    total: float,
) -> tuple[int, float]:
    known = picked & (codes >= 0)
    if not known.any():
        return -1, 0.0
    size = np.bincount(codes[known], weight[known], minlength=levels)
    hit = np.bincount(codes[known & inside], weight[known & inside], minlength=levels)
    measure = 2 * hit / (size + total)
    best = int(np.argmax(measure))
    return best, float(measure[best])


def round_between(low: float, high: float) -> float:
    """The number with the fewest digits that is at least `low` and less than `high`, near the middle.

    >>> round_between(2.0, 3.5), round_between(1234.0, 1290.0), round_between(0.1, 0.10000001)
    (3.0, 1260.0, 0.1)
    """
    middle = low + (high - low) / 2
    if not math.isfinite(middle) or middle == 0:
        return middle if low <= middle < high else low
    power = math.floor(math.log10(abs(middle)))
    for digits in range(16):
        rounded = round(middle, digits - power)
        if low <= rounded < high and math.isfinite(rounded):
            return float(rounded)
    return middle if low <= middle < high else low


def _merged(conditions: list[Condition]) -> tuple[Condition, ...]:
    """Without those that a later one on the same column, with the same sign, makes superfluous; in the order found."""
    out: list[Condition] = []
    for one in conditions:
        same = [other for other in out if (other.column, other.sign) == (one.column, one.sign) and one.sign != "="]
        for other in same:
            out.remove(other)
        out.append(one)
    return tuple(out)
