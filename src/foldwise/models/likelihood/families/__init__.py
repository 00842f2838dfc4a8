"""The families of distributions that can be fitted, by name."""

from __future__ import annotations

from foldwise.models.likelihood.families.base import Family
from foldwise.models.likelihood.families.beta import Beta
from foldwise.models.likelihood.families.bounded_support import Pareto, ShiftedExponential, Uniform
from foldwise.models.likelihood.families.counts import Bernoulli, Binomial, Geometric, Poisson
from foldwise.models.likelihood.families.gamma import Gamma
from foldwise.models.likelihood.families.location import Cauchy, Gumbel, Laplace, Logistic, Weibull
from foldwise.models.likelihood.families.negative_binomial import NegativeBinomial
from foldwise.models.likelihood.families.normal import Lognormal, Normal
from foldwise.models.likelihood.families.positive import Exponential, InverseGaussian, Rayleigh
from foldwise.models.likelihood.families.shifted import ShiftedGamma, ShiftedLognormal, ShiftedWeibull
from foldwise.models.likelihood.families.student import StudentT

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Normal(),
        Logistic(),
        Laplace(),
        Cauchy(),
        StudentT(),
        Gumbel(),
        Uniform(),
        Exponential(),
        Gamma(),
        Weibull(),
        Lognormal(),
        InverseGaussian(),
        Rayleigh(),
        Pareto(),
        Beta(),
        ShiftedExponential(),
        ShiftedGamma(),
        ShiftedWeibull(),
        ShiftedLognormal(),
        Bernoulli(),
        Binomial(),
        Geometric(),
        Poisson(),
        NegativeBinomial(),
    )
}
