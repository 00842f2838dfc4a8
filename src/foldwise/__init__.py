"""Foldwise: find directions and clusters in unlabelled data, and assess how far to trust them.

A file, array, data frame or stream becomes a *source* of blocks (`data`); mergeable statistics (`stats`) are folded over the
blocks (`fold`); a model is computed from them (`models`), then saved (`store`), assessed (`selection`) and reported (`report`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from foldwise import forks

if TYPE_CHECKING:
    from foldwise import plot as plot
    from foldwise.data.scan import scan as scan
    from foldwise.fold import fold as fold
    from foldwise.fold.engine import engine as engine
    from foldwise.fold.manifest import Manifest as Manifest
    from foldwise.fold.outcome import Outcome as Outcome
    from foldwise.models.autoencoder import Autoencoder as Autoencoder
    from foldwise.models.autoencoder import LinearAutoencoder as LinearAutoencoder
    from foldwise.models.ensemble import ClusterEnsemble as ClusterEnsemble
    from foldwise.models.ensemble import Coassociation as Coassociation
    from foldwise.models.ensemble import ConsensusChoice as ConsensusChoice
    from foldwise.models.ensemble import coassociation as coassociation
    from foldwise.models.exploration import ExplorationModel as ExplorationModel
    from foldwise.models.images.eigenfaces import Eigenfaces as Eigenfaces
    from foldwise.models.images.eigenfaces import eigenfaces as eigenfaces
    from foldwise.models.images.quantized import QuantizedImage as QuantizedImage
    from foldwise.models.images.quantizer import ImageQuantizer as ImageQuantizer
    from foldwise.models.images.quantizer import quantize as quantize
    from foldwise.models.images.segments import explained_variation as explained_variation
    from foldwise.models.images.segments import isoperimetric_quotient as isoperimetric_quotient
    from foldwise.models.images.superpixels import Superpixels as Superpixels
    from foldwise.models.images.superpixels import superpixels as superpixels
    from foldwise.models.impute import Imputed as Imputed
    from foldwise.models.impute import impute as impute
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
    from foldwise.prepare.build import prepare as prepare
    from foldwise.prepare.recipe import Recipe as Recipe
    from foldwise.report.look import Look as Look
    from foldwise.report.look import look as look
    from foldwise.report.of import report as report
    from foldwise.report.progress import progress as progress
    from foldwise.selection.agreement import adjusted_rand as adjusted_rand
    from foldwise.selection.agreement import completeness as completeness
    from foldwise.selection.agreement import homogeneity as homogeneity
    from foldwise.selection.agreement import normalized_mutual_info as normalized_mutual_info
    from foldwise.selection.agreement import v_measure as v_measure
    from foldwise.selection.choose_mixture import MixtureChoice as MixtureChoice
    from foldwise.selection.choose_mixture import choose_mixture as choose_mixture
    from foldwise.selection.clusters.choose import choose_clusters as choose_clusters
    from foldwise.selection.clusters.result import ClusterChoice as ClusterChoice
    from foldwise.selection.code_comparison import CodeComparison as CodeComparison
    from foldwise.selection.compare_codes import compare_codes as compare_codes
    from foldwise.selection.component_task import TaskScores as TaskScores
    from foldwise.selection.components import ComponentChoice as ComponentChoice
    from foldwise.selection.components import choose_components as choose_components
    from foldwise.selection.curve import InertiaCurve as InertiaCurve
    from foldwise.selection.curve import inertia_curve as inertia_curve
    from foldwise.selection.dip_test import DipTest as DipTest
    from foldwise.selection.dip_test import dip_test as dip_test
    from foldwise.selection.explore import Exploration as Exploration
    from foldwise.selection.explore import explore as explore
    from foldwise.selection.features import FeatureSelector as FeatureSelector
    from foldwise.selection.features import SelectionPath as SelectionPath
    from foldwise.selection.scores import ClusterScores as ClusterScores
    from foldwise.selection.scores import scores as scores
    from foldwise.selection.separation import calinski_harabasz as calinski_harabasz
    from foldwise.selection.separation import davies_bouldin as davies_bouldin
    from foldwise.selection.separation import dunn as dunn
    from foldwise.selection.silhouette import silhouette as silhouette
    from foldwise.selection.silhouette_result import Silhouette as Silhouette
    from foldwise.selection.squared_silhouette import squared_silhouette as squared_silhouette
    from foldwise.selection.stability import stability as stability
    from foldwise.selection.stability_result import Stability as Stability
    from foldwise.selection.votes import Vote as Vote
    from foldwise.store import load as load
    from foldwise.store import save as save
    from foldwise.store import save_onnx as save_onnx

__version__ = "0.1.0"

# Modules of the public names, imported on first use so that `import foldwise` stays fast.
_HOMES = {
    "data.scan": "scan",
    "fold": "fold",
    "fold.engine": "engine",
    "fold.manifest": "Manifest",
    "fold.outcome": "Outcome",
    "models.autoencoder": "Autoencoder LinearAutoencoder",
    "models.ensemble": "ClusterEnsemble Coassociation ConsensusChoice coassociation",
    "models.exploration": "ExplorationModel",
    "models.images.quantized": "QuantizedImage",
    "models.images.quantizer": "ImageQuantizer quantize",
    "models.images.eigenfaces": "Eigenfaces eigenfaces",
    "models.images.segments": "explained_variation isoperimetric_quotient",
    "models.images.superpixels": "Superpixels superpixels",
    "models.impute": "Imputed impute",
    "models.kernel": "KernelKMeans",
    "models.kmeans": "BisectingKMeans KMeans MiniBatchKMeans",
    "models.labelled_matrix": "LabelledMatrix",
    "models.likelihood": "Comparison FittedDistribution Goodness fit_distribution",
    "models.mixture": "GaussianMixture SoftKMeans",
    "models.pca": "PCA",
    "models.pca.rank": "RankChoice",
    "plot": "plot",
    "prepare": "prepare",
    "prepare.recipe": "Recipe",
    "report.look": "Look look",
    "report": "report",
    "report.progress": "progress",
    "selection.agreement": "adjusted_rand completeness homogeneity normalized_mutual_info v_measure",
    "selection.clusters.choose": "choose_clusters",
    "selection.clusters.result": "ClusterChoice",
    "selection.dip_test": "DipTest dip_test",
    "selection.code_comparison": "CodeComparison",
    "selection.compare_codes": "compare_codes",
    "selection.component_task": "TaskScores",
    "selection.components": "ComponentChoice choose_components",
    "selection.curve": "InertiaCurve inertia_curve",
    "selection.choose_mixture": "MixtureChoice choose_mixture",
    "selection.explore": "Exploration explore",
    "selection.features": "FeatureSelector SelectionPath",
    "selection.scores": "ClusterScores scores",
    "selection.separation": "calinski_harabasz davies_bouldin dunn",
    "selection.silhouette": "silhouette",
    "selection.silhouette_result": "Silhouette",
    "selection.squared_silhouette": "squared_silhouette",
    "selection.votes": "Vote",
    "selection.stability": "stability",
    "selection.stability_result": "Stability",
    "store": "load save save_onnx",
}
_PUBLIC = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(["__version__", *_PUBLIC])


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foldwise' has no attribute {name!r}")
    with forks.importing:
        home = importlib.import_module(_PUBLIC[name])
    # `fold` and `prepare` are both packages and functions: keep the package, which is callable, whatever the import order.
    value = home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
