"""A fitted PCA in words and figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.models.pca import rank
from foldwise.report import run_header
from foldwise.report.run_header import column_names
from foldwise.report.tables import number, percent, table

_MOST_LINES = 20
_LOADINGS = 4


def summary(pca: Any) -> str:
    """What ran, the variance of each component, and the columns that make it up."""
    parts = [header(pca), components_table(pca)]
    if (hint := advice(pca)) is not None:
        parts.append(hint)
    return "\n\n".join(parts) + "\n"


def header(pca: Any) -> str:
    """What ran."""
    return run_header.header(pca, pca.manifest_.algorithm)


def components_table(pca: Any) -> str:
    """Variances, shares and top loadings, aligned."""
    names, loadings = column_names(pca), np.asarray(pca.loadings_)
    cumulative = np.cumsum(pca.explained_variance_ratio_)
    rows = [
        [
            name,
            number(float(pca.explained_variance_[i])),
            percent(float(pca.explained_variance_ratio_[i])),
            percent(float(cumulative[i])),
            top_loadings(loadings[:, i], names),
        ]
        for i, name in enumerate(pca.get_feature_names_out()[:_MOST_LINES])
    ]
    text = table(["component", "variance", "share", "cumulative", "top loadings"], rows, left=(0, 4))
    hidden = pca.n_components_ - len(rows)
    return f"{text}\n... and {hidden} more" if hidden > 0 else text


def top_loadings(loadings: Any, names: list[str]) -> str:
    """The largest few of a component's loadings, with their columns; what is next to nothing is left out."""
    order = np.argsort(-np.abs(loadings), kind="stable")[:_LOADINGS]
    floor = 0.005 * float(np.abs(loadings).max(initial=0.0))
    return ", ".join(f"{loadings[j]:+.{_digits(loadings[j])}f} {names[j]}" for j in order if abs(loadings[j]) > floor)


def _digits(value: float) -> int:
    """Decimals that show two or three digits."""
    return int(np.clip(2 - np.floor(np.log10(max(abs(value), 1e-12))), 0, 8)) if abs(value) < 0.1 else 2


def advice(pca: Any) -> str | None:
    """How many components to keep, by rules that need not agree, and how sure each is."""
    if pca.rank_ is not None:
        chosen = pca.rank_
        return (
            f"{chosen.rule} keeps {chosen.chosen} (would also defend {chosen.low} to {chosen.high}: {chosen.meaning})"
        )
    variances = pca.explained_variance_
    rows, columns = pca.total_weight_, pca.n_features_in_
    if pca.n_components_ < min(rows, columns) or columns > 500 or columns < 3 or rows < 3 or variances.sum() == 0:
        return None
    total = float(variances.sum())
    rules = [rank.by_share(variances, total, 0.9, rows)]
    rules.append(rank.by_parallel_analysis(variances, pca.column_variances_, rows, seed=0))
    rules.append(rank.by_gavish_donoho(variances, rows, columns))
    if rows >= columns:
        rules.append(rank.by_minka(variances, rows, columns))
    lines = [[rule.rule, str(rule.chosen), f"{rule.low} to {rule.high}"] for rule in rules]
    return table(["how many to keep", "components", "would defend"], lines)
