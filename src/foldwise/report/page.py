"""A fitted PCA as one self-contained page: no script, nothing loaded from elsewhere, some tens of kilobytes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import foldwise
from foldwise.data.atomic import replacing
from foldwise.fold.passes import Passes
from foldwise.report.pca import advice, header, top_loadings
from foldwise.report.run_header import column_names, manifest_lines
from foldwise.report.scatter_plot import Cloud, scree
from foldwise.report.tables import number, percent

_MOST_COMPONENTS = 30
_MOST_ARROWS = 12


def write_pca_page(pca: Any, source: Any, path: str | os.PathLike[str]) -> str:
    """Write the page; the source is passed over once more for the picture of the rows."""
    names, kept = column_names(pca), min(pca.n_components_, _MOST_COMPONENTS)
    cumulative, loadings = np.cumsum(pca.explained_variance_ratio_), np.asarray(pca.loadings_)
    lines = [
        {
            "name": name,
            "variance": number(float(pca.explained_variance_[i])),
            "share": percent(float(pca.explained_variance_ratio_[i])),
            "cumulative": percent(float(cumulative[i])),
            "loadings": top_loadings(loadings[:, i], names),
        }
        for i, name in enumerate(pca.get_feature_names_out()[:kept])
    ]
    return write_page(
        path,
        "pca.html",
        header=header(pca).splitlines(),
        lines=lines,
        hidden=pca.n_components_ - kept,
        scree=scree([float(share) for share in pca.explained_variance_ratio_[:kept]]),
        plane=_plane(pca, source, names),
        advice=advice(pca),
        manifest=manifest_lines(pca.manifest_),
        worst=float(pca.residuals_.max(initial=0.0)),
    )


def write_page(path: str | os.PathLike[str], template: str, **values: Any) -> str:
    """Fill in a template and write it, whole or not at all."""
    from jinja2 import Environment, PackageLoader

    page = Environment(loader=PackageLoader("foldwise.report"), autoescape=True).get_template(template)
    text = page.render(version=foldwise.__version__, **values)
    with replacing(path) as file:
        file.write(text.encode())
    return os.fspath(path)


def _plane(pca: Any, source: Any, names: list[str]) -> str | None:
    """The rows on the first two components, and the columns that pull most."""
    if pca.n_components_ < 2:
        return None
    deviations = np.sqrt(pca.explained_variance_[:2])
    cloud = Cloud(*(2.8 * deviations))
    directions = np.asarray(pca.components_[:2], dtype=np.float64)

    def of(block: Any) -> Any:
        return block.times(directions.T, pca.mean_, pca.scale_)

    Passes(source, n_threads=pca.n_threads).in_order(of, cloud.add)
    pulls = np.linalg.norm(directions, axis=0)
    strongest = np.argsort(-pulls, kind="stable")[:_MOST_ARROWS]
    longest = float(np.abs(directions[:, strongest]).max()) or 1.0
    arrows = [
        (float(x) / longest * 0.8, float(y) / longest * 0.8, names[j]) for j in strongest for x, y in [directions[:, j]]
    ]
    labels = [
        f"{name} ({percent(float(share))})"
        for name, share in zip(pca.get_feature_names_out(), pca.explained_variance_ratio_[:2], strict=False)
    ]
    return cloud.draw(arrows, (labels[0], labels[1]))
