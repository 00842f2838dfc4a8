"""Eigenfaces: what images of one size have in common, in which ways they differ, who is on them, and what is none of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.image_shape import in_pixels
from foldwise.errors import DataError, ParameterError, warn
from foldwise.fold import events
from foldwise.models.images.nearest import nearest
from foldwise.models.images.novelty import Novelty, measure
from foldwise.models.images.recognition import Recognising, Recognition
from foldwise.models.pca import PCA
from foldwise.prepare.images import ImageRows, image_rows
from foldwise.prepare.other_images import like_images
from foldwise.reportable import Reportable

COUNTS = tuple(range(10, 151, 10))
RECONSTRUCT = (1, 10, 50, 250)
_SHOWN = 6  # images whose reconstructions are kept
_MANY = 10_000  # images beyond which fewer splits are made


@dataclass(frozen=True, repr=False)
class Eigenfaces(Reportable):
    """The components of a set of images of one size.

    `mean_image` and `components` (k, height, width[, channels]) are arrays of pixels, `pca` the fitted model that
    `fw.save` keeps. `recognition` and `novelty` hold tables (`.table`) and more; None without labels, with too few images, or
    if Ctrl-C came before (`interrupted`). `examples` are some of the images, and `pairs` those of `recognition.confused`.
    """

    pca: PCA
    images: ImageRows
    reconstruct_counts: tuple[int, ...]
    recognition: Recognition | None
    novelty: Novelty | None
    examples: NDArray[Any]
    pairs: NDArray[Any]
    notes: tuple[str, ...]
    interrupted: bool
    seconds: float

    def __repr__(self) -> str:
        """One line."""
        n, shape = len(self.images.values), in_pixels(self.shape)
        told = f", {len(self.labels)} labels" if self.labels is not None else ""
        return f"Eigenfaces({n:,} images of {shape} pixels, {len(self.pca.components_)} components{told})"

    @property
    def shape(self) -> tuple[int, ...]:
        """(height, width) or (height, width, channels)."""
        return self.images.shape

    @property
    def labels(self) -> NDArray[Any] | None:
        """The distinct labels."""
        return None if self.images.labels is None else np.unique(self.images.labels)

    @property
    def mean_image(self) -> NDArray[Any]:
        """The mean of all images."""
        return self.pca.mean_.reshape(self.shape)

    @property
    def components(self) -> NDArray[Any]:
        """The directions as images, the one with the most variance first."""
        return self.pca.components_.reshape(-1, *self.shape)

    def reconstruct(self, images: Any, n: int | None = None) -> NDArray[Any]:
        """What the first `n` components (default: all) keep of an image, or of several: everything becomes a face."""
        rows = self._rows(images)
        if n is not None and not 0 <= n <= len(self.pca.components_):
            raise ParameterError(f"reconstruct(n={n}): there are {len(self.pca.components_)} components.")
        directions = np.asarray(self.pca.components_[:n], np.float64)
        scores = (rows - self.pca.mean_) @ directions.T
        made = (self.pca.mean_ + scores @ directions).reshape(-1, *self.shape)
        return np.asarray(made[0] if np.shape(images) == self.shape else made)

    def novelty_of(self, images: Any) -> Floats:
        """How unlike the set each image is: about 1 for one like those of the set, more for others."""
        if self.novelty is None:
            raise DataError(
                "novelty was not measured: it takes at least three images that differ in more than a few components"
            )
        return self.novelty.score(self._rows(images))

    def predict(self, images: Any, n: int | None = None) -> NDArray[Any]:
        """The label of the nearest image of the set for each image, in the first `n` components.

        By default, those of `recognition.best`: the fewest that recognise as well as any.
        """
        known = self.images.labels
        if known is None or self.recognition is None:
            raise DataError("there are no labels to recognise", advice="Give them to fw.eigenfaces")
        n = self.recognition.best if n is None else n
        if not 1 <= n <= len(self.pca.components_):
            raise ParameterError(f"predict(n={n}): there are {len(self.pca.components_)} components.")
        directions = np.asarray(self.pca.components_[:n], np.float64).T
        asked, own = ((rows - self.pca.mean_) @ directions for rows in (self._rows(images), self.images.values))
        return np.asarray(known)[nearest(asked, own, [n], n_threads=self.pca.n_threads)[:, 0]]

    def frame(self) -> Any:
        """A pandas frame: accuracies by number of components or, without labels, the variance of each component."""
        if self.recognition is not None:
            return self.recognition.table.frame()
        import pandas as pd

        shares = self.pca.explained_variance_ratio_
        columns = {"variance": self.pca.explained_variance_, "share": shares, "total": np.cumsum(shares)}
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(shares) + 1, name="component"))

    def _rows(self, images: Any) -> NDArray[Any]:
        rows, note = like_images(images, self.images)
        if note is not None:
            warn(note)
        return rows


def eigenfaces(
    images: Any,
    labels: Any = None,
    *,
    n_components: Sequence[int] | int | None = None,
    reconstruct: Sequence[int] | None = None,
    image_size: Any = None,
    grey: bool = False,
    novel: Any = None,
    n_splits: int | None = None,
    max_images: int = 60_000,
    random_state: int = 0,
    n_threads: int | None = None,
) -> Eigenfaces:
    """Principal components of images of one size, and how far they go to tell who or what is on an image.

    Parameters
    ----------
    images : a folder (subfolders are labels), a .npy or .npz file, an IDX file as MNIST's, a table of pixels, `fw.scan(...)`,
        or an array (n, height, width), (n, height, width, channels) or (n, pixels).
    labels : who or what is on each image: values, or the name of a column, of an array in an .npz file, or of a file. Without
        any there is no recognition; all else is the same.
    n_components : the numbers of components to recognise with (default: 10, 20, ..., 150).
    reconstruct : the numbers of components to reconstruct with (default: 1, 10, 50 and 250).
    image_size : width and height, as in "64x48": files of images are brought to it; rows of pixels that are not square need it.
    grey : take colours away from files of images (not from arrays).
    novel : images that are none of the set (folder, file, array, or several by name), to be told from held-out images of the
        set; they are brought to the same size, and white to the same value. Default: some are made of the set.
    n_splits : halves to learn from and to recognise (default: 10; 3 of more than 10,000 images).
    max_images : of more, so many are drawn at random.
    random_state : seed of splits and draws.

    Numbers of components that are not given are cut to what the images have. Citation: Turk and Pentland, Eigenfaces for
    recognition, 1991.

    >>> import numpy as np, foldwise as fw
    >>> found = fw.eigenfaces(np.array([[[0.0, 0.0]], [[2.0, 4.0]]]))
    >>> found.mean_image, found.components.round(3)
    (array([[1., 2.]]), array([[[0.447, 0.894]]]))
    """
    began = time.monotonic()
    given = image_rows(
        images, labels, image_size=image_size, grey=grey, most=_at_least(max_images, 2, "max_images"), seed=random_state
    )
    notes: list[str] = []
    if len(given.values) < given.total:
        notes.append(f"{len(given.values):,} of {given.total:,} images were drawn at random; all figures are of these.")
    rows, rank = given.values, min(len(given.values) - 1, given.values.shape[1])
    counts = _counts(n_components, COUNTS, rank, "n_components", len(rows))
    shown = _counts(reconstruct, RECONSTRUCT, rank, "reconstruct", len(rows))
    splits = _at_least(n_splits if n_splits is not None else 3 if len(rows) > _MANY else 10, 1, "n_splits")
    others = None if novel is None else _others(novel, given, notes)
    names, codes = _codes(given)
    stages = 2 + (2 + splits) * (names is not None)
    recognising, novelty, interrupted = None, None, False
    _tell("components", 1, stages)
    with events.muted():
        pca = PCA(max(*counts, *shown), n_threads=n_threads).fit(rows)
    try:
        _tell("novelty", 2, stages)
        novelty = measure(rows, given.shape, others, random_state, n_threads, notes)
        if names is not None:
            recognising = Recognising(rows, codes, counts, random_state, n_threads)
            if recognising.can_split():
                _tell("recognition, leaving one out", 3, stages)
                recognising.leave_one_out(pca)
                _tell("recognition by all pixels", 4, stages)
                recognising.pixels(pca.mean_)
                for number in range(splits):
                    _tell(f"recognition, split {number + 1} of {splits}", 5 + number, stages)
                    recognising.split()
    except KeyboardInterrupt:
        interrupted = True
        notes.append("Interrupted: what is not here was not worked out.")
    recognition = None if recognising is None or names is None else recognising.result(names)
    if recognition is not None:
        notes += _notes(recognition)
    few = () if recognition is None else recognition.confused[:_SHOWN]
    pairs = np.array([[one.image, one.nearest] for one in few], np.intp).reshape(-1, 2)
    some = np.linspace(0, len(rows) - 1, min(_SHOWN, len(rows))).astype(np.intp)
    return Eigenfaces(
        pca, given, shown, recognition, novelty, given.pictures()[some], given.pictures()[pairs], tuple(notes), interrupted,
        time.monotonic() - began,
    )  # fmt: skip


def _tell(name: str, number: int, of: int) -> None:
    events.emit(events.Stage(name, number, of))


def _at_least(value: Any, least: int, name: str) -> int:
    if not _is_whole(value) or value < least:
        raise ParameterError(f"{name}={value!r}: give a whole number of at least {least}.")
    return int(value)


def _is_whole(value: Any) -> bool:
    return (
        isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and float(value).is_integer()
    )


def _counts(given: Any, usual: tuple[int, ...], rank: int, name: str, n_images: int) -> tuple[int, ...]:
    """Rising numbers of components; usual ones beyond those that exist are replaced by their number."""
    if given is None:
        return tuple(sorted({min(one, rank) for one in usual}))
    each = [given] if np.ndim(given) == 0 else list(given)
    if not each or not all(_is_whole(one) and one >= 1 for one in each):
        raise ParameterError(f"{name}={given}: give whole numbers of components, from 1.")
    wanted = sorted({int(one) for one in each})
    if wanted[-1] > rank:
        raise ParameterError(f"{name}={wanted[-1]}: {n_images:,} images of this size have at most {rank} components.")
    return tuple(wanted)


def _codes(given: ImageRows) -> tuple[NDArray[Any] | None, NDArray[np.intp]]:
    if given.labels is None:
        return None, np.zeros(0, np.intp)
    names, codes = np.unique(given.labels, return_inverse=True)
    if len(names) < 2:
        raise DataError(
            f"all images have the label {names[0]}, so that there is nobody to take one for",
            where=given.where,
            advice="Leave out the labels",
        )
    return names, codes.astype(np.intp)


def _others(novel: Any, given: ImageRows, notes: list[str]) -> dict[str, NDArray[Any]]:
    if not isinstance(novel, Mapping):
        is_path = isinstance(novel, (str, os.PathLike))
        novel = {os.path.basename(os.path.normpath(os.fspath(novel))) if is_path else "others": novel}
    if not novel:
        raise ParameterError("novel={}: give at least one set of images.")
    found = {}
    for name, one in novel.items():
        found[str(name)], note = like_images(one, given)
        if note is not None and note not in notes:
            notes.append(note)
    return found


def _notes(found: Recognition) -> list[str]:
    notes = []
    if found.alone:
        they = "1 image has" if found.alone == 1 else f"{found.alone:,} images have"
        notes.append(
            f"{they} no other with the same label to be recognised by, and {'is' if found.alone == 1 else 'are'} not judged."
        )
    if not found.refitted and np.isfinite(found.left_out).any():
        notes.append("Left out: the components were learnt from all images, the one that is recognised among them.")
    if found.pixels_judged and found.pixels_judged < found.judged:
        notes.append(f"By all pixels, {found.pixels_judged:,} images were judged, drawn at random.")
    return notes
