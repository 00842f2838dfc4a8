"""All solvers. A new one is a class in a file of its own, listed here."""

from __future__ import annotations

from foldwise.models.pca.covariance import CovarianceEigh
from foldwise.models.pca.gram import Gram
from foldwise.models.pca.krylov import Krylov
from foldwise.models.pca.power import Power
from foldwise.models.pca.solver import Solver
from foldwise.models.pca.svd import FullSVD

SOLVERS: dict[str, Solver] = {
    solver.name: solver for solver in (FullSVD(), CovarianceEigh(), Gram(), Krylov(), Power())
}
BY_PARAMETER = {name: solver for solver in SOLVERS.values() for name in solver.names}
