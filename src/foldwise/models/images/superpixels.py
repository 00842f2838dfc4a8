"""Superpixels: an image in a given number of connected segments, alike in colour and compact."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.data.block import Floats
from foldwise.data.image_file import as_image, write_image
from foldwise.data.n_threads import count
from foldwise.errors import ParameterError
from foldwise.fold.iterate import iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.images.planes import as_planes
from foldwise.models.images.segments import SegmentFigures, means_and_variation, on_outlines, with_channels
from foldwise.models.images.slic import Slic
from foldwise.reportable import Reportable

if TYPE_CHECKING:
    import pandas as pd

_MOST = 1e6  # of compactness: squares stay far from the end of float32
_IN_PNG = 1 << 16
OUTLINE = (255, 221, 0)  # a yellow that photographs seldom have
_CHANNELS = {1: ("grey",), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "opacity")}


@dataclass(frozen=True, eq=False, repr=False)
class Superpixels(Reportable):
    """Segments of an image, numbered from 0 in reading order.

    `labels` has the segment of each pixel. For each segment there are `means` (segments x channels, in the units of the
    image), `centres` (row and column), `sizes` (pixels), `boxes` (first row and column, last row and column) and
    `quotients` (4 pi area / outline²). `explained_variation` is the share of the variation of pixels that lies between
    segments, `isoperimetric_quotient` the mean of `quotients` by pixels: how compact they are. `outcome` says how the
    iterations ended.
    """

    labels: NDArray[np.int32]
    means: Floats
    explained_variation: float
    figures: SegmentFigures
    image: NDArray[Any]
    asked: int
    compactness: float
    space: str
    name: str
    outcome: Outcome

    def __repr__(self) -> str:
        figures = f"explained_variation={self.explained_variation:.4f}"
        return f"Superpixels({self.name!r}, n_segments={self.n_segments}, asked={self.asked}, {figures})"

    @property
    def n_segments(self) -> int:
        """How many there are."""
        return len(self.means)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Pixels in each segment."""
        return self.figures.sizes

    @property
    def centres(self) -> Floats:
        """The mean row and column of each segment."""
        return self.figures.centres

    @property
    def boxes(self) -> NDArray[np.int64]:
        """The first row, first column, last row and last column of each segment."""
        return self.figures.boxes

    @property
    def quotients(self) -> Floats:
        """The isoperimetric quotient of each segment."""
        return self.figures.quotients

    @property
    def isoperimetric_quotient(self) -> float:
        """How compact the segments are: their mean quotient, weighted by pixels; see `fw.isoperimetric_quotient`."""
        return self.figures.quotient

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        n = self.means.shape[1]
        return _CHANNELS.get(n, tuple(f"channel_{c}" for c in range(n)))

    def mean_image(self) -> NDArray[Any]:
        """The image with each segment in its mean colour, in the dtype of the image."""
        whole = self.image.dtype.kind == "u"
        colours = (np.rint(self.means) if whole else self.means).astype(self.image.dtype)
        return colours[self.labels].reshape(self.image.shape)

    def outlines(self) -> NDArray[np.bool_]:
        """Which pixels lie on an outline: those whose right or lower neighbour is in another segment."""
        return on_outlines(self.labels)

    def boundaries(self, image: Any = None, *, colour: tuple[int, int, int] = OUTLINE) -> NDArray[np.uint8]:
        """The image (or another of the same height and width) as RGB of 8 bits, with outlines in a colour."""
        pixels = self.image if image is None else as_image(image)[0]
        if pixels.shape[:2] != self.labels.shape:
            raise ParameterError(f"the image has {pixels.shape[:2]} pixels, the segments {self.labels.shape}.")
        shown = for_screen(pixels)
        shown[self.outlines()] = colour
        return shown

    def frame(self) -> pd.DataFrame:
        """A pandas table with a line for each segment: pixels, centre, mean of each channel, box, quotient."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, NDArray[Any]]:
        """The same by names of columns."""
        top, left, bottom, right = self.boxes.T
        return {
            "segment": np.arange(self.n_segments),
            "pixels": self.sizes,
            "row": self.centres[:, 0],
            "column": self.centres[:, 1],
            **{f"mean_{name}": self.means[:, c] for c, name in enumerate(self.channels)},
            "first_row": top,
            "first_column": left,
            "last_row": bottom,
            "last_column": right,
            "isoperimetric_quotient": self.quotients,
        }

    def save_labels(self, path: str | os.PathLike[str]) -> None:
        """Write the labels: .npy (int32), or .png (grey of 16 bits) of at most 65,536 segments."""
        ending = check_labels_path(path, self.n_segments)
        if ending == ".npy":
            with replacing(path) as file:
                np.save(file, self.labels, allow_pickle=False)
            return
        write_image(path, self.labels.astype(np.uint16))


def check_labels_path(path: str | os.PathLike[str], n_segments: int) -> str:
    """The ending of a file for so many labels, or an error if they are not written so."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in (".npy", ".png"):
        raise ParameterError(f"{os.fspath(path)}: labels are written as .npy or .png.")
    if ending == ".png" and n_segments > _IN_PNG:
        raise ParameterError(f"{n_segments:,} segments do not fit into 16 bits: write the labels as .npy.")
    return ending


