"""The public ImageQuantizer and `quantize`: pictures in a few colours, or in a few tiles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foldwise.data.palette_file import as_palette
from foldwise.errors import ParameterError
from foldwise.models.base import KnownParameters
from foldwise.models.images.apply import apply_codebook, apply_palette
from foldwise.models.images.blocks import fit_codebook, sample
from foldwise.models.images.colour_counts import MOST_COLOURS, ColourCounts
from foldwise.models.images.palette import fit_palette
from foldwise.models.images.picture import Picture, counted, each, listed
from foldwise.models.images.quantized import QuantizedImage
from foldwise.models.images.spaces import SPACES
from foldwise.models.parameters import BOOLEAN, Parameter, constraints, one_of, seed_of, shared, whole


class ImageQuantizer(KnownParameters, BaseEstimator):  # type: ignore[misc]
    """A palette for one or more pictures, found by k-means on their colours; or a codebook of small tiles.

    K-means runs on the distinct colours, weighted by their numbers of pixels, which gives what it gives on all pixels.

    Parameters
    ----------
    n_colors : the number of colours (with `block`, of tiles); a picture with no more than that keeps them all.
    space : where distances between colours are measured. "balanced" adds the squares of differences in sRGB (0 to 255) and in
        CIE Lab; "rgb" alone gives the highest PSNR, "lab" the smallest differences to the eye, "oklab" is Ottosson's. "auto"
        is balanced for colours and rgb for tiles. Colours of the palette are means in sRGB.
    block : None, or the side of square blocks of pixels, each of which becomes one of `n_colors` tiles (vector quantisation).
    dither : pass the error of each pixel on to its neighbours (Floyd and Steinberg), nearest in sRGB: smooth areas show no
        steps, at a lower PSNR.
    palette : colours to use instead of finding some: an array of 8 bits with 3 or 4 columns, texts such as "#ff8000", or a file
        (.gpl, .csv, .hex, .txt, or a picture); nothing is fitted then.
    random_state : None is a fixed seed, so that equal calls give equal palettes.
    n_threads : the number of threads; the result does not depend on it.

    Attributes: `palette_` (uint8 RGB, or RGBA if a picture is not opaque; largest share of pixels first) or `codebook_` (tiles,
    block, block, channels), `n_images_`, `n_pixels_`, `notes_` (what was simplified).

    >>> import numpy as np, foldwise as fw
    >>> picture = np.array([[0, 10, 200], [0, 12, 202]], np.uint8)
    >>> fw.ImageQuantizer(2).fit(picture).palette_.tolist()
    [[6, 6, 6], [201, 201, 201]]
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = {
        "n_colors": whole(),
        "space": one_of("auto", *SPACES),
        "block": whole(1, None),
        "dither": BOOLEAN,
        "palette": Parameter(("array-like", str, os.PathLike, None)),
        **shared("random_state", "n_threads"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_colors: int = 16,
        *,
        space: str = "auto",
        block: int | None = None,
        dither: bool = False,
        palette: Any = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_colors = n_colors
        self.space = space
        self.block = block
        self.dither = dither
        self.palette = palette
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, images: Any, y: Any = None) -> Self:
        """Find the palette or codebook for a picture, or for all of a list, one of which is in memory at a time.

        A picture is an array, a picture of Pillow or a path; a folder, or a pattern as in "photos/*.jpg", is a list.
        """
        self._check()
        pictures = listed(images)
        if self.palette is not None:
            self._set(as_palette(self.palette).astype(np.uint8), len(pictures), 0, ())
        elif self._side == 1:
            self._fit_counts(counted(pictures), len(pictures))
        else:
            self._fit_blocks(pictures)
        return self

    def transform(self, image: Any) -> QuantizedImage:
        """A picture in these colours or tiles."""
        check_is_fitted(self)
        picture = Picture.of(image)
        if self.palette_ is None:
            assert self.codebook_ is not None
            made = apply_codebook(picture, self.codebook_, self._space, self.n_threads)
        else:
            made = apply_palette(picture, self.palette_, self._space, self.dither, self.n_threads)
        return replace(made, notes=(*self.notes_, *made.notes))

    def fit_transform(self, image: Any, y: Any = None) -> QuantizedImage:
        """Fit to one picture, which is read once, and give it in its colours or tiles."""
        self._check()
        picture = Picture.of(image)
        return self.fit(picture).transform(picture)

    # ---------------------------------------------------------------- inside

    @property
    def _side(self) -> int:
        return 1 if self.block is None else self.block

    @property
    def _space(self) -> str:
        return self.space if self.space != "auto" else "balanced" if self._side == 1 else "rgb"

    def _check(self) -> None:
        self._validate_params()
        if self._side > 1 and (self.dither or self.palette is not None):
            raise ParameterError(f"{'dither' if self.dither else 'palette'} is for colours, not for blocks.")
        if self.n_colors > 1 << 16:
            raise ParameterError(f"n_colors={self.n_colors}: at most 65,536.")
        if self.palette is not None:
            given = as_palette(self.palette)
            fits = given.ndim == 2 and given.shape[1:] in ((3,), (4,)) and 0 < len(given) <= 1 << 16
            if not fits or given.dtype.kind not in "iu" or given.min() < 0 or given.max() > 255:
                raise ParameterError(
                    "palette: give whole numbers from 0 to 255, one colour in a row, in 3 or 4 columns; texts such as "
                    "'#ff8000'; or a file of colours."
                )

    def _fit_counts(self, counts: ColourCounts, n_images: int) -> None:
        notes = []
        if counts.coarsest is not None:
            notes.append(
                f"more than {MOST_COLOURS:,} colours: they were counted in {counts.coarsest} bits of each channel"
            )
        palette = fit_palette(counts, self.n_colors, self._space, seed_of(self.random_state), self.n_threads)
        self._set(palette, n_images, counts.pixels, tuple(notes))

    def _fit_blocks(self, pictures: Sequence[Any]) -> None:
        sizes: list[int] = []

        def opened() -> Iterator[NDArray[Any]]:
            channels = max(Picture.of(one).channels for one in pictures) if len(pictures) > 1 else None
            for picture in each(pictures):
                height, width = picture.pixels.shape[:2]
                if self._side > max(height, width):
                    raise ParameterError(
                        f"block={self._side}: {picture.name} has {width} x {height} pixels, so that one block is all of it."
                    )
                sizes.append(height * width)
                yield picture.pixels if channels is None else picture.in_channels(channels)

        tiles, cut = sample(opened(), len(pictures), self._side)
        codebook = fit_codebook(tiles, self.n_colors, self._space, seed_of(self.random_state), self.n_threads)
        notes = (f"the tiles were fitted to {len(tiles):,} blocks, evenly from all",) if cut else ()
        self._set(codebook, len(pictures), sum(sizes), notes)

    def _set(self, codes: NDArray[np.uint8], n_images: int, n_pixels: int, notes: tuple[str, ...]) -> None:
        self.palette_ = codes if codes.ndim == 2 else None
        self.codebook_ = codes if codes.ndim == 4 else None
        self.n_images_, self.n_pixels_, self.notes_ = n_images, n_pixels, notes


def quantize(
    image: Any,
    n_colors: int = 16,
    *,
    space: str = "auto",
    block: int | None = None,
    dither: bool = False,
    palette: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> QuantizedImage:
    """A picture in its `n_colors` best colours or, with `block`, in that many small tiles.

    `image` is an array (8 or 16 bits, or numbers from 0 to 1), a picture of Pillow or a path. The parameters are those of
    `ImageQuantizer`, which fits one palette to many pictures.

    >>> import numpy as np
    >>> made = quantize(np.array([[0, 10, 200], [0, 12, 202]], np.uint8), 2)
    >>> made, made.labels.tolist(), made.hex
    (QuantizedImage(3 x 2, 2 colors, PSNR 34.91 dB), [[0, 0, 1], [0, 0, 1]], ['#060606', '#c9c9c9'])
    """
    if isinstance(image, (list, tuple)) and len(listed(image)) > 1:
        raise ParameterError(
            "fw.quantize takes one picture. fw.ImageQuantizer(n).fit(pictures) finds the colours of several; its transform "
            "gives each of them in these."
        )
    model = ImageQuantizer(
        n_colors,
        space=space,
        block=block,
        dither=dither,
        palette=palette,
        random_state=random_state,
        n_threads=n_threads,
    )
    return model.fit_transform(image)
