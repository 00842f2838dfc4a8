"""The scatter matrix times a few vectors, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass

from foldwise.data.block import Block, Floats


@dataclass(frozen=True)
class ScatterProduct:
    """Z'W Z V for the rows Z = (X - centre) / scale: one step of a Krylov method is one fold of this."""

    value: Floats

    @classmethod
    def of(cls, block: Block, *, basis: Floats, centre: Floats, scale: Floats | None = None) -> ScatterProduct:
        """The product over a block's rows."""
        codes = block.times(basis, centre, scale)
        if block.weights is not None:
            codes *= block.weights[:, None]
        return cls(block.transposed_times(codes, centre, scale))

    def merge(self, other: ScatterProduct) -> ScatterProduct:
        """The product over both sets of rows."""
        return ScatterProduct(self.value + other.value)
