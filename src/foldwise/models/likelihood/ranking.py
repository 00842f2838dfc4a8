"""How families are put in order: criteria that are fair to limits of the support, to few values and to whole numbers."""

from __future__ import annotations

import math
from typing import Any

from foldwise.models.likelihood.families import FAMILIES


def score(fit: Any, criterion: str, log_likelihood: float) -> float:
    """Twice the (negative) log-likelihood with the penalty of a criterion, for comparing families; lower is better.

    Both criteria are derived for parameters that are known to within one over the root of n. A limit of the support that was
    estimated is known to within one over n: what the fit gains from it by chance, and what new values lose, is twice as much,
    and so is the volume of parameters that BIC approximates. It counts as two (`Family.counted`). For few values AIC has
    the correction of Hurvich and Tsai (1989).
    """
    k, n = len(fit.free), fit.n
    counted = FAMILIES[fit.family].counted(fit.parameters, fit.free)
    if criterion == "bic":
        return counted * math.log(n) - 2.0 * log_likelihood
    return corrected(k, n) + 2.0 * (counted - k) - 2.0 * log_likelihood


def corrected(k: int, n: float) -> float:
    """The penalty of the corrected AIC for k parameters of n values; infinite where there are too few values for so many.

    >>> round(corrected(2, 10), 3), corrected(2, 3)
    (5.714, inf)
    """
    return 2.0 * k * n / (n - k - 1.0) if n > k + 1.0 else math.inf


def legend(criterion: str, whole: bool) -> str:
    """What the score of a table is."""
    text = (
        "ranked by score: AIC, corrected for few values" if criterion == "aic" else "ranked by score: BIC"
    ) + ", in which a limit of the support that was estimated counts as up to two parameters"
    if whole:
        text += "; all values are whole numbers, so densities count by the probability of half a unit to either side"
    return text
