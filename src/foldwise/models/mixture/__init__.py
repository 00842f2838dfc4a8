"""Soft assignments: mixtures of Gaussians by EM, and soft k-means."""

from foldwise.models.mixture.estimator import CollapsedWarning, GaussianMixture
from foldwise.models.mixture.soft_kmeans import SoftKMeans

__all__ = ["CollapsedWarning", "GaussianMixture", "SoftKMeans"]
