"""Autoencoders of several sizes beside PCA, on rows that none of them has seen."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.missing import allow_missing, incomplete_rows
from foldwise.data.source import Source
from foldwise.data.subset import RowSubset
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, warn
from foldwise.fold.deadline import Deadline
from foldwise.fold.engine import use
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder import Autoencoder
from foldwise.models.base import opened_for_fit, with_missing
from foldwise.models.parameters import is_whole, seed_of
from foldwise.models.pca import PCA
from foldwise.models.pca.normal_model import NormalModel
from foldwise.models.session import open_checkpoint
from foldwise.selection.code_comparison import CodeComparison
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.observed import ObservedColumns

_SIZES = (1, 2, 4, 8, 16, 32)
_COMPONENTS = 512  # of the curve of PCA, at most
_HELD_OUT = 91  # tells the generator of the split from others with the same seed
_EXACT = 1_000_000  # rows up to which just the asked share is held out; beyond, each row by chance


def compare_codes(
    X: Any,
    sizes: Sequence[int] | None = None,
    *,
    test_fraction: float = 0.2,
    autoencoder: Any = None,
    scale: bool = False,
    sample_weight: Any = None,
    random_state: Any = None,
    time_budget: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> CodeComparison:
    """How much of held-out rows autoencoders reconstruct with codes of several sizes, and PCA with as many components.

    Parameters
    ----------
    X : what `Autoencoder.fit` takes.
    sizes : numbers per code; None: 1, 2, 4, 8, 16 and 32, as far as there are more columns.
    test_fraction : the share of the rows that is held out, once, for all sizes and for PCA.
    autoencoder : an `Autoencoder` whose other parameters are used, also `missing` and `prepare`; None: the defaults. Its
        `n_components`, `time_budget`, `checkpoint` and `n_threads` are not: those given here count, also if they are None. Its
        `random_state` is, unless one is given here, and rows are scaled if either says so.
    scale : columns are divided by their standard deviation first.
    sample_weight : counts a row as that many equal rows.
    time_budget : seconds for all sizes together, of which each gets its share; what it has learnt by then is used.
    checkpoint : a file; a comparison that was killed resumes after the last size that was finished.
    random_state, n_threads, engine : as for `Autoencoder`.

    Ctrl-C keeps the sizes that are finished. Rows without weight, or with gaps if missing="drop", count nowhere. Where cells
    are missing and missing="model", PCA is fitted for each size by itself, as it fills them by that many components; between
    the sizes, `pca_curve` is of one PCA of as many components as it has.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> turn = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    >>> ring = np.column_stack([np.cos(turn), np.sin(turn), np.cos(2 * turn)])
    >>> found = fw.compare_codes(ring, [1], autoencoder=fw.Autoencoder(max_iter=300))
    >>> bool(found.autoencoder_errors[0] < found.pca_errors[0]), found.held_out_rows
    (True, 80)
    """
    prototype = Autoencoder() if autoencoder is None else autoencoder
    if not isinstance(prototype, Autoencoder):
        raise ParameterError(f"autoencoder={prototype!r}: give an Autoencoder, whose parameters are used, or None.")
    if not 0 < test_fraction < 1:
        raise ParameterError(f"test_fraction={test_fraction!r}: give a share between 0 and 1, such as 0.2.")
    seed = seed_of(prototype.random_state if random_state is None else random_state)
    prototype = clone(prototype).set_params(
        scale=bool(scale or prototype.scale), random_state=seed, n_threads=n_threads, checkpoint=None, time_budget=None
    )
    with use(engine):
        source = opened_for_fit(prototype, X, sample_weight)
        if prototype.missing != "error" and not source.sparse:
            source = allow_missing(source)
        split = _Split.of(source, test_fraction, seed, drop=prototype.missing == "drop", n_threads=n_threads)
        asked = _checked(sizes, source.n_columns, split.rows)
        known: Any = None
        if checkpoint is not None or prototype.missing == "model":
            whole, gaps = Passes(source, n_threads=n_threads), prototype.missing != "error" and not source.sparse
            known = whole.fold(ObservedColumns.of) if gaps else whole.fold(ColumnMoments.of)
        by_size = isinstance(known, ObservedColumns) and prototype.missing == "model" and known.cells > 0
        saved = None
        if checkpoint is not None:
            about = {**prototype.get_params(), "sizes": list(asked), "test_fraction": float(test_fraction)}
            for name in ("checkpoint", "time_budget", "n_threads"):
                about.pop(name)
            figures = (np.asarray(known.weight), known.centre, known.squares)
            saved = open_checkpoint(checkpoint, "compare_codes", about, source, *figures)
        fits = _Fits(prototype, split, asked, n_threads, Deadline(time_budget), by_size)
        state, outcome, _ = iterate(fits.start, fits.step, fits.done, max_iter=len(asked), checkpoint=saved)
    done = int(state["finished"])
    if outcome.reason is Reason.INTERRUPTED:
        if done == 0:
            raise KeyboardInterrupt
        warn(f"compare_codes: interrupted; {done} of {len(asked)} sizes are finished.", NotFinishedWarning)
    found = fits.result(state)
    return replace(found, interrupted=outcome.reason is Reason.INTERRUPTED)


def _checked(sizes: Sequence[int] | None, columns: int, rows: int) -> tuple[int, ...]:
    if sizes is None:
        return tuple(size for size in _SIZES if size < min(columns, rows)) or (1,)
    given = list(sizes) if isinstance(sizes, (Sequence, range, np.ndarray)) and not isinstance(sizes, str) else [sizes]
    if not given or not all(is_whole(size) and size >= 1 for size in given):
        raise ParameterError(f"sizes={sizes!r}: give whole numbers of at least 1, as in [2, 8, 32].")
    if max(given) > min(columns, rows):
        raise ParameterError(
            f"sizes={sizes!r}: a code of {max(given)} is no smaller than {columns} columns, or than {rows} training rows."
        )
    return tuple(sorted({int(size) for size in given}))


@dataclass(frozen=True)
class _Split:
    """A source, and which of its rows (rising numbers) are held out."""

    source: Source
    which: NDArray[np.intp]
    rows: int  # the others that count

    @classmethod
    def of(cls, source: Source, share: float, seed: int, *, drop: bool = False, n_threads: int | None = None) -> _Split:
        """A split of the rows with weight; with `drop`, of those without gaps."""
        counted = np.flatnonzero(np.concatenate(Passes(source, n_threads=n_threads).each(_Counts(drop))))
        n, rng = len(counted), np.random.default_rng([seed, _HELD_OUT])
        some = min(max(1, round(share * n)), n - 2)
        if some < 1:
            raise DataError(
                f"there are {n} rows, of which none can be held out", where=source.where, advice="Give more rows"
            )
        which = np.sort(rng.permutation(n)[:some]) if n <= _EXACT else np.flatnonzero(rng.random(n) < share)
        return cls(source, counted[which], n - len(which))

    @property
    def training(self) -> Source:
        """All rows, of which those held out have no weight."""
        return MappedSource(self.source, _WithoutRows(self.which))

    @property
    def held_out(self) -> Source:
        """The rows held out."""
        return RowSubset(self.source, self.which)


@dataclass(frozen=True)
class _Counts:
    """Which rows of a block count."""

    drop: bool

    def __call__(self, block: Block) -> NDArray[np.bool_]:
        counts = np.ones(block.n_rows, dtype=bool) if block.weights is None else block.weights > 0
        return counts & ~incomplete_rows(block) if self.drop else counts


@dataclass(frozen=True)
class _WithoutRows:
    which: NDArray[np.intp]

    def __call__(self, block: Block) -> Block:
        first, last = np.searchsorted(self.which, (block.start, block.start + block.n_rows))
        weights = np.ones(block.n_rows) if block.weights is None else block.weights.copy()
        weights[self.which[first:last] - block.start] = 0.0
        return replace(block, weights=weights)


@dataclass(frozen=True)
class _Fits:
    """PCA first, then one autoencoder at a step; states hold figures only."""

    prototype: Any
    split: _Split
    sizes: tuple[int, ...]
    n_threads: int | None
    deadline: Deadline
    by_size: bool = False  # whether PCA depends on the number of components, as it fills missing cells by them

    def start(self) -> State:
        """PCA's errors on the held-out rows."""
        model, few = self.prototype, len(self.sizes)
        training = self.split.training
        indicators = getattr(training, "indicators", None) or ()
        most = min(self.split.rows - 1, training.n_columns - len(indicators), max(_COMPONENTS, *self.sizes, 1))
        pca = self._pca(max(most, 1))
        held_out = with_missing(pca, self.split.held_out)
        normal = pca._normal() if model.missing == "model" and not held_out.sparse else None
        task = _PCAErrors(pca.components_.astype(np.float64), pca.mean_, pca.scale_, self.sizes, normal)
        parts = list(Passes(held_out, n_threads=self.n_threads).each(task))
        weights, errors = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        total = float(weights.sum())
        if not total > 0:
            raise DataError("the rows held out have no weight", where=self.split.source.where)
        curve = np.sum([part[2] for part in parts], axis=0) / total
        variance = float(curve[0])
        if not variance > 0:
            raise DataError(
                "the rows held out do not vary, so that there is nothing to reconstruct", where=self.split.source.where
            )
        return {
            "weights": weights,
            "pca": errors,
            "curve": curve / variance,
            "variance": np.array(variance),
            "finished": np.array(0),
            "errors": np.zeros(few),
            "standard_errors": np.zeros(few),
            "seconds": np.zeros(few),
            "cut_short": np.zeros(few),
        }

    def step(self, state: State) -> tuple[State, Figures]:
        """The next autoencoder, trained and judged."""
        number, left, began = int(state["finished"]), self.deadline.left, time.perf_counter()
        budget = None if left is None else left / (len(self.sizes) - number)
        model = clone(self.prototype).set_params(n_components=self.sizes[number], time_budget=budget)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)  # told in the result
            model.fit(self.split.training)
        if model.outcome_.reason is Reason.INTERRUPTED:  # Ctrl-C ends the comparison, not only this training
            raise KeyboardInterrupt
        seconds = time.perf_counter() - began
        errors, weights, variance = (
            np.nan_to_num(model.reconstruction_error(self.split.held_out)),  # rows without any cell lose nothing
            state["weights"],
            float(state["variance"]),
        )
        total = weights.sum()
        if self.by_size:
            state = self._with_pca_of(self.sizes[number], number, state)
        apart = (errors - state["pca"][:, number]) / variance
        mean = weights @ apart / total
        spread = weights @ (apart - mean) ** 2 / max(total - 1, 1)
        share = float(weights @ errors / total / variance)

        def put(name: str, value: float) -> Floats:
            changed = state[name].copy()
            changed[number] = value
            return changed

        new = {
            **state,
            "finished": np.array(number + 1),
            "errors": put("errors", share),
            "standard_errors": put("standard_errors", float(np.sqrt(spread / total))),
            "seconds": put("seconds", seconds),
            "cut_short": put("cut_short", float(model.outcome_.reason is Reason.OUT_OF_TIME)),
        }
        return new, {
            "size": float(self.sizes[number]),
            "error": share,
            "pca": float(state["curve"][min(self.sizes[number], len(state["curve"]) - 1)]),
        }

    def _pca(self, n_components: int) -> PCA:
        model = self.prototype
        return PCA(
            n_components,
            scale=model.scale,
            missing=model.missing,
            random_state=model.random_state,
            n_threads=self.n_threads,
        ).fit(self.split.training)

    def _with_pca_of(self, size: int, number: int, state: State) -> State:
        """The state with the errors of a PCA of so many components, which an autoencoder of this size falls back on."""
        last = len(state["curve"]) - 1
        if size > last:
            return state
        errors, curve, weights = state["pca"].copy(), state["curve"].copy(), state["weights"]
        errors[:, number] = np.nan_to_num(self._pca(size).reconstruction_error(self.split.held_out))
        curve[size] = weights @ errors[:, number] / weights.sum() / float(state["variance"])
        return {**state, "pca": errors, "curve": curve}

    def done(self, state: State) -> bool:
        """Whether all sizes are finished."""
        return int(state["finished"]) == len(self.sizes)

    def result(self, state: State) -> CodeComparison:
        """What is known of the sizes that are finished."""
        n, weights, variance = int(state["finished"]), state["weights"], float(state["variance"])
        sizes = self.sizes[:n]
        return CodeComparison(
            sizes=sizes,
            pca_errors=weights @ state["pca"][:, :n] / weights.sum() / variance,
            autoencoder_errors=state["errors"][:n],
            standard_errors=state["standard_errors"][:n],
            pca_curve=state["curve"],
            total_variance=variance,
            rows=self.split.rows,
            held_out_rows=len(self.split.which),
            seconds=state["seconds"][:n],
            cut_short=tuple(size for size, cut in zip(sizes, state["cut_short"], strict=False) if cut),
        )


