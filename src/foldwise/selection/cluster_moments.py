"""The moments of each cluster of labelled rows, in a scale in which squares stay in the range of float64."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.stats.extent import Extent
from foldwise.stats.group_moments import GroupMoments
from foldwise.stats.observed_extent import ObservedExtent

FEWER_LABELS = "there are fewer labels than rows"


def grouped(
    passes: Passes, labels: NDArray[np.integer], n_groups: int, *, observed: bool = False
) -> tuple[GroupMoments, float]:
    """The moments of each cluster, in one pass, and the power of two by which rows were multiplied.

    The factor is 1 unless squares would leave the range of float64, which takes two more passes. If `observed`, cells may be
    missing, and rows with the label -1 are in no cluster.
    """
    task = partial(_moments, n_groups=n_groups, observed=observed)
    groups, scale = passes.fold(task, beside=labels), 1.0
    if not _in_range(groups):
        scale = _scale_of(passes, observed=observed)
        if scale != 1.0:
            groups = passes.fold(partial(task, scale=scale), beside=labels)
    return groups, scale


def has_gaps(passes: Passes) -> bool:
    """Whether a cell is missing: NaN in rows that may have it."""
    return not passes.source.sparse and any(passes.each(_gaps))


def blank_rows(passes: Passes) -> NDArray[np.bool_]:
    """Which rows have nothing observed."""
    return np.concatenate(passes.each(_blank))


def without_blank(passes: Passes, labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """The labels, with -1 for rows of which nothing is observed."""
    blank = blank_rows(passes)
    check_row_count(labels, len(blank))
    if len(labels) < len(blank):
        raise DataError(FEWER_LABELS, advice="Pass one label per row")
    return np.where(blank, -1, labels).astype(np.int32)


def _gaps(block: Block) -> bool:
    return bool(np.isnan(block.dense()).any())


def _blank(block: Block) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(block.dense()).all(axis=1))


def check_row_count(labels: NDArray[np.integer], rows: int) -> None:
    """Refuse more labels than rows; fewer are noticed during the first pass."""
    if len(labels) > rows:
        raise DataError(f"there are {len(labels)} labels, but {rows} rows", advice="Pass one label per row")


def _moments(
    block: Block, labels: NDArray[np.int32], *, n_groups: int, observed: bool, scale: float = 1.0
) -> GroupMoments:
    if len(labels) < block.n_rows:
        raise DataError(FEWER_LABELS, advice="Pass one label per row")
    return (GroupMoments.of_observed if observed else GroupMoments.of)(block, labels, n_groups, scale)


def _in_range(groups: GroupMoments) -> bool:
    """Whether squares neither overflow nor underflow float64; those of equal rows are 0, which is fine."""
    means = groups.mean[groups.weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.square(means - means[:1]).max(initial=0.0)
    spread = groups.squares.max(initial=0.0)
    return bool(np.isfinite(spread) and np.isfinite(apart) and max(spread, apart) > 1e-200)


def _scale_of(passes: Passes, *, observed: bool) -> float:
    """A power of two that scales the range of the data to about 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        extent = passes.fold(ObservedExtent.of) if observed else passes.fold(Extent.of)
    reach = float((extent.high / 2 - extent.low / 2).max(initial=0.0))
    return 1.0 if reach == 0.0 else 2.0 ** max(-1000, min(-math.frexp(reach)[1], 1000))


def row_weights(passes: Passes) -> Floats | None:
    """The weight of each row; None if no row has any."""
    found = passes.each(_block_weights)
    if all(part is None for part, _ in found):
        return None
    return np.concatenate([np.ones(n) if part is None else part for part, n in found])


def repetitions(passes: Passes) -> Floats:
    """The weight of each row: 1 where none is given. It may be written to."""
    return np.concatenate([np.ones(n) if part is None else part for part, n in passes.each(_block_weights)])


def _block_weights(block: Block) -> tuple[Floats | None, int]:
    return block.weights, block.n_rows
