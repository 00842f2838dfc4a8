"""How a fit ended, as a value; one place turns it into a warning."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from foldwise.errors import NotFinishedWarning, warn


class Reason(StrEnum):
    """Why a fit stopped."""

    CONVERGED = "converged"
    CAPPED = "capped"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"


_ADVICE = {
    Reason.CAPPED: "raise max_iter (with a checkpoint it resumes), or loosen tol if the figures in trace_ are good enough",
    Reason.OUT_OF_TIME: "raise time_budget; a fit with a checkpoint file can be resumed",
    Reason.INTERRUPTED: "the best model so far was kept; a fit with a checkpoint file can be resumed",
}


@dataclass(frozen=True)
class Outcome:
    """Why the fit stopped, after how many steps and seconds, and the figures of every step."""

    reason: Reason
    steps: int
    seconds: float
    trace: tuple[dict[str, float], ...] = field(default=(), repr=False)

    @property
    def converged(self) -> bool:
        """Whether the fit converged."""
        return self.reason is Reason.CONVERGED

    def warn(self, what: str, category: type[NotFinishedWarning] = NotFinishedWarning) -> None:
        """Warn, once, if the fit did not finish."""
        if not self.converged:
            message = (
                f"{what} stopped before it converged ({self.reason} after {self.steps} steps): {_ADVICE[self.reason]}."
            )
            warn(message, category)
