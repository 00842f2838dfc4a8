"""The scatter matrix times a few vectors, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.stats.column_moments import ColumnMoments


@dataclass(frozen=True)
class ScatterProduct:
    """Z'W Z V for the rows Z = (X - centre) * factor: one step of a Krylov method is one fold of this."""

    value: Floats

    @classmethod
    def of(
        cls, block: Block, *, basis: Floats, centre: Floats, factor: Floats | None = None, wide: bool = True
    ) -> ScatterProduct:
        """The product over a block's rows; `wide` forms products of float32 rows in float64."""
        return cls(block.scatter_times(basis, centre, factor, wide=wide))

    def merge(self, other: ScatterProduct) -> ScatterProduct:
        """The product over both sets of rows."""
        return ScatterProduct(np.add(self.value, other.value))


@dataclass(frozen=True)
class ProductAndColumns:
    """The same product, and the moments of the columns: rows are read once for both."""

    value: Floats
    columns: ColumnMoments

    @classmethod
    def of(
        cls, block: Block, *, basis: Floats, centre: Floats, factor: Floats | None = None, wide: bool = True
    ) -> ProductAndColumns:
        """Both over a block's rows; nothing is known of these yet, so that they are checked."""
        value, (weight, mean, squares) = block.scatter_and_moments(basis, centre, factor, wide=wide)
        return cls(value, ColumnMoments(weight, block.rows_with_weight, mean, squares))

    def merge(self, other: ProductAndColumns) -> ProductAndColumns:
        """Both over both sets of rows."""
        return ProductAndColumns(np.add(self.value, other.value), self.columns.merge(other.columns))


@dataclass(frozen=True)
class ProductAndForm:
    """The same product with the precision of the rows, and V'Z'W Z V in float64: the variances along V to all digits."""

    value: Floats
    form: Floats

    @classmethod
    def of(cls, block: Block, *, basis: Floats, centre: Floats, factor: Floats | None = None) -> ProductAndForm:
        """Both over a block's rows, which are dense."""
        return cls(*block.scatter_form(basis, centre, factor))

    def merge(self, other: ProductAndForm) -> ProductAndForm:
        """Both over both sets of rows."""
        return ProductAndForm(np.add(self.value, other.value), np.add(self.form, other.form))
