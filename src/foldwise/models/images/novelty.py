"""How unlike the images of a set another image is, by what components learnt from the set leave of it.

The plain squared residual takes whatever has little contrast for a member, since there is little that could be left; the share
of an image's own variance that is left takes smooth bright pictures for members. The score is the mean of both, each in units
of what it typically is for images of the set that the components have not seen, so that 1 is usual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import events
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.pca import PCA
from foldwise.reportable import Reportable

COMPONENTS = 25
_MOST = 1_000  # held-out images, and others of each kind
_EXAMPLES = 6
_SCALE = 4  # one of so many images that were not learnt from gives the units of the score, and is not scored itself
_ENOUGH = 8  # from which on that many are spared
_ROUNDING = 1e-12  # a share of the variance that cannot be told from rounding: PCA squares the values
_TURNED = "upside down"


@dataclass(frozen=True)
class Others:
    """Images that are none of the set: the `score` of each, and how well they are told from held-out images of the set.

    `auc` is the chance that one scores higher than a held-out image (`plain_auc`: by the plain residual), and `misplaced` how
    many do not score higher than every held-out image.
    """

    name: str
    score: Floats
    auc: float
    plain_auc: float
    misplaced: int
    counted: bool = True  # among all others; images upside down need not be none of the set


@dataclass(frozen=True, repr=False)
class Novelty(Reportable):
    """Scores of held-out images of a set (`held_out`) and of others, by components that were learnt from half of the set.

    `typical_residual` and `typical_share` are the medians of the squared residual and of its share of the image's own variance
    over `n_typical` images that were neither learnt from nor scored (0: over the held-out ones themselves, if there are few).
    `member_examples` and `other_examples` hold images, lowest score first, with their scores.
    """

    pca: PCA
    typical_residual: float
    typical_share: float
    n_typical: int
    held_out: Floats
    others: tuple[Others, ...]
    all_auc: float
    all_plain_auc: float
    misplaced: int
    made: bool  # whether the others were made here, for lack of real ones
    member_examples: tuple[NDArray[Any], Floats]
    other_examples: tuple[NDArray[Any], Floats]

    @property
    def n_others(self) -> int:
        """How many images that are none of the set were scored."""
        return sum(len(one.score) for one in self.others if one.counted)

    @property
    def table(self) -> LabelledMatrix:
        """By kind of image."""
        values = [[len(one.score), np.median(one.score), one.auc, one.plain_auc, one.misplaced] for one in self.others]
        columns = ("images", "median_score", "auc", "auc_of_residual", "misplaced")
        return LabelledMatrix(np.array(values), tuple(one.name for one in self.others), columns)

    def score(self, rows: NDArray[Any]) -> Floats:
        """The score of each row of pixels: about 1 for an image like those of the set, more for others."""
        residual, share = residuals(self.pca, rows)
        return _score(residual, share, self.typical_residual, self.typical_share)


def residuals(pca: PCA, rows: NDArray[Any]) -> tuple[Floats, Floats]:
    """The squared residual of each image, and its share of the image's squared differences from its own mean.

    An image of one even colour has no variance of which it could be a share: the share is then of what rounding could hide.
    """
    with events.muted():
        left = np.asarray(pca.reconstruction_error(rows), np.float64)
    wide = rows.astype(np.float64)
    own = np.square(wide - wide.mean(axis=1, keepdims=True)).sum(axis=1)
    least = 1e-9 * float(np.sum(pca.explained_variance_)) + np.finfo(np.float64).tiny
    return left, left / np.maximum(own, least)


def _score(residual: Floats, share: Floats, typical_residual: float, typical_share: float) -> Floats:
    return np.asarray(0.5 * (residual / typical_residual + share / typical_share))


def auc(members: Floats, others: Floats) -> float:
    """The chance that another image scores higher than a member; half for a tie.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    ranked = np.sort(members)
    below, upto = np.searchsorted(ranked, others, "left"), np.searchsorted(ranked, others, "right")
    return float((below + upto).mean() / (2 * len(members)))


