"""What makes one clustering of several: k-means on the rows of M, spectral clustering of M, average linkage, or a function.

M, the n x n matrix of how often two rows share a cluster, is never formed: M = B B' / T, where B has a column for each base
cluster. So the squared distance of two rows of M is (b - c)' B'B (b - c) / T^2, and the eigenvectors of M follow from those of
the L x L matrix B'B. Linkage and functions work on distinct rows of B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.cache import cached
from foldwise.errors import DataError
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Reason
from foldwise.kernels.targets import Labels
from foldwise.models.ensemble.consensus_matrix import Coassociation
from foldwise.models.ensemble.label_rows import LabelRows, Scoring, unit_rows
from foldwise.models.ensemble.linkage import average_linkage
from foldwise.models.kmeans.descent import KMeansResult, cluster
from foldwise.models.kmeans.label_order import by_size
from foldwise.stats.signs import signed

MOST_LINKED = 3000  # distinct rows that are linked as they are
_GROUPS = 500  # into which more of them are gathered first
_SEARCHED = 1 << 22  # values (rows x dimensions) that are searched for the best start; more are sampled
_REPEATED = 1e-9  # closer eigenvalues (of 1 at most) are equal
_GATHER_ITER = 20
_TRIES = 3  # at an order of clusters that rows on a border agree with
_MAX_ITER = 300
_SETTLED = 1e-4  # of the weight: fewer rows changing clusters in a step, among very many, is the end


@dataclass(frozen=True)
class Consensus:
    """One clustering of distinct label rows: their labels, and how rows to come are labelled."""

    labels: Labels
    n_clusters: int
    scoring: Scoring
    known: bool = False  # whether rows that were in the fit are looked up, and only others are scored
    inertia: float | None = None  # of k-means on the rows of M
    notes: tuple[str, ...] = ()
    steps: int = 0
    reason: Reason = Reason.CONVERGED


class Strategy(Protocol):
    """A way to the consensus of label rows."""

    def __call__(self, rows: LabelRows, k: int, seed: int) -> Consensus:
        """At most k clusters."""


# ---------------------------------------------------------------- k-means


def kmeans_consensus(rows: LabelRows, k: int, seed: int) -> Consensus:
    """K-means on the rows of M, exactly: with steps on label rows, from the best start that a search finds.

    The search (breathing k-means) sees all distinct rows, or a sample of them if they are many.
    """
    count, gram = rows.clusterings.count, rows.gram
    part = rows.sample(max(_SEARCHED // gram.shape[0], 20 * k), seed)
    found = _clustered(part, part.times(root_of(gram) / count), k, seed)
    labels, total = found.labels.copy(), float(np.square(gram).sum())
    labels[~part.present] = -1
    sums, weights = part.sums(labels, k)

    def scoring(state: State) -> Scoring:
        means = state["sums"] / np.maximum(state["weights"], 1e-300)[:, None]
        towards = gram @ means.T
        lengths = np.einsum("kl,lk->k", means, towards)
        empty = state["weights"] <= 0
        return Scoring(2.0 * towards / count**2, np.where(empty, -np.inf, -lengths / count**2))

    def step(state: State) -> tuple[State, Figures]:
        labels = rows.label(scoring(state))
        sums, weights = rows.sums(labels, k)
        changed = labels != state["labels"]
        moved = float(rows.weights[changed].sum())
        between = (np.einsum("kl,kl->k", sums @ gram, sums) / np.maximum(weights, 1e-300)).sum()
        inertia = max(total - float(between), 0.0) / count**2
        new: State = {
            "sums": sums,
            "weights": weights,
            "labels": labels,
            "moved": np.array(moved),
            "inertia": np.array(inertia),
        }
        return new, {"inertia": inertia, "moved": moved}

    def start() -> State:
        nowhere = np.full(rows.n, -2, dtype=np.int32)
        return {
            "sums": sums,
            "weights": weights,
            "labels": nowhere,
            "moved": np.array(np.inf),
            "inertia": np.array(np.inf),
        }

    def done(state: State) -> bool:
        return float(state["moved"]) <= (_SETTLED * rows.weight if rows.n > part.n else 0.0)

    state, outcome, _ = iterate(start, step, done, max_iter=_MAX_ITER)
    if not outcome.steps:  # interrupted in the first step
        state, _ = step(state)
    order = by_size(state["weights"], -state["sums"])
    order = order[state["weights"][order] > 0]
    state = {**state, "sums": state["sums"][order], "weights": state["weights"][order]}
    final = scoring(state)
    notes: tuple[str, ...] = ()
    if part.n < rows.n:
        notes = (f"the start of the consensus was searched on {part.n:,} of {rows.n:,} distinct label rows",)
    return Consensus(
        rows.label(final),
        len(order),
        final,
        inertia=float(state["inertia"]),
        notes=notes,
        steps=outcome.steps,
        reason=outcome.reason,
    )


def root_of(gram: Floats) -> Floats:
    """R with R R' = B'B (L x rank): rows of B R are rows of M, up to a rotation and times T."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-13 * max(float(values[-1]), 0.0)
    return np.ascontiguousarray((signed(vectors[:, kept].T).T * np.sqrt(values[kept]))[:, ::-1])


