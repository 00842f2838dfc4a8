"""Categories as numbers: every level becomes a column that is 1 in the rows that have it and 0 elsewhere.

Categories arrive as columns of level codes; `Expand` turns these into indicator columns, block by block. What makes the
geometry of FAMD and MCA of it is the scale that a fit uses for such columns (`models/standardise.py`): a number is divided by
its standard deviation, an indicator by the square root of its share of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check
from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.block_grid import rows_per_block
from foldwise.data.mapped import MappedSource
from foldwise.data.notes import Note
from foldwise.data.recut import cut_every
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError

UNSEEN = -1  # the code of a level that the fit did not see
_RARE = 0.01
_FEWEST = 2
_SHOWN = 5


@dataclass(frozen=True)
class Levels:
    """The levels of a category, in the order of their codes 0, 1, ...

    `counts` are the numbers of rows (sums of weights) that have each level. If levels were pooled, the last one stands for all
    of `pooled`.
    """

    name: str
    levels: tuple[str, ...]
    counts: tuple[float, ...]
    pooled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.levels or len(self.levels) != len(self.counts):
            raise DataError(
                f"{len(self.levels)} levels with {len(self.counts)} counts",
                column=self.name,
                advice="A category needs at least one level that is not missing, and a count for each",
            )

    @property
    def other(self) -> str | None:
        """The level that the rare ones were pooled into, if any were."""
        return self.levels[-1] if self.pooled else None

    @property
    def shares(self) -> Floats:
        """The share of each level among the rows where the category is known."""
        counts = np.asarray(self.counts, dtype=np.float64)
        total = counts.sum()
        return counts / total if total > 0 else np.full(len(counts), 1 / len(counts))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the indicator columns."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of every known level, also of those that were pooled."""
        own = {level: code for code, level in enumerate(self.levels[:-1] if self.pooled else self.levels)}
        return own | dict.fromkeys(self.pooled, len(self.levels) - 1)

    def code(self, values: Iterable[Any]) -> Floats:
        """The codes of some cells: NaN where they are missing, -1 for levels that are not known.

        >>> Levels("sex", ("f", "m"), (3, 5)).code(["m", "f", None, "x"])
        array([ 1.,  0., nan, -1.])
        """
        codes = self.codes
        return np.array([np.nan if _missing(one) else codes.get(str(one), UNSEEN) for one in values], dtype=np.float64)

    @property
    def note(self) -> Note | None:
        """What was pooled, in one sentence; None if nothing was."""
        if not self.pooled:
            return None
        shown = ", ".join(self.pooled[:_SHOWN]) + (", ..." if len(self.pooled) > _SHOWN else "")
        share = f"{100 * float(self.shares[-1]):.2g} % of the known cells"
        return Note(
            "rare-levels", f"{self.name}: {len(self.pooled)} rare levels pooled into {self.other!r} ({share}): {shown}"
        )


def find_levels(
    name: str,
    counts: Mapping[str, float],
    *,
    order: str = "name",
    rare: float = _RARE,
    fewest: float = _FEWEST,
) -> Levels:
    """The levels of a category from how often each occurs.

    Codes follow the alphabet (or the size of the numbers, if all levels are numbers), as in R; with order="frequency" the most
    frequent level comes first, ties by the alphabet. Levels with a share below `rare`, or in fewer than `fewest` rows, are
    pooled into one, which comes last; not so if there is only one of them, or nothing would remain beside them.

    >>> find_levels("pet", {"dog": 60, "cat": 38, "newt": 1, "emu": 1}).levels
    ('cat', 'dog', 'other')
    """
    if order not in ("name", "frequency"):
        raise ParameterError(f"order={order!r} of levels must be 'name' or 'frequency'")
    total = float(sum(counts.values()))
    ordered = sorted(counts, key=_sort_key(counts))
    if order == "frequency":
        ordered.sort(key=lambda level: -counts[level])  # stable, so that ties stay in order
    scarce = {level for level in ordered if counts[level] < rare * total or counts[level] < fewest}
    if len(scarce) < 2 or len(scarce) == len(ordered):
        return Levels(name, tuple(ordered), tuple(float(counts[level]) for level in ordered))
    kept = [level for level in ordered if level not in scarce]
    pooled = tuple(level for level in ordered if level in scarce)
    rest = float(sum(counts[level] for level in pooled))
    return Levels(name, (*kept, _unused("other", kept)), (*(float(counts[level]) for level in kept), rest), pooled)


def _sort_key(levels: Iterable[str]) -> Any:
    try:
        numbers = {level: float(level) for level in levels}
    except ValueError:
        return str
    return lambda level: (numbers[level], level)


def _unused(name: str, taken: Sequence[str]) -> str:
    """The name, with a word added if a level has it already."""
    return name if name not in taken else _unused(f"{name} (pooled)", taken)


