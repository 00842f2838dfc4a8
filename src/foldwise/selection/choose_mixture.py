"""Choosing the number of components and the covariance type of a mixture by an information criterion."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foldwise.data.missing import allow_missing, drop_incomplete
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, NotFinishedWarning, ParameterError, warn
from foldwise.fold import blas
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.base import warn_of_shares
from foldwise.models.fitted_rows import remember_rows
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.mixture import GaussianMixture, MixtureStart, TooFewRowsError
from foldwise.models.mixture.collinear import Collinear, collinear_columns
from foldwise.models.mixture.covariance import COVARIANCE_TYPES, TooFewColumnsError, complexity, simpler_types
from foldwise.models.mixture.em import ILL_DEFINED
from foldwise.models.parameters import is_whole, seed_of
from foldwise.models.session import open_passes
from foldwise.reportable import Reportable
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.observed import ObservedColumns
from foldwise.stats.signs import signed

_WITH_MATRIX = frozenset(("full", "tied", "ppca"))
CRITERIA = ("bic", "icl", "aic")
_FIGURES = ("log_likelihood", "parameters", "bic", "icl", "aic", "entropy")


@dataclass(frozen=True)
class MixtureEntry:
    """One fit: its settings, its figures (NaN if it failed), and how it ended."""

    covariance_type: str
    n_components: int
    log_likelihood: float
    parameters: int
    bic: float
    icl: float
    aic: float
    entropy: float
    outcome: str
    repairs: tuple[str, ...]
    collapsed: bool
    seconds: float
    reason: str = ""  # why the fit failed, if it did


@dataclass(frozen=True)
class MixtureChoice(Reportable):
    """The best model by one criterion (lower is better), and the figures of all fits.

    A fit with collapsed components is listed but never chosen unless there is no other, because its likelihood reflects a few
    rows rather than the data.
    """

    criterion: str
    entries: tuple[MixtureEntry, ...]
    best: MixtureEntry
    best_model: GaussianMixture
    interrupted: bool = False  # by Ctrl-C: only finished fits are listed
    collinear: tuple[str, ...] = ()  # columns that are linear combinations of others

    @property
    def table(self) -> LabelledMatrix:
        """One row per fit."""
        values = np.array([[float(getattr(entry, name)) for name in _FIGURES] for entry in self.entries])
        return LabelledMatrix(values, tuple(f"{e.covariance_type} {e.n_components}" for e in self.entries), _FIGURES)

    def grid(self, figure: str | None = None) -> LabelledMatrix:
        """One figure (default: the criterion) by number of components and covariance type."""
        name = figure or self.criterion
        kinds = tuple(dict.fromkeys(entry.covariance_type for entry in self.entries))
        numbers = sorted({entry.n_components for entry in self.entries})
        values = np.full((len(numbers), len(kinds)), np.nan)
        for entry in self.entries:
            values[numbers.index(entry.n_components), kinds.index(entry.covariance_type)] = getattr(entry, name)
        return LabelledMatrix(values, tuple(map(str, numbers)), kinds)

    def __str__(self) -> str:
        """The grid of the criterion, with the best marked."""
        grid = self.grid()
        left = max(len("components"), *(len(row) for row in grid.rows))
        lines = [(f"{'components':<{left}}" + "".join(f"  {kind:>10} " for kind in grid.columns)).rstrip()]
        for row, values in zip(grid.rows, grid.values, strict=True):
            cells = []
            for kind, value in zip(grid.columns, values, strict=True):
                mine = (kind, int(row)) == (self.best.covariance_type, self.best.n_components)
                same = [e for e in self.entries if (e.covariance_type, e.n_components) == (kind, int(row))]
                mark = "*" if mine else "!" if same and same[0].collapsed else " "
                cells.append(f"  {'-' if np.isnan(value) else f'{value:.2f}':>10}{mark}")
            lines.append(f"{row:<{left}}" + "".join(cells).rstrip())
        best = self.best
        lines.append(
            f"{self.criterion.upper()}, lower is better. *: the best ({best.covariance_type}, {best.n_components})"
            + ("; !: with collapsed components" if any(e.collapsed for e in self.entries) else "")
        )
        if self.collinear:
            lines.append(f"Linear combinations of other columns: {', '.join(self.collinear)}")
        return "\n".join(lines)


def choose_mixture(
    X: Any,
    n_components: Iterable[int] = range(1, 10),
    covariance_types: Iterable[str] = ("full", "tied", "diag", "spherical"),
    criterion: str = "bic",
    *,
    sample_weight: Any = None,
    engine: Any = None,
    **parameters: Any,
) -> MixtureChoice:
    """Fit every number of components with every covariance type, and choose by "bic", "icl" or "aic".

    Each model is fitted from its own starts, from the solution with fewer components after splitting one in two (the heaviest,
    and the one of largest volume), and from solutions of simpler covariance types with the same number; the best is kept.
    Other parameters are those of `GaussianMixture`; the defaults are tol=1e-7 and max_iter=2000, since criteria differ little.

    Columns that are linear combinations of others, or nearly so, are found first, and a warning names them; the floor of the
    variances is then the same for all fits (reg_covar="total"), since densities in such directions are as high as it allows.
    With fewer rows than columns, full and tied covariances are listed as collapsed.

    Fits that are impossible, for instance with fewer rows than components, are listed with a `reason`. After Ctrl-C the choice
    is among the finished fits, if any (`interrupted`).

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((60, 2)), [4.0, 0.0] + rng.standard_normal((40, 2))])
    >>> found = fw.choose_mixture(X, range(1, 4), ("full", "spherical"))
    >>> found.best.covariance_type, found.best.n_components
    ('spherical', 2)
    >>> print(found)
    components        full    spherical
    1               728.50       777.90
    2               719.20       704.07*
    3               736.61       719.03
    BIC, lower is better. *: the best (spherical, 2)
    """
    numbers, kinds = _asked(n_components, covariance_types, criterion, parameters)
    parameters = {"tol": 1e-7, "max_iter": 2000, **parameters}
    if parameters.get("random_state") is not None:  # one seed for all fits
        parameters["random_state"] = seed_of(parameters["random_state"])
    interrupted = False
    models: dict[tuple[str, int], GaussianMixture] = {}
    entries: dict[tuple[str, int], MixtureEntry] = {}
    policy = parameters.get("missing", "error")
    scanned = scan(X, weights=sample_weight)
    with open_passes(scanned if policy == "error" else allow_missing(scanned), engine=engine) as passes:
        observed = _observed(passes, policy)
        collinear = _collinear(passes, kinds, observed, policy)
        # Criteria are of the rows that models are fitted to.
        judged = (
            passes.source if observed is None or policy != "drop" else drop_incomplete(passes.source, observed.mean)
        )
        if sample_weight is not None:
            columns = passes.fold(ColumnMoments.of)
            warn_of_shares(columns.weight, columns.rows, "criteria then choose too many components")
        if collinear and parameters.get("reg_covar", "auto") == "auto":
            parameters = {**parameters, "reg_covar": "total"}
        names = passes.source.names
        collinear.warn(names)  # before fits that may take long
        try:
            for k in numbers:
                for kind in sorted(kinds, key=complexity):
                    model = GaussianMixture(k, covariance_type=kind, **parameters)
                    entry = _tried(model, passes.source, judged, _starts(model, models))
                    if collinear.few_rows and kind in _WITH_MATRIX and not math.isnan(entry.bic):
                        entry = replace(entry, collapsed=True)
                    if not math.isnan(entry.bic):
                        models[kind, k] = model
                    entries[kind, k] = entry
        except KeyboardInterrupt:
            if not any((kind, k) in models for kind, k in entries):
                raise
            interrupted = True
    listed = tuple(entries[kind, k] for kind in kinds for k in numbers if (kind, k) in entries)
    usable = [e for e in listed if not math.isnan(e.bic)]
    if not usable:
        advice = "Try fewer components, a simpler covariance type, or more rows"
        raise DataError(listed[0].reason, where=scanned.where, advice=advice)
    best = min(usable, key=lambda e: (e.collapsed, getattr(e, criterion), e.parameters))
    if interrupted:
        message = (
            f"choose_mixture: interrupted after {len(listed)} of {len(kinds) * len(numbers)} fits; chosen from these."
        )
        warn(message, NotFinishedWarning)
    if any(e.outcome != Reason.CONVERGED for e in usable):
        message = "choose_mixture: some of the fits stopped before they converged; raise max_iter, or loosen tol."
        warn(message, NotFinishedWarning)
    chosen = models[best.covariance_type, best.n_components]
    chosen.warn_of_constant_columns()
    told = () if collinear.few_rows else tuple(names[j] if names else f"x{j}" for j in collinear.columns)
    remember_rows(chosen, X, sample_weight, scanned.n_rows)
    return MixtureChoice(criterion, listed, best, chosen, interrupted, told)


def _observed(passes: Passes, policy: str) -> ObservedColumns | None:
    """What is observed, if cells are missing and may be."""
    if policy == "error" or passes.source.sparse:
        return None
    found = passes.fold(ObservedColumns.of)
    return found if found.cells and (found.weight > 0).all() else None  # a fit tells of empty columns


def _collinear(passes: Passes, kinds: list[str], observed: ObservedColumns | None, policy: str) -> Collinear:
    """Linear combinations among the columns, if any covariance type has to do with them."""
    source = passes.source
    if source.n_columns < 2 or source.sparse or not _WITH_MATRIX & set(kinds):
        return Collinear()
    return collinear_columns(passes, observed, policy)


def _asked(
    n_components: Iterable[int], covariance_types: Iterable[str], criterion: str, parameters: dict[str, Any]
) -> tuple[list[int], list[str]]:
    given = [n_components] if isinstance(n_components, (int, np.integer)) else n_components
    listed = list(given)
    if not all(is_whole(k) for k in listed):
        raise ParameterError(f"n_components={listed}: give whole numbers.")
    numbers = sorted({int(k) for k in listed})
    kinds = [covariance_types] if isinstance(covariance_types, str) else list(dict.fromkeys(covariance_types))
    if not numbers or numbers[0] < 1:
        raise ParameterError(f"n_components={numbers}: give whole numbers of at least 1.")
    if not kinds or any(kind not in COVARIANCE_TYPES for kind in kinds):
        raise ParameterError(f"covariance_types={kinds}: give one or more of {', '.join(COVARIANCE_TYPES)}.")
    if criterion not in CRITERIA:
        raise ParameterError(f"criterion={criterion!r}: give one of {', '.join(CRITERIA)}.")
    wrong = {"covariance_type", "checkpoint", "time_budget", "warm_start"} | {
        name for name in parameters if name.endswith("_init") and name != "n_init"
    }
    if wrong & set(parameters):
        raise ParameterError(
            f"{', '.join(sorted(wrong & set(parameters)))} cannot be passed to choose_mixture, which fits many models."
        )
    return numbers, kinds


def _tried(model: GaussianMixture, source: Source, judged: Source, starts: list[MixtureStart]) -> MixtureEntry:
    """Fit, and return the figures for the rows `judged` by; Ctrl-C ends the whole search, not only the current fit."""
    try:
        model.fit_from_starts(source, starts, warn=False)
    except TooFewColumnsError as error:
        return _failed(model, 0, str(error))
    except DataError as error:
        if not isinstance(error, TooFewRowsError) and error.what != ILL_DEFINED:
            raise
        covariance = COVARIANCE_TYPES[model.covariance_type].of_columns(source.n_columns, model.n_latent)
        return _failed(model, covariance.n_parameters(model.n_components), error.what)
    if model.outcome_.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    figures: dict[str, Any] = model.criteria(judged)
    p = int(figures.pop("parameters"))
    return MixtureEntry(
        model.covariance_type,
        model.n_components,
        parameters=p,
        outcome=str(model.outcome_.reason),
        repairs=model.manifest_.repairs,
        collapsed=model.collapsed_,
        seconds=model.manifest_.seconds,
        **figures,
    )


def _failed(model: GaussianMixture, parameters: int, reason: str) -> MixtureEntry:
    nothing: dict[str, Any] = dict.fromkeys(("log_likelihood", "bic", "icl", "aic", "entropy"), float("nan"))
    return MixtureEntry(
        model.covariance_type,
        model.n_components,
        parameters=parameters,
        outcome="failed",
        repairs=(),
        collapsed=reason == ILL_DEFINED,
        seconds=0.0,
        reason=reason,
        **nothing,
    )


def _starts(model: GaussianMixture, models: dict[tuple[str, int], GaussianMixture]) -> list[MixtureStart]:
    """Additional starts: from fewer components, and from simpler covariance types."""
    kind, k = model.covariance_type, model.n_components
    made: list[MixtureStart] = []
    fewer = [n for known, n in models if known == kind and n < k]
    if fewer:
        made += [_split(models[kind, max(fewer)], k, by) for by in ("weight", "room")]
    for simpler in simpler_types(kind):
        if (simpler, k) in models and k > 1:
            other = models[simpler, k]
            made.append(MixtureStart(other.weights_, other.means_, other.covariance_matrices()))
    return made


def _split(model: GaussianMixture, k: int, by: str) -> MixtureStart:
    """The components of a model, some of them split along their principal axis so that there are k."""
    weights, means, matrices = model.weights_.copy(), model.means_.copy(), model.covariance_matrices()
    while len(weights) < k:
        size = weights if by == "weight" else weights * np.trace(matrices, axis1=1, axis2=2)
        j = int(np.argmax(size))
        with blas.single():
            values, vectors = np.linalg.eigh(matrices[j])
        step = signed(vectors[:, -1][None])[0] * (math.sqrt(max(values[-1], 0.0)) / 2)
        # At this distance, the two halves together have the covariance of the original.
        rest = matrices[j] - np.outer(step, step)
        weights = np.append(weights, weights[j] / 2)
        weights[j] /= 2
        means = np.vstack([means, means[j] + step])
        means[j] = means[j] - step
        matrices = np.concatenate([matrices, rest[None]])
        matrices[j] = rest
    return MixtureStart(weights, means, matrices)
