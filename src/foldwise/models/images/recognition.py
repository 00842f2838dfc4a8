"""How well images are recognised by the nearest other image in the space of the first components."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import events
from foldwise.models.images.left_out import MOST_WORK, nearest_without_itself, work_of
from foldwise.models.images.nearest import nearest
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.pca import PCA
from foldwise.reportable import Reportable

LIGHT = 3  # the components that mostly show from where the light came (Belhumeur, Hespanha and Kriegman 1997)
_MOST_TESTED = 2_000  # images of each split, where there are very many
_PIXEL_WORK = 6e11  # multiplications of comparing pixels, beyond which fewer images are judged
_MANY = 10_000


@dataclass(frozen=True)
class Confusion:
    """An image that was taken for another: its label, the label it was given, how often that happened, and the two images."""

    label: Any
    taken_for: Any
    times: int
    image: int
    nearest: int


@dataclass(frozen=True, repr=False)
class Recognition(Reportable):
    """Accuracies of the nearest neighbour in the first `counts` components, and in all pixels.

    `left_out`: each of `judged` images against all others; with `refitted`, in components that did not see the image.
    `split`, one row per split: half of the images of each label to learn from, components included, and the others to
    recognise; `without_light` leaves the first three components out, `whitened` gives all the same variance. `pixels_left_out`
    (of `pixels_judged` images) and `pixels_split` compare all pixels instead. `alone`: images without another of their label,
    which cannot be recognised and are not counted. Accuracies that were not worked out are NaN.
    """

    counts: tuple[int, ...]
    n_labels: int
    judged: int
    alone: int
    left_out: Floats
    refitted: bool
    pixels_left_out: float
    pixels_judged: int
    split: Floats
    without_light: Floats
    whitened: Floats
    pixels_split: Floats
    tested: int
    confused: tuple[Confusion, ...]
    wrong: int  # images of those judged that were taken for another label, with `best` components

    def __repr__(self) -> str:
        place = self.counts.index(self.best)
        split = "" if not len(self.split) else f", {self.split.mean(axis=0)[place]:.1%} split in half"
        return f"Recognition({self.left_out[place]:.1%} left out{split}, with {self.best} components)"

    @property
    def best(self) -> int:
        """The fewest components within one standard error of the highest accuracy, on the splits or else left out."""
        means = self.split.mean(axis=0) if len(self.split) else self.left_out
        if not np.isfinite(means).any():
            return self.counts[-1]
        top = int(np.nanargmax(means))
        error = np.sqrt(means[top] * (1 - means[top]) / max(self.judged, 1))
        if len(self.split) > 1:
            error = self.split[:, top].std(ddof=1) / np.sqrt(len(self.split))
        return self.counts[int(np.argmax(means >= means[top] - error))]

    @property
    def table(self) -> LabelledMatrix:
        """Accuracy by number of components."""
        rows = [self.left_out, *(_mean(one, len(self.counts)) for one in (self.split, _spread(self.split)))]
        rows += [_mean(one, len(self.counts)) for one in (self.without_light, self.whitened)]
        names = ("left_out", "split", "spread", "without_first_3", "whitened")
        pixels = [self.pixels_left_out, *_pixel_split(self.pixels_split), np.nan, np.nan]
        values = np.vstack([np.column_stack(rows), pixels])
        return LabelledMatrix(values, (*map(str, self.counts), "all pixels"), names)


def _mean(values: Floats, size: int) -> Floats:
    return np.asarray(values.mean(axis=0)) if len(values) else np.full(size, np.nan)


def _spread(values: Floats) -> Floats:
    return values.std(axis=0, ddof=1)[None] if len(values) > 1 else values[:0]


def _pixel_split(values: Floats) -> list[float]:
    return [
        float(values.mean()) if len(values) else np.nan,
        float(values.std(ddof=1)) if len(values) > 1 else np.nan,
    ]


class Recognising:
    """The work, piece by piece, so that what is done before Ctrl-C is kept."""

    def __init__(
        self, rows: NDArray[Any], codes: NDArray[np.intp], counts: tuple[int, ...], seed: int, n_threads: int | None
    ) -> None:
        self._rows, self._codes, self._counts = rows, codes, counts
        self._rng, self._n_threads = np.random.default_rng(seed), n_threads
        sizes = np.bincount(codes)
        self._judged = np.flatnonzero(sizes[codes] > 1)
        self._n_labels = len(sizes)
        self._left_out = np.full(len(counts), np.nan)
        self._found: NDArray[np.intp] | None = None
        self._refitted, self._pixels, self._pixels_judged = False, np.nan, 0
        self._splits: list[tuple[Floats, Floats, Floats, float]] = []
        self._tested = 0

    def leave_one_out(self, pca: PCA) -> None:
        """Each image against all others, in components that did not see it where that can be afforded."""
        n, d = self._rows.shape
        rank = min(n - 1, d)
        with events.muted():
            if n > 3 and work_of(n, rank, self._counts[-1]) <= MOST_WORK:
                full = PCA(rank, n_threads=self._n_threads).fit(self._rows)
                varying = full.explained_variance_ > max(full.variance_floor_, 1e-12 * full.explained_variance_[0])
                scores = np.asarray(full.transform(self._rows), np.float64)[:, varying]
                self._refitted = scores.shape[1] > 0
        if self._refitted:
            found = nearest_without_itself(scores, self._counts, n_threads=self._n_threads)[self._judged]
        else:
            scores = np.asarray(pca.scores(self._rows))
            found = nearest(scores[self._judged], scores, self._counts, own=self._judged, n_threads=self._n_threads)
        self._found = found
        self._left_out = (self._codes[found] == self._codes[self._judged, None]).mean(axis=0)

    def pixels(self, mean: Floats) -> None:
        """The same with all pixels, of some images if there are very many."""
        n, d = self._rows.shape
        most = max(1000, int(_PIXEL_WORK / (float(n) * d)))
        some = self._judged
        if len(some) > most:
            some = np.sort(self._rng.choice(some, most, replace=False))
        right = self._right(self._rows[some], self._rows, mean, self._codes[some], self._codes, own=some)
        self._pixels, self._pixels_judged = right, len(some)

    def split(self) -> None:
        """One more split."""
        train, test = self._halves()
        if len(self._rows) > _MANY and len(test) > _MOST_TESTED:
            test = np.sort(self._rng.choice(test, _MOST_TESTED, replace=False))
        k = min(self._counts[-1], len(train) - 1, self._rows.shape[1])
        counts = tuple(min(count, k) for count in self._counts)
        learnt = self._rows[train]
        with events.muted():
            pca = PCA(k, n_threads=self._n_threads).fit(learnt)
            known, asked = pca.scores(learnt), pca.scores(self._rows[test])
        deviations = np.sqrt(np.maximum(pca.explained_variance_, pca.variance_floor_ or 1e-300))
        truth = self._codes[test]

        def accuracy(queries: Any, references: Any, some: tuple[int, ...]) -> Floats:
            with events.muted():
                found = nearest(queries, references, some, n_threads=self._n_threads)
            return np.asarray((self._codes[train][found] == truth[:, None]).mean(axis=0))

        plain = accuracy(asked, known, counts)
        whitened = accuracy(asked / deviations, known / deviations, counts)
        dark = np.full(len(counts), np.nan)
        enough = [number for number, count in enumerate(counts) if count > LIGHT]
        if enough:
            fewer = tuple(counts[number] - LIGHT for number in enough)
            dark[enough] = accuracy(asked[:, LIGHT:], known[:, LIGHT:], fewer)
        with events.muted():
            right = self._right(self._rows[test], learnt, pca.mean_, truth, self._codes[train])
        self._tested = len(test)
        self._splits.append((plain, dark, whitened, right))

    def can_split(self) -> bool:
        """Whether some label has two images."""
        return len(self._judged) > 0

    def result(self, names: NDArray[Any]) -> Recognition:
        """What is done so far; `names` are the labels that the codes stand for."""
        parts = [np.array([one[part] for one in self._splits]) for part in range(3)]
        split, dark, whitened = (part.reshape(-1, len(self._counts)) for part in parts)
        fields: dict[str, Any] = {
            "counts": self._counts, "n_labels": self._n_labels, "judged": len(self._judged),
            "alone": len(self._codes) - len(self._judged), "left_out": self._left_out, "refitted": self._refitted,
            "pixels_left_out": self._pixels, "pixels_judged": self._pixels_judged, "split": split, "without_light": dark,
            "whitened": whitened, "pixels_split": np.array([one[3] for one in self._splits]), "tested": self._tested,
        }  # fmt: skip
        made = Recognition(**fields, confused=(), wrong=0)
        if self._found is None:
            return made
        confused, wrong = self._confusions(self._found[:, self._counts.index(made.best)], names)
        return Recognition(**fields, confused=confused, wrong=wrong)

    # ------------------------------------------------------------ pieces

    def _halves(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Half of the images of each label, rounded up, and the others."""
        order = self._rng.permutation(len(self._codes))
        order = order[np.argsort(self._codes[order], kind="stable")]
        sizes = np.bincount(self._codes)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.arange(len(order)) - starts[self._codes[order]]
        first = place < (sizes[self._codes[order]] + 1) // 2
        return np.sort(order[first]), np.sort(order[~first])

    def _right(self, queries: Any, references: Any, mean: Floats, truth: Any, codes: Any, own: Any = None) -> float:
        """The share of queries whose nearest reference, by all pixels, has the same label."""
        centre = mean.astype(self._rows.dtype)
        count = [self._rows.shape[1]]
        found = nearest(queries - centre, references - centre, count, own=own, n_threads=self._n_threads)
        return float((codes[found[:, 0]] == truth).mean())

    def _confusions(self, found: NDArray[np.intp], names: NDArray[Any]) -> tuple[tuple[Confusion, ...], int]:
        true, taken = self._codes[self._judged], self._codes[found]
        wrong = np.flatnonzero(true != taken)
        pairs = Counter(zip(true[wrong].tolist(), taken[wrong].tolist(), strict=True))
        made = []
        for (one, other), times in sorted(pairs.items(), key=lambda item: (-item[1], item[0])):
            first = next(place for place in wrong if true[place] == one and taken[place] == other)
            made.append(Confusion(names[one], names[other], times, int(self._judged[first]), int(found[first])))
        return tuple(made), len(wrong)
