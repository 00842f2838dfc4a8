"""Whether columns are standardised before rows are compared, and how rows are compared, decided from a sample with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Floats

ALIKE = 5.0  # times the smallest spread: up to this, columns are taken for measurements of one kind
_SAME_RANGE = 0.5  # share of the columns that reach the same lowest and highest value
_SHARE_OF_RANGE = 0.95


@dataclass(frozen=True)
class Scaling:
    """What was decided, and why, in a sentence without a full stop."""

    scale: bool
    metric: str
    reason: str


def decide_scaling(
    rows: Floats | None, names: tuple[str, ...], scale: bool | str, metric: str, *, categories: bool
) -> Scaling:
    """The decision for dense rows (NaN: missing), or for sparse ones if `rows` is None; what was asked for is kept.

    >>> decide_scaling(np.array([[1.0, 100.0], [2.0, 300.0]]), ("a", "b"), "auto", "auto", categories=False)
    Scaling(scale=True, metric='euclidean', reason='columns were standardised, as their spreads differ 200-fold')
    """
    if metric == "auto":
        metric = "cosine" if rows is None else "euclidean"
    how = "; rows are compared by direction (cosine)" if metric == "cosine" else ""
    if scale != "auto":
        return Scaling(
            bool(scale), metric, f"columns were {'standardised' if scale else 'used as they are'}, as asked{how}"
        )
    if categories:
        return Scaling(True, metric, f"columns were standardised, as categories are used together with numbers{how}")
    if rows is None:
        return Scaling(False, metric, f"columns were used as they are, as most cells are zero{how}")
    found = _spread(rows)
    if found is None:
        return Scaling(False, metric, f"columns were used as they are{how}")
    ratio, same_range = found
    if metric == "cosine" or same_range:
        why = "as all have the same range" if same_range else "as rows are compared by direction"
        return Scaling(False, metric, f"columns were used as they are, {why}{how}")
    times = f"{ratio:,.0f}-fold" if ratio >= 10 else f"{ratio:.1f}-fold"
    if ratio <= ALIKE:
        alike = "there is one" if len(names) == 1 else f"their spreads differ only {times}"
        return Scaling(False, metric, f"columns were used as they are, as {alike}{how}")
    return Scaling(True, metric, f"columns were standardised, as their spreads differ {times}{how}")


def _spread(rows: Any) -> tuple[float, bool] | None:
    """The ratio of the largest to the smallest standard deviation, and whether most columns have the same range."""
    known = rows[:, np.isfinite(rows).any(axis=0)].astype(np.float64)
    if known.size == 0:
        return None
    low, high = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    varies = high > low
    if not varies.any():
        return None
    known, low, high = known[:, varies], low[varies], high[varies]
    size = np.nanmax(np.abs(known))
    deviations = np.nanstd(known / size, axis=0) * size
    ratio = float(deviations.max() / max(float(deviations.min()), 1e-300))
    whole = (low >= low.min()) & (high >= high.max() - (1 - _SHARE_OF_RANGE) * (high.max() - low.min()))
    whole &= low <= low.min() + (1 - _SHARE_OF_RANGE) * (high.max() - low.min())
    return ratio, bool(len(low) > 2 and whole.mean() >= _SAME_RANGE)
