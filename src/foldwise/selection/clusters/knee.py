"""The knee of the inertia: drawn, but never decisive, since data without clusters have one too."""

from __future__ import annotations

import numpy as np

from foldwise.selection.clusters.criterion import Judgement, vote
from foldwise.selection.clusters.sweep import Sweep, Task
from foldwise.selection.curve import depths_below_chord


class Knee:
    """Where the curve of the inertia lies farthest below the straight line between its ends; a rule of thumb."""

    name, label, weight = "knee", "knee of the inertia", 0.0

    def tasks(self, sweep: Sweep) -> list[Task]:
        """None: the sweep has the inertias."""
        return []

    def judge(self, sweep: Sweep) -> Judgement:
        """The knee, without weight."""
        values = np.minimum.accumulate(np.exp([sweep.log_inertia(k) for k in sweep.ks]))
        values = values / max(float(values[0]), 1e-300)
        depths = depths_below_chord(np.array(sweep.ks, dtype=np.float64), values)
        bends = len(sweep.ks) > 2 and depths.max() > 0
        chosen = sweep.ks[int(np.argmax(depths))] if bends else None
        reason = (
            "where the inertia bends; a rule of thumb that is not counted" if bends else "the inertia does not bend"
        )
        return Judgement(vote(self, chosen, reason), sweep.ks, values)
