"""A small matrix with row and column names: easy to read, and easily converted to a data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.reportable import Reportable


@dataclass(frozen=True, repr=False)
class LabelledMatrix(Reportable):
    """Values with names; NumPy functions treat it as an array, and `frame()` returns a pandas DataFrame.

    >>> LabelledMatrix(np.array([[0.5, -0.25]]), ("height",), ("pc0", "pc1"))
               pc0      pc1
    height  0.5000  -0.2500
    >>> LabelledMatrix(np.array([[0.5, -0.25]]), ("height",), ("pc0", "pc1"))["height", "pc1"]
    -0.25
    """

    values: NDArray[Any]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, key: int | str | tuple[str, str]) -> Any:
        """A column by its name, a row by its number, or one value by the names of row and column."""
        if isinstance(key, (int, np.integer)):
            return self.values[key]
        if isinstance(key, str):
            return self.values[:, self.columns.index(key)]
        row, column = key
        return float(self.values[self.rows.index(row), self.columns.index(column)])

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""
        return self.values.shape

    def frame(self) -> Any:
        """The same as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.rows), columns=list(self.columns))

    def __repr__(self) -> str:
        shown_rows, shown_columns = self.rows[:60], self.columns[:8]
        cells = [[f"{value:.4f}" for value in row[: len(shown_columns)]] for row in self.values[: len(shown_rows)]]
        left = max((len(name) for name in shown_rows), default=0)
        widths = [max([len(name), *(len(row[j]) for row in cells)]) for j, name in enumerate(shown_columns)]
        lines = [" " * left + "".join(f"  {name:>{w}}" for name, w in zip(shown_columns, widths, strict=True))]
        for name, row in zip(shown_rows, cells, strict=True):
            lines.append(f"{name:<{left}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True)))
        if len(shown_rows) < len(self.rows) or len(shown_columns) < len(self.columns):
            lines.append(f"[{len(self.rows)} rows x {len(self.columns)} columns]")
        return "\n".join(lines)
