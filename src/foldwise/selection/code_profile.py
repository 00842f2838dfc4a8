"""What codes keep of the rows: by column, beside as many principal components, and the rows that they reconstruct worst."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.inputs import Split
from foldwise.models.base import with_missing
from foldwise.models.parameters import seed_of
from foldwise.models.pca import PCA
from foldwise.models.pca.projection import Projection

_MOST_COLUMNS = 5000  # rows are reconstructed in all columns
_MOST_PLACES = 1_000_000  # rows whose places in the two planes are kept


@dataclass(frozen=True)
class NovelRow:
    """A row that is reconstructed badly: its number, its error, and where it differs most from what was expected."""

    number: int  # among the rows of the source
    error: float
    columns: NDArray[np.intp]  # those that make up most of the error
    values: Floats
    expected: Floats


@dataclass(frozen=True)
class CodeProfile:
    """What is explained of each column (shares of its variance), the worst of all rows, and the places of the rows.

    `explained` is over the rows that the training held out, `judged` in number, or over all rows if these cannot be told any
    more, or the model is PCA of all (`judged` is None); it is None for sparse rows and very many columns. `codes` and `scores`
    are the first two codes and principal components of some rows, whose numbers are `shown`.
    """

    pca: PCA
    error: float  # the mean over all rows
    judged: int | None
    explained: Floats | None
    pca_explained: Floats | None
    novel: tuple[NovelRow, ...]
    codes: Floats
    scores: Floats
    shown: NDArray[np.intp]


def code_profile(model: Any, source: Source, most_novel: int = 10) -> CodeProfile:
    """Describe a fitted autoencoder by the rows of a source; takes a PCA and one pass."""
    most = max(1, min(max(2, model.n_components_), model.n_features_in_, model.manifest_.rows))
    seen = with_missing(model, source)
    split = held_out_split(model, seen)
    pca = PCA(most, scale=model.scale, missing=model.missing, random_state=0, n_threads=model.n_threads)
    pca.fit(split.training(source))
    task = _Profile(
        model._coder(),
        Projection(pca.components_[: model.n_components_], pca.mean_, pca.scale_),
        Projection(pca.components_[:2], pca.mean_, pca.scale_),
        most_novel,
        by_column=not source.sparse and source.n_columns <= _MOST_COLUMNS,
        every=1 + model.manifest_.rows // _MOST_PLACES,
        normal=pca._normal() if model.missing == "model" and not source.sparse else None,
        split=split,
    )
    parts = list(Passes(seen, n_threads=model.n_threads).each(task))
    judged = _told_apart(model, parts)
    sums = np.sum([part.sums for part in parts], axis=0)[0 if judged is None else 1]
    novel = sorted((row for part in parts for row in part.novel), key=lambda row: -row.error)[:most_novel]
    explained = pca_explained = None
    if task.by_column:
        varies = sums[2] > 0
        explained, pca_explained = (
            np.where(varies, 1.0 - sums[i] / np.where(varies, sums[2], 1.0), np.nan) for i in (0, 1)
        )
    weight = sum(part.weight for part in parts)
    return CodeProfile(
        pca,
        sum(part.error for part in parts) / weight if weight else float("nan"),
        judged,
        explained,
        pca_explained,
        tuple(novel),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.shown for part in parts]),
    )


def held_out_split(model: Any, source: Source) -> Split:
    """Which rows a fit to this source has held out, if its result did not see them later; `_told_apart` makes sure."""
    split = Split.over(Passes(source, n_threads=model.n_threads), seed_of(model.random_state))
    return split if is_pca(model) else replace(split, share=model.validation_share_)


def is_pca(model: Any) -> bool:
    """Whether training was of no use, so that the model is PCA of all rows."""
    return bool(model.linear and model.best_epoch_ == 0)


def _told_apart(model: Any, parts: list[_Part]) -> int | None:
    """How many rows were held out, if they are the ones whose mean error the fit has recorded."""
    rows, weight, error = (sum(part.held_out[place] for part in parts) for place in range(3))
    if not rows or not weight or abs(error / weight - model.held_out_error_) > 1e-4 * model.held_out_error_:
        return None
    return int(rows)


@dataclass(frozen=True)
class _Part:
    weight: float
    error: float
    held_out: tuple[int, float, float]  # rows, their weight and error
    sums: (
        Floats  # of squares: over all rows, and over held-out rows; of the codes' errors, PCA's errors, and deviations
    )
    novel: tuple[NovelRow, ...]
    codes: Floats
    scores: Floats
    shown: NDArray[np.intp]


@dataclass(frozen=True)
class _Profile:
    coder: Any
    projection: Projection  # on as many components as codes have numbers
    plane: Projection  # on two
    most_novel: int
    by_column: bool
    every: int
    normal: Any  # fills missing cells for PCA
    split: Split

    def __call__(self, block: Block) -> _Part:
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        codes, errors = self.coder.codes(block), self.coder.errors(block)
        whole = block if self.normal is None else self.normal.completed(block)
        which = self.split.held_out(block)
        sums = np.zeros((2, 3, block.n_columns if self.by_column else 0))
        if self.by_column:
            rows = block.dense().astype(np.float64)
            by_pca = self.projection.rows(whole.with_rows(self.projection.scores(whole)))
            for place, other in enumerate((self.coder.reconstructed(block), by_pca, self.plane.mean)):
                squares = np.nan_to_num((rows - other) ** 2)
                sums[:, place] = np.vstack([weights, weights * which]) @ squares
        some = np.arange(-block.start % self.every, block.n_rows, self.every)
        scores = self.plane.scores(whole)
        return _Part(
            float(weights.sum()),
            float(weights @ errors),
            (int(which.sum()), float(weights @ which), float(weights @ (errors * which))),
            sums,
            self._novel(block, errors, weights),
            np.asarray(codes[some, :2], dtype=np.float64),
            np.asarray(scores[some, :2], dtype=np.float64),
            block.start + some,
        )

    def _novel(self, block: Block, errors: Floats, weights: Floats) -> tuple[NovelRow, ...]:
        order = np.argsort(-np.where(weights > 0, errors, -1.0), kind="stable")[: self.most_novel]
        few = block.take(order)
        expected = np.asarray(self.coder.reconstructed(few), dtype=np.float64)
        values: Any = few.unchecked
        rows = np.asarray(values.toarray() if block.sparse else values, dtype=np.float64)
        scale = self.projection.scale
        away = np.nan_to_num((rows - expected) if scale is None else (rows - expected) / scale) ** 2
        found = []
        for place, number in enumerate(order):
            if not weights[number] > 0:
                continue
            columns = np.argsort(-away[place], kind="stable")[:2]
            columns = columns[away[place][columns] >= 0.1 * away[place].sum()]
            here = rows[place, columns], expected[place, columns]
            found.append(NovelRow(int(block.start + number), float(errors[number]), columns, *here))
        return tuple(found)