def _clustered(rows: LabelRows, points: Floats, k: int, seed: int) -> KMeansResult:
    """K-means with a search on points that stand for label rows; those without any label do not count."""
    weights = np.where(rows.present, rows.weights, 0.0)
    passes = rows.passes.over(cached(ArraySource(np.ascontiguousarray(points), weights=weights)), here=True)
    return cluster(passes, k, seed=seed, search="breathing")


# ---------------------------------------------------------------- spectral


def spectral_consensus(rows: LabelRows, k: int, seed: int) -> Consensus:
    """Normalised spectral clustering of M (Ng, Jordan and Weiss 2002), from the singular vectors of B.

    A row's place is its entry in the k leading eigenvectors of D^(-1/2) M D^(-1/2), scaled to length 1, where D holds the sums
    of the rows of M; these are b V with an L x k matrix V, so that rows to come have a place too. If the k-th eigenvalue is
    repeated (as 1 is, if the base clusterings fall into more than k groups with nothing in common), all of its eigenvectors
    are kept: fewer would be an arbitrary choice. Which groups are put together is then up to k-means: small ones.
    """
    directions = spectral_directions(rows, k)
    part = rows.sample(max(_SEARCHED // directions.shape[1], 20 * k), seed)
    found = _clustered(part, unit_rows(part.times(directions), directions), k, seed)
    notes: tuple[str, ...] = ()
    centres = np.asarray(found.centres)
    if part.n < rows.n:
        notes = (f"the start of the consensus was searched on {part.n:,} of {rows.n:,} distinct label rows",)
        weights = np.where(rows.present, rows.weights, 0.0)
        source = cached(ArraySource(unit_rows(rows.times(directions), directions), weights=weights))
        found = cluster(rows.passes.over(source, here=True), k, seed=seed, init=centres)
        centres = np.asarray(found.centres)
    labels, scoring = _numbered(rows, directions, centres)
    of_kmeans = found.clusters
    return Consensus(labels, k, scoring, notes=notes, steps=of_kmeans.iterations, reason=of_kmeans.outcome.reason)


def _numbered(rows: LabelRows, directions: Floats, centres: Floats) -> tuple[Labels, Scoring]:
    """Clusters from the largest to the smallest, equal ones in the order of the base clusters that they are made of.

    By their places, which eigenvectors give them, rounding would decide. A row that is as near to two centres belongs to the
    first, so that renumbering can move it; then the order may change once more.
    """
    for _ in range(_TRIES):
        scoring = Scoring(directions @ centres.T, -0.5 * np.einsum("kj,kj->k", centres, centres), directions)
        labels = rows.label(scoring)
        sums, weights = rows.sums(labels, len(centres))
        order = by_size(weights, -sums)
        if np.array_equal(order, np.arange(len(order))):
            break
        centres = centres[order]
    return labels, scoring


def spectral_directions(rows: LabelRows, k: int) -> Floats:
    """V (L x k): the entries of the k leading eigenvectors of the normalised M are in proportion to those of B V.

    More columns if the k-th eigenvalue is repeated, fewer if it is 0.
    """
    values, vectors = normalised_spectrum(rows)
    values, vectors = values[::-1], vectors[:, ::-1]
    least = max(values[min(k, len(values)) - 1] - _REPEATED, _REPEATED)
    kept = max(int(np.count_nonzero(values >= least)), 1)
    leading = vectors[:, :kept] / np.sqrt(np.maximum(values[:kept], 1e-12))
    return np.ascontiguousarray(signed(leading.T).T)


def normalised_spectrum(rows: LabelRows) -> tuple[Floats, Floats]:
    """The eigenvalues (rising) and eigenvectors of B' D^(-1) B / T, whose eigenvalues are those of D^(-1/2) M D^(-1/2)."""
    count, cluster_weights = rows.clusterings.count, rows.sums(np.zeros(rows.n, dtype=np.int32), 1)[0][0]
    degrees = rows.times(cluster_weights[:, None])[:, 0] / count
    weights = np.divide(rows.weights, degrees, out=np.zeros(rows.n), where=degrees > 0)
    values, vectors = np.linalg.eigh(LabelRows(rows.clusterings, weights, rows.passes).gram / count)
    return values, vectors


# ---------------------------------------------------------------- linkage and functions


def average_consensus(rows: LabelRows, k: int, seed: int) -> Consensus:
    """Average linkage: the two groups whose rows are together most often, on average over pairs, are merged until k are left.

    Exact on the distinct label rows, with their weights. More than 3,000 of them are first gathered into 500 groups by
    k-means on the rows of M; the linkage of these groups is exact again.
    """
    if rows.counted <= MOST_LINKED:
        counted = np.flatnonzero(rows.present & (rows.weights > 0))
        part = Coassociation(rows.clusterings.some(counted))
        merged, _ = average_linkage(part.toarray(), rows.weights[counted], k)
        labels = np.full(rows.n, -1, dtype=np.int32)
        labels[counted] = merged
        return _looked_up(rows, labels, int(merged.max()) + 1)
    count = rows.clusterings.count
    part_ = rows.sample(max(_SEARCHED // rows.gram.shape[0], 20 * _GROUPS), seed)
    points = part_.times(root_of(rows.gram) / count)
    weights = np.where(part_.present, part_.weights, 0.0)
    source = cached(ArraySource(points, weights=weights))
    groups = min(_GROUPS, rows.counted)
    gathered = cluster(part_.passes.over(source, here=True), groups, seed=seed, max_iter=_GATHER_ITER)
    start = gathered.labels.copy()
    start[~part_.present] = -1
    sums, sizes = part_.sums(start, groups)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    means = sums / sizes[:, None]
    towards = rows.gram @ means.T
    nearest = Scoring(2.0 * towards / count**2, -np.einsum("kl,lk->k", means, towards) / count**2)
    labels = rows.label(nearest)
    sums, sizes = rows.sums(labels, len(sizes))
    kept = np.flatnonzero(sizes > 0)
    means = sums[kept] / sizes[kept][:, None]
    merged, _ = average_linkage(means @ means.T / count, sizes[kept], k)
    n_clusters = int(merged.max()) + 1
    order = np.argsort(-np.bincount(merged, sizes[kept]), kind="stable")
    merged = np.argsort(order)[merged].astype(np.int32)  # numbered by size
    cluster_of = np.zeros(len(sizes), dtype=np.int32)  # a group that only has rows of weight 0: as good as any
    cluster_of[kept] = merged
    scoring = Scoring(nearest.table, nearest.offset, merged=cluster_of)
    note = f"{rows.n:,} distinct label rows were gathered into {len(kept)} groups before they were linked"
    if not gathered.clusters.outcome.converged:  # as is meant: groups need only be small
        note += f", by {_GATHER_ITER} steps of k-means"
    return Consensus(rows.label(scoring), n_clusters, scoring, notes=(note,))


def function_consensus(function: Callable[..., Any]) -> Strategy:
    """A function of M and k that gives labels: M as `Coassociation` of the distinct label rows, with their weights.

    It may also take no `sample_weight`; then distinct rows count once.
    """

    def made(rows: LabelRows, k: int, seed: int) -> Consensus:
        matrix = Coassociation(rows.clusterings)
        labels = np.asarray(function(matrix, k, rows.weights))
        if labels.shape != (rows.n,) or labels.dtype.kind not in "iu":
            raise DataError(
                f"the consensus function must give {rows.n} whole numbers, one for each distinct label row, but gave "
                f"{labels.dtype} of shape {labels.shape}"
            )
        found = np.full(rows.n, -1, dtype=np.int32)
        usable = (labels >= 0) & rows.present
        found[usable] = np.unique(labels[usable], return_inverse=True)[1]
        return _looked_up(rows, found, int(found.max(initial=-1)) + 1)

    return made


def _looked_up(rows: LabelRows, labels: Labels, k: int) -> Consensus:
    """A partition of the distinct rows, numbered by size; others go where they are together with the rows most often."""
    sums, weights = rows.sums(labels, k)
    order = by_size(weights, -sums)
    place = np.empty(k, dtype=np.int32)
    place[order] = np.arange(k, dtype=np.int32)
    labels = np.where(labels >= 0, place[labels], -1).astype(np.int32)
    scoring = mean_coassociation(sums[order], weights[order], rows.clusterings.count)
    nowhere = rows.present & (labels < 0)  # rows of weight 0
    if nowhere.any():
        labels[nowhere] = rows.label(scoring)[nowhere]
    return Consensus(labels, k, scoring, known=True)


def mean_coassociation(sums: Floats, weights: Floats, count: int) -> Scoring:
    """Scores that are the mean co-association of a row with the rows of each cluster."""
    table = sums / np.maximum(weights, 1e-300)[:, None] / count
    return Scoring(np.ascontiguousarray(table.T), np.where(weights > 0, 0.0, -np.inf))


CONSENSUS: dict[str, Strategy] = {
    "kmeans": kmeans_consensus,
    "average": average_consensus,
    "spectral": spectral_consensus,
}
