"""The record of a comparison of autoencoders with PCA, and its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.reportable import Reportable

_SURE = 2.0  # standard errors by which a difference is told from chance
_ROUNDING = 1e-4  # of an error, worked out in float32


@dataclass(frozen=True, repr=False)
class CodeComparison(Reportable):
    """How much of held-out rows is lost by codes of each size: by an autoencoder, and by as many principal components.

    Errors are mean squared distances of held-out rows from their reconstructions, as shares of the held-out variance
    (`total_variance`: the same from the mean of the training rows). `standard_errors` are of the differences, row by row;
    `pca_curve` has PCA's errors with 0, 1, 2, ... components; `seconds` is how long each autoencoder took to train.
    """

    sizes: tuple[int, ...]
    pca_errors: Floats
    autoencoder_errors: Floats
    standard_errors: Floats
    pca_curve: Floats
    total_variance: float
    rows: int  # of the training part
    held_out_rows: int
    seconds: Floats
    cut_short: tuple[int, ...] = ()  # sizes whose training was ended by the time budget
    interrupted: bool = False  # by Ctrl-C: only finished sizes are listed

    @property
    def equivalents(self) -> tuple[int, ...]:
        """The largest number of principal components that lose no less than the codes of each size do.

        The curve of PCA ends at 512 components at most; a number at its end stands for at least so many.
        """
        return tuple(
            int(np.flatnonzero(self.pca_curve >= error)[-1]) for error in np.minimum(self.autoencoder_errors, 1.0)
        )

    @property
    def better(self) -> tuple[bool, ...]:
        """Whether the autoencoder loses less than PCA, by more than two standard errors.

        One that has become PCA differs from it by the rounding of float32, which does not count.
        """
        gain = self.pca_errors - self.autoencoder_errors
        least = np.maximum(_SURE * self.standard_errors, _ROUNDING * self.pca_errors)
        return tuple(bool(one) for one in (gain > least) & (gain > 0))

    @property
    def table(self) -> LabelledMatrix:
        """One row per size."""
        figures = {
            "PCA": self.pca_errors,
            "autoencoder": self.autoencoder_errors,
            "difference": self.autoencoder_errors - self.pca_errors,
            "standard error": self.standard_errors,
            "as good as components": np.array(self.equivalents, dtype=np.float64),
            "seconds": self.seconds,
        }
        return LabelledMatrix(np.column_stack(list(figures.values())), tuple(map(str, self.sizes)), tuple(figures))

    @property
    def worse(self) -> tuple[bool, ...]:
        """Whether the autoencoder loses more than PCA, by more than two standard errors."""
        gain = self.pca_errors - self.autoencoder_errors
        return tuple(bool(one) for one in (-gain > _SURE * self.standard_errors) & (gain < 0))

    @property
    def sentence(self) -> str:
        """What it comes to, for the size at which codes pay most, and for the sizes at which they do not."""
        return f"{self._verdict} {self._others}".strip()

    @property
    def _others(self) -> str:
        """The sizes at which PCA is as good, or better."""
        if not any(self.better) and not any(self.worse):
            return ""
        ties = [
            size for size, good, bad in zip(self.sizes, self.better, self.worse, strict=True) if not good and not bad
        ]
        worse = [size for size, bad in zip(self.sizes, self.worse, strict=True) if bad]
        told = [f"With {_listed(ties)} there is no sure difference."] if ties and any(self.better) else []
        return " ".join([*told, *([f"With {_listed(worse)} PCA loses less."] if worse else [])])

    @property
    def _verdict(self) -> str:
        gains = [
            (many / size, -size, number)
            for number, (size, many, better) in enumerate(zip(self.sizes, self.equivalents, self.better, strict=True))
            if better and many > size
        ]
        better = [number for number, one in enumerate(self.better) if one]
        if not better:
            return (
                "Autoencoders reconstruct held-out rows no better than as many principal components do: as far as these rows "
                "tell, straight directions say it all."
            )
        if not gains:
            number = min(better, key=lambda one: self.autoencoder_errors[one] / self.pca_errors[one])
            return f"{self._subject(number)} {self._lost(number, 'the held-out')}."
        number = max(gains)[2]
        many = self.equivalents[number]
        as_many = f"at least {many}" if many == len(self.pca_curve) - 1 else f"{many}"
        reconstruct = "reconstruct" if self.sizes[number] > 1 else "reconstructs"
        return (
            f"{self._subject(number)} {reconstruct} held-out rows as well as {as_many} principal components, and "
            f"{self._lost(number, 'their')}."
        )

    def _subject(self, number: int) -> str:
        return f"{self.sizes[number]} number{'s' * (self.sizes[number] > 1)} of an autoencoder"

    def _lost(self, number: int, whose: str) -> str:
        size, lost, by_pca = self.sizes[number], self.autoencoder_errors[number], self.pca_errors[number]
        lose, components = ("lose", "components") if size > 1 else ("loses", "component")
        return f"{lose} {100 * lost:.1f} % of {whose} variance, where {size} {components} {lose} {100 * by_pca:.1f} %"

    def __repr__(self) -> str:
        """The table and the sentence."""
        return f"{self.table}\n{self.sentence}"


def _listed(numbers: list[int]) -> str:
    """Several numbers in words.

    >>> _listed([2]), _listed([2, 4, 8])
    ('2', '2, 4 and 8')
    """
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last
