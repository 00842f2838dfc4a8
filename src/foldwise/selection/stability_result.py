"""The record of a stability analysis, and its words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold.outcome import Outcome
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.reportable import Reportable

DISSOLVES, DOUBTFUL, STABLE = 0.6, 0.75, 0.85
LOST = 0.5  # below this Jaccard, a cluster was not found again in a repeat (Hennig 2007)
SURE = 0.9
_LARGER = 2.0  # the most that a base allows for a smaller cluster: those of a few rows come and go in noise, too


@dataclass(frozen=True, repr=False)
class Stability(Reportable):
    """What became of k clusters in fits to rows drawn at random from the same rows.

    For each cluster: `jaccard` (the mean over the repeats of its overlap with the most similar cluster of the repeat: rows in
    both over rows in either), `by_chance` (the same if the rows of the repeat's clusters were drawn at random, given their
    sizes), `dissolved` (the share of repeats with an overlap below 0.5), and `corrected`: (jaccard - base) / (1 - base), at
    least 0. Long or square clouds are cut at the same place every time, so that `jaccard` alone proves nothing: `base` is the
    larger of `by_chance` and of what the most stable of as many clusters has that are forced on rows of the same shape without
    clusters (`one_group`, of the share `one_group_share` of the rows; a smaller cluster may lose as many rows, so its base is
    lower: 1 - base at most doubles). `corrected` is 0 if a cluster is no more stable than that, and 1 if it never changes.

    For each row: `confidence`, the share of repeats in which it keeps its cluster, after the clusters of the repeat were
    matched with those of the model; NaN for rows in no cluster. Rows were drawn (`drawn` on average) so that the fits differ
    from the model's as much as fits to `fresh_rows` new rows would.
    """

    method: str
    labels: NDArray[np.int32]
    weights: Floats  # of the clusters
    jaccard: Floats
    by_chance: Floats
    one_group: float  # NaN if it was not asked for, or could not be made
    one_group_share: float
    dissolved: Floats
    confidence: Floats
    overlaps: Floats  # Jaccard by repeat and cluster
    drawn: float
    fresh_rows: float
    asked: int  # repeats
    failed: int  # repeats without a fit
    outcome: Outcome
    notes: tuple[str, ...] = field(default=())
    row_weights: Floats | None = None  # None if all rows count the same

    @property
    def n_repeats(self) -> int:
        """The number of repeats that were finished."""
        return len(self.overlaps)

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.jaccard)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or the time budget ended it early."""
        return not self.outcome.converged

    @property
    def base(self) -> Floats:
        """The Jaccard that a cluster of this size could have without being one; NaN without a comparison."""
        share = self.weights / self.weights.sum()
        larger = np.divide(self.one_group_share, share, out=np.ones(len(share)), where=share > 0)
        larger = np.clip(larger, 1.0, _LARGER)
        return np.asarray(np.maximum(self.by_chance, 1.0 - (1.0 - self.one_group) * larger))

    @property
    def corrected(self) -> Floats:
        """The Jaccard of each cluster, corrected for what clusters forced on one group would have."""
        base = self.base
        room = np.where(base < 1.0, 1.0 - base, 1.0)
        return np.asarray(np.maximum((self.jaccard - base) / room, 0.0))

    @property
    def verdicts(self) -> tuple[str, ...]:
        """A word or two for each cluster.

        "dissolves" below a Jaccard of 0.6; "could be noise" if it is found again, but corrected below 0.6; then, by the
        corrected value, "doubtful" below 0.75, "stable" below 0.85, "very stable". Without a correction, by the plain value.
        """
        corrected = self.corrected
        return tuple(
            _verdict(float(plain), float(plain if np.isnan(one) else one))
            for plain, one in zip(self.jaccard, corrected, strict=True)
        )

    @property
    def table(self) -> LabelledMatrix:
        """One row per cluster; `confidence` is the weighted mean over its rows."""
        figures = {
            "jaccard": self.jaccard,
            "by chance": self.by_chance,
            "base": self.base,
            "corrected": self.corrected,
            "dissolved": self.dissolved,
            "confidence": self._mean_confidence(),
            "weight": self.weights,
        }
        return LabelledMatrix(
            np.column_stack(list(figures.values())), tuple(map(str, range(self.n_clusters))), tuple(figures)
        )

    @property
    def known_confidence(self) -> tuple[Floats, Floats]:
        """The confidence of the rows that are in a cluster, and their weights."""
        known = self.labels >= 0
        weights = np.ones(len(known)) if self.row_weights is None else self.row_weights
        return self.confidence[known], weights[known]

    def _mean_confidence(self) -> Floats:
        labels, confidence, weights = self.labels[self.labels >= 0], *self.known_confidence
        counts = np.bincount(labels, weights, minlength=self.n_clusters)
        sums = np.bincount(labels, confidence * weights, minlength=self.n_clusters)
        return np.asarray(np.divide(sums, counts, out=np.full(self.n_clusters, np.nan), where=counts > 0))

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        by_verdict: dict[str, list[int]] = {}
        for i, verdict in enumerate(self.verdicts):
            by_verdict.setdefault(verdict, []).append(i)
        parts = [
            f"{_named(by_verdict[verdict], self.n_clusters)} {'is' if len(by_verdict[verdict]) == 1 else 'are'} {words}"
            for verdict, words in _SAID.items()
            if verdict in by_verdict
        ]
        known, weights = self.known_confidence
        share = float(weights[known >= SURE].sum() / weights.sum())
        sure = f"{share:.0%} of the rows keep their cluster with a confidence of {SURE:g} or more"
        text = "; ".join([*parts, sure]) + "."
        return text[0].upper() + text[1:]

    def __repr__(self) -> str:
        """The table with the verdicts, how it was made, and the sentence."""
        lines = repr(self.table).split("\n")
        words = ["", *self.verdicts]
        lines = [f"{line}  {words[i]}".rstrip() if i < len(words) else line for i, line in enumerate(lines)]
        way = f"{self.n_repeats} repeats ({self.method}), each fitted to about {self.drawn:,.0f} drawn rows"
        lines.append(f"{way}: like fits to {self.fresh_rows:,.0f} fresh rows")
        return "\n".join([*lines, *self.notes, self.sentence])


_SAID = {
    "very stable": "very stable",
    "stable": "stable",
    "doubtful": "doubtful",
    "could be noise": "found again, but so would parts of a single group be",
    "dissolves": "not found again: other rows would give other clusters",
}


def _verdict(plain: float, corrected: float) -> str:
    if plain < DISSOLVES:
        return "dissolves"
    if corrected < DISSOLVES:
        return "could be noise"
    return "doubtful" if corrected < DOUBTFUL else "stable" if corrected < STABLE else "very stable"


def _named(which: list[int], of: int) -> str:
    if len(which) == of:
        return "the clusters" if of > 1 else "the cluster"
    shown = [str(i) for i in which[:8]] + (["..."] if len(which) > 8 else [])
    if len(which) == 1:
        return f"cluster {shown[0]}"
    return f"{len(which)} of {of} clusters ({', '.join(shown)})"
