"""Maximum likelihood: distributions fitted to one column of values."""

from foldwise.models.likelihood.fit import fit_distribution
from foldwise.models.likelihood.result import Comparison, FittedDistribution

__all__ = ["Comparison", "FittedDistribution", "fit_distribution"]
