"""How every fit begins and ends: check parameters, open data, set up passes and seed; then manifest, columns and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.cache import cached
from foldwise.data.mapped import standardised
from foldwise.data.missing import allow_missing, drop_incomplete, fill_missing
from foldwise.data.source import Source, column_label
from foldwise.data.spool import spooled
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.fold import blas
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.deadline import Deadline
from foldwise.fold.engine import current, use
from foldwise.fold.outcome import Outcome
from foldwise.fold.passes import Passes
from foldwise.models.base import opened_for_fit, remember_columns
from foldwise.models.fitted_rows import remember_rows
from foldwise.models.parameters import identity, seed_of
from foldwise.models.standardise import deviation, mean_and_deviation, standardises
from foldwise.prepare.encode import IndicatorGroup, in_groups
from foldwise.stats.observed import ObservedColumns


@contextmanager
def open_passes(
    source: Source, *, engine: Any = None, n_threads: int | None = None, spool: bool = True
) -> Iterator[Passes]:
    """Passes over a source with the requested engine; blocks that are slow to decode are decoded once."""
    with use(engine):
        # Remote workers read the files themselves and keep their own scratch files.
        here = spool and not current().remote
        with spooled(source) if here and source.slow else nullcontext(source) as opened:
            yield Passes(cached(opened), n_threads=n_threads)


@dataclass
class Session:
    """A fit in progress: passes over the transformed rows, and the transformations applied to them."""

    model: Any
    data: Source  # the rows as given
    passes: Passes
    seed: int
    mean: Floats | None = None
    scale: Floats | None = None
    observed: ObservedColumns | None = None  # what is missing in the rows as given, however it is dealt with
    missing: ObservedColumns | None = None  # the same if the model has to deal with NaN in its blocks
    fill: Floats | None = None  # what is put into missing cells, also of rows to come
    given: tuple[Any, Any] | None = None  # the rows and the weights as they were given to fit

    @property
    def source(self) -> Source:
        """The transformed rows that the model is fitted to."""
        return self.passes.source

    @property
    def where(self) -> str | None:
        """How messages refer to the data; None for arrays."""
        return self.data.where if self.data.where != "array" else None

    @cached_property
    def deadline(self) -> Deadline:
        """The end of the model's time budget, which begins when the fit does."""
        return Deadline(self.model.time_budget, self.passes.counter.started)

    def checkpoint(
        self, *figures: Any, resumable_cap: bool = False, every: float = 1.0, **beside: Any
    ) -> Checkpoint | None:
        """The requested checkpoint, tied to the parameters that affect the result, to the data and to `figures`.

        `resumable_cap` means that max_iter only stops the fit, which can then be resumed with a higher limit. At least `every`
        seconds lie between two writes. `beside` holds anything else that the result depends on.
        """
        path = self.model.checkpoint
        if path is None:
            return None
        declared = self.model.PARAMETERS
        about = {
            name: value for name, value in self.model.get_params(deep=False).items() if declared[name].affects_result
        }
        if resumable_cap:
            about.pop("max_iter", None)
        about["random_state"] = self.seed
        return open_checkpoint(path, type(self.model).__name__, {**about, **beside}, self.data, *figures, every=every)

    def finish(
        self,
        outcome: Outcome,
        algorithm: str,
        rows: int,
        *,
        resumed_at: int = 0,
        repairs: tuple[str, ...] = (),
        spooled_bytes: int | None = None,
        notes: tuple[str, ...] = (),
        warning: str | None = None,
        category: type[NotFinishedWarning] = NotFinishedWarning,
        quiet: bool = False,
    ) -> None:
        """Record the manifest and the columns, and warn if the fit did not finish, unless `quiet`.

        `spooled_bytes` is the size of the model's own scratch file.
        """
        if self.observed is not None and self.observed.cells:
            indicators = getattr(self.data, "indicators", None)
            notes = (*notes, missing_note(self.observed, self.model.missing, indicators))
        manifest = self.passes.manifest(algorithm, rows=rows, resumed_at=resumed_at, repairs=repairs, notes=notes)
        self.model.manifest_ = manifest if spooled_bytes is None else replace(manifest, spooled_bytes=spooled_bytes)
        self.model.outcome_ = outcome
        remember_columns(self.model, self.data)
        if self.given is not None:
            remember_rows(self.model, *self.given, self.data.n_rows)
        if self.fill is not None:
            self.model.fill_values_ = self.fill
        if not quiet:
            outcome.warn(warning or type(self.model).__name__, category)


