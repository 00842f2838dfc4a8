"""BIC and ICL of Gaussian mixtures that start from the clusters of the sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import FoldwiseError
from foldwise.models.mixture import GaussianMixture, MixtureStart
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.selection.clusters.criterion import Judgement, vote
from foldwise.selection.clusters.rows import Rows, uninterrupted
from foldwise.selection.clusters.sweep import Sweep, Task, nearest

TYPES = ("spherical", "diag", "tied", "full")
_ROWS, _ROWS_PER_CLUSTER = 3_000, 100
_PATIENCE = 4  # numbers in a row that are no better, after which larger ones are not tried
_TOL, _MAX_ITER = 1e-4, 200
_CLOSE = 6.0  # a difference of BIC below which the evidence is not strong (Kass and Raftery 1995)


class _Information:
    """The number of components with the lowest criterion, over covariance types."""

    name = label = ""
    weight = 1.0
    place = 0  # in what a task returns

    def tasks(self, sweep: Sweep) -> list[Task]:
        """One for each covariance type; both criteria share them."""
        return [Task(f"mixtures {kind}", lambda kind=kind: _run(sweep, kind)) for kind in TYPES]  # type: ignore[misc]

    def judge(self, sweep: Sweep) -> Judgement:
        """The vote."""
        found = {kind: np.asarray(sweep.state[f"mixtures {kind}"])[self.place] for kind in TYPES}
        values = np.array([np.nanmin([*(found[kind][i] for kind in TYPES), np.inf]) for i in range(len(sweep.ks))])
        if not np.isfinite(values).any():
            reason = "no mixture could be fitted without a component that collapses"
            return Judgement(vote(self, None, reason), sweep.ks, np.full(len(sweep.ks), np.nan))
        at = int(np.argmin(values))
        kind = min(TYPES, key=lambda one: np.nan_to_num(found[one][at], nan=np.inf))
        close = [k for k, value in zip(sweep.ks, values, strict=True) if value <= values[at] + _CLOSE]
        shape = COVARIANCE_TYPES[kind].label
        reason = f"lowest for {sweep.ks[at]} Gaussian{'s' * (sweep.ks[at] != 1)} ({kind}: {shape})"
        values = np.where(np.isfinite(values), values, np.nan)
        return Judgement(vote(self, sweep.ks[at], reason, close), sweep.ks, values, figures=found)


class BIC(_Information):
    """The Bayesian information criterion."""

    name, label = "bic", "BIC of mixtures"


class ICL(_Information):
    """The same less the entropy of the rows' memberships: prefers components that do not overlap."""

    name, label, place = "icl", "ICL of mixtures", 1


def _run(sweep: Sweep, kind: str) -> dict[str, Any]:
    rows = sweep.rows.at_most(max(_ROWS, _ROWS_PER_CLUSTER * sweep.ks[-1]), sweep.seed)
    out, lowest, waited = np.full((2, len(sweep.ks)), np.nan), np.inf, 0
    for place, k in enumerate(sweep.ks):
        found = _criteria(rows, sweep.centres(k), kind, sweep.seed)
        if found is not None:
            out[:, place] = found
        waited = 0 if found is not None and found[0] < lowest else waited + 1
        lowest = min(lowest, np.inf if found is None else found[0])
        if waited >= _PATIENCE:
            break
    return {f"mixtures {kind}": out}


def _criteria(rows: Rows, centres: Floats, kind: str, seed: int) -> tuple[float, float] | None:
    """BIC and ICL of one mixture; None if it cannot be fitted, or has collapsed on a few rows."""
    k = len(centres)
    model = GaussianMixture(
        k, covariance_type=kind, tol=_TOL, max_iter=_MAX_ITER, search="none", random_state=seed, n_threads=1
    )
    try:
        model.fit_from_starts(rows.x, [_start(rows, centres)], rows.weights, warn=False)
        uninterrupted(model)
        figures = model.criteria(rows.x if rows.weights is None else _weighted(rows))
    except (FoldwiseError, np.linalg.LinAlgError):
        return None
    if model.collapsed_ or not np.isfinite(figures["bic"]):
        return None
    return float(figures["bic"]), float(figures["icl"])


def _weighted(rows: Rows) -> Any:
    from foldwise.data.arrays import ArraySource

    return ArraySource(rows.x, weights=rows.weights)


def _start(rows: Rows, centres: Floats) -> MixtureStart:
    """A mixture with the clusters' shares, means and covariances; those of few rows lean on the covariance within all."""
    k, d = centres.shape
    labels, weight = nearest(rows.x, centres), rows.weight
    counts = np.bincount(labels, weight, minlength=k)
    gaps = rows.x - centres[labels]
    whole = (gaps * weight[:, None]).T @ gaps / weight.sum()
    whole[np.diag_indices(d)] += 1e-6 * max(float(np.trace(whole)) / d, 1e-300)
    own = np.empty((k, d, d))
    for j in range(k):
        mine = labels == j
        own[j] = ((gaps[mine] * weight[mine][:, None]).T @ gaps[mine] + d * whole) / (counts[j] + d)
    return MixtureStart((counts + 1e-3) / (counts + 1e-3).sum(), centres, own)
