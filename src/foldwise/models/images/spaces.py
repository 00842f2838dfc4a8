"""Spaces in which colours are compared: what a squared distance between two of them means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.images.colour import linear, rgb_to_lab

# Ottosson 2020, "A perceptual color space for image processing".
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def rgb_to_oklab(rgb: NDArray[Any]) -> NDArray[np.float64]:
    """Oklab (lightness from 0 to 1) of sRGB values from 0 to 1, in the last axis.

    >>> rgb_to_oklab(np.array([1.0, 0.0, 0.0])).round(3)
    array([0.628, 0.225, 0.126])
    """
    found: NDArray[np.float64] = np.cbrt(linear(rgb) @ _TO_CONES.T) @ _TO_OKLAB.T
    return found


def _balanced(rgb: NDArray[Any]) -> NDArray[np.float64]:
    """What a screen shows and what the eye sees: one step of 255 in sRGB counts as much as one unit of CIE Lab."""
    return np.concatenate([255.0 * rgb, rgb_to_lab(rgb)], axis=-1)


# By name: the coordinates of sRGB values from 0 to 1, and how much the whole way from transparent to opaque counts.
SPACES: dict[str, tuple[Callable[[NDArray[Any]], NDArray[np.float64]], float]] = {
    "balanced": (_balanced, 255.0),
    "rgb": (lambda rgb: 255.0 * np.asarray(rgb, np.float64), 255.0),
    "lab": (rgb_to_lab, 100.0),
    "oklab": (lambda rgb: 100.0 * rgb_to_oklab(rgb), 100.0),
}


def coordinates(colours: NDArray[Any], space: str) -> NDArray[np.float64]:
    """Where colours lie in a space: RGB or RGBA from 0 to 255 in the last axis.

    With opacity, the coordinates of the colour count in proportion to it: what cannot be seen makes no difference.
    """
    to, opaque = SPACES[space]
    values = np.asarray(colours, np.float64) / 255.0
    found = to(values[..., :3])
    if values.shape[-1] == 3:
        return found
    opacity = values[..., 3:]
    return np.concatenate([found * opacity, opaque * opacity], axis=-1)


def premultiplied(colours: NDArray[Any]) -> NDArray[np.float64]:
    """RGB from 0 to 255 as it is; of RGBA, the colour times its opacity, and the opacity."""
    values = np.asarray(colours, np.float64)
    if values.shape[-1] == 3:
        return values
    return np.concatenate([values[..., :3] * (values[..., 3:] / 255.0), values[..., 3:]], axis=-1)