def superpixels(
    image: Any,
    n_segments: int = 400,
    compactness: float = 10.0,
    *,
    max_iter: int = 10,
    tol: float = 0.1,
    min_size: float = 0.1,
    smoothness: float = 1.0,
    space: Literal["auto", "lab", "raw"] = "auto",
    n_threads: int | None = None,
) -> Superpixels:
    """Divide an image into connected segments of similar colour and similar size: SLIC (Achanta et al. 2012).

    k-means of colours and positions from a regular grid, in which a segment takes pixels only in its neighbourhood. Then
    parts that are not connected become segments of their own or, the smallest first, join the neighbour that is most alike
    in colour, until there are `n_segments`; last, outlines are made smooth. The same bits for any number of threads and on
    any instruction set.

    `image` is a path, a picture of Pillow, or an array (height, width[, channels]) of 8 or 16 bits or floats. `compactness`
    weighs position against colour as in scikit-image (which first stretches a pale picture to the whole range). A step ends
    the iterations if no centre moves more than `tol` pixels. No segment is smaller than `min_size` times the mean size.
    `smoothness` 0 leaves outlines as they are.

    In space "lab" colours are compared as CIE Lab (RGB; grey by lightness; RGBA weighted by opacity, which is a fourth
    channel), in "raw" the channels themselves, scaled together to 0 to 100. "auto" is "lab" for RGB, RGBA and grey of 8 or
    16 bits, else "raw".

    >>> import numpy as np
    >>> two = np.zeros((20, 40), np.uint8)
    >>> two[:, 13:] = 200
    >>> found = superpixels(two, 2)
    >>> found.sizes, found.means.ravel()
    (array([260, 540]), array([  0., 200.]))
    """
    _check(n_segments, compactness, max_iter, tol, min_size, smoothness)
    pixels, name = as_image(image)
    in_channels = with_channels(pixels)
    height, width = pixels.shape[:2]
    if n_segments > height * width:
        raise ParameterError(f"n_segments={n_segments:,}, but the image has {height * width:,} pixels.")
    threads = count(n_threads)
    planes, used = as_planes(in_channels, space, name, threads)
    descent = Slic(planes, int(n_segments), float(compactness), float(tol), threads)
    state, outcome, _ = iterate(descent.start, descent.step, descent.done, max_iter=max_iter)
    if outcome.reason is Reason.INTERRUPTED:
        outcome.warn("superpixels")
    labels, n = descent.finish(state, min_size, smoothness)
    figures = SegmentFigures.of(labels, n)
    means, explained = means_and_variation(in_channels, labels, figures.sizes, threads)
    return Superpixels(
        labels, means, explained, figures, pixels, int(n_segments), float(compactness), used, name, outcome
    )


def _check(n_segments: Any, compactness: Any, max_iter: Any, tol: Any, min_size: Any, smoothness: Any) -> None:
    for name, value in {"n_segments": n_segments, "max_iter": max_iter}.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name}={value!r} must be a whole number from 1.")
    numbers = {"compactness": compactness, "tol": tol, "min_size": min_size, "smoothness": smoothness}
    for name, value in numbers.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
            raise ParameterError(f"{name}={value!r} must be a number that is not negative.")
    if min_size > 1:
        raise ParameterError(f"min_size={min_size!r} is a share of the mean size, so it must be at most 1.")
    if not 0 < compactness <= _MOST:
        raise ParameterError(f"compactness={compactness!r} must be above 0 and at most {_MOST:,.0f}.")


def for_screen(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """A new RGB image of 8 bits: transparent pixels on white, other channels than colours as grey by their mean."""
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    if pixels.dtype != np.uint8:
        low, high = (0.0, 1.0) if pixels.min() >= 0 and pixels.max() <= 1 else (pixels.min(), pixels.max())
        share = (pixels / 2 - low / 2) / ((high / 2 - low / 2) or 1)
        pixels = np.rint(255 * share).astype(np.uint8)
    in_channels = with_channels(pixels)
    if in_channels.shape[2] == 4:
        opacity = in_channels[..., 3:] / 255
        in_channels = np.rint(in_channels[..., :3] * opacity + 255 * (1 - opacity)).astype(np.uint8)
    elif in_channels.shape[2] != 3:
        in_channels = np.rint(in_channels.mean(2, keepdims=True)).astype(np.uint8).repeat(3, 2)
    return np.array(in_channels)
