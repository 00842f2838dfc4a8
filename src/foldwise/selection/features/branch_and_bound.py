"""The exact best subset of a size by explained variance: branch and bound over subsets, in rounds that can be resumed."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from foldwise.errors import ParameterError
from foldwise.fold.iterate import Figures, State
from foldwise.fold.threads import run
from foldwise.kernels import _core
from foldwise.selection.features.explained import TIE, ExplainedVariance
from foldwise.selection.features.search import Subset, Walk, record, swap

MOST_SUBSETS = 200_000_000  # 15 of 30 columns are 155 million
_MOST_COLUMNS = 64  # a subset is a word of so many bits
_MOST_LISTED = 200_000  # subsets of more columns than that are listed one by one
_PARTS = 16  # nodes worked on side by side in a round: the same whatever the number of threads
_NODES = 2_000  # visited below each of them before the round ends
_SECONDS = 25e-6  # for a node, as measured for 25 columns


class BranchAndBound:
    """The best subsets of some sizes, one after the other; each round visits some nodes of the tree of the current size.

    A state holds the subsets found so far, and for the current size the nodes to visit and the best subset.
    """

    def __init__(self, criterion: ExplainedVariance, sizes: list[int], share: float, n_threads: int) -> None:
        """Sizes beyond the first that explains `share` are left out."""
        self.criterion, self.sizes, self.share, self.n_threads = criterion, sizes, share, n_threads

    def start(self) -> State:
        """Nothing found yet."""
        empty: State = {
            "found": np.zeros(0, np.uint64),
            "scores": np.zeros(0),
            "compared": np.array(0),
            "visited": np.array(0),
        }
        return {**empty, **self._opened(self.sizes[0])}

    def step(self, state: State) -> tuple[State, Figures]:
        """One round: the last nodes of the list, each with what is below it, up to a limit."""
        size = self.sizes[len(state["found"])]
        nodes, best, chosen = state["nodes"], float(state["best"]), np.uint64(state["chosen"])
        taken, waiting = nodes[-_PARTS:], nodes[:-_PARTS]
        found: dict[int, Any] = {}
        run(list(taken), lambda _, node: self._below(node, size, best, int(chosen)), found.__setitem__, self.n_threads)
        left = [waiting]
        compared, visited = int(state["compared"]), int(state["visited"])
        for number in sorted(found):
            score, subset, some, many, rest = found[number]
            if score > best + TIE:
                best, chosen = score, np.uint64(subset)
            compared, visited = compared + some, visited + many
            left.append(np.array(rest, dtype=np.uint64).reshape(-1, 2))
        nodes = np.concatenate(left)
        new: State = {**state, "compared": np.array(compared), "visited": np.array(visited)}
        new |= {"nodes": nodes, "best": np.array(best), "chosen": np.array(chosen)}
        if not len(nodes):
            new["found"] = np.append(state["found"], chosen)
            new["scores"] = np.append(state["scores"], self.criterion.score(columns_of(chosen)))
            if not self.done(new):
                new |= self._opened(self.sizes[len(new["found"])])
        return new, {"columns": float(size), "score": best, "compared": float(compared), "nodes": float(len(nodes))}

    def done(self, state: State) -> bool:
        """Whether all sizes are finished, or one explains enough."""
        scores = state["scores"]
        return len(scores) == len(self.sizes) or bool(len(scores) and scores[-1] >= self.share)

    def path(self, state: State, walk: Walk) -> None:
        """The best subset of each size, as a path; that of an unfinished size is the best so far."""
        before: Subset = ()
        subsets = [columns_of(one) for one in state["found"]]
        if not self.done(state):
            subsets.append(columns_of(np.uint64(state["chosen"])))
        for subset in subsets:
            record(walk, before, subset, self.criterion.score(subset))
            before = subset

    def _opened(self, size: int) -> State:
        """The root of the tree for a size, and a first subset: a good one prunes most of the tree."""
        first = Walk()
        swap(self.criterion, size, first)
        inside = first.columns
        whole = np.uint64(2**self.criterion.d - 1)
        return {
            "nodes": np.array([[0, whole]], dtype=np.uint64),
            "best": np.array(self.criterion.score(sorted(inside))),
            "chosen": np.array(sum(2**column for column in inside), dtype=np.uint64),
        }

    def _below(self, node: Any, size: int, best: float, chosen: int) -> Any:
        criterion = self.criterion
        start = np.ascontiguousarray(node, dtype=np.uint64).reshape(1, 2)
        return _core.best_subset(criterion.scatter, criterion.floor, size, best, chosen, TIE, start, _NODES)


def check_exhaustive(d: int, size: int) -> None:
    """Refuse what would take too long, with the number of subsets and the time if no bound helped."""
    subsets = comb(d, size)
    if subsets <= (MOST_SUBSETS if d <= _MOST_COLUMNS else _MOST_LISTED):
        return
    seconds = subsets * _SECONDS
    time = f"{seconds / 3600:,.0f} hours" if seconds < 864_000 else f"{seconds / 86_400:,.0f} days"
    raise ParameterError(
        f"search='exhaustive': {subsets:,} subsets of {size} of {d} columns are to be compared, which could take {time}. "
        "Use search='swap', which comes close to the best subset and says how close at least, or fewer columns."
    )


def columns_of(subset: np.uint64) -> Subset:
    """The positions of a subset's columns, rising.

    >>> columns_of(np.uint64(0b1010))
    (1, 3)
    """
    bits = int(subset)
    return tuple(column for column in range(_MOST_COLUMNS) if bits >> column & 1)


def listed(d: int) -> bool:
    """Whether there are too many columns for the tree, so that subsets are listed one by one."""
    return d > _MOST_COLUMNS
