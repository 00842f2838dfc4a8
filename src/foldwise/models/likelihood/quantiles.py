"""Exact quantiles of one column in a few passes and bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.fold.passes import Passes
from foldwise.stats.term_sums import BinWeights
from foldwise.stats.univariate import values_and_weights

_IN_MEMORY = 1 << 20  # up to so many rows are sorted in memory
_CELLS = 1 << 14


def quantiles(passes: Passes, levels: Sequence[float], weight: float, rows: int, low: float, high: float) -> Floats:
    """The quantiles at `levels`: the middle between the least value with at least, and with more than, that much weight below.

    For the median of an even number of values that is the mean of the middle two. Weights mean repetition. Larger data are
    narrowed down to each value by counting, in some four passes: whatever order the rows are in, the result is exact.
    """
    wanted = [level * weight for level in levels]
    found = _in_memory(passes, wanted) if rows <= _IN_MEMORY else _narrowed(passes, wanted, low, high)
    return np.array([low / 2 + high / 2 if low != high else low for low, high in found])


def _in_memory(passes: Passes, wanted: Sequence[float]) -> list[tuple[float, float]]:
    parts = passes.each(_copied)
    x = np.concatenate([values for values, _ in parts])
    # The blocks say whether there are weights: their sum may happen to be the number of rows.
    if all(w is None for _, w in parts):
        return _partitioned(x, wanted)
    return _sorted(x, np.concatenate([np.ones(len(values)) if w is None else w for values, w in parts]), wanted)


def _copied(block: Block) -> tuple[Floats, Floats | None]:
    """A block's values and weights, in memory of their own: that of the block may be used for the next one."""
    x, w, _ = values_and_weights(block)
    return x.copy(), None if w is None else w.copy()


def _partitioned(x: Floats, wanted: Sequence[float]) -> list[tuple[float, float]]:
    last = len(x) - 1
    places = [(max(math.ceil(want) - 1, 0), min(math.floor(want), last)) for want in wanted]
    x = np.partition(x, sorted({place for pair in places for place in pair}))
    return [(float(x[low]), float(x[high])) for low, high in places]


def _sorted(x: Floats, w: Floats, wanted: Sequence[float]) -> list[tuple[float, float]]:
    order = np.argsort(x, kind="stable")
    x, below = x[order], np.cumsum(w[order])
    last = len(x) - 1
    return [
        (
            float(x[min(int(np.searchsorted(below, want, side="left")), last)]),
            float(x[min(int(np.searchsorted(below, want, side="right")), last)]),
        )
        for want in wanted
    ]


def keys(x: Floats) -> NDArray[np.uint64]:
    """Floats as whole numbers in the same order."""
    bits = np.ascontiguousarray(x + 0.0).view(np.uint64)  # + 0.0: there is one zero
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def _value(key: int) -> float:
    bits = key ^ (1 << 63) if key >> 63 else ~key & ((1 << 64) - 1)
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


def _narrowed(passes: Passes, wanted: Sequence[float], low: float, high: float) -> list[tuple[float, float]]:
    """Each search keeps an interval of keys and the weight below it, and cuts the interval into cells at every pass."""
    ends = [int(keys(np.array([edge]))[0]) for edge in (low, high)]
    # two searches for each: the first value with at least that much weight, and the first with more
    state = [(want, strict, ends[0], ends[1], 0.0) for want in wanted for strict in (False, True)]
    while any(first < last for _, _, first, last, _ in state):
        spans = sorted({(first, last) for _, _, first, last, _ in state if first < last})
        weights = passes.fold(partial(_tally, spans=spans)).weights
        tallies = {span: weights[i * _CELLS : (i + 1) * _CELLS] for i, span in enumerate(spans)}
        new = []
        for want, strict, first, last, below in state:
            if first < last:
                first, last, below = _cell(tallies[first, last], want, strict, first, last, below)
            new.append((want, strict, first, last, below))
        state = new
    values = [_value(first) for _, _, first, _, _ in state]
    return list(zip(values[::2], values[1::2], strict=True))


def _width(first: int, last: int) -> int:
    return -(-(last - first + 1) // _CELLS)


def _tally(block: Block, spans: Sequence[tuple[int, int]]) -> BinWeights:
    """The weight of a block's values in each cell of each span of keys."""
    x, w, _ = values_and_weights(block)
    found = keys(x)
    parts = []
    for first, last in spans:
        inside = (found >= np.uint64(first)) & (found <= np.uint64(last))
        cells = ((found[inside] - np.uint64(first)) // np.uint64(_width(first, last))).astype(np.intp)
        parts.append(np.bincount(cells, None if w is None else w[inside], minlength=_CELLS))
    return BinWeights(np.concatenate(parts).astype(np.float64))


def _cell(tally: Floats, want: float, strict: bool, first: int, last: int, below: float) -> tuple[int, int, float]:
    reached = below + np.cumsum(tally)
    cell = int(np.searchsorted(reached, want, side="right" if strict else "left"))
    cell = min(cell, int(np.flatnonzero(tally)[-1]))  # rounding of weights must not lead past the last value
    width = _width(first, last)
    start = first + cell * width
    return start, min(start + width - 1, last), float(reached[cell - 1]) if cell else below
