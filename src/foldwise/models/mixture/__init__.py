"""Soft assignments: mixtures of Gaussians by EM, and soft k-means."""

from foldwise.models.mixture.estimator import CollapsedWarning, GaussianMixture, TooFewRowsError
from foldwise.models.mixture.soft_kmeans import SoftKMeans
from foldwise.models.mixture.starts import MixtureStart

__all__ = ["CollapsedWarning", "GaussianMixture", "MixtureStart", "SoftKMeans", "TooFewRowsError"]
