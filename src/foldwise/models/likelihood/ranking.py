"""How families are put in order: criteria that are fair to limits of the support, to few values and to whole numbers."""

from __future__ import annotations

import math
from typing import Any

from foldwise.models.likelihood.families import FAMILIES


def score(fit: Any, criterion: str, log_likelihood: float) -> float:
    """Twice the (negative) log-likelihood with the penalty of a criterion, for comparing families; lower is better.

    AIC estimates what a fit loses on new values. It does so for parameters that are known to within one over the root of n; a
    limit of the support that was estimated is known to within one over n and gains twice as much by chance, so that it counts
    as two (`Family.counted`). With the same count BIC approximates the marginal likelihood. For few values AIC is corrected as
    by Hurvich and Tsai (1989).
    """
    k, n = FAMILIES[fit.family].counted(fit.parameters, fit.free), fit.n
    if criterion == "bic":
        return k * math.log(n) - 2.0 * log_likelihood
    return penalty(k, n) - 2.0 * log_likelihood


def penalty(k: float, n: float) -> float:
    """Of the corrected AIC, for k parameters of n values; infinite where there are too few values for so many.

    >>> round(penalty(2, 10), 3), penalty(2, 3)
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
