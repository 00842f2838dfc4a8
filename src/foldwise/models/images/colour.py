"""Colours as numbers: sRGB as in files, and spaces in which distances are nearly as the eye sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TO_XYZ = np.array(
    [
        [0.4123907992659595, 0.35758433938387796, 0.1804807884018343],
        [0.21263900587151036, 0.7151686787677559, 0.07219231536073371],
        [0.01933081871559185, 0.11919477979462599, 0.9505321522496606],
    ]
)  # from linear sRGB, white D65
_WHITE = _TO_XYZ.sum(1)
_EDGE = 6 / 29


def rgb_to_lab(rgb: NDArray[Any]) -> NDArray[np.float64]:
    """CIE L*a*b* (L from 0 to 100, white D65) of sRGB values from 0 to 1, in the last axis.

    >>> rgb_to_lab(np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])).round(2) + 0.0
    array([[100.  ,   0.  ,   0.  ],
           [ 53.24,  80.09,  67.2 ]])
    """
    t = linear(rgb) @ _TO_XYZ.T / _WHITE
    f = np.where(t > _EDGE**3, np.cbrt(t), t / (3 * _EDGE**2) + 4 / 29)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def lab_to_rgb(lab: NDArray[Any]) -> NDArray[np.float64]:
    """sRGB values of CIE L*a*b*; colours that a screen cannot show are cut to 0 or 1.

    >>> lab_to_rgb(rgb_to_lab(np.array([[0.2, 0.4, 0.6]]))).round(6)
    array([[0.2, 0.4, 0.6]])
    """
    y = (lab[..., 0] + 16) / 116
    f = np.stack([y + lab[..., 1] / 500, y, y - lab[..., 2] / 200], axis=-1)
    t = np.where(f > _EDGE, f**3, (f - 4 / 29) * 3 * _EDGE**2)
    return compressed((t * _WHITE) @ np.linalg.inv(_TO_XYZ).T)


def linear(rgb: NDArray[Any]) -> NDArray[np.float64]:
    """Amounts of light of sRGB values."""
    rgb = np.asarray(rgb, np.float64)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def compressed(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """sRGB values of amounts of light, cut to 0 and 1."""
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
