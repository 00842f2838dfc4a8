"""How many components, and of which shape: every number with every covariance type, and the table of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from foldwise.data.block import Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError
from foldwise.fold.outcome import Reason
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.mixture import GaussianMixture, starts
from foldwise.models.mixture.covariance_types import CovarianceType
from foldwise.models.mixture.em import ILL_DEFINED
from foldwise.models.mixture.estimator import TooFewRowsError
from foldwise.models.mixture.fit_data import FitData, latent
from foldwise.models.mixture.parameters import is_whole
from foldwise.models.mixture.starts import Start, UserInit

CRITERIA = ("bic", "icl", "aic")
TYPES = ("full", "tied", "diag", "spherical", "ppca")
_SIMPLER = {"diag": ("spherical",), "full": ("diag", "tied"), "tied": (), "spherical": (), "ppca": ()}
_ORDER = (
    "spherical",
    "diag",
    "tied",
    "ppca",
    "full",
)  # simpler families first: richer ones start from their results, too
_FIGURES = ("log_likelihood", "parameters", "bic", "icl", "aic", "entropy")


@dataclass(frozen=True)
class Entry:
    """One fit: what was fitted, its figures (NaN if it failed), and how it ended."""

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
    reason: str = ""  # why it failed, if it did


@dataclass(frozen=True)
class MixtureSelection:
    """The best model by one criterion (lower is better), and the figures of all.

    A fit with collapsed components is in the table but is never the best, unless there is no other: its likelihood says more
    about a few rows than about the data.
    """

    criterion: str
    entries: tuple[Entry, ...]
    best: Entry
    best_model: GaussianMixture
    interrupted: bool = False  # by Ctrl-C: the entries are those that were finished

    @property
    def table(self) -> LabelledMatrix:
        """One line for each fit."""
        values = np.array([[float(getattr(entry, name)) for name in _FIGURES] for entry in self.entries])
        return LabelledMatrix(values, tuple(f"{e.covariance_type} {e.n_components}" for e in self.entries), _FIGURES)

    def grid(self, figure: str | None = None) -> LabelledMatrix:
        """One figure (the criterion, unless it is said) by number of components and covariance type."""
        name = figure or self.criterion
        kinds = tuple(dict.fromkeys(entry.covariance_type for entry in self.entries))
        numbers = sorted({entry.n_components for entry in self.entries})
        values = np.full((len(numbers), len(kinds)), np.nan)
        for entry in self.entries:
            values[numbers.index(entry.n_components), kinds.index(entry.covariance_type)] = getattr(entry, name)
        return LabelledMatrix(values, tuple(map(str, numbers)), kinds)

    def __str__(self) -> str:
        """The grid of the criterion, and the best."""
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
        return "\n".join(lines)


def select_mixture(
    X: Any,
    n_components: Iterable[int] = range(1, 10),
    covariance_types: Iterable[str] = ("full", "tied", "diag", "spherical"),
    criterion: str = "bic",
    *,
    sample_weight: Any = None,
    **parameters: Any,
) -> MixtureSelection:
    """Fit every number of components with every covariance type, and choose by "bic", "icl" or "aic".

    Each is tried from starts of its own, from the result with fewer components with one of them split in two (the heaviest, and
    the one that fills most room), and from the results of simpler families with as many; the best is kept. Other parameters are
    those of `GaussianMixture`; tol is 1e-7 and max_iter 2000 unless they are given, since criteria differ by little.

    Fits that cannot be, as with fewer rows than components, are in the table with a `reason`. After Ctrl-C the choice is among
    the fits that were finished, if there are any (`interrupted`).

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((60, 2)), [4.0, 0.0] + rng.standard_normal((40, 2))])
    >>> found = fw.select_mixture(X, range(1, 4), ("full", "spherical"))
    >>> found.best.covariance_type, found.best.n_components
    ('spherical', 2)
    >>> print(found)
    components        full    spherical
    1               728.50       777.90
    2               719.20       704.07*
    3               738.30       719.67
    BIC, lower is better. *: the best (spherical, 2)
    """
    numbers, kinds = _asked(n_components, covariance_types, criterion, parameters)
    parameters = {"tol": 1e-7, "max_iter": 2000, **parameters}
    if not isinstance(parameters.get("random_state"), (int, np.integer, type(None))):  # drawn from once, for all fits
        parameters["random_state"] = int(check_random_state(parameters["random_state"]).randint(2**31 - 1))
    interrupted = False
    models: dict[tuple[str, int], GaussianMixture] = {}
    entries: dict[tuple[str, int], Entry] = {}
    with spooled(scan(X, weights=sample_weight)) as source:
        try:
            for k in numbers:
                for kind in sorted(kinds, key=_ORDER.index):
                    model = GaussianMixture(k, covariance_type=kind, **parameters)
                    entry = _tried(model, source, _starts(model, models))
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
        raise DataError(listed[0].reason)
    best = min(usable, key=lambda e: (e.collapsed, getattr(e, criterion), e.parameters))
    if interrupted:
        message = (
            f"select_mixture: interrupted after {len(listed)} of {len(kinds) * len(numbers)} fits; chosen from these."
        )
        warnings.warn(message, NotFinishedWarning, stacklevel=2)
    if any(e.outcome != Reason.CONVERGED for e in usable):
        message = "select_mixture: some of the fits stopped before they converged; raise max_iter, or loosen tol."
        warnings.warn(message, NotFinishedWarning, stacklevel=2)
    chosen = models[best.covariance_type, best.n_components]
    chosen._tell_of_constants()
    return MixtureSelection(criterion, listed, best, chosen, interrupted)


def _asked(
    n_components: Iterable[int], covariance_types: Iterable[str], criterion: str, parameters: dict[str, Any]
) -> tuple[list[int], list[str]]:
    given = [n_components] if isinstance(n_components, (int, np.integer)) else n_components
    listed = list(given)
    if not all(is_whole(k) for k in listed):
        raise ParameterError(f"n_components={listed}: give whole numbers of components.")
    numbers = sorted({int(k) for k in listed})
    kinds = [covariance_types] if isinstance(covariance_types, str) else list(dict.fromkeys(covariance_types))
    if not numbers or numbers[0] < 1:
        raise ParameterError(f"n_components={numbers}: give numbers of components from 1 on.")
    unknown = [kind for kind in kinds if kind not in TYPES]
    if unknown or not kinds:
        raise ParameterError(f"covariance_types={kinds}: give some of {', '.join(TYPES)}.")
    if criterion not in CRITERIA:
        raise ParameterError(f"criterion={criterion!r}: give one of {', '.join(CRITERIA)}.")
    wrong = {"covariance_type", "checkpoint", "time_budget", "warm_start"} | {
        name for name in parameters if name.endswith("_init") and name != "n_init"
    }
    if wrong & set(parameters):
        raise ParameterError(
            f"{', '.join(sorted(wrong & set(parameters)))} cannot be given to select_mixture, which fits many models."
        )
    return numbers, kinds


def _tried(model: GaussianMixture, source: Source, own: list[Callable[[FitData], Start]]) -> Entry:
    """Fit, and the figures; Ctrl-C ends the selection, not only the fit that it falls into."""
    if model.covariance_type == "ppca" and source.n_columns <= (model.n_latent or 1):
        return _failed(model, source, f"{source.n_columns} columns are too few for ppca with n_latent={model.n_latent}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldwiseWarning)  # told in the table
            found = model._fit(source, own)
    except TooFewRowsError as error:
        return _failed(model, source, error.what)
    except DataError as error:
        if error.what != ILL_DEFINED:
            raise
        return _failed(model, source, ILL_DEFINED)
    if found.outcome.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    figures: dict[str, Any] = model.criteria(source)
    p = int(figures.pop("parameters"))
    ran = model.manifest_
    return Entry(
        model.covariance_type,
        model.n_components,
        parameters=p,
        outcome=str(found.outcome.reason),
        repairs=ran.repairs,
        collapsed=found.collapsed,
        seconds=ran.seconds,
        **figures,
    )


def _failed(model: GaussianMixture, source: Source, reason: str) -> Entry:
    nothing: dict[str, Any] = dict.fromkeys(("log_likelihood", "bic", "icl", "aic", "entropy"), float("nan"))
    kind, d = model.covariance_type, source.n_columns
    p = CovarianceType(kind, d, latent(model.n_latent, d) if kind == "ppca" else 0).n_parameters(model.n_components)
    return Entry(kind, model.n_components, parameters=p, outcome="failed", repairs=(), collapsed=reason == ILL_DEFINED,
                 seconds=0.0, reason=reason, **nothing)  # fmt: skip


def _starts(model: GaussianMixture, models: dict[tuple[str, int], GaussianMixture]) -> list[Callable[[FitData], Start]]:
    """Where to start: anew, from fewer components, from simpler families."""
    kind, k = model.covariance_type, model.n_components
    seed = model.random_state if isinstance(model.random_state, (int, np.integer)) else 0
    made: list[Callable[[FitData], Start]] = [
        lambda ground, i=i: starts.make(ground, k, model.init_params, UserInit(), int(seed), i)  # type: ignore[misc]
        for i in range(model.n_init)
    ]
    fewer = [n for known, n in models if known == kind and n < k]
    if fewer:
        before = models[kind, max(fewer)]
        made += [
            lambda ground, by=by: _start(ground, *_split(before, k, by))  # type: ignore[misc]
            for by in ("weight", "room")
        ]
    for simpler in _SIMPLER[kind]:
        if (simpler, k) in models and k > 1:
            other = models[simpler, k]
            made.append(
                lambda ground, other=other: _start(  # type: ignore[misc]
                    ground, other.weights_, other.means_, _matrices(other)
                )
            )
    return made


def _start(ground: FitData, weights: Floats, means: Floats, matrices: Floats) -> Start:
    """A start in the units of the ground."""
    scaled = (matrices * ground.factor) * ground.factor[:, None]
    return Start(weights, means * ground.factor, ground.family.of_each(scaled, weights))


def _matrices(model: GaussianMixture) -> Floats:
    return np.array(model._family().each(model.covariances_, len(model.weights_)))


def _split(model: GaussianMixture, k: int, by: str) -> tuple[Floats, Floats, Floats]:
    """The components of a model, of which some are split along their longest axis so that there are k."""
    weights, means, matrices = model.weights_.copy(), model.means_.copy(), _matrices(model)
    while len(weights) < k:
        size = weights if by == "weight" else weights * np.trace(matrices, axis1=1, axis2=2)
        j = int(np.argmax(size))
        values, vectors = np.linalg.eigh(matrices[j])
        step = vectors[:, -1] * (math.sqrt(max(values[-1], 0.0)) / 2)
        # Two halves this far apart have together the covariance that the one had.
        rest = matrices[j] - np.outer(step, step)
        weights = np.append(weights, weights[j] / 2)
        weights[j] /= 2
        means = np.vstack([means, means[j] + step])
        means[j] = means[j] - step
        matrices = np.concatenate([matrices, rest[None]])
        matrices[j] = rest
    return weights, means, matrices
