"""The moments of each cluster of labelled rows, in a scale in which squares stay in the range of float64."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.stats.extent import Extent
from foldwise.stats.group_moments import GroupMoments


def grouped(passes: Passes, labels: NDArray[np.integer], n_groups: int) -> tuple[GroupMoments, float]:
    """The moments of each cluster, in one pass, and the power of two by which rows were multiplied.

    The factor is 1 unless squares would leave the range of float64, which takes two more passes.
    """
    groups, scale = passes.fold(partial(_moments, n_groups=n_groups), beside=labels), 1.0
    if not _in_range(groups):
        scale = _scale_of(passes)
        if scale != 1.0:
            groups = passes.fold(partial(_moments, n_groups=n_groups, scale=scale), beside=labels)
    return groups, scale


def check_row_count(labels: NDArray[np.integer], rows: int) -> None:
    """Refuse more labels than rows; fewer are noticed during the first pass."""
    if len(labels) > rows:
        raise DataError(f"there are {len(labels)} labels, but {rows} rows", advice="Pass one label per row")


def _moments(block: Block, labels: NDArray[np.int32], *, n_groups: int, scale: float = 1.0) -> GroupMoments:
    if len(labels) < block.n_rows:
        raise DataError("there are fewer labels than rows", advice="Pass one label per row")
    return GroupMoments.of(block, labels, n_groups, scale)


def _in_range(groups: GroupMoments) -> bool:
    """Whether squares neither overflow nor underflow float64; those of equal rows are 0, which is fine."""
    means = groups.mean[groups.weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.square(means - means[:1]).max(initial=0.0)
    spread = groups.squares.max(initial=0.0)
    return bool(np.isfinite(spread) and np.isfinite(apart) and max(spread, apart) > 1e-200)


def _scale_of(passes: Passes) -> float:
    """A power of two that scales the range of the data to about 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        extent = passes.fold(Extent.of)
    reach = float((extent.high / 2 - extent.low / 2).max(initial=0.0))
    return 1.0 if reach == 0.0 else 2.0 ** max(-1000, min(-math.frexp(reach)[1], 1000))
