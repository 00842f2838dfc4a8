"""The kernels: one class each, with its arithmetic, its automatic gamma and what it can be used for. `KERNELS` lists them.

Values are float64 whatever the rows are. Kernels that only depend on differences see rows from a pivot near their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, Floats
from foldwise.data.row_pairs import (
    inner_products,
    largest,
    rescaled,
    scaled_distances,
    squared_distances,
    squared_lengths,
    with_lengths,
)
from foldwise.errors import DataError, ParameterError
from foldwise.kernels.targets import Rescaling
from foldwise.models.kernel.neighbours import gammas_of_distances

_LARGEST = 2.0**450  # whose squares can be added up in float64, as those of its inverse can
_STEEPEST = 1e300  # gamma in units of the rescaling: above it, as at it, rows are like themselves alone
_NARROWER = 1.5
_SAMPLE = 1000  # rows whose distances an automatic gamma is found from


class Sampled(Protocol):
    """What an automatic gamma is found from: the rows of a fit."""

    @property
    def rescaling(self) -> Rescaling:
        """Where the rows are seen from."""

    @property
    def spread(self) -> tuple[float, float]:
        """The mean squared distance of rows to their mean, times the square of a scale; and that scale."""

    def sample(self, size: int) -> tuple[Block, Floats | None]:
        """Some rows and their weights."""


class Kernel:
    """A kernel of rows. An object of a subclass is ready for the rows of one fit.

    `prepare` is called once for each set of rows, `matrix` for as many pairs of prepared sets as need be.
    """

    formula: ClassVar[str]  # as the documentation has it
    has_gamma: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    can_normalize: ClassVar[bool] = True  # it is never negative, or nobody knows before a sample is seen
    has_random_features: ClassVar[bool] = False
    user_defined: ClassVar[bool] = False  # whether it is a kernel at all is then checked on a sample
    precomputed: ClassVar[bool] = False  # X is the matrix itself

    @classmethod
    def of(cls, model: Any, gamma: float, rescaling: Rescaling) -> Kernel:
        """The kernel with the parameters of a model (`kernel`, `degree`, `coef0`), for rows seen through a rescaling."""
        raise NotImplementedError

    @classmethod
    def automatic_gammas(cls, rows: Sampled) -> tuple[float, ...]:
        """Gammas for these rows, if the kernel has one: the usual one, and others worth a try."""
        raise NotImplementedError

    def prepare(self, block: Block) -> Block:
        """Rows as `matrix` takes them."""
        raise NotImplementedError

    def matrix(self, left: Block, right: Block) -> Floats:
        """The kernel of every row on the left with every row on the right; a new array."""
        raise NotImplementedError

    def diagonal(self, prepared: Block) -> Floats:
        """The kernel of every row with itself."""
        raise NotImplementedError

    @classmethod
    def random_directions(cls, d: int, count: int, rng: np.random.Generator) -> Floats:
        """Directions of random features, if there are any: columns drawn from the kernel's spectrum, for a fixed gamma."""
        raise NotImplementedError

    def frequencies(self, directions: Floats) -> tuple[Floats, Rescaling]:
        """These directions for the kernel's own gamma, and the rescaling of rows that they are for."""
        raise NotImplementedError


class Similarity(Kernel):
    """exp of minus gamma times a distance: 1 for equal rows, never below 0. Subclasses say which distance."""

    power: ClassVar[int]  # of the rows' unit that the distance has

    def __init__(self, gamma: float, rescaling: Rescaling) -> None:
        self._given, self._rescaling = gamma, rescaling
        for _ in range(self.power):
            gamma /= rescaling.scale
        self._gamma = min(gamma, _STEEPEST)

    @classmethod
    def of(cls, model: Any, gamma: float, rescaling: Rescaling) -> Kernel:
        """With that gamma."""
        return cls(gamma, rescaling)

    def matrix(self, left: Block, right: Block) -> Floats:
        """All values."""
        exponents = self._exponents(left, right)
        kernels.similarity(exponents)
        return exponents

    def diagonal(self, prepared: Block) -> Floats:
        """Ones."""
        return np.ones(prepared.n_rows)

    def _exponents(self, left: Block, right: Block) -> Floats:
        raise NotImplementedError


class Gaussian(Similarity):
    """exp(-gamma |x - y|^2)."""

    formula = '"rbf", exp(-gamma |x - y|^2)'
    power = 2
    has_random_features = True

    @classmethod
    def automatic_gammas(cls, rows: Sampled) -> tuple[float, ...]:
        """From distances between rows of a sample."""
        (block, weights), rescaling = rows.sample(_SAMPLE), rows.rescaling
        squares = squared_distances(rescaled(block, rescaling))
        if not squares.any():  # all equal: any gamma will do
            return (1.0,)
        return tuple(each * rescaling.scale * rescaling.scale for each in gammas_of_distances(squares, weights))

    def prepare(self, block: Block) -> Block:
        """Rows from the pivot."""
        return with_lengths(rescaled(block, self._rescaling), self._gamma)

    def _exponents(self, left: Block, right: Block) -> Floats:
        return scaled_distances(left, right, self._gamma)

    @classmethod
    def random_directions(cls, d: int, count: int, rng: np.random.Generator) -> Floats:
        """Normal ones, for gamma = 1/2."""
        return np.asarray(rng.standard_normal((d, count)))

    def frequencies(self, directions: Floats) -> tuple[Floats, Rescaling]:
        """The directions for this gamma."""
        return directions * np.sqrt(2 * self._given) / self._rescaling.scale, self._rescaling


