"""Foldwise: find the directions and the groups in unlabelled data, and say how far to trust them.

The flow: a file, array, frame or stream becomes a *source* of blocks (`data`); statistics that merge (`stats`) are folded over
the blocks (`fold`); a model is finished from them (`models`); it is kept (`store`), judged (`selection`) and shown (`report`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldwise.data.scan import scan as scan
    from foldwise.fold import fold as fold
    from foldwise.fold.engine import engine as engine
    from foldwise.models.kernel import KernelKMeans as KernelKMeans
    from foldwise.models.kmeans import BisectingKMeans as BisectingKMeans
    from foldwise.models.kmeans import KMeans as KMeans
    from foldwise.models.kmeans import MiniBatchKMeans as MiniBatchKMeans
    from foldwise.models.likelihood import fit_distribution as fit_distribution
    from foldwise.models.mixture import GaussianMixture as GaussianMixture
    from foldwise.models.mixture import SoftKMeans as SoftKMeans
    from foldwise.models.pca import PCA as PCA
    from foldwise.report.progress import progress as progress
    from foldwise.selection.choose_mixture import MixtureChoice as MixtureChoice
    from foldwise.selection.choose_mixture import choose_mixture as choose_mixture
    from foldwise.selection.components import choose_components as choose_components
    from foldwise.selection.curve import inertia_curve as inertia_curve
    from foldwise.selection.silhouette import silhouette as silhouette
    from foldwise.store import load as load
    from foldwise.store import save as save

__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first used: `import foldwise` itself stays light.
_PUBLIC = {
    "BisectingKMeans": "foldwise.models.kmeans",
    "GaussianMixture": "foldwise.models.mixture",
    "KMeans": "foldwise.models.kmeans",
    "KernelKMeans": "foldwise.models.kernel",
    "MiniBatchKMeans": "foldwise.models.kmeans",
    "PCA": "foldwise.models.pca",
    "SoftKMeans": "foldwise.models.mixture",
    "MixtureChoice": "foldwise.selection.choose_mixture",
    "choose_components": "foldwise.selection.components",
    "choose_mixture": "foldwise.selection.choose_mixture",
    "engine": "foldwise.fold.engine",
    "fit_distribution": "foldwise.models.likelihood",
    "fold": "foldwise.fold",
    "inertia_curve": "foldwise.selection.curve",
    "load": "foldwise.store",
    "progress": "foldwise.report.progress",
    "save": "foldwise.store",
    "scan": "foldwise.data.scan",
    "silhouette": "foldwise.selection.silhouette",
}

__all__ = [
    "PCA",
    "BisectingKMeans",
    "GaussianMixture",
    "KMeans",
    "KernelKMeans",
    "MiniBatchKMeans",
    "MixtureChoice",
    "SoftKMeans",
    "__version__",
    "choose_components",
    "choose_mixture",
    "engine",
    "fit_distribution",
    "fold",
    "inertia_curve",
    "load",
    "progress",
    "save",
    "scan",
    "silhouette",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foldwise' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