def measure(
    rows: NDArray[Any],
    shape: tuple[int, ...],
    others: Mapping[str, NDArray[Any]] | None,
    seed: int,
    n_threads: int | None,
    notes: list[str],
) -> Novelty | None:
    """Learn from half of the images and score others of the set and images that are none; None, with a note, if that is idle.

    What is to be said about it is added to `notes`.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    half = (len(rows) + 1) // 2
    rest = order[half:]
    spared = min(_MOST, len(rest) // _SCALE) if len(rest) >= _ENOUGH else 0
    train, held = np.sort(order[:half]), np.sort(rest[spared:][:_MOST])
    k = min(COMPONENTS, len(train) - 1, rows.shape[1] // 2)
    if k < 1 or not len(held):
        return None
    with events.muted():
        pca = PCA(k, n_threads=n_threads).fit(rows[train])
    members = rows[held]
    residual, share = residuals(pca, members)
    usual = residuals(pca, rows[np.sort(rest[:spared])]) if spared else (residual, share)
    typical = float(np.median(usual[0])), float(np.median(usual[1]))
    if not (typical[0] > _noise(pca, rows) and typical[1] > 0):  # anything else would be infinitely new
        notes.append(
            f"Novelty was not measured: {k} components leave nothing of the images but rounding, so that anything else is new."
        )
        return None
    kinds = made(members, shape, rng) if others is None else _drawn(others, rng, notes)
    held_out = _score(residual, share, *typical)
    found, scores, plain = [], [], []
    for name, one in kinds.items():
        left, part = residuals(pca, one)
        score = _score(left, part, *typical)
        misplaced = int(np.count_nonzero(score <= held_out.max()))
        counts = others is not None or name != _TURNED
        found.append(Others(name, score, auc(held_out, score), auc(residual, left), misplaced, counts))
        scores.append(score)
        plain.append(left)
    every, pixels = np.concatenate(scores), np.concatenate(list(kinds.values()))
    return Novelty(
        pca,
        *typical,
        spared,
        held_out,
        tuple(found),
        auc(held_out, np.concatenate([score for one, score in zip(found, scores, strict=True) if one.counted])),
        auc(residual, np.concatenate([left for one, left in zip(found, plain, strict=True) if one.counted])),
        sum(one.misplaced for one in found if one.counted),
        others is None,
        _examples(members, held_out),
        _examples(pixels, every, of_each=[len(one) for one in scores] if others is None else None),
    )


def _noise(pca: PCA, rows: NDArray[Any]) -> float:
    """A squared residual that rounding alone could leave."""
    ulp = float(np.finfo(rows.dtype).eps) * max(abs(float(rows.max())), abs(float(rows.min())))
    return float(_ROUNDING * np.sum(pca.explained_variance_) + 16.0 * rows.shape[1] * ulp**2)


def _drawn(others: Mapping[str, NDArray[Any]], rng: np.random.Generator, notes: list[str]) -> dict[str, NDArray[Any]]:
    found = {}
    for name, one in others.items():
        found[name] = one
        if len(one) > _MOST:
            found[name] = one[np.sort(rng.choice(len(one), _MOST, replace=False))]
            notes.append(f"{name}: {_MOST:,} of {len(one):,} images were drawn at random and scored.")
    return found


def made(members: NDArray[Any], shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Images that are none of the set, made from it: noise, tiles in another order, upside down, and faint noise."""
    wide = members.astype(np.float64)
    low, high = float(wide.min()), float(wide.max())
    noise = np.clip(rng.normal(wide.mean(), wide.std() or 1.0, wide.shape), low, high)
    faint = wide.mean() + 0.05 * wide.std() * rng.standard_normal(wide.shape)
    pictures = wide.reshape(-1, *shape)
    found = {
        "noise": noise,
        "faint noise": faint,
        "shuffled tiles": np.stack([_shuffled(one, rng) for one in pictures]),
        _TURNED: pictures[:, ::-1],
    }
    return {name: one.reshape(len(one), -1).astype(members.dtype) for name, one in found.items()}


def _shuffled(picture: Floats, rng: np.random.Generator) -> Floats:
    """The picture cut into up to 4 x 4 tiles that were put elsewhere; what does not fill a tile stays."""
    tall, wide = (max(1, side // 4) for side in picture.shape[:2])
    down, across = picture.shape[0] // tall, picture.shape[1] // wide
    places = [(y * tall, x * wide) for y in range(min(down, 4)) for x in range(min(across, 4))]
    done = picture.copy()
    for (y, x), other in zip(places, rng.permutation(len(places)), strict=True):
        v, u = places[other]
        done[y : y + tall, x : x + wide] = picture[v : v + tall, u : u + wide]
    return done


def _examples(rows: NDArray[Any], score: Floats, of_each: Sequence[int] | None = None) -> tuple[NDArray[Any], Floats]:
    """A few images by rising score: the lowest and the highest, or the lowest two of each kind."""
    order = np.argsort(score, kind="stable")
    if of_each is None:
        some = order if len(order) <= 2 * _EXAMPLES else np.concatenate([order[:_EXAMPLES], order[-_EXAMPLES:]])
    else:
        ends = np.cumsum(of_each)
        kind = np.searchsorted(ends, order, "right")
        some = order[np.sort(np.concatenate([np.flatnonzero(kind == one)[:3] for one in range(len(ends))]))]
    return rows[some], score[some]
