"""What autoencoders do with rows, whatever their networks: codes, rows of codes, and errors."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from foldwise.data.block import Block, Floats
from foldwise.data.missing import UnknownIfBlank
from foldwise.data.scan import scan
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.models.base import open_for_use


class RowCoder(Protocol):
    """A fitted model's tasks on blocks: picklable."""

    def codes(self, block: Block) -> NDArray[Any]:
        """The code of each row."""

    def rows(self, block: Block) -> NDArray[Any]:
        """The rows that have these codes."""

    def reconstructed(self, block: Block) -> NDArray[Any]:
        """Each row as its code tells it."""

    def errors(self, block: Block) -> Floats:
        """The squared distance of each row from its reconstruction."""


class CodedRows(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Mixin of the autoencoders, and a transformer itself: scikit-learn's `set_output` wraps what it defines."""

    n_components_: int
    n_threads: int | None
    missing: str

    def _coder(self) -> RowCoder:
        raise NotImplementedError

    def transform(self, X: Any) -> NDArray[Any]:
        """The code of each row; torch is not needed for this."""
        return self._rows(X, self._coder().codes)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows of the original space that have these codes."""
        coder, source = self._coder(), scan(X)
        if source.n_columns != self.n_components_:
            message = f"X has {source.n_columns} columns, but the codes of this model have {self.n_components_}"
            raise DataError(message, advice="Give what transform returned")
        return Passes(source, n_threads=self.n_threads).rows(coder.rows)

    def reconstruct(self, X: Any) -> NDArray[Any]:
        """The rows as their codes tell them: `inverse_transform(transform(X))`."""
        return self._rows(X, self._coder().reconstructed)

    def reconstruction_error(self, X: Any) -> Floats:
        """The squared distance of each row from its reconstruction, in the (scaled) space of the fit: a novelty score.

        Comparable with that of `fw.PCA` with the same `scale`. Where cells are missing (missing="model"), only the observed
        ones count; the error of a row without any is not known (NaN).
        """
        return self._rows(X, UnknownIfBlank(self._coder().errors))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean of `reconstruction_error`: the larger, the better."""
        return -float(np.nanmean(self.reconstruction_error(X)))

    def _rows(self, X: Any, task: Any) -> NDArray[Any]:
        return Passes(open_for_use(self, X), n_threads=self.n_threads).rows(task)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags
