"""Reports on models that have none of their own: other kinds of k-means, and the linear autoencoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.source import Source
from foldwise.models.base import n_clusters_of
from foldwise.report.cluster_parts import (
    agreement_facts,
    categories_table,
    clusters_table,
    described,
    means_table,
    plane_chart,
    separation_table,
    trait_panels,
)
from foldwise.report.formats import counted, number
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.values import Column, Fact, Part, Report, Table
from foldwise.selection.ensemble_profile import ensemble_profile


@dataclass(frozen=True)
class Labels:
    """What a report needs to know of labels that were combined."""

    where: str


def groups_report(model: Any, source: Source) -> Report:
    """What ran, the clusters, what sets them apart, and their means. Takes one pass, and a few more for a page."""
    found, names, k = ensemble_profile(model, source), column_names(model), n_clusters_of(model)
    categories = described(model, source, model.labels_, k)
    words = [model.manifest_.algorithm, counted(model.outcome_.steps, "iteration")]
    work = ", ".join([*words, *(["converged"] if model.outcome_.converged else [])])
    parts: list[Part] = [
        clusters_table(found, names, [], "Rows count towards the cluster of their label."),
        *categories_table(categories),
        *([plane_chart(model, source, model.labels_, k, lambda seen: seen.draw(), "")] if _has_plane(model) else []),
        separation_table(found, names),
        trait_panels(found, names),
        means_table(found, names, "Means, in the units of the data"),
        run_table(model.manifest_),
    ]
    title = f"{counted(k, 'cluster')} of {counted(model.manifest_.rows, 'row')}, by {type(model).__name__}"
    lines = about(model, work, scaled=getattr(model, "scale_", None) is not None)
    return Report(title, lines, [*_facts(model), *agreement_facts(categories)], parts, told(source))


def _has_plane(model: Any) -> bool:
    return hasattr(model, "as_compared")


def _facts(model: Any) -> list[Fact]:
    inertia = float(model.inertia_)
    facts = [Fact("inertia", inertia, number(inertia), "(sum of squared distances to the centres)")]
    if getattr(model, "gamma_", None) is not None:
        facts[0] = Fact("inertia", inertia, number(inertia), "(in the space of the kernel)")
        facts.append(Fact("gamma", float(model.gamma_), number(float(model.gamma_)), "(of the kernel)"))
    if getattr(model, "beta_", None) is not None:
        beta = float(np.max(model.beta_))
        facts.append(Fact("beta", beta, number(beta), "(how sharply rows belong to the nearest centre)"))
    return facts


def linear_report(model: Any) -> Report:
    """What ran, what is lost, and what each code is made of. No pass over the rows is made."""
    from foldwise.report.pca import top_loadings

    lost, by_pca = float(model.reconstruction_error_), float(model.pca_error_)
    names, k = column_names(model), model.n_components_
    codes = Table(
        "Codes",
        [
            Column("code", list(range(k)), left=True),
            Column("read from", [top_loadings(one, names) for one in np.asarray(model.encoder_weights_)], left=True),
        ],
        "The largest weights of the encoder. Any invertible mix of the codes loses as little.",
        wide=True,
    )
    facts = [
        Fact("squared error of a row", lost, number(lost), "(mean over the rows)"),
        Fact("by PCA", by_pca, number(by_pca), f"({counted(k, 'component')}, which is the least possible)"),
    ]
    if getattr(model, "angle_", None) is not None:
        angle = float(np.degrees(np.max(model.angle_)))
        facts.append(Fact("angle to PCA", angle, f"{angle:.2g}°", "(between the spaces that both span)"))
    title = f"Linear codes of {counted(k, 'number')} for {counted(model.manifest_.rows, 'row')}"
    lines = about(model, model.manifest_.algorithm)
    return Report(title, lines, facts, [codes, run_table(model.manifest_)])