@dataclass(frozen=True)
class IndicatorGroup:
    """The neighbouring columns that stand for one category: which is the first, and the level of each."""

    name: str
    first: int
    levels: tuple[str, ...]

    @property
    def stop(self) -> int:
        """One past the last column."""
        return self.first + len(self.levels)

    @property
    def columns(self) -> slice:
        """The columns."""
        return slice(self.first, self.stop)


def in_groups(groups: Sequence[IndicatorGroup], n_columns: int) -> NDArray[np.bool_]:
    """Which of the columns are indicators."""
    inside = np.zeros(n_columns, dtype=bool)
    for group in groups:
        inside[group.columns] = True
    return inside


@dataclass(frozen=True)
class Expand:
    """Columns of level codes as indicators; `columns` has the levels of each column, or None for one of numbers.

    Code k gives a 1 in the k-th of the columns. A missing code (NaN) makes all of them missing; the code -1, a level that is
    not known, gives each its share, so that the row lies at the centre of this category. The order of the columns stays.
    """

    columns: tuple[Levels | None, ...]
    shares: Floats | None = None  # of all the columns that come out; None: those of the levels

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first of the columns that come out for each that goes in."""
        widths = [1 if one is None else len(one.levels) for one in self.columns]
        return tuple(int(at) for at in np.cumsum([0, *widths])[:-1])

    @property
    def n_columns(self) -> int:
        """How many columns come out."""
        return sum(1 if one is None else len(one.levels) for one in self.columns)

    @cached_property
    def groups(self) -> tuple[IndicatorGroup, ...]:
        """The categories."""
        pairs = zip(self.columns, self.firsts, strict=True)
        return tuple(IndicatorGroup(one.name, first, one.levels) for one, first in pairs if one is not None)

    def names(self, given: Sequence[str] | None) -> tuple[str, ...]:
        """The names of the columns that come out."""
        found: list[str] = []
        for j, one in enumerate(self.columns):
            found += [f"x{j}" if given is None else given[j]] if one is None else one.column_names
        check.names(found, "encoded categories")
        return tuple(found)

    def about(self, shares: Floats) -> Expand:
        """The same with levels that are not known at these shares: the means of the columns in a fit."""
        return replace(self, shares=np.asarray(shares, dtype=np.float64))

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], ...]:
        """Of the numbers the columns that go in and come out; of the categories too, and how many levels each has."""
        given = [(j, first, one) for j, (first, one) in enumerate(zip(self.firsts, self.columns, strict=True))]
        numbers = np.array([(j, first) for j, first, one in given if one is None], dtype=np.intp).reshape(-1, 2)
        words = [(j, first, len(one.levels)) for j, first, one in given if one is not None]
        return (*numbers.T, *np.array(words, dtype=np.intp).reshape(-1, 3).T)

    def __call__(self, block: Block) -> Block:
        """The block with indicators."""
        given, (numbers, stay, words, firsts, sizes) = block.unchecked, self._places
        out = np.zeros((block.n_rows, self.n_columns), dtype=given.dtype)
        out[:, stay] = given[:, numbers]
        codes = given[:, words]
        with np.errstate(invalid="ignore"):  # a missing code is no whole number, and is seen to below
            at = codes.astype(np.intp)
        known = (at == codes) & (at >= 0) & (at < sizes)
        at += firsts
        at += np.arange(0, out.size, self.n_columns)[:, None]
        if known.all():
            out.reshape(-1)[at.reshape(-1)] = 1
        else:
            out.reshape(-1)[at[known]] = 1
            self._fill(out, codes, known, block.start)
        return DenseBlock(out, block.start, block.weights, _AsGiven(block, self.firsts))

    def _fill(self, out: NDArray[Any], codes: NDArray[Any], known: NDArray[np.bool_], start: int) -> None:
        """The indicators of cells without a known level."""
        categories = [levels for levels in self.columns if levels is not None]
        for k in np.flatnonzero(~known.all(axis=0)):
            levels, group, column = categories[k], self.groups[k], codes[:, k]
            unseen, missing = column == UNSEEN, np.isnan(column)
            wrong = ~(known[:, k] | unseen | missing)
            if wrong.any():
                row, last = int(np.argmax(wrong)), len(levels.levels) - 1
                raise DataError(
                    f"{column[row]:g} is not the code of a level",
                    row=start + row,
                    column=levels.name,
                    advice=f"Codes are whole numbers from 0 to {last}, or -1 for a level that is not known",
                )
            out[unseen, group.columns] = levels.shares if self.shares is None else self.shares[group.columns]
            out[missing, group.columns] = np.nan


@dataclass(frozen=True)
class _AsGiven:
    """The check of the block that went in: what is wrong is reported by the column that the user knows."""

    block: Block
    firsts: tuple[int, ...]

    def __call__(self, values: NDArray[Any], start: int) -> None:
        """Check indicators; missing ones that a model deals with arrive here as zeros, and are no concern of the check."""
        if isinstance(self.block, DenseBlock) and self.block.check is not None:
            wrong = ~np.isfinite(values[:, list(self.firsts)])
            if wrong.any():
                self.block.check(np.where(wrong, self.block.values, self.block.values.dtype.type(0)), start)


def expanded(source: Source, columns: Sequence[Levels | None]) -> Source:
    """The source with its columns of codes as indicators; it has an attribute `indicators`, a tuple of `IndicatorGroup`.

    Blocks are cut by the number of columns that come out, so that they are no larger than others.
    """
    if len(columns) != source.n_columns:
        raise DataError(f"levels of {len(columns)} columns were given for {source.n_columns}", where=source.where)
    if source.sparse:
        raise DataError("sparse rows cannot hold codes of categories", where=source.where, advice="Use X.toarray()")
    expand = Expand(tuple(columns))
    if not expand.groups:
        return source
    cut = cut_every(source, rows_per_block(expand.n_columns, source.dtype))
    return MappedSource(
        cut,
        expand,
        n_columns=expand.n_columns,
        names=expand.names(source.names),
        positions=None,
        indicators=expand.groups,
    )


def at_centre(source: Source, means: Floats) -> Source:
    """Rows for a model whose columns had these means: levels that it does not know lie at its centre, whoever counted them."""
    if not isinstance(source, MappedSource):
        return source
    if isinstance(source.change, Expand):
        return MappedSource(source.source, source.change.about(means), source.dtype, **source.about)
    inner = at_centre(source.source, means)
    return source if inner is source.source else source.over(inner)


def encode(
    table: Any,
    *,
    categories: Sequence[str] | None = None,
    levels: Mapping[str, Levels] | None = None,
    weights: Any = None,
    dtype: Any = None,
    order: str = "name",
    rare: float = _RARE,
    fewest: float = _FEWEST,
) -> Source:
    """The columns of a table in memory, a mapping or a data frame, with categories as indicators.

    Columns that are not numbers are categories, and those named in `categories`; missing cells are None or NaN. `levels` are
    those of an earlier table, for rows that a model is applied to; the other parameters are those of `find_levels`.

    >>> source = encode({"mass": [3.5, 4.0, 5.1], "sex": ["f", "m", "m"]})
    >>> source.names, source.indicators[0].levels
    (('mass', 'sex=f', 'sex=m'), ('f', 'm'))
    """
    names = [str(name) for name in (table if isinstance(table, Mapping) else table.columns)]
    counted = None if weights is None else np.asarray(weights, dtype=np.float64)
    values, found = [], list[Levels | None]()
    for name in names:
        column = np.asarray(table[name])
        if column.dtype.kind in "iuf" and name not in (categories or ()):
            values.append(column)
            found.append(None)
            continue
        cells = column.tolist()
        known = (levels or {}).get(name) or find_levels(
            name, _counts(cells, counted), order=order, rare=rare, fewest=fewest
        )
        values.append(known.code(cells))
        found.append(known)
    wanted = check.float_dtype(dtype) or np.dtype(np.float64)
    rows = np.column_stack([column.astype(wanted) for column in values])
    given = None if weights is None else check.weights(counted, "array", len(rows))
    return expanded(ArraySource(rows, names=tuple(names), weights=given, dtype=wanted), found)


def _counts(cells: Iterable[Any], weights: Floats | None) -> dict[str, float]:
    counts: dict[str, float] = {}
    for i, cell in enumerate(cells):
        if not _missing(cell):
            counts[str(cell)] = counts.get(str(cell), 0.0) + (1.0 if weights is None else float(weights[i]))
    return counts


def _missing(value: Any) -> bool:
    return check.is_missing(value) or (isinstance(value, float) and value != value)


def decode(values: Any, groups: Sequence[IndicatorGroup]) -> dict[str, NDArray[Any]]:
    """The category of each row from its indicators, whole or not: the level with the largest; None where it is missing.

    So a row that `PCA.inverse_transform` gives back, or a centre of k-means in units of the data, becomes words again.

    >>> decode([[4.2, 0.7, 0.3], [3.1, 0.2, 0.8]], [IndicatorGroup("sex", 1, ("f", "m"))])
    {'sex': array(['f', 'm'], dtype=object)}
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    found: dict[str, NDArray[Any]] = {}
    for group in groups:
        if group.stop > rows.shape[1]:
            raise DataError(f"{rows.shape[1]} columns are too few for the indicators of {group.name!r}")
        part = rows[:, group.columns]
        missing = np.isnan(part).any(axis=1)
        named = np.array(group.levels, dtype=object)[np.argmax(np.where(np.isnan(part), -np.inf, part), axis=1)]
        named[missing] = None
        found[group.name] = named
    return found
