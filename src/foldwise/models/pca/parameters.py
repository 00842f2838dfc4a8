"""What each parameter of PCA may be."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import Interval, RealNotInt

from foldwise.models.parameters import BOOLEAN, IGNORED, Parameter, number, one_of, shared, whole, words
from foldwise.models.pca.rank import RULES
from foldwise.models.pca.solvers import BY_PARAMETER

PARAMETERS: dict[str, Parameter] = {
    "n_components": Parameter(
        (
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            words(*RULES),
            None,
        )
    ),
    "svd_solver": one_of("auto", *BY_PARAMETER),
    "whiten": BOOLEAN,
    "ddof": number(0, None, "left", None),
    "max_iter": whole(1, None),
    **shared("tol", "random_state", "scale", "missing", "prepare", "time_budget", "checkpoint", "n_threads"),
    # Accepted for scikit-learn's sake: X is never changed, and the Krylov solver needs no such settings.
    "copy": IGNORED,
    "iterated_power": Parameter((words("auto"), Interval(Integral, 0, None, closed="left")), affects_result=False),
    "n_oversamples": Parameter((Interval(Integral, 1, None, closed="left"),), affects_result=False),
    "power_iteration_normalizer": one_of("auto", "QR", "LU", "none", affects_result=False),
}
