"""What is told of every row: its cluster, and how far it is from that cluster's centre."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.source import Source
from foldwise.models.base import EachRow


def each_row(source: Source, targets: Any, label: Callable[[Any, Any], NDArray[np.int32]]) -> EachRow:
    """Records of cluster and distance for the rows of `source`, which are compared with `targets`."""
    dtype = np.dtype([("cluster", np.int32), ("distance", source.dtype)])

    def of(block: Block) -> NDArray[Any]:
        told = np.empty(block.n_rows, dtype)
        labels, squares = label(block.rows, targets), np.empty(block.n_rows)
        targets.residuals(block.rows, None, labels, squares)
        told["cluster"], told["distance"] = labels, np.sqrt(squares) / targets.frame.scale
        return told

    return EachRow(source, ("cluster", "distance"), dtype, of)
