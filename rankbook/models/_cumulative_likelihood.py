r"""The likelihood of a cumulative link model, summed block by block over items sorted by class.

With the columns :math:`x` that have one coefficient, :math:`w` that have one a threshold and
:math:`z` that act on the spread, and an offset :math:`o`,

.. math:: P(Y \le k \mid x) = F\!\left(\frac{\theta_k - x^\top b - w^\top \gamma_k - o}
    {\exp(z^\top \zeta)}\right).

The parameters are :math:`b`; for each threshold :math:`\gamma_k, \theta_k`; :math:`\zeta`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankbook._link import Link, Terms
from rankbook.models._cumulative_design import Block, Design
from rankbook.solvers.design import weighted_gram
from rankbook.solvers.newton import NewtonResult, minimize
from rankbook.solvers.quasi_newton import bfgs_update

__all__ = ["Likelihood", "fit"]

# Gain of a likelihood, an item, from which a Newton step leaves about its square.
_CLOSE = 0.01
# Gain of the likelihood from which two Newton steps are enough to its last digits.
_GAIN = 30.0
# A larger gain than this means that the part of the items does not stand for all.
_LARGEST_GAIN = 4.0 * _GAIN
# Steps by a part's Hessian end where one gains more than this share of what the last one did.
_SLOWEST = 0.1

# A coefficient whose penalty is so many times the items' weight is zero, and so is its square.
_LARGEST_PENALTY, _LARGEST = 1e150, 1e305


class Likelihood:
    """Minus the weighted log-likelihood plus the ridge term, in standardised parameters.

    The ridge term is the total weight times ``alpha / 2`` times the squared norm of all
    coefficients of the location. Points at which an item's two thresholds are not in order have
    the value infinity, which keeps the line search inside.
    """

    def __init__(self, design: Design, link: Link, alpha: float = 0.0) -> None:
        self.design = design
        self.link = link
        p, q, m, r = self.sizes = design.sizes
        self.first = p
        self.penalty = np.zeros(design.n_parameters)
        with np.errstate(over="ignore"):  # columns so small that their coefficients are zero
            self.penalty[:p] = alpha * design.total / design.location.scale / design.location.scale
            largest = min(_LARGEST_PENALTY * design.total, _LARGEST)
        self.penalty = np.minimum(self.penalty, largest)
        for k in range(m):
            here = self._own(k)
            self.penalty[here][:q] = (
                alpha * design.total / design.nominal.scale / design.nominal.scale
            )

    def value(self, params: np.ndarray) -> float:
        """Objective alone."""
        total = 0.5 * float(self.penalty @ (params * params))
        for _, block in self.design.blocks():
            ends = self._ends(block, params)
            if ends is None:
                return np.inf
            total += self.link.value(*ends, block.weights)
        return total

    def log_likelihood(self, params: np.ndarray) -> float:
        """Log-likelihood, without the ridge term."""
        return 0.5 * float(self.penalty @ (params * params)) - self.value(params)

    def value_gradient_hessian(self, params: np.ndarray) -> tuple[float, Any, Any]:
        """Objective, gradient and dense Hessian."""
        value = 0.5 * float(self.penalty @ (params * params))
        gradient = self.penalty * params
        hessian = np.diag(self.penalty)
        for _, block in self.design.blocks():
            ends = self._ends(block, params)
            if ends is None:
                return np.inf, None, None
            part, terms = self.link.value_terms(*ends, block.weights)
            value += part
            if self.sizes[3]:
                self._add_scaled(gradient, hessian, block, params, terms, ends)
            else:
                self._add(gradient, hessian, block, terms)
        lower = np.tril_indices(len(params), -1)
        hessian[lower] = hessian.T[lower]
        return value, gradient, hessian

    def gradient(self, params: np.ndarray) -> np.ndarray:
        """Gradient alone, where there are no scale columns and all thresholds are in order."""
        gradient = self.penalty * params
        for _, block in self.design.blocks():
            ends = self._ends(block, params)
            assert ends is not None
            eta, *slopes = self.link.slopes(*ends, block.weights)
            gradient[: self.first] += block.x.T @ eta
            self._add_slopes(gradient, block, slopes)
        return gradient

    def scores(self, params: np.ndarray) -> np.ndarray:
        """Gradient of each item's -log P, not weighted, in the design's order."""
        result = np.zeros((self.design.n_items, len(params)))
        for rows, block in self.design.blocks():
            ends = self._ends(block, params)
            assert ends is not None
            _, terms = self.link.value_terms(*ends, None)
            spread = self._spread(block, params)[:, None]
            x = block.x.toarray() if sp.issparse(block.x) else block.x
            result[rows, : self.first] = x * terms.eta[:, None] / spread
            for end, k in self._finite(block):
                own = terms.u if end == 0 else terms.l
                result[rows, self._own(k)] = block.w * own[:, None] / spread
            if self.sizes[3]:
                result[rows, -self.sizes[3] :] = block.z * self._stretch(terms, ends)[:, None]
        return result

    def is_inside(self, params: np.ndarray) -> bool:
        """Whether every item's thresholds are in order."""
        edges, m = self.design.edges, self.sizes[2]
        for k in range(1, m):
            change = params[self._own(k - 1)] - params[self._own(k)]
            # Without nominal columns one item speaks for all.
            items = slice(edges[k], edges[k + 1] if self.sizes[1] else edges[k] + 1)
            if not np.all(self.design.nominal.x[items] @ change > 0.0):
                return False
        return True

    def start(self) -> np.ndarray:
        """No effect of any column; thresholds that give the observed class shares."""
        shares = np.cumsum(self.design.class_weights)[:-1] / self.design.total
        params = np.zeros(self.design.n_parameters)
        offset = self.design.offset
        center = 0.0 if offset is None else float(np.average(offset, weights=self.design.weights))
        for k, threshold in enumerate(self.link.quantile(shares)):
            params[self._own(k)][-1] = threshold + center
        return params

    def _own(self, k: int) -> slice:
        """Where threshold k and its nominal coefficients stand among the parameters."""
        width = self.sizes[1] + 1
        return slice(self.first + k * width, self.first + (k + 1) * width)

    def _finite(self, block: Block) -> list[tuple[int, int]]:
        """The ends of a block's interval that are finite: (0 upper, 1 lower) and threshold."""
        upper = [(0, block.k)] if block.k < self.sizes[2] else []
        return upper + ([(1, block.k - 1)] if block.k else [])

    def _spread(self, block: Block, params: np.ndarray) -> np.ndarray:
        r = self.sizes[3]
        return np.exp(block.z @ params[-r:]) if r else np.ones(1)

    def _ends(self, block: Block, params: np.ndarray) -> tuple[Any, Any, Any] | None:
        """Upper end, lower end and gap of each item's interval; None outside the domain."""
        k, (_, q, m, r) = block.k, self.sizes
        eta = block.x @ params[: self.first]
        if block.offset is not None:
            eta = eta + block.offset
        upper = self._cut(block, k, params) - eta if k < m else None
        lower = self._cut(block, k - 1, params) - eta if k > 0 else None
        gap = None
        if upper is not None and lower is not None:
            change = params[self._own(k - 1)] - params[self._own(k)]
            gap = block.w @ change if q else -float(change[-1])
            if not np.min(gap) > 0.0:
                return None
        if r:
            spread = self._spread(block, params)
            upper, lower, gap = (None if v is None else v / spread for v in (upper, lower, gap))
        return upper, lower, gap

    def _cut(self, block: Block, k: int, params: np.ndarray) -> Any:
        own = params[self._own(k)]
        return -(block.w @ own) if self.sizes[1] else float(own[-1])

    def _add(self, gradient, hessian, block: Block, terms: Terms) -> None:
        """Add a block's terms to the gradient and to the upper triangle of the Hessian."""
        p, width = self.first, self.sizes[1] + 1
        finite = self._finite(block)
        products, grams = _products(block, terms, [end for end, _ in finite])
        hessian[:p, :p] += products[:, :p]
        gradient[:p] += products[:, p]
        self._add_slopes(gradient, block, (terms.u, terms.l))
        # One threshold's shift is the shift of both less that of the other.
        mixed = grams[:, 2 * width :] if len(finite) == 2 else 0.0
        for i, (_, k) in enumerate(finite):
            own, part = self._own(k), slice(i * width, (i + 1) * width)
            hessian[:p, own] += products[:, p + 1 :][:, part]
            hessian[own, own] += grams[:, part] - mixed
        if len(finite) == 2:
            hessian[self._own(block.k - 1), self._own(block.k)] += mixed

    def _add_slopes(self, gradient, block: Block, slopes: Sequence[np.ndarray]) -> None:
        """Add a block's slopes, of the upper and of the lower end, to the thresholds' gradient."""
        for end, k in self._finite(block):
            slope = slopes[end]
            gradient[self._own(k)] += block.w.T @ slope if self.sizes[1] else -slope.sum()

    def _stretch(self, terms: Terms, ends: tuple[Any, Any, Any]) -> np.ndarray:
        """Derivative of each item's term with respect to its logarithm of the spread."""
        parts = zip(ends[:2], (terms.u, terms.l), strict=True)
        return sum((end * slope for end, slope in parts if end is not None), np.zeros(1))

    def _add_scaled(self, gradient, hessian, block: Block, params, terms: Terms, ends) -> None:
        r"""Where the spread s depends on the item: ends are divided by s, and depend on log s.

        With :math:`u = u_0 / s`: :math:`\partial u / \partial \log s = -u`, so that the mixed
        derivative of a shift of the upper end and of log s is
        :math:`(g_{uu} u + g_{ul} l - g_u) / s`, g being derivatives with respect to shifts.
        """
        s = self._spread(block, params)
        values = {name: getattr(terms, name) / s for name in ("eta", "u", "l")}
        names = ("eta_eta", "eta_u", "eta_l", "ul")
        values |= {name: getattr(terms, name) / (s * s) for name in names}
        self._add(gradient, hessian, block, Terms(**values))
        upper, lower = (np.zeros_like(s) if end is None else end for end in ends[:2])
        mixed_u = terms.uu * upper + terms.ul * lower - terms.u
        mixed_l = terms.ll * lower + terms.ul * upper - terms.l
        bend = upper * mixed_u + lower * mixed_l
        tail = slice(-self.sizes[3], None)
        gradient[tail] += block.z.T @ self._stretch(terms, ends)
        hessian[tail, tail] += weighted_gram(block.z, bend)
        hessian[: self.first, tail] += block.x.T @ (block.z * ((mixed_u + mixed_l) / s)[:, None])
        for end, k in self._finite(block):
            mixed = (mixed_u if end == 0 else mixed_l) / s
            hessian[self._own(k), tail] += block.w.T @ (block.z * mixed[:, None])


