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
    from foldwise.fold.manifest import Manifest as Manifest
    from foldwise.fold.outcome import Outcome as Outcome
    from foldwise.models.kernel import KernelKMeans as KernelKMeans
    from foldwise.models.kmeans import BisectingKMeans as BisectingKMeans
    from foldwise.models.kmeans import KMeans as KMeans
    from foldwise.models.kmeans import MiniBatchKMeans as MiniBatchKMeans
    from foldwise.models.labelled_matrix import LabelledMatrix as LabelledMatrix
    from foldwise.models.likelihood import Comparison as Comparison
    from foldwise.models.likelihood import FittedDistribution as FittedDistribution
    from foldwise.models.likelihood import Goodness as Goodness
    from foldwise.models.likelihood import fit_distribution as fit_distribution
    from foldwise.models.mixture import GaussianMixture as GaussianMixture
    from foldwise.models.mixture import SoftKMeans as SoftKMeans
    from foldwise.models.pca import PCA as PCA
    from foldwise.models.pca.rank import RankChoice as RankChoice
    from foldwise.report.progress import progress as progress
    from foldwise.selection.components import ComponentChoice as ComponentChoice
    from foldwise.selection.components import choose_components as choose_components
    from foldwise.selection.curve import InertiaCurve as InertiaCurve
    from foldwise.selection.curve import inertia_curve as inertia_curve
    from foldwise.selection.mixture import MixtureSelection as MixtureSelection
    from foldwise.selection.mixture import select_mixture as select_mixture
    from foldwise.selection.silhouette import Silhouette as Silhouette
    from foldwise.selection.silhouette import silhouette as silhouette
    from foldwise.store import load as load
    from foldwise.store import save as save

__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first used: `import foldwise` itself stays light.
_PUBLIC = {
    "BisectingKMeans": "foldwise.models.kmeans",
    "Comparison": "foldwise.models.likelihood",
    "ComponentChoice": "foldwise.selection.components",
    "FittedDistribution": "foldwise.models.likelihood",
    "GaussianMixture": "foldwise.models.mixture",
    "Goodness": "foldwise.models.likelihood",
    "InertiaCurve": "foldwise.selection.curve",
    "KMeans": "foldwise.models.kmeans",
    "KernelKMeans": "foldwise.models.kernel",
    "LabelledMatrix": "foldwise.models.labelled_matrix",
    "Manifest": "foldwise.fold.manifest",
    "MiniBatchKMeans": "foldwise.models.kmeans",
    "MixtureSelection": "foldwise.selection.mixture",
    "Outcome": "foldwise.fold.outcome",
    "PCA": "foldwise.models.pca",
    "RankChoice": "foldwise.models.pca.rank",
    "Silhouette": "foldwise.selection.silhouette",
    "SoftKMeans": "foldwise.models.mixture",
    "choose_components": "foldwise.selection.components",
    "engine": "foldwise.fold.engine",
    "fit_distribution": "foldwise.models.likelihood",
    "fold": "foldwise.fold",
    "inertia_curve": "foldwise.selection.curve",
    "load": "foldwise.store",
    "progress": "foldwise.report.progress",
    "save": "foldwise.store",
    "scan": "foldwise.data.scan",
    "select_mixture": "foldwise.selection.mixture",
    "silhouette": "foldwise.selection.silhouette",
}

__all__ = [
    "PCA",
    "BisectingKMeans",
    "Comparison",
    "ComponentChoice",
    "FittedDistribution",
    "GaussianMixture",
    "Goodness",
    "InertiaCurve",
    "KMeans",
    "KernelKMeans",
    "LabelledMatrix",
    "Manifest",
    "MiniBatchKMeans",
    "MixtureSelection",
    "Outcome",
    "RankChoice",
    "Silhouette",
    "SoftKMeans",
    "__version__",
    "choose_components",
    "engine",
    "fit_distribution",
    "fold",
    "inertia_curve",
    "load",
    "progress",
    "save",
    "scan",
    "select_mixture",
    "silhouette",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foldwise' has no attribute {name!r}")
    home = importlib.import_module(_PUBLIC[name])
    # `fold` names a package as well as its function: it stays the package, which can be called, whoever imports it first.
    value = home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