@dataclass(frozen=True)
class _PCAErrors:
    """Of the rows of a block: weights, errors with each size, and the weighted sums of errors with 0, 1, 2, ... components."""

    directions: Floats
    mean: Floats
    scale: Floats | None
    sizes: tuple[int, ...]
    normal: NormalModel | None  # fills missing cells, which then count for nothing

    def __call__(self, block: Block) -> tuple[Floats, Floats, Floats]:
        """What is wanted of a block."""
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        missing = None if self.normal is None else np.isnan(block.dense())
        if missing is not None and missing.any():
            errors = self._over_observed(block, missing)
        else:
            scores = block.times(self.directions.T, self.mean, self.scale)
            norms = block.squared_norms(self.mean, self.scale)
            errors = np.maximum(norms[:, None] - np.cumsum(np.column_stack([0 * norms, scores**2]), axis=1), 0.0)
        last = errors.shape[1] - 1
        return weights, errors[:, [min(size, last) for size in self.sizes]], weights @ errors

    def _over_observed(self, block: Block, missing: NDArray[np.bool_]) -> Floats:
        assert self.normal is not None
        rest = self.normal.completed(block).times(np.eye(len(self.mean)), self.mean, self.scale)
        errors = np.empty((block.n_rows, len(self.directions) + 1))
        for number in range(len(self.directions) + 1):
            if number:
                direction = self.directions[number - 1]
                rest = rest - np.outer(rest @ direction, direction)
            errors[:, number] = np.einsum("ij,ij->i", np.where(missing, 0.0, rest), rest)
        return errors
