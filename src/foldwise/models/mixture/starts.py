"""Where EM starts: weights, means and covariances in the units of the ground, from our k-means, seeds or chance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import FoldwiseWarning, ParameterError
from foldwise.fold.outcome import Reason
from foldwise.models.kmeans import KMeans, seeding
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.mixture.fit_data import FitData
from foldwise.stats.responsibility_sums import ResponsibilitySums


@dataclass(frozen=True)
class UserInit:
    """What the user gave of a start, checked; None where the method is to find it."""

    weights: Floats | None = None
    means: Floats | None = None
    precisions: Floats | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left to be found."""
        return self.weights is not None and self.means is not None and self.precisions is not None


@dataclass(frozen=True)
class Start:
    """Weights, means and covariances to start from."""

    weights: Floats
    means: Floats
    covariances: Floats


def checked(weights: Any, means: Any, precisions: Any, k: int, d: int, layout: str) -> UserInit:
    """Refuse starts that cannot be meant; the first words of these messages are scikit-learn's contract."""
    found: dict[str, Floats | None] = {"weights": None, "means": None, "precisions": None}
    if weights is not None:
        found["weights"] = w = _array(weights, "weights", (k,))
        if (w < 0).any() or (w > 1).any():
            raise ParameterError(
                "The parameter 'weights' should be in the range [0, 1], but got "
                f"max value {w.min():.5f}, min value {w.max():.5f}"
            )
        if abs(w.sum() - 1.0) > 1e-6:
            raise ParameterError(f"The parameter 'weights' should be normalized, but got sum(weights) = {w.sum():.5f}")
    if means is not None:
        found["means"] = _array(means, "means", (k, d))
    if precisions is not None:
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[layout]
        found["precisions"] = p = _array(precisions, f"{layout} precision", shape)
        if layout in ("diag", "spherical"):
            if (p <= 0).any():
                raise ParameterError(f"'{layout} precision' should be positive")
        else:
            for one in p if layout == "full" else [p]:
                lopsided = not np.allclose(one, one.T)
                if lopsided or not (np.linalg.eigvalsh(one) > 0).all():
                    raise ParameterError(f"'{layout} precision' should be symmetric, positive-definite")
    return UserInit(**found)


def _array(values: Any, name: str, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"The parameter '{name}' should be numbers ({problem})") from None
    if found.shape != shape:
        raise ParameterError(f"The parameter '{name}' should have the shape of {shape}, but got {found.shape}")
    if not np.isfinite(found).all():
        raise ParameterError(f"The parameter '{name}' contains NaN or infinity")
    return found


def make(ground: FitData, k: int, method: str, given: UserInit, seed: int, number: int) -> Start:
    """Start `number`; what is given is in the units of the data and replaces what the method finds."""
    family, factor = ground.family, ground.factor
    means = None if given.means is None else given.means * factor
    found = None if given.whole else _found(ground, k, method, means, seed, number)
    if given.precisions is not None:
        wide = given.precisions
        inverse = np.asarray(np.linalg.inv(wide) if family.layout in ("full", "tied") else 1.0 / wide, dtype=np.float64)
        covariances = family.scaled(inverse, factor)
    else:
        assert found is not None
        covariances = found.covariances
    if found is None:
        assert given.weights is not None
        assert means is not None
        return Start(given.weights, means, covariances)
    return Start(
        found.weights if given.weights is None else given.weights, found.means if means is None else means, covariances
    )


def _found(ground: FitData, k: int, method: str, means: Floats | None, seed: int, number: int) -> Start:
    rng = np.random.default_rng([seed, 0, number])
    if means is not None:
        return _about(ground, means)  # rows go with the nearest of the means given
    if k == 1:
        return from_shares(ground, ground.mean[None], lambda block: np.ones((block.n_rows, 1)))
    if method == "random":
        stream = int(rng.integers(2**62))

        def shares(block: Block) -> Floats:  # every block draws from a stream of its own
            drawn = np.random.default_rng([stream, block.start]).random((block.n_rows, k))
            return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

        return from_shares(ground, np.repeat(ground.mean[None], k, axis=0), shares)
    if method == "kmeans":
        # Units do not matter to a model with a variance for each column: so they should not to its start.
        scale = ground.family.name not in ("spherical", "ppca") and bool((ground.extent.high > ground.extent.low).all())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldwiseWarning)
            start = seed if number == 0 else int(rng.integers(2**31))
            km = KMeans(k, random_state=start, scale=scale, n_threads=ground.run.n_threads).fit(ground.source)
        if km.outcome_.reason is Reason.INTERRUPTED:  # half a start would be another one than the next time
            raise KeyboardInterrupt
        ground.run.passes += km.manifest_.passes
        centres = km.centers_in_data_units().values
        return from_labels(ground, centres, km.labels_)
    rows = Assignment(ground.run)
    seeds = seeding.plusplus(rows, k, rng) if method == "k-means++" else seeding.random_rows(rows, k, rng)
    return _about(ground, seeds.astype(np.float64))


def _about(ground: FitData, means: Floats) -> Start:
    """A start about these means: weights and covariances are those of the rows nearest to each."""
    rows = Assignment(ground.run)
    rows.assign(np.ascontiguousarray(means, dtype=ground.dtype))
    found = from_labels(ground, means, rows.labels)
    return Start(found.weights, means, found.covariances)


def from_labels(ground: FitData, means: Floats, labels: NDArray[np.int32]) -> Start:
    """The M-step for rows that belong to one component each."""
    k = len(means)

    def shares(block: Block) -> Floats:
        out = np.zeros((block.n_rows, k))
        out[np.arange(block.n_rows), labels[block.start : block.start + block.n_rows]] = 1.0
        return out

    return from_shares(ground, means, shares)


def broad(ground: FitData, k: int) -> Floats:
    """The covariance of a component that knows nothing yet: the shape of all rows, k of them filling the same room."""
    family, share = ground.family, k ** (-2 / ground.d)
    if family.scatter == "diag":
        variances = ground.whole * share + ground.flat
        return variances if family.name == "diag" else np.asarray(variances.mean())
    return np.asarray(ground.sound(family.of_each((ground.whole * share + np.diag(ground.flat))[None], np.ones(1)))[0])


def from_shares(ground: FitData, means: Floats, shares: Any) -> Start:
    """The M-step for given responsibilities; a component with too few rows gets the shape of all rows."""
    family = ground.family
    found = ground.run.fold(lambda block: ResponsibilitySums.given(block, family.scatter, means, shares(block)))
    moves, raw = family.raw(found)
    some = found.counts > 0
    if not ground.settled:  # the first start settles it for all, whose bounds are compared
        ground.settle(ground.widths(raw, found.counts))
    covariances = ground.sound(family.with_ridge(raw, ground.ridge))
    few = found.counts < family.least_rows()
    if family.layout != "tied" and few.any():
        covariances[few] = broad(ground, len(means))
    weights = np.maximum(found.counts, 1e-3 * found.counts.sum() / len(means))
    return Start(weights / weights.sum(), np.where(some[:, None], means + moves, means), covariances)
