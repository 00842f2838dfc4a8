"""An exploration as plain values, for summary.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.report.explore.cautions import cautions, missing_share
from foldwise.report.explore.directions import correlations_with
from foldwise.report.explore.groups import numbers_of
from foldwise.report.explore.images import image_shape_in, without_pixels
from foldwise.report.explore.made import manifests, versions
from foldwise.report.explore.meaning import directions_of, meaning
from foldwise.report.explore.rows import noted_rows
from foldwise.report.explore.sentences import sentences
from foldwise.report.explore.units import Units, rule_words, shown_name
from foldwise.report.explore.verdicts import groups_in_words
from foldwise.report.explore.votes import direction_votes
from foldwise.report.explore.words import group_count, sentence_of
from foldwise.report.json import plain
from foldwise.selection.explore.result import ClusterSummary, Exploration
from foldwise.selection.votes import Vote

_MOST_DIRECTIONS, _MOST_LOADINGS = 20, 20


def summary_of(found: Exploration) -> dict[str, Any]:
    """Sentences, figures, votes, groups with their traits and rules, unusual rows, settings and versions.

    What is not a finite number is None; names of columns and levels are whole, however long.
    """
    found = without_pixels(found)
    seen = found.overview
    values = {
        "sentences": sentences(found),
        "cautions": cautions(found),
        "data": {
            "where": seen.where,
            "rows": seen.rows,
            "judged_rows": seen.judged_rows,
            "columns": [_column(one) for one in seen.columns],
            "missing_share": missing_share(found),
            "notes": list(seen.notes),
            "repeated_rows": seen.repeated,
            "recipe": list(seen.lines),
        },
        "compared": {
            "columns": list(found.names),
            "scale": found.scale,
            "metric": found.metric,
            "reason": found.scale_reason,
            "sampled_rows": found.sampled_rows,
        },
        "directions": _directions(found),
        "groups": _groups(found),
        "unusual_rows": _outliers(found),
        "rows_worth_a_look": [
            {
                "row": number_in_data(found, row.place),
                "ids": list(row.ids),
                "why": row.why,
                "column": row.column,
                "group": row.group,
            }
            for row in noted_rows(found)
        ],
        "unfinished": list(found.unfinished),
        "not_done": list(found.notes),
        "used_rows": dict(found.used_rows),
        "seconds": dict(found.seconds),
        "settings": {key: _simple(value) for key, value in found.settings.items()},
        "versions": versions(),
        "command": found.command,
        "runs": {name: ran.as_dict() for name, ran in manifests(found).items()},
    }
    return dict(plain(values))


def number_in_data(found: Exploration, place: int) -> int:
    """The number of a row in the data as given (from 0), of which a condition may have left others out."""
    points = found.points
    if points is None or not points.ids:
        return int(place)
    at = int(np.searchsorted(points.rows, place))
    return int(points.ids[at][0]) if at < len(points.rows) and points.rows[at] == place else int(place)


def _simple(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)) else str(value)


def _column(one: Any) -> dict[str, Any]:
    names = ("name", "kind", "role", "why", "missing", "distinct", "low", "mean", "high", "deviation")
    return {name: getattr(one, name) for name in names} | {"levels": [list(level) for level in one.levels]}


def _vote(one: Vote) -> dict[str, Any]:
    names = ("rule", "chosen", "low", "high", "weight", "reason")
    return {name: getattr(one, name) for name in names}


def _directions(found: Exploration) -> dict[str, Any]:
    shares, choice, vectors = found.pca.explained_variance_ratio_, found.components, directions_of(found)
    correlations = correlations_with(found) if len(shares) else None
    listed = []
    for i in range(min(len(shares), _MOST_DIRECTIONS)):
        assert correlations is not None
        order = abs(correlations[:, i]).argsort(kind="stable")[::-1][:_MOST_LOADINGS]
        listed.append(
            {
                "share": float(shares[i]),
                "mainly": None if image_shape_in(found) is not None else meaning(vectors[i], found.names),
                "correlations": {found.names[j]: float(correlations[j, i]) for j in order.tolist()},
            }
        )
    return {
        "agreed": found.n_components,
        "sentence": None if choice is None else sentence_of(direction_votes(choice)),
        "votes": [] if choice is None else [_vote(one) for one in choice.votes],
        "directions": listed,
    }


def _groups(found: Exploration) -> dict[str, Any]:
    number, comparison, stability = found.number, found.comparison, found.stability
    units = Units.of(found)
    return {
        "number": group_count(found),
        "made": len(numbers_of(found)),
        "sentence": None if number is None else number.sentence,
        "strength": None if number is None else number.strength,
        "runner_up": None if number is None else number.runner_up,
        "votes": [] if number is None else [_vote(one) for one in number.votes],
        "groups": [_group(found, one, units) for one in found.summaries],
        "silhouette": None if found.silhouette is None else found.silhouette.mean,
        "stability": None
        if stability is None
        else {
            "sentence": sentence_of(groups_in_words(found)) if found.summaries else None,
            "jaccard": stability.jaccard,
            "base": stability.base,
            "verdicts": [one.verdict or None for one in found.summaries],
            "repeats": stability.n_repeats,
        },
        "consensus_agreement": found.ensemble_agreement,
        "comparison": None if comparison is None else dict(vars(comparison)),
        "categories": [
            {"name": one.name, "levels": list(one.levels), "counts": one.counts, "agreement": one.agreement}
            for one in found.categories
        ],
    }


def _group(found: Exploration, one: ClusterSummary, units: Units) -> dict[str, Any]:
    rule = one.rule
    return {
        "number": one.number,
        "name": shown_name(one, units),
        "rows": one.rows,
        "share": one.share,
        "traits": [dict(vars(trait)) for trait in one.traits],
        "categories": [dict(vars(level)) for level in one.categories],
        "rule": None
        if rule is None
        else {
            "text": rule_words(one, units, 1000) or str(rule),
            "conditions": [dict(vars(condition)) for condition in rule.conditions],
            "precision": rule.precision,
            "recall": rule.recall,
        },
        "exemplars": [number_in_data(found, row) for row in one.exemplars],
        "confidence": one.confidence,
        "silhouette": one.silhouette,
        "verdict": one.verdict or None,
    }


def _outliers(found: Exploration) -> dict[str, Any] | None:
    out = found.outliers
    if out is None:
        return None
    return {
        "directions": out.components,
        "level": out.level,
        "count": out.count,
        "expected": out.expected,
        "t2_limit": out.t2_limit,
        "t2_count": out.t2_count,
        "residual_limit": out.residual_limit,
        "residual_count": out.residual_count,
    }
