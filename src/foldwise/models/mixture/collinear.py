"""Columns that are linear combinations of others: in those directions a density is as high as its floor allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.missing import drop_incomplete, fill_missing
from foldwise.errors import FoldwiseWarning, warn
from foldwise.fold.passes import Passes
from foldwise.models.mixture import gaps
from foldwise.stats.moments import Moments
from foldwise.stats.observed import ObservedColumns

# The share of a column's variance that the columns before it leave unexplained, below which it is a combination of them: well
# above the rounding of such rows, and above the floor of the variances.
_UNEXPLAINED = {"float64": 1e-8, "float32": 1e-5}

MANY_COLUMNS = 1000  # beyond which work on matrices of all columns takes minutes


class CollinearColumnsWarning(FoldwiseWarning):
    """Some columns are linear combinations of others."""


@dataclass(frozen=True)
class Collinear:
    """The columns that are combinations of columns before them, and whether there are simply too few rows to tell."""

    columns: tuple[int, ...] = ()
    few_rows: bool = False
    rows: int = 0
    n_columns: int = 0

    def __bool__(self) -> bool:
        return bool(self.columns)

    def message(self, names: Sequence[str] | None) -> str:
        """What a user should know and do."""
        if self.few_rows:
            return (
                f"{self.rows:,} rows are too few for covariances of {self.n_columns:,} columns: full and tied densities are as "
                "high as reg_covar allows and are not compared with others. Use fw.PCA first, or covariance types diag and "
                "spherical."
            )
        shown = ", ".join(names[j] if names is not None else f"x{j}" for j in self.columns[:5])
        more = ", ..." if len(self.columns) > 5 else ""
        return (
            f"{len(self.columns)} column(s) are linear combinations of others, or nearly so ({shown}{more}): they say nothing "
            "new, and full and tied densities there are as high as reg_covar allows. Numbers of components can be compared, "
            "but not covariance types. Leave them out."
        )

    def warn(self, names: Sequence[str] | None) -> None:
        """Warn, if there is reason to."""
        if self:
            warn(self.message(names), CollinearColumnsWarning)


def collinear_columns(passes: Passes, observed: ObservedColumns | None = None, missing: str = "error") -> Collinear:
    """Found in one pass, by regressing every column on those before it.

    Where cells are missing, what is `observed` is needed, and what to do about them: "drop", "mean" or "model".
    """
    rows, d = passes.source.n_rows, passes.source.n_columns
    if rows is not None and rows <= d and d > MANY_COLUMNS:  # which needs no proof, and one would take long
        return Collinear((d - 1,), few_rows=True, rows=rows, n_columns=d)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if observed is not None and missing == "model":
            scatter, rows = gaps.covariance_of_all(passes, observed), observed.rows - observed.blank
        else:
            if observed is not None:
                change = drop_incomplete if missing == "drop" else fill_missing
                passes = passes.over(change(passes.source, observed.mean))
            moments = passes.fold(Moments.of)
            upper, rows = np.triu(moments.scatter), moments.rows
            scatter = upper + np.triu(upper, 1).T
        deviation = np.sqrt(np.diagonal(scatter))
        correlation = scatter / np.outer(deviation, deviation)
    varies = np.flatnonzero(deviation > 0)  # the others are constant, which is told elsewhere
    correlation = correlation[np.ix_(varies, varies)]
    if not np.isfinite(correlation).all():
        return Collinear()
    found = _dependent(correlation, _UNEXPLAINED[passes.source.dtype.name])
    few = rows <= len(varies)
    return Collinear(tuple(int(varies[j]) for j in found), few and bool(found), rows, len(varies))


def _dependent(correlation: Floats, least: float) -> list[int]:
    """A Cholesky factorisation that passes over columns of which less than `least` is left."""
    left, dependent = correlation.copy(), []
    for j in range(len(left)):
        if left[j, j] < least:
            dependent.append(j)
            continue
        column = left[j:, j] / np.sqrt(left[j, j])
        left[j:, j:] -= np.outer(column, column)
    return dependent
