"""Explorations put together by hand from real pieces, for tests of the report."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import foldwise as fw
from foldwise.selection.agreement import adjusted_rand
from foldwise.selection.describe import CategoryCounts
from foldwise.selection.explore.result import (
    ClusterSummary,
    ColumnSummary,
    Comparison,
    Condition,
    Exploration,
    Outliers,
    Overrepresented,
    Overview,
    Points,
    Rule,
    Trait,
)
from foldwise.selection.profile import profile

EXAMPLES = Path(__file__).parents[2] / "examples"


def penguins() -> Exploration:
    """The penguins with all cells known, with their species as a label."""
    with (EXAMPLES / "penguins.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    whole = [row for row in rows if all(row[name] not in ("", "NA") for name in names)]
    x = np.array([[float(row[name]) for name in names] for row in whole])
    return explored(x, names, label=("species", [row["species"] for row in whole]), where="penguins.csv")


def blobs(clusters: int, columns: int = 4, rows: int = 40, seed: int = 0) -> Exploration:
    """Round clusters far apart, as many as asked for; 1 makes one cloud."""
    rng = np.random.default_rng(seed)
    centres = 12.0 * rng.standard_normal((clusters, columns))
    x = np.concatenate([centre + rng.standard_normal((rows, columns)) for centre in centres])
    return explored(x, [f"x{j}" for j in range(columns)], clusters=clusters)


def explored(x, names, *, label=None, where="data.csv", clusters=None) -> Exploration:
    """Everything that there is to know about rows, quickly; `clusters` instead of choosing their number."""
    source, (n, d) = fw.scan(x), x.shape
    pca = fw.PCA(min(10, d, n - 1), scale=True).fit(source)
    components = fw.choose_components(x, scale=True, random_state=0, rules=["parallel", "broken-stick", 0.9])
    ks = range(1, 7) if clusters is None else range(1, min(clusters + 3, n))
    number = fw.choose_clusters(
        source, ks, ["dip", "silhouette", "calinski-harabasz", "bic"], scale=True, random_state=0
    )
    common = {
        "overview": _overview(x, names, label, where),
        "names": tuple(names),
        "scale": True,
        "metric": "euclidean",
        "scale_reason": "their units differ",
        "sampled_rows": None,
        "pca": pca,
        "components": components,
        "number": number,
        "seconds": {"directions": 0.1, "number of groups": 0.5},
        "settings": {"random_state": 0, "n_clusters": None},
        "source": source,
        "command": f"foldwise explore {where}",
    }
    scores = np.asarray(pca.scores(x), dtype=np.float64)
    outliers = _outliers(pca, x, names, scores)
    nobody = np.zeros(n, dtype=np.int32), np.full(n, np.nan)
    if not number.found:
        return Exploration(
            **common, outliers=outliers, labels=nobody[0], points=_points(x, names, scores, label, *nobody, outliers)
        )
    model = fw.KMeans(number.n_clusters, scale=True, random_state=0).fit(source)
    stability = fw.stability(model, source, n_repeats=12, random_state=0)
    ensemble = fw.ClusterEnsemble(number.n_clusters, n_base=6, scale=True, random_state=0).fit(source)
    judged = fw.silhouette((x - x.mean(axis=0)) / x.std(axis=0), model.labels_, values=True)
    found = profile(model, source)
    return Exploration(
        **common,
        kmeans=model,
        clusters=model,
        comparison=Comparison(-5.2, -5.0, 0.2, 0.04, n, "full", 0.92, "k-means", "The difference is small."),
        profile=found,
        labels=model.labels_,
        confidence=stability.confidence,
        silhouette=judged,
        silhouette_labels=model.labels_,
        ensemble=ensemble,
        ensemble_agreement=adjusted_rand(ensemble.labels_, model.labels_),
        stability=stability,
        summaries=_summaries(x, names, found, model.labels_, stability, judged, label),
        categories=() if label is None else (_counts(label, model.labels_, number.n_clusters),),
        outliers=outliers,
        points=_points(x, names, scores, label, model.labels_, stability.confidence, outliers),
    )


def _overview(x, names, label, where) -> Overview:
    columns = []
    for name, cells in zip(names, x.T, strict=True):
        counts, edges = np.histogram(cells, 12)
        figures = {"low": cells.min(), "mean": cells.mean(), "high": cells.max(), "deviation": cells.std()}
        figures = {key: float(value) for key, value in figures.items()}
        columns.append(
            ColumnSummary(
                name, "number", "used", "a number", 0, len(np.unique(cells)), edges=edges, counts=counts, **figures
            )
        )
    if label is not None:
        levels, counts = np.unique(label[1], return_counts=True)
        pairs = sorted(zip(levels.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])
        columns.append(
            ColumnSummary(label[0], "category", "label", "named as label", 0, len(levels), levels=tuple(pairs))
        )
    few = range(min(x.shape[1], 40))
    correlation = np.atleast_2d(np.corrcoef(x[:, list(few)], rowvar=False))
    return Overview(where, len(x), len(x), tuple(columns), tuple(few), correlation, lines=("used: all numbers",))


def _outliers(pca, x, names, scores) -> Outliers:
    t2 = (scores[:, :2] ** 2 / pca.explained_variance_[:2]).sum(axis=1)
    residual = (scores[:, 2:] ** 2).sum(axis=1)
    rows = np.argsort(-t2, kind="stable")[:5]
    worst = np.abs((x[rows] - x.mean(axis=0)) / x.std(axis=0)).argmax(axis=1)
    limit = float(np.quantile(t2, 0.99))
    columns = tuple(names[j] for j in worst)
    far, off = t2 > limit, residual > 3.0
    counts = {"t2_count": int(far.sum()), "residual_count": int(off.sum()), "count": int((far | off).sum())}
    figures = {"t2_limit": limit, "residual_limit": 3.0, "level": 0.99, "expected": 0.01 * len(x)}
    return Outliers(rows, t2[rows], residual[rows], columns, 2, **counts, **figures)


def _points(x, names, scores, label, labels, confidence, outliers) -> Points:
    n = len(x)
    ids = [(str(i), *((label[1][i],) if label else ())) for i in range(n)]
    t2 = (scores[:, :2] ** 2).sum(axis=1)
    return Points(
        np.arange(n),
        n,
        scores,
        tuple(names),
        x,
        labels.astype(np.int32),
        confidence,
        t2,
        0.1 * t2,
        id_names=("row", *((label[0],) if label else ())),
        ids=tuple(ids),
    )


def _counts(label, labels, k) -> CategoryCounts:
    levels, codes = np.unique(label[1], return_inverse=True)
    counts = np.zeros((k, len(levels)))
    np.add.at(counts, (labels, codes), 1)
    return CategoryCounts(label[0], tuple(levels.tolist()), counts, True)


def _summaries(x, names, found, labels, stability, judged, label) -> tuple[ClusterSummary, ...]:
    made = []
    for i, differences in enumerate(found.differences):
        strongest = np.argsort(-np.abs(differences), kind="stable")[:3]
        traits = tuple(
            Trait(names[j], float(found.means[i, j]), float(found.mean[j]), float(differences[j])) for j in strongest
        )
        first = strongest[0]
        cut, above = float((found.means[i, first] + found.mean[first]) / 2), differences[first] > 0
        picked = (x[:, first] > cut) == above
        rule = Rule(
            (Condition(names[first], ">" if above else "<=", cut),),
            float(np.mean(labels[picked] == i)),
            float(np.mean(picked[labels == i])),
        )
        categories: tuple[Overrepresented, ...] = ()
        if label is not None:
            levels, counts = np.unique(np.array(label[1])[labels == i], return_counts=True)
            top = int(counts.argmax())
            overall = float(np.mean(np.array(label[1]) == levels[top]))
            categories = (Overrepresented(label[0], str(levels[top]), float(counts[top] / counts.sum()), overall),)
        name = ", ".join(f"{'high' if trait.difference > 0 else 'low'} {trait.column}" for trait in traits[:2])
        made.append(
            ClusterSummary(
                i,
                name,
                int(found.rows[i]),
                float(found.rows[i] / len(x)),
                traits,
                categories,
                rule,
                tuple(np.flatnonzero(labels == i)[:3].tolist()),
                float(np.nanmean(stability.confidence[labels == i])),
                float(judged.cluster_means[i]),
                stability.verdicts[i],
            )
        )
    return tuple(made)
