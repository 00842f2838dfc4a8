"""Pictures with a few words below each, side by side and in as many lines as the page is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.report.pictures import picture_grid, shades


def gallery(pictures: Sequence[NDArray[np.uint8]], words: Sequence[str], *, side: int = 84, together: int = 1) -> str:
    """Pictures in lines that wrap at the edge of the page; each `together` of them stay side by side."""
    cells = [
        f'<div style="width:{side}px;flex:0 1 {side}px;min-width:0"><div style="line-height:0">'
        f"{picture_grid([one], side=side, gap=0)}</div>"
        f'<div style="font-size:12px;line-height:1.3;padding-top:3px;text-align:center">{escape(text)}</div></div>'
        for one, text in zip(pictures, words, strict=True)
    ]
    groups = ["".join(cells[first : first + together]) for first in range(0, len(cells), together)]
    if together > 1:
        groups = [f'<div style="display:flex;gap:6px;min-width:0">{group}</div>' for group in groups]
    gap = "14px 30px" if together > 1 else "12px 10px"
    return f'<div style="display:flex;flex-wrap:wrap;gap:{gap};text-align:left">{"".join(groups)}</div>'


def as_pixels(image: NDArray[Any], ends: tuple[float, float]) -> NDArray[np.uint8]:
    """An image for the eye: its values between what is black and what is white."""
    low, high = ends
    share = np.clip((np.asarray(image, np.float64) - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    return _channels((share * 255).round().astype(np.uint8))


def as_direction(component: NDArray[Any]) -> NDArray[np.uint8]:
    """A component for the eye: no weight is grey, the largest black or white."""
    return _channels(shades(component, both=True))


def _channels(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4):
        return pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    return pixels
