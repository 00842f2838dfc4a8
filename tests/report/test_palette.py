"""The colours of clusters differ for nearly everybody, in both themes, and stand out from the paper."""

import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

from foldwise.report.svg import PALETTE

# Machado, Oliveira and Fernandes (2009), complete deficiency, on linear RGB.
SEEN = {
    "all": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB, white D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    f = np.cbrt(to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def theme(name):
    text = files("foldwise.report").joinpath("templates", f"{name}.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--(\w+): (#\w{6})", text))


@pytest.mark.parametrize("name", ["light", "dark"])
def test_twenty_colours(name):
    colours = theme(name)
    clusters = [colours[f"c{i}"] for i in range(20)]
    assert len(set(clusters)) == 20
    assert clusters[:6] == ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]  # Okabe and Ito's
    for how in SEEN.values():
        places = [lab(how @ linear(colour)) for colour in clusters]
        assert min(np.linalg.norm(a - b) for a, b in pairwise(places)) > 12
        assert (
            min(np.linalg.norm(places[i] - places[j]) for i in range(20) for j in range(i)) > 7
        )  # just noticeable: 2.3


def test_the_light_theme_has_the_colours_that_drawings_fall_back_to():
    for i, ink in enumerate(PALETTE):
        assert ink == f"var(--c{i}, {theme('light')[f'c{i}']})"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_words_and_dots_stand_out_from_the_paper(name):
    colours = theme(name)

    def contrast(colour, paper="paper"):
        bright, dim = sorted(
            (float(linear(colours[one]) @ [0.2126, 0.7152, 0.0722]) for one in (colour, paper)), reverse=True
        )
        return (bright + 0.05) / (dim + 0.05)

    for ground in ("paper", "ground"):
        assert contrast("ink", ground) > 7
        assert min(contrast(one, ground) for one in ("soft", "muted", "accent")) > 4.5
    assert min(contrast(f"c{i}") for i in range(20)) > 1.7