def _products(block: Block, terms: Terms, ends: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """X' times [diag(eta_eta) X, eta, eta_u W, eta_l W], and W' [eta_u W, eta_l W, ul W].

    Only for the finite ends (0 upper, 1 lower); `ul` only where both are.
    """
    x, w = block.x, block.w
    (n, p), width = x.shape, w.shape[1]
    is_sparse = sp.issparse(x)
    first = 1 if is_sparse else p + 1
    bends = [(terms.eta_u, terms.eta_l)[end] for end in ends]
    bends += [terms.ul] if len(ends) == 2 and width > 1 else []
    sides = np.empty((n, first + len(bends) * width), order="F")
    sides[:, first - 1] = terms.eta
    for i, bend in enumerate(bends):
        part = sides[:, first + i * width : first + (i + 1) * width]
        np.multiply(w, bend[:, None], out=part)
    if width > 1:
        grams = w.T @ sides[:, first:]
    else:
        # Without nominal columns W is a column of -1.
        grams = np.array([[bend.sum() for bend in [*bends, terms.ul]]])
    outer = sides[:, : first + len(ends) * width]
    if is_sparse:
        return np.hstack([weighted_gram(x, terms.eta_eta), x.T @ outer]), grams
    np.multiply(x, terms.eta_eta[:, None], out=sides[:, :p])
    return x.T @ outer, grams


def fit(
    likelihood: Likelihood,
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None = None,
) -> NewtonResult:
    """Newton from the best cheap start.

    With many items, a first fit on a thinned sample and a step on a larger one cost a fraction
    of one pass. The larger one's Hessian then serves for steps that need only the gradient of all
    items, which leaves the last, quadratically convergent steps for the full sample.
    """
    design = likelihood.design
    start = likelihood.start()
    thin = design.thinned()
    bound = tol * design.total
    if design.n_items > 4 * thin.n_items and design.n_parameters > likelihood.sizes[2]:
        early = _early(thin, likelihood, start, 20)
        # About half the parameters, over the share of the items, is what the likelihood then gains.
        n_items = int(design.n_items * design.n_parameters / (2 * _GAIN))
        if early is not None and 2 * thin.n_items < n_items < design.n_items / 2:
            better = _early(design.thinned(n_items), likelihood, early[0], 0)
            start = early[0] if better is None else _corrected(likelihood, *better, bound)
        elif early is not None:
            start = early[0]
    return minimize(likelihood, start, tol=bound, max_iter=max_iter, callback=callback)


def _early(
    design: Design, full: Likelihood, start: np.ndarray, max_iter: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Estimate on a thinned sample, whose last step needs no check at its end, and its Hessian."""
    thin = Likelihood(design, full.link)
    thin.penalty = full.penalty * design.total / full.design.total
    result = minimize(thin, start, tol=_CLOSE * design.total, max_iter=max_iter)
    if max_iter and not result.converged:
        return None
    last = result.x - np.linalg.lstsq(result.hessian, result.gradient, rcond=None)[0]
    for params in (last, result.x):
        if full.is_inside(params):
            return params, result.hessian * (full.design.total / design.total)
    return None


def _corrected(
    full: Likelihood, params: np.ndarray, hessian: np.ndarray, bound: float
) -> np.ndarray:
    """Steps of the full sample by a part's Hessian, each of which corrects it (BFGS).

    They end where the next one would gain less than the bound, or where one gains more than
    chance, or than the one before, lets it: the part does not stand for all then.
    """
    if full.sizes[3]:
        return params
    limit, last = _LARGEST_GAIN, 0.0
    step = slope = np.zeros(0)
    for _ in range(full.link.gradients):
        gradient = full.gradient(params)
        if last:
            hessian = bfgs_update(hessian, -step, gradient - slope)
        slope = gradient
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        gain = 0.5 * float(gradient @ step)
        if not gain <= limit or not full.is_inside(params - step):
            break
        params = params - step
        # The next gain is to this one as this one to the last.
        if gain * gain <= bound * last:
            break
        limit, last = _SLOWEST * gain, gain
    return params
