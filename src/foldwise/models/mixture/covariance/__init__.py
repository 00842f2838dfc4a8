"""The shapes that components can have, one class each. A new one is written in a file of its own and registered here."""

from foldwise.models.mixture.covariance.base import CovarianceType, TooFewColumnsError
from foldwise.models.mixture.covariance.diag import Diag
from foldwise.models.mixture.covariance.diag_tied import DiagTied
from foldwise.models.mixture.covariance.full import Full
from foldwise.models.mixture.covariance.ppca import PPCA
from foldwise.models.mixture.covariance.spherical import Spherical
from foldwise.models.mixture.covariance.tied import Tied

__all__ = ["COVARIANCE_TYPES", "CovarianceType", "TooFewColumnsError", "complexity", "simpler_types"]

COVARIANCE_TYPES: dict[str, type[CovarianceType]] = {
    kind.name: kind for kind in (Full, Diag, Tied, DiagTied, Spherical, PPCA)
}


def simpler_types(name: str) -> tuple[str, ...]:
    """The types that are special cases of this one, whose results it can start from."""
    return tuple(other for other, kind in COVARIANCE_TYPES.items() if name in kind.special_case_of)


def complexity(name: str) -> int:
    """How long the longest chain of special cases below a type is: simpler types have less."""
    return max((complexity(simpler) + 1 for simpler in simpler_types(name)), default=0)
