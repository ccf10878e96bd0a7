"""The likelihood of a cumulative link model, summed block by block over items sorted by class.

Sorted items make every class a slice: the two thresholds of an item are then scalars, no array
with an entry for each item and class is ever formed, and a block's temporaries stay in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from rankbook.models._links import Link, Terms
from rankbook.solvers.newton import NewtonResult, minimize

__all__ = ["Design", "Likelihood", "fit", "weighted_gram"]

_DENSE_BLOCK = 8192
_SPARSE_BLOCK = 65536
# The start is fitted on about this many items a parameter when there are many more of them.
_START_ITEMS = 40
_START_SHARE = 20


@dataclass(frozen=True)
class Design:
    """Items sorted by class, with columns standardised for conditioning.

    A dense matrix is centred and scaled, a sparse one is scaled only. ``edges[k]:edges[k + 1]``
    are the items of class k.
    """

    x: np.ndarray | sp.csr_matrix
    edges: np.ndarray
    weights: np.ndarray | None
    mean: np.ndarray
    scale: np.ndarray
    constant: np.ndarray
    total: float

    @classmethod
    def build(cls, x, codes: np.ndarray, n_classes: int, weights: np.ndarray | None) -> Design:
        """Sort, centre and scale; x itself is left alone."""
        # Small integers are sorted by counting, which is several times faster.
        small = codes.astype(np.uint8 if n_classes <= 256 else np.int64, copy=False)
        order = np.argsort(small, kind="stable")
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_classes))])
        weights = None if weights is None else weights[order]
        total = float(len(codes)) if weights is None else float(weights.sum())
        if not sp.issparse(x):
            x, mean, scale, constant = _standardised(x, order, weights, total)
            return cls(x, edges, weights, mean, scale, constant, total)
        x = sp.csr_array(x.tocsr()[order])
        center = _means(x, weights, total)
        deviation = np.sqrt(np.maximum(_means(x * x, weights, total) - center**2, 0.0))
        # Without centring the variance is a difference, good to half the digits.
        constant = deviation <= 1e-7 * np.abs(center)
        scale = np.where(constant, 1.0, deviation)
        x = sp.csr_array(x @ sp.diags_array(1.0 / scale, format="csr"))
        return cls(x, edges, weights, np.zeros_like(center), scale, constant, total)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.edges) - 1

    @property
    def class_weights(self) -> np.ndarray:
        """Total weight of each class."""
        if self.weights is None:
            return np.diff(self.edges).astype(float)
        return np.add.reduceat(self.weights, self.edges[:-1])

    def blocks(self):
        """Yield (class, rows, weights) with at most a block's length of rows each."""
        size = _SPARSE_BLOCK if sp.issparse(self.x) else _DENSE_BLOCK
        for k in range(self.n_classes):
            for a in range(self.edges[k], self.edges[k + 1], size):
                rows = slice(a, min(a + size, self.edges[k + 1]))
                yield k, self.x[rows], None if self.weights is None else self.weights[rows]

    def correlation(self) -> np.ndarray:
        """Correlations of the columns."""
        mean = _means(self.x, self.weights, self.total)
        return weighted_gram(self.x, self.weights) / self.total - np.outer(mean, mean)

    def thinned(self) -> Design:
        """Some items a parameter, evenly from each class and at least one of it."""
        n, p = self.x.shape
        n_items = max(2000, _START_ITEMS * (p + self.n_classes), n // _START_SHARE)
        step = max(1, n // n_items)
        kept = [np.arange(a, b, step) for a, b in zip(self.edges, self.edges[1:], strict=False)]
        edges = np.concatenate([[0], np.cumsum([len(k) for k in kept])])
        rows = np.concatenate(kept)
        weights = None if self.weights is None else self.weights[rows]
        total = float(len(rows)) if weights is None else float(weights.sum())
        return Design(self.x[rows], edges, weights, self.mean, self.scale, self.constant, total)

    def jacobian(self) -> np.ndarray:
        """Matrix from standardised to original (coefficients, thresholds)."""
        p = len(self.scale)
        jacobian = np.eye(p + self.n_classes - 1)
        jacobian[range(p), range(p)] = 1.0 / self.scale
        jacobian[p:, :p] = self.mean / self.scale
        return jacobian


def _means(x, weights: np.ndarray | None, total: float) -> np.ndarray:
    sums = x.sum(axis=0) if weights is None else x.T @ weights
    return np.asarray(sums).ravel() / total


def _standardised(x: np.ndarray, order: np.ndarray, weights: np.ndarray | None, total: float):
    """Sorted, centred and scaled copy; mean, scale, and which columns are constant.

    The copy has whole columns in memory: each is finished while it is in the cache, and scaling
    rows, as the Hessian does, runs along them.
    """
    copy = np.empty(x.shape, order="F")
    mean, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
    constant = np.zeros(x.shape[1], dtype=bool)
    for j in range(x.shape[1]):
        column = np.take(x[:, j], order, out=copy[:, j], mode="clip")
        mean[j] = (column.sum() if weights is None else column @ weights) / total
        column -= mean[j]
        squares = column @ (column if weights is None else column * weights)
        deviation = np.sqrt(squares / total)
        constant[j] = deviation <= 1e-10 * abs(mean[j])
        if not constant[j]:
            scale[j] = deviation
            column *= 1.0 / deviation
    return copy, mean, scale, constant


class Likelihood:
    """Minus the weighted log-likelihood plus the ridge term, in standardised parameters.

    The parameters are the p coefficients, then the K - 1 thresholds. Points whose thresholds are
    not strictly increasing have the value infinity, which keeps the line search inside.
    """

    def __init__(self, design: Design, link: Link, alpha: float) -> None:
        self.design = design
        self.link = link
        self.n_features = design.x.shape[1]
        self.penalty = alpha / design.scale**2

    def value(self, params: np.ndarray) -> float:
        """Objective alone."""
        b, theta, gaps = self._split(params)
        if gaps is None:
            return np.inf
        total = 0.5 * float(self.penalty @ (b * b))
        for k, x, weights in self.design.blocks():
            total += self.link.value(*self._ends(k, x @ b, theta), gaps[k], weights)
        return total

    def value_gradient_hessian(self, params: np.ndarray):
        """Objective, gradient and dense Hessian."""
        b, theta, gaps = self._split(params)
        if gaps is None:
            return np.inf, None, None
        p = self.n_features
        value = 0.5 * float(self.penalty @ (b * b))
        gradient = np.zeros_like(params)
        gradient[:p] = self.penalty * b
        hessian = np.zeros((len(params), len(params)))
        hessian[range(p), range(p)] = self.penalty
        for k, x, weights in self.design.blocks():
            ends = self._ends(k, x @ b, theta)
            part, terms = self.link.value_terms(*ends, gaps[k], weights)
            value += part
            self._add(gradient, hessian, k, x, terms)
        lower = np.tril_indices(len(params), -1)
        hessian[lower] = hessian.T[lower]
        return value, gradient, hessian

    def is_inside(self, params: np.ndarray) -> bool:
        """Whether the thresholds increase strictly."""
        return self._split(params)[2] is not None

    def start(self) -> np.ndarray:
        """No effect of any column; thresholds that give the observed class shares."""
        shares = np.cumsum(self.design.class_weights)[:-1] / self.design.total
        return np.concatenate([np.zeros(self.n_features), self.link.quantile(shares)])

    def _split(self, params: np.ndarray):
        """Coefficients, thresholds, and each class's gap (None at both ends, or where invalid)."""
        b, theta = params[: self.n_features], params[self.n_features :]
        gaps = np.diff(theta)
        if not np.all(gaps > 0.0):
            return b, theta, None
        return b, theta, [None, *gaps.tolist(), None]

    def _ends(self, k: int, eta: np.ndarray, theta: np.ndarray):
        upper = theta[k] - eta if k < len(theta) else None
        lower = theta[k - 1] - eta if k > 0 else None
        return upper, lower

    def _add(self, gradient, hessian, k: int, x, terms: Terms) -> None:
        """Add a block's terms to the gradient and to the upper triangle of the Hessian."""
        p, upper, lower = self.n_features, self.n_features + k, self.n_features + k - 1
        block = _products(x, terms)
        hessian[:p, :p] += block[:, :p]
        gradient[:p] += block[:, p]
        if upper < len(gradient):
            gradient[upper] += terms.u
            hessian[:p, upper] += block[:, p + 1]
            hessian[upper, upper] += terms.uu
        if k > 0:
            gradient[lower] += terms.l
            hessian[:p, lower] += block[:, p + 2]
            hessian[lower, lower] += terms.ll
        if k > 0 and upper < len(gradient):
            hessian[lower, upper] += terms.ul


def _products(x, terms: Terms) -> np.ndarray:
    """X' times [diag(eta_eta) X, eta, eta_u, eta_l], in one product where X is dense."""
    n, p = x.shape
    sides = np.empty((n, 3 if sp.issparse(x) else p + 3), order="F")
    sides[:, -3], sides[:, -2], sides[:, -1] = terms.eta, terms.eta_u, terms.eta_l
    if sp.issparse(x):
        return np.hstack([weighted_gram(x, terms.eta_eta), x.T @ sides])
    np.multiply(x, terms.eta_eta[:, None], out=sides[:, :p])
    return x.T @ sides


def weighted_gram(x, weights: np.ndarray | None) -> np.ndarray:
    """X' diag(weights) X as a dense array; None stands for equal weights of one."""
    if sp.issparse(x):
        right = x if weights is None else sp.diags_array(weights, format="csr") @ x
        return (x.T @ right).toarray()
    return x.T @ (x if weights is None else x * weights[:, None])


def fit(likelihood: Likelihood, tol: float, max_iter: int, callback=None) -> NewtonResult:
    """Newton from the best cheap start.

    With many items, a first fit on a thinned sample costs a fraction of one pass and leaves only
    the last, quadratically convergent steps for the full sample.
    """
    design = likelihood.design
    start = likelihood.start()
    thin = design.thinned()
    if design.x.shape[0] > 4 * thin.x.shape[0] and likelihood.n_features:
        early = _early(Likelihood(thin, likelihood.link, 0.0), likelihood)
        start = start if early is None else early
    return minimize(likelihood, start, tol=tol * design.total, max_iter=max_iter, callback=callback)


def _early(thin: Likelihood, full: Likelihood) -> np.ndarray | None:
    """Estimate on the thinned sample, to a fraction of its own standard errors."""
    thin.penalty = full.penalty * thin.design.total / full.design.total
    result = minimize(thin, thin.start(), tol=0.5, max_iter=20)
    if not result.converged:
        return None
    last = result.x - np.linalg.solve(result.hessian, result.gradient)
    return last if full.is_inside(last) else result.x
