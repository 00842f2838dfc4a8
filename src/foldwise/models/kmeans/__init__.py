"""K-means and its relatives."""

from foldwise.models.kmeans.estimator import KMeans

__all__ = ["KMeans"]
