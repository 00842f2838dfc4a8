"""The share of the variance of all columns that regression on some of them explains, from their scatter matrix alone.

Write S for the scatter matrix and A for a subset. Regression on A explains tr(S_.A S_AA^-1 S_A.), and leaves
R = S - S_.A S_AA^-1 S_A. (the Schur complement). Adding column j explains |R_j|^2 / R_jj more. With P = S_AA^-1 and the
coefficients B = S_.A P, removing column j of A explains |B_j|^2 / P_jj less. So each step costs O(d^2), and none reads a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldwise.data.block import Floats

# A column of which the others leave less than this share of its variance adds nothing: what is left is rounding.
REDUNDANT = 1e-10
TIE = 1e-12  # scores that differ by less are equal: the first column wins


class ExplainedVariance:
    """Scores of subsets of the columns with this scatter matrix (both triangles), as shares of the total variance."""

    def __init__(self, scatter: Floats) -> None:
        total = float(np.trace(scatter))
        self.scatter = np.ascontiguousarray(scatter / total)
        self.d = len(scatter)
        self.floor = REDUNDANT * np.ascontiguousarray(np.diagonal(self.scatter))
        self._eliminated: tuple[tuple[int, ...], Floats, float] | None = None
        self._inverted: tuple[tuple[int, ...], Floats, Floats] | None = None

    # ---------------------------------------------------------------- scores

    def score(self, columns: Sequence[int]) -> float:
        """The share that these columns explain."""
        if len(columns) == self.d:
            return 1.0
        return float(self.nested(columns)[-1]) if columns else 0.0

    def scores(self, subsets: Sequence[tuple[int, ...]]) -> Floats:
        """The share that each subset explains."""
        return np.array([self.score(each) for each in subsets])

    def nested(self, order: Sequence[int]) -> Floats:
        """The share that the first 1, 2, ... of these columns explain."""
        left, found, total = self.scatter.copy(), np.empty(len(order)), 0.0
        for place, column in enumerate(order):
            total += self._eliminate(left, column)
            found[place] = min(total, 1.0)
        return found

    def adding(self, columns: tuple[int, ...]) -> Floats:
        """The score after adding each column; -inf for those that are in."""
        left, explained = self._left(columns)
        pivots = np.diagonal(left)
        usable = pivots > self.floor
        gains = np.divide(np.einsum("ij,ij->j", left, left), pivots, where=usable, out=np.zeros(self.d))
        found = np.asarray(np.minimum(explained + gains, 1.0))
        found[list(columns)] = -np.inf
        return found

    def removing(self, columns: tuple[int, ...]) -> Floats:
        """The score after removing each column; -inf for those that are not in."""
        found = np.full(self.d, -np.inf)
        kept = self._independent(columns)
        spare = [column for column in columns if column not in kept]
        if spare:  # the others explain these, so that leaving one out costs nothing
            score = self.score(kept)
            found[spare] = score
            found[list(kept)] = [self.score(self._without(columns, column)) for column in kept]
            return found
        inverse, coefficients = self._inverse(kept)
        losses = self._losses(kept, inverse, coefficients)
        found[list(kept)] = self.score(kept) - losses
        return found

    def exchanges(self, columns: tuple[int, ...]) -> Floats:
        """The score after each exchange: a row for each of the columns, which leaves, and a column for each that comes."""
        if len(self._independent(columns)) == len(columns):
            out = self._exchanged(columns)
        else:  # rare, so that it need not be fast
            out = np.array([self.adding(self._without(columns, column)) for column in columns])
        out[:, list(columns)] = -np.inf
        return out

    def _exchanged(self, columns: tuple[int, ...]) -> Floats:
        """The same for columns none of which is explained by the others: what each removal gives back is of rank one."""
        left, explained = self._left(columns)
        inverse, coefficients = self._inverse(columns)
        pivots, norms = np.diagonal(left), np.einsum("ij,ij->j", left, left)
        out = np.empty((len(columns), self.d))
        for place, column in enumerate(columns):
            back = coefficients[:, place].copy()
            back[list(columns)] = 0.0
            back[column] = 1.0
            strength = 1.0 / inverse[place, place]
            square = float(back @ back)
            new_norms = norms + 2 * strength * back * (left @ back) + (strength * back) ** 2 * square
            new_pivots = pivots + strength * back**2
            usable = new_pivots > self.floor
            gains = np.divide(new_norms, new_pivots, where=usable, out=np.zeros(self.d))
            out[place] = np.minimum(explained - strength * square + gains, 1.0)
        return out

    # ---------------------------------------------------------------- what follows from a subset

    def coefficients(self, columns: Sequence[int]) -> Floats:
        """The coefficients of the regression of all columns on these: columns x all; 0 for those that others make redundant."""
        kept = self._independent(tuple(columns))
        _, coefficients = self._inverse(kept)
        found = np.zeros((len(columns), self.d))
        for place, column in enumerate(columns):
            if column in kept:
                found[place] = coefficients[:, kept.index(column)]
        found[:, list(kept)] = 0.0
        found[[list(columns).index(column) for column in kept], list(kept)] = 1.0
        return found

    def explained(self, columns: Sequence[int]) -> Floats:
        """The share of each column's own variance that these columns explain; 1 for a constant."""
        left = self.scatter.copy()
        for column in columns:
            self._eliminate(left, column)
        own = np.diagonal(self.scatter)
        share = 1.0 - np.divide(np.maximum(np.diagonal(left), 0.0), own, where=own > 0, out=np.zeros(self.d))
        share[list(columns)] = 1.0
        return np.clip(share, 0.0, 1.0)

    def losses(self, columns: Sequence[int]) -> Floats:
        """The share that would no longer be explained without each of these columns."""
        chosen = tuple(columns)
        return np.asarray(np.maximum(self.score(chosen) - self.removing(chosen)[list(chosen)], 0.0))

    def correlations(self, columns: Sequence[int]) -> Floats:
        """Of these columns with all: columns x all; 0 with a constant."""
        deviations = np.sqrt(np.maximum(np.diagonal(self.scatter), 0.0))
        scale = np.outer(deviations[list(columns)], deviations)
        found = np.divide(self.scatter[list(columns)], scale, where=scale > 0, out=np.zeros((len(columns), self.d)))
        return np.asarray(np.clip(found, -1.0, 1.0))

    def bounds(self, most: int) -> Floats:
        """The share that the first 1, 2, ..., `most` principal components explain: no so many columns can explain more."""
        from scipy.linalg import eigh

        if most > self.d // 4:
            values = np.linalg.eigvalsh(self.scatter)[::-1][:most]
        else:
            values = eigh(self.scatter, eigvals_only=True, subset_by_index=[self.d - most, self.d - 1])[::-1]
        return np.asarray(np.minimum(np.cumsum(np.maximum(values, 0.0)), 1.0))

    def backward_order(self) -> list[int]:
        """The columns in the order in which they are removed, each time the one whose loss costs least.

        Columns that those before them explain go first, the last one first; among equals, too, the last one goes.
        """
        kept = list(self._independent(tuple(range(self.d))))
        order = [column for column in reversed(range(self.d)) if column not in set(kept)]
        inverse, coefficients = self._inverse(tuple(kept))
        inside = np.array(kept)
        while len(inside):
            losses = self._losses(tuple(inside.tolist()), inverse, coefficients)
            place = len(losses) - 1 - first_best(-losses[::-1])
            order.append(int(inside[place]))
            others = np.arange(len(inside)) != place
            across = inverse[place, others] / inverse[place, place]
            coefficients = coefficients[:, others] - np.outer(coefficients[:, place], across)
            inverse = inverse[np.ix_(others, others)] - np.outer(inverse[others, place], across)
            inside = inside[others]
        return order

    # ---------------------------------------------------------------- linear algebra

    def _eliminate(self, left: Floats, column: int) -> float:
        """Take what a column explains out of `left`, in place; how much that is."""
        pivot = float(left[column, column])
        gain = 0.0
        if pivot > self.floor[column]:
            row = left[column].copy()
            gain = float(row @ row) / pivot
            left -= np.outer(row / pivot, row)
        left[column] = left[:, column] = 0.0
        return gain

    def _left(self, columns: tuple[int, ...]) -> tuple[Floats, float]:
        """What the columns leave of the scatter matrix, and the share that they explain; goes on from the last if possible."""
        known = self._eliminated
        if known is not None and columns[: len(known[0])] == known[0]:
            done, left, explained = known
            left = left if len(done) == len(columns) else left.copy()
        else:
            done, left, explained = (), self.scatter.copy(), 0.0
        for column in columns[len(done) :]:
            explained += self._eliminate(left, column)
        self._eliminated = columns, left, explained
        return left, explained

    def _independent(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """The columns without those that the ones before them explain."""
        part, floor = self.scatter[np.ix_(columns, columns)].copy(), self.floor[list(columns)]
        try:
            if (np.diagonal(np.linalg.cholesky(part)) ** 2 > floor).all():
                return columns
        except np.linalg.LinAlgError:
            pass
        kept = []
        for place, column in enumerate(columns):
            pivot = part[place, place]
            if pivot > floor[place]:
                kept.append(column)
                row = part[place].copy()
                part -= np.outer(row / pivot, row)
        return tuple(kept)

    def _inverse(self, columns: tuple[int, ...]) -> tuple[Floats, Floats]:
        """The inverse of the columns' part of the scatter matrix, and the coefficients of all columns on them."""
        if self._inverted is None or self._inverted[0] != columns:
            from scipy.linalg import cho_factor, cho_solve

            chosen = list(columns)
            factor = cho_factor(self.scatter[np.ix_(chosen, chosen)], lower=True)
            inverse = cho_solve(factor, np.eye(len(chosen)))
            coefficients = cho_solve(factor, self.scatter[chosen]).T
            self._inverted = columns, (inverse + inverse.T) / 2, coefficients
        return self._inverted[1], self._inverted[2]

    def _losses(self, columns: tuple[int, ...], inverse: Floats, coefficients: Floats) -> Floats:
        """What leaving out each of the columns loses: its coefficients in the other columns, and itself."""
        outside = np.ones(self.d, dtype=bool)
        outside[list(columns)] = False
        squares = np.einsum("ij,ij->j", coefficients[outside], coefficients[outside])
        return np.asarray((1.0 + squares) / np.diagonal(inverse))

    @staticmethod
    def _without(columns: tuple[int, ...], column: int) -> tuple[int, ...]:
        return tuple(each for each in columns if each != column)


def first_best(scores: Floats) -> int:
    """The first of the highest scores, up to rounding.

    >>> first_best(np.array([0.5, 0.75, 0.75 + 1e-15]))
    1
    """
    return int(np.argmax(scores >= scores.max() - TIE * max(1.0, abs(float(scores.max())))))
