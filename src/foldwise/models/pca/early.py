"""Cheaper ways to multiply with the matrix in the first steps of Krylov, before the last one certifies what was found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.pca import sparse_start
from foldwise.models.pca.lanczos import orthonormal
from foldwise.models.pca.row_side import RowSide, shared_out
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.scatter_product import ProductAndForm, ScatterProduct


class Early(Protocol):
    """A cheaper way to multiply with the matrix, or with one that has the same eigenvalues, in the first steps."""

    @property
    def length(self) -> int:
        """How many rows that matrix has."""
        ...

    def times(self, block: Floats) -> Floats:
        """It times a block."""
        ...

    def directions(self, vectors: Floats) -> Floats:
        """Orthonormal directions of columns that its eigenvectors stand for."""
        ...

    def over_columns(self, block: Floats) -> Floats:
        """The scatter matrix of the columns times a block, in float64."""
        ...


@dataclass(frozen=True)
class InFloat32:
    """The scatter matrix itself, by products in float32."""

    passes: Passes
    product: partial[ScatterProduct]

    @property
    def length(self) -> int:
        """The number of columns."""
        return self.passes.source.n_columns

    def times(self, block: Floats) -> Floats:
        """The product in float32."""
        return folded(self.passes, partial(self.product, wide=False), block)

    def directions(self, vectors: Floats) -> Floats:
        """The vectors themselves, orthonormal to all digits."""
        return orthonormal(vectors, self.passes.n_threads)

    def over_columns(self, block: Floats) -> Floats:
        """The product in float64."""
        return folded(self.passes, self.product, block)

    def with_form(self, block: Floats) -> ProductAndForm:
        """The product in float32 and its form in float64: half the time of a product in float64."""
        task = partial(ProductAndForm.of, basis=np.ascontiguousarray(block), **self.product.keywords)
        return self.passes.fold(task)


def folded(passes: Passes, product: partial[ScatterProduct], block: Floats) -> Floats:
    """The scatter matrix of the columns times a block."""
    strips = shared_out(passes, block) if passes.source.sparse else [np.ascontiguousarray(block)]
    if len(strips) == 1:
        return passes.fold(partial(product, basis=strips[0])).value
    return np.hstack([each.value for each in passes.fold_each([partial(product, basis=strip) for strip in strips])])


def early_way(
    passes: Passes, columns: ColumnMoments, product: partial[ScatterProduct], *, narrow: bool
) -> Early | None:
    """The way that suits these rows; `narrow`: float32 holds them."""
    if RowSide.worth_it(passes) and not sparse_start.is_wide(passes):
        return RowSide.of(passes, columns.centre, product.keywords["factor"])
    return InFloat32(passes, product) if narrow else None
