"""Colours of rows: by cluster, by category, or along a scale of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import ParameterError
from foldwise.plot.axes import BLUE, MUTED, PALETTE, ink_of, legend

_MOST_NAMES = 20
_FEW = 12  # different whole numbers that are groups rather than amounts


@dataclass(frozen=True)
class Colouring:
    """What each row has (None: nothing), and what that is called."""

    values: NDArray[Any] | None = None
    name: str = ""

    @classmethod
    def of(cls, color: Any, X: Any, n_rows: int) -> Colouring:
        """From `color`: None, values for each row, or the name of a column of the frame `X`."""
        if color is None:
            return cls()
        name = ""
        if isinstance(color, str):
            try:
                color, name = X[color], color
            except (TypeError, KeyError, IndexError, ValueError):
                raise ParameterError(
                    f"color={color!r}: X has no such column. Give X as a data frame that has it, or one value for each row."
                ) from None
        name = str(getattr(color, "name", None) or name)
        values = np.asarray(color)
        if values.shape != (n_rows,):
            raise ParameterError(
                f"color has the shape {values.shape}, but there are {n_rows:,} rows: give one for each."
            )
        return cls(values, name)

    def some(self, rows: Any) -> Colouring:
        """Those of some rows."""
        return self if self.values is None else Colouring(self.values[rows], self.name)

    def draw(self, ax: Any, x: Any, y: Any, **look: Any) -> None:
        """Draw the rows, with a legend or a scale."""
        values = self.values
        if values is None:
            ax.scatter(x, y, color=BLUE, **look)
            return
        if values.dtype.kind == "f" and not _are_groups(values):
            self._amounts(ax, x, y, values, look)
            return
        if values.dtype.kind in "iuf" and not _are_groups(values):
            self._amounts(ax, x, y, values.astype(np.float64), look)
            return
        self._groups(ax, x, y, values, look)

    def _amounts(self, ax: Any, x: Any, y: Any, values: Any, look: dict[str, Any]) -> None:
        known = np.isfinite(values)
        ax.scatter(x[~known], y[~known], color=MUTED, **look)
        shown = ax.scatter(x[known], y[known], c=values[known], cmap="viridis", **look)
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.8, label=self.name)
        bar.solids.set_alpha(1.0)
        bar.outline.set_visible(False)

    def _groups(self, ax: Any, x: Any, y: Any, values: Any, look: dict[str, Any]) -> None:
        if values.dtype.kind in "iuf":
            names = [int(one) for one in np.unique(values[np.isfinite(values)] if values.dtype.kind == "f" else values)]
            inks, groups = [ink_of(one) for one in names], [values == one for one in names]
            shown = ["none" if one < 0 else str(one) for one in names]
        else:
            text = np.array(["missing" if one is None or one != one else str(one) for one in values], dtype=object)
            shown = sorted(set(text) - {"missing"}) + ["missing"] * ("missing" in text)
            groups = [text == one for one in shown]
            inks = [MUTED if one == "missing" else PALETTE[i % len(PALETTE)] for i, one in enumerate(shown)]
        for inside, ink in zip(groups, inks, strict=True):
            ax.scatter(x[inside], y[inside], color=ink, **look)
        kept = slice(0, _MOST_NAMES)
        more = len(shown) - _MOST_NAMES
        legend(
            ax,
            [*shown[kept], *([f"and {more} more"] if more > 0 else [])],
            [*inks[kept], *(["none"] * (more > 0))],
            self.name,
        )


def _are_groups(values: Any) -> bool:
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    different = np.unique(known)
    if values.dtype.kind == "f" and not (different == np.round(different)).all():
        return False
    return len(different) <= _FEW or (len(different) <= 60 and different.min() in (-1, 0) and different.max() < 60)
