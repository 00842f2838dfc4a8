"""Each cluster in words: what sets it apart, a short rule, typical rows, and a proposed name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.selection.describe import CategoryCounts
from foldwise.selection.explore.result import ClusterSummary, Overrepresented, Rule, Trait
from foldwise.selection.explore.rules import Category, find_rule
from foldwise.selection.explore.sample import OTHER, Sample
from foldwise.selection.silhouette_result import Silhouette

_LEAST = 0.25  # standard deviations: a smaller difference does not set a cluster apart
_LEAST_OF_SPARSE = 0.05
_NAMING = 0.5
_MOST_TRAITS, _MOST_LEVELS, _EXEMPLARS = 6, 4, 3
_MORE, _LIFT = 0.1, 1.25  # by which a level must be more frequent: the difference of the shares, and their ratio
_ALL = 0.995
_MOSTLY = 0.75  # the share from which a cluster is named after a level, if the table has clearly less of it


def traits_of(
    differences: Floats, means: Floats, mean: Floats, names: Sequence[str], least: float = _LEAST
) -> tuple[Trait, ...]:
    """The columns in which a cluster differs most, the largest difference first."""
    order = np.argsort(-np.abs(np.nan_to_num(differences)), kind="stable")[:_MOST_TRAITS]
    return tuple(
        Trait(names[j], float(means[j]), float(mean[j]), float(differences[j]))
        for j in order
        if abs(differences[j]) >= least
    )


def overrepresented(found: Sequence[CategoryCounts], cluster: int) -> tuple[Overrepresented, ...]:
    """The levels that a cluster has clearly more often than the table, the most telling first."""
    out = []
    for one in found:
        if cluster >= len(one.counts) or not one.counts[cluster].sum():
            continue
        size, shares, overall = one.counts[cluster].sum(), one.shares[cluster], one.overall
        chance = np.sqrt(overall * (1 - overall) / size)
        for j, level in enumerate(one.levels):
            more = shares[j] - overall[j]
            if more > max(_MORE, 3 * chance[j]) and shares[j] > _LIFT * overall[j]:
                out.append((more, Overrepresented(one.name, level, float(shares[j]), float(overall[j]))))
    return tuple(one for _, one in sorted(out, key=lambda pair: -pair[0])[:_MOST_LEVELS])


def exemplars(standardised: Floats, centres: Floats, labels: NDArray[Any], k: int) -> list[tuple[int, ...]]:
    """For each cluster the places of the rows nearest to its centre, in the cells that they have; equal rows once."""
    out = []
    for cluster in range(k):
        here = np.flatnonzero(labels == cluster)
        away = standardised[here] - centres[cluster]
        known = np.isfinite(away)
        counts = known.sum(axis=1)
        squares = np.where(known, away, 0.0) ** 2
        distance = squares.sum(axis=1) / np.maximum(counts, 1)
        distance[counts < max(1, standardised.shape[1] / 2)] = np.inf
        order = np.argsort(distance, kind="stable")
        chosen: list[int] = []
        seen: set[bytes] = set()
        for place in order[:200]:
            key = standardised[here[place]].tobytes()
            if np.isfinite(distance[place]) and key not in seen:
                seen.add(key)
                chosen.append(int(here[place]))
            if len(chosen) == _EXEMPLARS:
                break
        out.append(tuple(chosen))
    return out


def typical_rows(
    sample: Sample, model: Any, labels: NDArray[Any], profile: Any, *, scale: bool
) -> list[tuple[int, ...]]:
    """The places among all rows of the most typical rows of each cluster; `labels` are those of the sample."""
    k = len(profile.rows)
    if sample.weights is not None:
        labels = np.where(sample.weights > 0, labels, -1)
    if sample.source.sparse:
        away = np.asarray(model.transform(sample.source))
        inside = [np.flatnonzero(labels == cluster) for cluster in range(k)]
        found = [
            tuple(here[np.argsort(away[here, i], kind="stable")[:_EXEMPLARS]].tolist()) for i, here in enumerate(inside)
        ]
    else:
        deviation = np.where(profile.deviation > 0, profile.deviation, 1.0)
        if not scale:
            deviation = np.full_like(deviation, float(deviation.max()))
        rows = (sample.dense() - profile.mean) / deviation
        found = exemplars(rows, (profile.means - profile.mean) / deviation, labels, k)
    return [tuple(int(sample.rows[place]) for place in own) for own in found]


def rules_of(
    labels: NDArray[Any],
    k: int,
    names: Sequence[str],
    values: Floats,
    categories: Sequence[Category],
    weights: Floats | None,
) -> list[Rule | None]:
    """A short rule for each cluster, if it has rows."""
    some = [(name, levels, codes) for name, levels, codes in categories if OTHER not in levels]
    return [find_rule(labels == cluster, names, values, some, weights) for cluster in range(k)]


def names_of(traits: Sequence[tuple[Trait, ...]], levels: Sequence[tuple[Overrepresented, ...]]) -> list[str]:
    """A proposed name for each cluster, all different: its two largest traits, and a level that nearly all its rows have."""
    most = max((len(own) for own in traits), default=0)
    names: list[str] = []
    for count in range(2, max(3, most + 1)):
        names = [_name(own, some, count) for own, some in zip(traits, levels, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _name(traits: tuple[Trait, ...], levels: tuple[Overrepresented, ...], count: int) -> str:
    large = [one for one in traits if abs(one.difference) >= _NAMING][:count]
    words = [f"{'high' if one.difference > 0 else 'low'} {one.column}" for one in large]
    words += [
        f"{'all' if one.share >= _ALL else 'mostly'} {one.level}"
        for one in levels
        if one.share >= _MOSTLY and one.overall <= one.share - 0.25
    ][:1]
    if not words:
        words = [f"{'higher' if one.difference > 0 else 'lower'} {one.column}" for one in traits[:count]]
    return ", ".join(words) or "close to the average"


def summaries_of(
    profile: Any,
    names: Sequence[str],
    counts: Sequence[CategoryCounts],
    rules: Sequence[Rule | None],
    typical: Sequence[tuple[int, ...]],
    silhouette: Silhouette | None,
    *,
    sparse: bool,
) -> tuple[ClusterSummary, ...]:
    """One summary for each cluster. In a sparse table every column is rare, and small differences tell."""
    k, least = len(profile.rows), _LEAST_OF_SPARSE if sparse else _LEAST
    traits = [traits_of(profile.differences[i], profile.means[i], profile.mean, names, least) for i in range(k)]
    levels = [overrepresented(counts, i) for i in range(k)]
    shares = profile.weights / profile.weights.sum()
    means = {} if silhouette is None else dict(zip(silhouette.clusters, silhouette.cluster_means, strict=True))
    proposed = names_of(traits, levels)
    return tuple(
        ClusterSummary(
            number=i,
            name=proposed[i],
            rows=int(profile.rows[i]),
            share=float(shares[i]),
            traits=traits[i],
            categories=levels[i],
            rule=rules[i],
            exemplars=typical[i],
            silhouette=float(means.get(i, np.nan)),
        )
        for i in range(k)
    )
