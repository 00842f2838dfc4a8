"""Many images of one size brought to another: averaged where they shrink, interpolated where they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats

_LUMA = np.array([0.299, 0.587, 0.114])  # what Pillow's grey is made of


def resample(images: NDArray[Any], shape: tuple[int, ...]) -> Floats:
    """Images (n, height, width[, channels]) as ones of `shape`: grey becomes equal channels, and colours become grey.

    >>> resample(np.array([[[0.0, 2.0], [4.0, 6.0]]]), (1, 1)).tolist()
    [[[3.0]]]
    """
    values = np.asarray(images, np.float64)
    if values.ndim == 4 and values.shape[3] in (2, 4):  # opacity plays no part
        values = values[..., :-1]
    if values.ndim == 4 and (len(shape) == 2 or values.shape[3] != shape[2]):
        values = values @ _LUMA if values.shape[3] == 3 else values.mean(axis=3)
    down, across = _weights(values.shape[1], shape[0]), _weights(values.shape[2], shape[1])
    if values.ndim == 4:
        made = np.einsum("ah,nhwc,bw->nabc", down, values, across, optimize=True)
    else:
        made = down @ values @ across.T
        if len(shape) == 3:
            made = np.repeat(made[..., None], shape[2], axis=3)
    return np.asarray(made)


def _weights(before: int, after: int) -> Floats:
    """How much each old pixel of a line counts for each new one: a triangle as wide as the larger of the two pixels."""
    if before == after:
        return np.eye(before)
    wide = max(1.0, before / after)
    centres = (np.arange(after) + 0.5) * before / after
    gaps = np.abs(centres[:, None] - (np.arange(before) + 0.5)) / wide
    found = np.maximum(0.0, 1.0 - gaps)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
