"""The gap statistic: how much lower the inertia is than that of rows without clusters (Tibshirani, Walther and Hastie 2001)."""

from __future__ import annotations

import numpy as np

from foldwise.selection.clusters.criterion import Judgement, gathered, vote
from foldwise.selection.clusters.partition import reference_tasks
from foldwise.selection.clusters.references import REFERENCES, reference_names, reference_size
from foldwise.selection.clusters.sweep import Sweep, Task, better, log_inertia


class Gap:
    """The smallest number whose gap is within a standard error of the largest gap; it can be 1.

    A gap that rises to the end of the numbers tried, as it does where rows fill their box unevenly, has no such peak. Then it
    is the number after which the gap first fails to rise by a standard error, as in the original paper.
    """

    name, label, weight = "gap", "gap statistic", 1.0

    def tasks(self, sweep: Sweep) -> list[Task]:
        """The inertias of the rows (of as many as a reference has), and the references."""
        return [Task("gap", lambda: {"gap": self._inertias(sweep)}), *reference_tasks(sweep)]

    @staticmethod
    def _inertias(sweep: Sweep) -> np.ndarray:
        rows = sweep.rows.at_most(reference_size(sweep), sweep.seed)
        found = []
        for place, k in enumerate(sweep.ks):
            centres = sweep.quick(rows, k, 16, place)
            found.append(
                log_inertia(rows, centres if rows.n < sweep.rows.n else better(rows, sweep.centres(k), centres))
            )
        return np.array(found)

    def judge(self, sweep: Sweep) -> Judgement:
        """The vote."""
        null = gathered(sweep, [f"log inertia of {name}" for name in reference_names("box")])
        gap = null.mean(axis=0) - sweep.state["gap"]
        error = null.std(axis=0, ddof=1) * np.sqrt(1 + 1 / REFERENCES["box"])
        at = int(np.argmax(gap))
        if gap[at:].min() < gap[at] - error[at]:
            chosen = min(k for k, value in zip(sweep.ks, gap, strict=True) if value >= gap[at] - error[at])
        else:
            flat = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
            chosen = sweep.ks[int(flat[0]) if len(flat) else -1]
        if chosen == 1:
            reason = "the inertia falls no faster than that of uniform rows"
        else:
            reason = f"the inertia is lowest against that of uniform rows (gap {gap[sweep.ks.index(chosen)]:.3g})"
        return Judgement(vote(self, chosen, reason), sweep.ks, gap, error)
