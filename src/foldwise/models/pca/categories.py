"""What a PCA of rows with categories says of its variables: the outputs of FAMD and, of categories alone, of MCA.

All follow from the directions, the variances and the shares of the levels, which the model has. Write l for the variance of a
component, v for the entry of its direction in a column, p for the share of a level. Rows that have a level lie at l v / sqrt(p)
on average; a number has the correlation v sqrt(l) with the component; and the sum of l v^2 over the columns of a category is
the share of the component's variance that lies between its levels. Citation: Pagès, Multiple Factor Analysis by Example Using
R, 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.prepare.encode import IndicatorGroup, in_groups


class CategoryOutputs:
    """Mixin of PCA: what components have to do with variables, each of which is a column or the indicators of a category."""

    components_: NDArray[Any]
    explained_variance_: Floats
    column_variances_: Floats
    scale_: Floats | None
    n_features_in_: int

    def correlations(self) -> LabelledMatrix:
        """The correlation of each number with each component (FactoMineR's `quanti.var$coord`).

        >>> import foldwise as fw
        >>> fw.PCA().fit([[1.0, 50.0], [2.0, 70.0], [3.0, 60.0]]).correlations()
              pca0     pca1
        x0  0.5038   0.8638
        x1  1.0000  -0.0044
        """
        loadings = self._loadings()
        chosen = ~in_groups(self._groups, len(loadings))
        deviations = np.sqrt(self.column_variances_)
        found = loadings / np.where(deviations > 0, deviations, 1.0)[:, None]
        names = [name for name, is_number in zip(self._names, chosen, strict=True) if is_number]
        return LabelledMatrix(found[chosen], tuple(names), self._components)

    def category_coordinates(self, scale: str = "famd") -> LabelledMatrix:
        """Where the rows of each level lie on average (FactoMineR's `quali.var$coord`).

        With scale="mca", which needs categories alone, as in correspondence analysis: divided by the standard deviation of the
        component, so that rows, in that scale, are at the averages of their levels (see `mca_eigenvalues`).
        """
        groups = self._categories()
        if scale not in ("famd", "mca"):
            raise ParameterError(f"scale={scale!r} must be 'famd' or 'mca'")
        if scale == "mca":
            self._only_categories()
        assert self.scale_ is not None
        inside = in_groups(groups, self.n_features_in_)
        roots = np.sqrt(self.explained_variance_)
        found = self._loadings()[inside] / self.scale_[inside][:, None] * (roots if scale == "famd" else 1.0)
        names = tuple(name for name, chosen in zip(self._names, inside, strict=True) if chosen)
        return LabelledMatrix(found, names, self._components)

    def variables(self) -> LabelledMatrix:
        """How closely each variable is tied to each component, from 0 to 1 (FactoMineR's `var$coord`).

        For a number the squared correlation; for a category the squared correlation ratio (eta squared), the share of the
        component's variance that lies between the levels. With categories, the values of a component add up to its variance.
        """
        correlations = self.correlations()
        squares = dict(zip(correlations.rows, correlations.values**2, strict=True))
        return self._by_variable(squares, self._loadings() ** 2)

    def mca_eigenvalues(self, *, adjusted: bool = False) -> Floats:
        """The eigenvalues of the correspondence analysis of the indicators: the variances divided by the number of categories.

        Rows there have the scores of `transform` divided by the root of that number. `adjusted` gives Benzécri's eigenvalues,
        (Q / (Q - 1) (l - 1 / Q))^2 where l exceeds 1 / Q, for Q categories: the others are an artefact of the coding.

        >>> import foldwise as fw
        >>> from foldwise.prepare.encode import encode
        >>> rows = encode({"pet": ["cat", "cat", "dog", "dog"], "home": ["flat", "flat", "flat", "farm"]})
        >>> fw.PCA().fit(rows).mca_eigenvalues().round(4)
        array([0.7887, 0.2113])
        """
        self._categories()
        self._only_categories()
        many = len(self._groups)
        found = self.explained_variance_ / many
        if not adjusted:
            return found
        if many == 1:
            raise DataError("eigenvalues of a single category have no adjustment: all are 1")
        above = found[found > 1 / many * (1 + 1e-12)]
        return np.asarray((many / (many - 1) * (above - 1 / many)) ** 2)

    # ---------------------------------------------------------------- parts

    @property
    def _groups(self) -> tuple[IndicatorGroup, ...]:
        return tuple(getattr(self, "indicators_", None) or ())

    @property
    def _names(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", None)
        return tuple(names) if names is not None else tuple(f"x{j}" for j in range(self.n_features_in_))

    @property
    def _components(self) -> tuple[str, ...]:
        return tuple(self.get_feature_names_out())  # type: ignore[attr-defined]

    def _loadings(self) -> Floats:
        check_is_fitted(self)
        return np.asarray(self.components_.T.astype(np.float64) * np.sqrt(self.explained_variance_))

    def _categories(self) -> tuple[IndicatorGroup, ...]:
        check_is_fitted(self)
        if not self._groups:
            raise DataError(
                "the model was fitted to numbers only: it has no categories",
                advice="Fit it to rows whose categories are encoded",
            )
        return self._groups

    def _only_categories(self) -> None:
        if not in_groups(self._groups, self.n_features_in_).all():
            raise DataError(
                "the scale of correspondence analysis is that of categories alone, and this model has numbers too",
                advice="Use category_coordinates() and explained_variance_, which are those of FAMD",
            )

    def _by_variable(self, numbers: dict[str, Floats], columns: Floats) -> LabelledMatrix:
        """One row for each number, from `numbers`, and one for each category: the sum over its columns."""
        starts = {group.first: group for group in self._groups}
        rows, names, at = [], [], 0
        while at < len(columns):
            group = starts.get(at)
            names.append(self._names[at] if group is None else group.name)
            rows.append(numbers[self._names[at]] if group is None else columns[group.columns].sum(axis=0))
            at = at + 1 if group is None else group.stop
        return LabelledMatrix(np.array(rows).reshape(len(names), columns.shape[1]), tuple(names), self._components)
