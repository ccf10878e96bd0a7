"""The regularised mean margin loss of a linear score, for Newton's method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankbook.losses import Exponential, Loss

__all__ = ["MarginRisk", "terms"]

# Numbers a block of rows holds: small enough to stay in cache while it is used four times.
_BLOCK = 2**18
# Beyond this many columns the Hessian is applied, not formed.
_DENSE_COLUMNS = 1500
# The Hessian is kept while a step with it leaves at most this share of the decrement.
_REUSE = 0.01


def terms(loss: Loss, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value and first two derivatives of the exponential or logistic loss, from one exponential."""
    if isinstance(loss, Exponential):
        value = np.exp(-margin)
        return value, -value, value
    e = np.exp(-np.abs(margin))
    share = 1.0 / (1.0 + e)
    value = np.log1p(e) - np.minimum(margin, 0.0)
    return value, -share * np.where(margin >= 0, e, 1.0), share * share * e


class MarginRisk:
    r"""The function :math:`\sum_i w_i \ell(y_i (x_i^\top b + b_0)) + (\alpha/2) b^\top b`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        Items.
    sign : ndarray of shape (n,)
        Labels, -1 or 1.
    weights : ndarray of shape (n,)
        Non-negative weights that sum to one.
    loss : Loss
        Exponential or logistic.
    alpha : float
        Weight of the penalty, which leaves the intercept free.
    """

    def __init__(
        self, X: Any, sign: np.ndarray, weights: np.ndarray, loss: Loss, alpha: float
    ) -> None:
        self.X, self.sign, self.weights, self.loss, self.alpha = X, sign, weights, loss, alpha
        self.hessian: Any = None
        self.decrement = np.inf
        self._factor: Any = None

    def thinned(self, n_items: int) -> MarginRisk:
        """The same function of every k-th item, about n_items of them."""
        step = -(-self.sign.size // n_items)
        weights = self.weights[::step]
        X = self.X[::step]
        return MarginRisk(X, self.sign[::step], weights / weights.sum(), self.loss, self.alpha)

    def start(self) -> np.ndarray:
        """No slope, and the best intercept."""
        x = np.zeros(self.X.shape[1] + 1)
        positive = self.weights[self.sign > 0].sum()
        x[-1] = np.log(positive / (1.0 - positive))
        if isinstance(self.loss, Exponential):
            x[-1] /= 2
        return x

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Values y (x b + b_0)."""
        return self.sign * (np.asarray(self.X @ x[:-1]).ravel() + x[-1])

    def value(self, x: np.ndarray) -> float:
        """Value at x, the coefficients followed by the intercept."""
        value = terms(self.loss, self.margins(x))[0]
        return float(self.weights @ value + 0.5 * self.alpha * x[:-1] @ x[:-1])

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, np.ndarray, Any]:
        """Value, gradient and Hessian.

        The Hessian costs more than the rest. The last one is returned again as long as steps with
        it cut the Newton decrement a hundredfold. Where it would be too large it is a product.
        """
        if self.X.shape[1] > _DENSE_COLUMNS:
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
        p = self.X.shape[1]
        value = 0.5 * self.alpha * x[:p] @ x[:p]
        gradient = np.append(self.alpha * x[:p], 0.0)
        weights = np.empty(self.sign.size)
        for rows in self._blocks():
            X, w, sign = self.X[rows], self.weights[rows], self.sign[rows]
            loss, slope, curvature = terms(self.loss, sign * (X @ x[:p] + x[p]))
            value += w @ loss
            slope = slope * (w * sign)
            gradient[:p] += X.T @ slope
            gradient[p] += slope.sum()
            np.multiply(curvature, w, out=weights[rows])
        return float(value), gradient, weights

    def _second_order(self, weights: np.ndarray) -> np.ndarray:
        p = self.X.shape[1]
        hessian = np.diag(np.append(np.full(p, self.alpha), weights.sum()))
        for rows in self._blocks():
            hessian[:p, :p] += _weighted_gram(self.X[rows], weights[rows])
        hessian[:p, p] = hessian[p, :p] = self.X.T @ weights
        return hessian

    def _blocks(self) -> Iterator[slice]:
        n, p = self.X.shape
        size = n if sp.issparse(self.X) else max(64, _BLOCK // p)
        for first in range(0, n, size):
            yield slice(first, first + size)

    def _with_product(self, x: np.ndarray) -> tuple[float, np.ndarray, Callable]:
        loss, slope, curvature = terms(self.loss, self.margins(x))
        value = float(self.weights @ loss + 0.5 * self.alpha * x[:-1] @ x[:-1])
        slope = slope * self.weights * self.sign
        curvature = curvature * self.weights
        gradient = np.append(self.X.T @ slope + self.alpha * x[:-1], slope.sum())

        def product(v: np.ndarray) -> np.ndarray:
            u = curvature * (self.X @ v[:-1] + v[-1])
            return np.append(self.X.T @ u + self.alpha * v[:-1], u.sum())

        return value, gradient, product


def _weighted_gram(X: Any, curvature: np.ndarray) -> np.ndarray:
    if sp.issparse(X):
        return (X.T @ (X * curvature[:, None])).toarray()
    Z = X * np.sqrt(curvature)[:, None]
    return Z.T @ Z
