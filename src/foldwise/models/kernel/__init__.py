"""K-means in the feature space of a kernel."""

from foldwise.models.kernel.estimator import KernelKMeans

__all__ = ["KernelKMeans"]
