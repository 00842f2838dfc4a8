"""K-means and its variants."""

from foldwise.models.kmeans.bisecting import BisectingKMeans
from foldwise.models.kmeans.estimator import KMeans
from foldwise.models.kmeans.minibatch import MiniBatchKMeans

__all__ = ["BisectingKMeans", "KMeans", "MiniBatchKMeans"]
