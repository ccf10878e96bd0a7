"""The regularised mean margin loss of a linear score, for Newton's method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankbook.losses import Loss
from rankbook.solvers.design import Design, weighted_gram

__all__ = ["MarginRisk"]

# Numbers a block of rows holds: small enough to stay in cache while it is used four times.
_BLOCK = 2**18
# Beyond this many columns the Hessian is applied, not formed.
_DENSE_COLUMNS = 1500
# The Hessian is kept while a step with it leaves at most this share of the decrement.
_REUSE = 0.01


class MarginRisk:
    r"""The function :math:`\sum_i w_i \ell(y_i (x_i^\top b + b_0)) + \frac12 \sum_j r_j b_j^2`.

    Parameters
    ----------
    design : Design
        Items.
    sign : ndarray of shape (n,)
        Labels, -1 or 1.
    weights : ndarray of shape (n,)
        Non-negative weights that sum to one.
    loss : Loss
        A proper loss.
    ridge : ndarray of shape (p,)
        Weight of half the square of each scaled coefficient; the intercept is free.
    """

    def __init__(
        self, design: Design, sign: np.ndarray, weights: np.ndarray, loss: Loss, ridge: np.ndarray
    ) -> None:
        self.design, self.sign, self.weights = design, sign, weights
        self.loss, self.ridge = loss, ridge
        self.hessian: Any = None
        self.decrement = np.inf
        self._factor: Any = None

    def thinned(self, n_items: int) -> MarginRisk:
        """The same function of every k-th item, about n_items of them."""
        rows = slice(None, None, -(-self.sign.size // n_items))
        weights = self.weights[rows]
        design = self.design.subset(rows)
        return MarginRisk(design, self.sign[rows], weights / weights.sum(), self.loss, self.ridge)

    def start(self) -> np.ndarray:
        """No slope, and the best intercept."""
        positive = float(self.weights[self.sign > 0].sum())
        return np.append(np.zeros(self.design.shape[1]), self.loss.link(positive))

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Values y (x b + b_0)."""
        return self.sign * (self.design.scores(x[:-1]) + x[-1])

    def _penalty(self, x: np.ndarray) -> float:
        return 0.5 * float(self.ridge @ x[:-1] ** 2)

    def value(self, x: np.ndarray) -> float:
        """Value at x, the scaled coefficients followed by the intercept."""
        return float(self.weights @ self.loss.terms(self.margins(x))[0]) + self._penalty(x)

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, np.ndarray, Any]:
        """Value, gradient and Hessian.

        The Hessian costs more than the rest. The last one is returned again as long as steps with
        it cut the Newton decrement a hundredfold. Where it would be too large it is a product.
        """
        if len(self.ridge) > _DENSE_COLUMNS:
            return self._with_product(x)
        value, gradient, curvature = self._first_order(x)
        if not np.isfinite(value):
            return value, gradient, None
        before, self.decrement = self.decrement, self._decrement(gradient)
        if self._factor is None or self.decrement > _REUSE * before:
            self.set_hessian(self._second_order(curvature))
            self.decrement = self._decrement(gradient)
        return value, gradient, self.hessian

    def set_hessian(self, hessian: np.ndarray) -> None:
        """Take a Hessian, perhaps that of a thinned sample, to begin with."""
        self.hessian = hessian
        try:
            self._factor = cho_factor(hessian, check_finite=False)
        except LinAlgError:
            self._factor = None

    def _decrement(self, gradient: np.ndarray) -> float:
        if self._factor is None:
            return np.inf
        return float(gradient @ cho_solve(self._factor, gradient, check_finite=False))

    def _first_order(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient, and the weight of every item in the Hessian."""
        scale, coef = self.design.scale, x[:-1] / self.design.scale
        value, total = 0.0, 0.0
        gradient = np.zeros(len(coef))
        weights = np.empty(self.sign.size)
        for rows in self._blocks():
            X, w, sign = self.design.X[rows], self.weights[rows], self.sign[rows]
            loss, slope, curvature = self.loss.terms(sign * (X @ coef + x[-1]))
            value += w @ loss
            slope = slope * (w * sign)
            gradient += X.T @ slope
            total += slope.sum()
            np.multiply(curvature, w, out=weights[rows])
        gradient = np.append(gradient / scale + self.ridge * x[:-1], total)
        return float(value) + self._penalty(x), gradient, weights

    def _second_order(self, weights: np.ndarray) -> np.ndarray:
        p = len(self.ridge)
        hessian = np.zeros((p + 1, p + 1))
        for rows in self._blocks():
            hessian[:p, :p] += weighted_gram(self.design.X[rows], weights[rows])
        hessian[:p, :p] /= np.outer(self.design.scale, self.design.scale)
        hessian[:p, :p] += np.diag(self.ridge)
        hessian[:p, p] = hessian[p, :p] = self.design.adjoint(weights)
        hessian[p, p] = weights.sum()
        return hessian

    def _blocks(self) -> Iterator[slice]:
        n, p = self.design.shape
        size = n if sp.issparse(self.design.X) else max(64, _BLOCK // p)
        for first in range(0, n, size):
            yield slice(first, first + size)

    def _with_product(self, x: np.ndarray) -> tuple[float, np.ndarray, Callable]:
        loss, slope, curvature = self.loss.terms(self.margins(x))
        value = float(self.weights @ loss) + self._penalty(x)
        slope = slope * self.weights * self.sign
        curvature = curvature * self.weights
        gradient = np.append(self.design.adjoint(slope) + self.ridge * x[:-1], slope.sum())

        def product(v: np.ndarray) -> np.ndarray:
            u = curvature * (self.design.scores(v[:-1]) + v[-1])
            return np.append(self.design.adjoint(u) + self.ridge * v[:-1], u.sum())

        return value, gradient, product
