"""Principal components."""

from foldwise.models.pca.estimator import PCA

__all__ = ["PCA"]
