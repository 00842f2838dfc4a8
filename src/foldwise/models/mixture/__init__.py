"""Soft assignments: mixtures of Gaussians by EM, and soft k-means."""

from foldwise.models.mixture.estimator import CollapsedWarning, GaussianMixture

__all__ = ["CollapsedWarning", "GaussianMixture"]
