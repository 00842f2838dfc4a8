"""Training of a linear autoencoder by gradients, on the covariance of the rows alone.

The mean squared error of reconstructions W2 W1 x is tr((I - W2 W1) S (I - W2 W1)'), whatever the number of rows. At its minima
W2 spans the leading principal components and W1 is its pseudo-inverse; all other critical points are saddles (Baldi and Hornik,
Neural Networks 2, 1989), which a random start leaves.

Directions are conjugate gradients (Polak and Ribière), preconditioned: the gradient with respect to W2 by the covariance of
the codes, that with respect to W1 by the Gram matrix of W2 and the variances of the columns. So neither the
scale of the codes matters to the descent nor a unit that all columns share; units of single columns change the error itself, as
they do PCA. Along a direction the error is a polynomial of degree four, so the best step is known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.iterate import Figures, State

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LinearDescent:
    """Steps on a symmetric covariance, of which `principal` (columns) are the leading eigenvectors, for the angle only."""

    covariance: Floats
    n_components: int
    principal: Floats
    seed: int
    tol: float

    def start(self) -> State:
        """A random projection."""
        d, k = len(self.covariance), self.n_components
        basis, _ = np.linalg.qr(np.random.default_rng(self.seed).standard_normal((d, k)))
        return self._state(np.ascontiguousarray(basis.T), basis, {})

    def step(self, state: State) -> tuple[State, Figures]:
        """One step to the minimum along a conjugate direction."""
        W1, W2, g1, g2 = state["W1"], state["W2"], state["g1"], state["g2"]
        p1, p2, slope = state["p1"], state["p2"], float(state["slope"])
        along1, along2 = -p1, -p2
        if "along1" in state:
            change = slope - float(np.vdot(state["before1"], p1) + np.vdot(state["before2"], p2))
            turn = max(0.0, change / float(state["before"]))
            along1, along2 = turn * state["along1"] - p1, turn * state["along2"] - p2
            if np.vdot(along1, g1) + np.vdot(along2, g2) >= 0:
                along1, along2 = -p1, -p2
        flat = not np.vdot(along1, g1) + np.vdot(along2, g2) < 0
        length = 0.0 if flat else self._best_step(state, along1, along2)
        beside = {"along1": along1, "along2": along2, "before1": g1, "before2": g2, "before": np.array(slope)}
        new = self._state(W1 + length * along1, W2 + length * along2, beside)
        if flat:
            new["residual"] = np.array(0.0)  # no step lowers the error any more: this is as near as float64 comes
        figures = {"error": float(new["error"]), "angle": float(new["angle"]), "residual": float(new["residual"])}
        return new, figures

    def done(self, state: State) -> bool:
        """Whether the decoder's span is mapped to itself by the covariance, and the encoder finds the best point in it."""
        return float(state["residual"]) <= self.tol

    # ---------------------------------------------------------------- parts

    def _state(self, W1: Floats, W2: Floats, beside: State) -> State:
        """Weights with their error, gradients and how far from a critical point they are."""
        S = self.covariance
        SW1, gram = S @ W1.T, W2.T @ W2
        basis, triangle = np.linalg.qr(W2)
        image = S @ basis
        codes = W1 @ SW1
        g2 = 2 * (W2 @ codes - SW1)
        g1 = 2 * (gram @ SW1.T - (image @ triangle).T)
        p2 = np.linalg.solve(_ridged(codes), g2.T).T
        variances = np.diagonal(S)
        p1 = np.linalg.solve(_ridged(gram), g1) / np.maximum(variances, EPS * max(float(variances.max()), EPS))
        error = float(np.trace(S)) - 2 * float(np.vdot(W2, SW1)) + float(np.vdot(gram, codes))
        outside = self.principal - basis @ (basis.T @ self.principal)
        sine = float(np.linalg.norm(outside, 2)) if outside.size else 0.0
        return {
            "W1": W1,
            "W2": W2,
            "g1": g1,
            "g2": g2,
            "p1": p1,
            "p2": p2,
            "slope": np.array(float(np.vdot(g1, p1) + np.vdot(g2, p2))),
            "error": np.array(max(error, 0.0)),
            "angle": np.array(np.arcsin(min(1.0, sine))),
            "residual": np.array(self._residual(basis, image, triangle @ W1, SW1 @ triangle.T)),
            **beside,
        }

    def _residual(self, basis: Floats, image: Floats, seen: Floats, S_seen: Floats) -> float:
        """The largest relative error of a direction of the decoder's span as an eigenvector, and of its code.

        Relative to the variance of the direction itself, so that small ones count as much as large ones; what float64 cannot
        tell apart from rounding of the largest is let pass.
        """
        values, turn = np.linalg.eigh(basis.T @ image)
        floor = len(basis) * EPS * max(float(values.max(initial=0.0)), EPS)
        size = np.maximum(values, floor)
        astray = np.linalg.norm(image @ turn - (basis @ turn) * values, axis=0)
        # The covariance of what the encoder sees along the span less what is there, in directions of the span.
        gap = seen @ S_seen - basis.T @ S_seen - (basis.T @ S_seen).T + basis.T @ image
        missed = np.einsum("ij,ik,kj->j", turn, gap, turn)
        found = np.maximum((astray - floor) / size, np.sqrt(np.maximum(missed - floor, 0.0) / size))
        return float(found.max(initial=0.0))

    def _best_step(self, state: State, along1: Floats, along2: Floats) -> float:
        """How far to go: where the error, a polynomial of degree four that falls at first, is least.

        If rounding hides its lowest point, it is as far as lowers the error most among halves of halves of the usual step; 0
        only if it leaves the range of float64.
        """
        W1, W2 = state["W1"], state["W2"]
        SW1, Salong = self.covariance @ W1.T, self.covariance @ along1.T
        gram, codes = W2.T @ W2, W1 @ SW1
        gram1, codes1 = _doubled(W2.T @ along2), _doubled(W1 @ Salong)
        gram2, codes2 = along2.T @ along2, along1 @ Salong
        slope = float(np.vdot(state["g1"], along1) + np.vdot(state["g2"], along2))
        second = float(
            np.vdot(gram, codes2) + np.vdot(gram1, codes1) + np.vdot(gram2, codes) - 2 * np.vdot(along2, Salong)
        )
        third = float(np.vdot(gram1, codes2) + np.vdot(gram2, codes1))
        fourth = float(np.vdot(gram2, codes2))
        if not np.isfinite([slope, second, third, fourth]).all():
            return 0.0
        # In units of a typical step the coefficients are of a size that roots of polynomials can be found of.
        unit = -slope / abs(second) if second else 1.0
        scaled = np.array([4 * fourth * unit**3, 3 * third * unit**2, 2 * second * unit, slope]) / -slope
        found = np.roots(scaled)
        real = found.real[(np.abs(found.imag) <= 1e-9 * np.abs(found)) & (found.real > 0)]
        for ahead in (real, 0.5 ** np.arange(64)):
            gains = ahead * (scaled[3] + ahead * (scaled[2] / 2 + ahead * (scaled[1] / 3 + ahead * scaled[0] / 4)))
            if gains.size and gains.min() < 0:
                return float(ahead[int(np.argmin(gains))] * unit)
        return 0.0


def _doubled(matrix: Floats) -> Floats:
    return np.asarray(matrix + matrix.T)


def _ridged(matrix: Floats) -> Floats:
    """The matrix, made invertible: codes without variance, beyond the rank of the rows, must not be blown up."""
    size = max(float(np.trace(matrix)), EPS) / len(matrix)
    return np.asarray(matrix + 64 * EPS * size * np.eye(len(matrix)))
