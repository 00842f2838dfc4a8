"""Maximum likelihood: distributions fitted to one column of values."""

from foldwise.models.likelihood.fit import fit_distribution
from foldwise.models.likelihood.goodness import Goodness
from foldwise.models.likelihood.result import Comparison, FittedDistribution

__all__ = ["Comparison", "FittedDistribution", "Goodness", "fit_distribution"]