@contextmanager
def session(
    model: Any,
    X: Any,
    sample_weight: Any = None,
    *,
    engine: Any = None,
    dense: str | None = None,
    spool: Callable[[Source], bool] | bool = True,
    view: Callable[[Source], Source] | None = None,
    centre: bool = True,
) -> Iterator[Session]:
    """Open a fit of `model` to `X`.

    `dense` names what requires dense rows, for models that refuse sparse data. With scale=True, columns are standardised
    (dense ones about their mean, unless `centre` is False), as they always are if they stand for categories; then `view` is
    applied.
    """
    model._validate_params()
    source = opened_for_fit(model, X, sample_weight)
    if dense is not None:
        check_dense(source, dense)
    policy = getattr(model, "missing", "error")
    if policy != "error":
        source = allow_missing(source)
    keep = spool if isinstance(spool, bool) else source.slow and spool(source)
    opening = open_passes(source, engine=engine, n_threads=model.n_threads, spool=keep)
    with opening as passes, blas.single_for(source.n_rows, source.n_columns):
        opened = Session(model, passes.source, passes, seed_of(model.random_state), given=(X, sample_weight))
        seen, complete = opened.data, passes
        if policy != "error" and not source.sparse:
            found = passes.fold(ObservedColumns.of)
            opened.fill = None if policy == "model" else found.mean
            if found.cells or found.weightless:
                opened.observed = _some_observed(found, passes.source)
            if opened.observed is not None and policy == "model":
                opened.missing = opened.observed
            elif opened.observed is not None:
                seen = (drop_incomplete if policy == "drop" else fill_missing)(seen, opened.observed.mean)
                complete = passes.over(cached(seen))
                _check_some_complete(opened.observed, policy, source)
        if standardises(model, opened.data):
            gaps = opened.missing
            mean, opened.scale = mean_and_deviation(complete) if gaps is None else (gaps.mean, deviation(gaps, source))
            opened.mean = mean if centre and not source.sparse else None
        seen = standardised(seen, opened.mean, opened.scale)
        seen = seen if view is None else view(seen)
        if seen is not opened.data:
            opened.passes = passes.over(cached(seen))
        with _located(source):
            yield opened


def _some_observed(found: ObservedColumns, source: Source) -> ObservedColumns:
    """Refuse a column of which nothing is observed."""
    unseen = found.weight == 0
    if unseen.any():
        raise DataError(
            "every cell of this column is missing",
            where=source.where,
            column=column_label(source, int(np.argmax(unseen))),
            advice="Leave the column out",
        )
    return found


def _check_some_complete(found: ObservedColumns, policy: str, source: Source) -> None:
    if policy == "drop" and found.incomplete == found.rows:
        raise DataError(
            f"each of the {found.rows} rows has a missing cell, so that none is left",
            where=source.where,
            advice="Use missing='model', or leave out the columns with the most missing cells",
        )


def missing_note(found: ObservedColumns, policy: str, indicators: tuple[IndicatorGroup, ...] | None = None) -> str:
    """What is missing and what was done about it, in one line; the indicators of a category count as one cell.

    >>> import foldwise as fw
    >>> nan = float("nan")
    >>> fw.KMeans(2, missing="mean").fit([[1.0, 2.0], [nan, 3.0], [5.0, 4.0]]).manifest_.notes[-1]
    '1 missing cell in 1 of 3 rows and 1 column: filled with the column means'
    """
    first = ~in_groups(indicators or (), len(found.missing))
    first[[group.first for group in indicators or ()]] = True
    missing = found.missing[first]
    n_cells, n_columns = int(missing.sum()), int(np.count_nonzero(missing))
    cells, columns = f"{n_cells:,} missing cell{'s' * (n_cells != 1)}", f"{n_columns:,} column{'s' * (n_columns != 1)}"
    done = {"drop": "these rows left out", "mean": "filled with the column means", "model": "left to the model"}[policy]
    blank = f"; {found.blank:,} of these rows have no value at all" if found.blank else ""
    return f"{cells} in {found.incomplete:,} of {found.rows:,} rows and {columns}: {done}{blank}"


@contextmanager
def _located(source: Source) -> Iterator[None]:
    """Errors about columns that were known only by number, or about no column at all, say where in the data it was."""
    where = source.where if source.where != "array" else None
    try:
        yield
    except np.linalg.LinAlgError as problem:
        raise DataError(
            f"a matrix of these values cannot be decomposed in float64 ({problem})",
            where=where,
            advice="Values of 1e150 and more are too large for it: divide the data by a constant",
        ) from problem
    except DataError as problem:
        if problem.where is not None or not isinstance(problem.column, int):
            raise
        column = column_label(source, problem.column)
        raise type(problem)(problem.what, where=where, row=problem.row, column=column, advice=problem.advice) from None


def open_checkpoint(
    path: Any, kind: str, about: dict[str, Any], source: Source, *figures: Any, every: float = 1.0
) -> Checkpoint:
    """A checkpoint tied to parameters, to the data and to figures from a pass over them."""
    checkpoint = Checkpoint(path, f"{kind} {identity(about)} {source.fingerprint()}", every=every)
    if figures:
        checkpoint.bind(*figures)
    return checkpoint


def check_dense(source: Source, what: str) -> None:
    """Refuse sparse rows."""
    if source.sparse:
        raise DataError(
            f"sparse data was passed, but {what} require dense rows",
            advice="Use X.toarray(), or fw.KMeans, or reduce the columns first with fw.PCA: both accept sparse rows",
        )
