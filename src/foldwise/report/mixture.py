"""A fitted mixture in words and figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.report import run_header
from foldwise.report.cluster import centres_table, share, traits
from foldwise.report.run_header import column_names, counted
from foldwise.report.tables import number, percent, table
from foldwise.selection.choose_mixture import MixtureChoice
from foldwise.selection.mixture_profile import DOUBT, MixtureProfile

_MOST_LINES = 40


def summary(model: Any, found: MixtureProfile, choice: MixtureChoice | None) -> str:
    """What ran, how it was chosen, the clusters, what sets them apart, and their means in the units of the data."""
    parts = [header(model, choice), "" if choice is None else str(choice), overall(model, found), merging_text(model)]
    parts += [clusters_table(model, found), centres_table(model, found), "\n".join(hints(model, found, choice))]
    return "\n\n".join(part for part in parts if part) + "\n"


def header(model: Any, choice: MixtureChoice | None = None) -> str:
    """What ran."""
    words = [f"mixture of {counted(model.n_components, 'Gaussian')} ({COVARIANCE_TYPES[model.covariance_type].label})"]
    words.append(counted(model.outcome_.steps, "step") + " of EM")
    if model.outcome_.converged:
        words.append("converged")
    text = run_header.header(model, ", ".join(words))
    if choice is None:
        return text
    first, second, *rest = text.split("\n")
    all_seconds = sum(entry.seconds for entry in choice.entries)
    told = f"the best of {counted(len(choice.entries), 'fit')}, which took {all_seconds:.2f} s"
    return "\n".join([first, second, told, *rest])


def overall(model: Any, found: MixtureProfile) -> str:
    """Likelihood, criteria and doubt."""
    figures = found.criteria
    units = " of scaled columns" if model.scale_ is not None else ""
    return "\n".join(
        [
            f"log-likelihood  {number(figures['log_likelihood'])}{units}, {int(figures['parameters'])} parameters",
            f"criteria        BIC {number(figures['bic'])}, ICL {number(figures['icl'])}, AIC {number(figures['aic'])} "
            "(lower is better)",
            f"in doubt        {percent(found.in_doubt)} of the rows (no cluster has a probability of {DOUBT:g})",
        ]
    )


def merging_text(model: Any) -> str:
    """How components were merged, if they were."""
    way = getattr(model, "merging_", None)
    if way is None:
        return ""
    lines = []
    for place, (n, entropy) in enumerate(zip(way.numbers, way.entropies, strict=True)):
        pair = way.pairs[place - 1] if place else None
        text = "" if pair is None else f"{_named(pair[0])} with {_named(pair[1])}"
        lines.append([str(n), number(entropy), text, "chosen" if n == way.chosen else ""])
    made = ", ".join(f"{i}: {_named(g)}" for i, g in enumerate(_groups(model)))
    head = table(["clusters", "entropy", "merged", ""], lines, left=(2, 3))
    return f"{head}\n(components merged by entropy; {way.rule}; clusters and their components: {made})"


def _groups(model: Any) -> list[tuple[int, ...]]:
    clusters = model.clusters_
    return [tuple(int(c) for c in np.flatnonzero(clusters == i)) for i in range(int(clusters.max()) + 1)]


def _named(group: tuple[int, ...]) -> str:
    return "+".join(map(str, group))


def clusters_table(model: Any, found: MixtureProfile) -> str:
    """Sizes, sureness and traits, aligned."""
    names, k = column_names(model), len(found.means)
    weighted = bool((found.rows != found.weights).any())
    head = ["cluster", "rows", *(["weight"] if weighted else []), "share", "sureness", "what sets it apart"]
    lines = []
    for i in range(min(k, _MOST_LINES)):
        line = [str(i), f"{found.rows[i]:,}", *([number(float(found.weights[i]))] if weighted else [])]
        line += [percent(share(found, i)), sureness(found, i)]
        lines.append([*line, traits(found.differences[i], names)])
    text = table(head, lines, left=(0, len(head) - 1))
    hidden = k - len(lines)
    note = "(sureness: mean probability that rows have of their cluster; traits: mean less that of all, in standard deviations)"
    return "\n".join([text, *([f"... and {hidden} more"] if hidden > 0 else []), note])


def sureness(found: MixtureProfile, cluster: int) -> str:
    """How sure the rows of a cluster are."""
    value = float(found.sureness[cluster])
    return "-" if np.isnan(value) else percent(value)


def hints(model: Any, found: MixtureProfile, choice: MixtureChoice | None) -> list[str]:
    """What to try next."""
    lines = []
    if choice is None:
        lines.append("hint: -k 1:9 --type full,tied,diag,spherical compares numbers and shapes by BIC")
    elif choice.best.n_components == max(numbers := {e.n_components for e in choice.entries}) and len(numbers) > 1:
        lines.append("hint: the best is the largest number tried; a wider range may hold a better one")
    if getattr(model, "merging_", None) is None and model.n_components > 2 and found.in_doubt > 0.05:
        lines.append("hint: many rows are in doubt; --merge joins components that share them into clusters")
    return lines