class Laplacian(Similarity):
    """exp(-gamma sum |x - y|)."""

    formula = '"laplacian", exp(-gamma sum |x - y|)'
    power = 1
    takes_sparse = False

    @classmethod
    def automatic_gammas(cls, rows: Sampled) -> tuple[float, ...]:
        """From sums of differences, which fall off more slowly than squares; a narrower kernel makes up for it."""
        (block, weights), rescaling = rows.sample(_SAMPLE), rows.rescaling
        y = rescaled(block, rescaling)
        squares = _summed_differences(y, y) ** 2
        if not squares.any():
            return (1.0,)
        found = gammas_of_distances(squares, weights)
        return tuple(float(_NARROWER * np.sqrt(each)) * rescaling.scale for each in found)

    def prepare(self, block: Block) -> Block:
        """Rows from the pivot."""
        return rescaled(block, self._rescaling)

    def _exponents(self, left: Block, right: Block) -> Floats:
        exponents = _summed_differences(left, right)
        exponents *= -self._gamma
        return exponents


class Polynomial(Kernel):
    """(gamma x.y + coef0)^degree, of rows as they are: another origin is another kernel."""

    formula = '"poly", (gamma x.y + coef0)^degree'
    can_normalize = False

    def __init__(self, gamma: float, degree: int, coef0: float) -> None:
        self._gamma, self._degree, self._coef0 = gamma, degree, coef0

    @classmethod
    def of(cls, model: Any, gamma: float, rescaling: Rescaling) -> Kernel:
        """With the model's degree and constant."""
        return cls(gamma, model.degree, model.coef0)

    @classmethod
    def automatic_gammas(cls, rows: Sampled) -> tuple[float, ...]:
        """So that products of centred rows are about 1."""
        spread, scale = rows.spread
        return (1.0 / spread * scale * scale if spread > 0 else 1.0,)

    def prepare(self, block: Block) -> Block:
        """Rows in float64."""
        return block.astype(np.float64)

    def matrix(self, left: Block, right: Block) -> Floats:
        """All values."""
        return self._of_products(inner_products(left, right))

    def diagonal(self, prepared: Block) -> Floats:
        """The same of squared lengths."""
        return self._of_products(squared_lengths(prepared))

    def _of_products(self, products: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray((self._gamma * products + self._coef0) ** self._degree)
        if not np.isfinite(values).all():
            raise DataError(
                "the kernel leaves the range of float64",
                advice="Use a smaller gamma or degree, or divide the data by a constant",
            )
        return values


class Linear(Kernel):
    """x.y of rows from the pivot. Distances in feature space do not depend on it, and keep their digits at any offset.

    These are distances of the rows themselves: where their squares would leave float64, there is an error.
    """

    formula = '"linear", x.y'
    has_gamma = False
    can_normalize = False

    def __init__(self, rescaling: Rescaling) -> None:
        self._rescaling = rescaling

    @classmethod
    def of(cls, model: Any, gamma: float, rescaling: Rescaling) -> Kernel:
        """Without parameters."""
        return cls(rescaling)

    def prepare(self, block: Block) -> Block:
        """Rows from the pivot."""
        y, scale = rescaled(block, self._rescaling), self._rescaling.scale
        size = largest(y)
        if size > _LARGEST * scale:
            raise DataError(
                "squared distances between rows leave the range of float64",
                advice="Divide the data by a constant, so that values are nearer to 1",
            )
        if size > 0 and scale > _LARGEST:
            raise DataError(
                "squared distances between rows are too small for float64",
                advice="Multiply the data by a constant, so that values are nearer to 1",
            )
        return y.times_number(1.0 / scale)

    def matrix(self, left: Block, right: Block) -> Floats:
        """All products."""
        return inner_products(left, right)

    def diagonal(self, prepared: Block) -> Floats:
        """Squared lengths."""
        return squared_lengths(prepared)


class CallableKernel(Kernel):
    """A user's function f(rows, other_rows), which returns their kernel matrix."""

    has_gamma = False
    user_defined = True

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    @classmethod
    def of(cls, model: Any, gamma: float, rescaling: Rescaling) -> Kernel:
        """The function, which has its own parameters."""
        return cls(model.kernel)

    def prepare(self, block: Block) -> Block:
        """Rows as they are."""
        return block

    def matrix(self, left: Block, right: Block) -> Floats:
        """What the function returns, checked."""
        values = np.array(self._function(left.rows, right.rows), dtype=np.float64)
        wanted = (left.n_rows, right.n_rows)
        if values.shape != wanted:
            raise ParameterError(
                f"the kernel function returned shape {values.shape} for {wanted[0]} and {wanted[1]} rows; "
                f"it must return one value for each pair, shape {wanted}."
            )
        if kernels.finite(values) >= 0:
            raise ParameterError("the kernel function returned NaN or infinity.")
        return values

    def diagonal(self, prepared: Block) -> Floats:
        """From small squares along the diagonal."""
        parts = [prepared.take(slice(i, i + 32)) for i in range(0, prepared.n_rows, 32)]
        return np.concatenate([np.diagonal(self.matrix(part, part)) for part in parts])


class Precomputed(Kernel):
    """No function of rows: X is their kernel matrix (`PrecomputedMatrix` reads it)."""

    formula = '"precomputed"'
    has_gamma = takes_sparse = False
    user_defined = precomputed = True


KERNELS: dict[str, type[Kernel]] = {
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "poly": Polynomial,
    "linear": Linear,
    "precomputed": Precomputed,
}


def kernel_class(kernel: Any) -> type[Kernel]:
    """The class of a kernel that was given by its name or as a function."""
    return CallableKernel if callable(kernel) else KERNELS[kernel]


def _summed_differences(left: Block, right: Block) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(left.dense(), right.dense(), "cityblock"))
