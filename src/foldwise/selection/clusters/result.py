"""The answer to "how many clusters?": votes, what they looked at, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.reportable import Reportable
from foldwise.selection.clusters.criterion import Judgement
from foldwise.selection.votes import Vote, listed, vote_table

_HALF, _CLEARLY = 0.5, 0.75  # shares of the votes


@dataclass(frozen=True, repr=False)
class ClusterChoice(Reportable):
    """How many clusters there are, and how sure that is.

    `n_clusters` is the number chosen; 1 means that no clusters were found, None that a run was stopped before anything was
    judged. `strength` is the share of the votes' weight for it,
    and `runner_up` the number with the next most. `votes` has one entry for each criterion, with its answer, the range it would
    accept and the reason; `judgements` has what each looked at. `centers` are the centres for each number, of the rows that
    were judged, in units of their own; fit a model with `n_clusters` to the data instead of using them.
    """

    n_clusters: int | None
    strength: float
    runner_up: int | None
    votes: tuple[Vote, ...]
    judgements: dict[str, Judgement]
    ks: tuple[int, ...]
    rows: int
    judged_rows: int
    notes: tuple[str, ...]
    outcome: Outcome
    unfinished: tuple[str, ...] = ()  # criteria that were not finished when it was stopped
    centers: dict[int, Floats] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        """Whether there are clusters at all."""
        return self.n_clusters is not None and self.n_clusters > 1

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C, or the end of the time budget, left criteria out."""
        return self.outcome.reason in (Reason.INTERRUPTED, Reason.OUT_OF_TIME)

    @property
    def sentence(self) -> str:
        """The answer in plain words."""
        counted = [one for one in self.votes if one.counts]
        agree = sum(one.chosen == self.n_clusters for one in counted)
        others = sorted({one.chosen for one in counted if one.chosen is not None and one.chosen != self.n_clusters})
        if self.n_clusters is None:
            return f"Not finished: {self.outcome.reason} before any criterion could judge the clusters."
        if not counted:
            return "No clusters found: there are too few different rows to look for any."
        said = (
            f"{agree} of {len(counted)} criteria say so" if len(counted) > 1 else "by the only criterion that was asked"
        )
        rest = f"; others say {listed(others)}" if others else ""
        if not self.found and self.strength < _HALF:
            doubt = f"but {len(counted) - agree} of {len(counted)} criteria see clusters, most often {self.runner_up}"
            return f"No gaps between groups found, so no clear clusters; {doubt}."
        if not self.found:
            return f"No clusters found: the rows look like a single group ({said}{rest})."
        more = f" {self.ks[-1]} is the most that was tried." if self.n_clusters == self.ks[-1] else ""
        sure = "clearly" if self.strength >= _CLEARLY else "probably" if self.strength >= _HALF else "perhaps"
        return f"There are {sure} {self.n_clusters} clusters ({said}{rest}).{more}"

    @property
    def table(self) -> LabelledMatrix:
        """The value of each criterion for each number of clusters; NaN where it has none."""
        values = np.full((len(self.ks), len(self.judgements)), np.nan)
        for column, one in enumerate(self.judgements.values()):
            values[np.searchsorted(self.ks, one.ks), column] = one.values
        return LabelledMatrix(values, tuple(map(str, self.ks)), tuple(self.judgements))

    def __repr__(self) -> str:
        return "\n".join([self.sentence, "", vote_table(self.votes, "clusters", what="criterion"), *self.notes])
