r"""Links of cumulative models: the distribution of the latent error, in forms that do not cancel.

An item of class k with score eta has the probability :math:`P = F(u) - F(l)`, where
:math:`u = \theta_k - \eta` and :math:`l = \theta_{k-1} - \eta`. Each link gives :math:`-\log P`
and its derivatives. At extreme scores both values of F round to 0 or to 1, so the difference is
never taken: it is rewritten through logarithms, ``expm1`` and the gap :math:`u - l`. The gap is
one number for all items of a class, or an array where it depends on the item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Link", "Terms", "within_reach"]

# Its square is a float; beyond it every tail but Cauchy's is empty, and that one nearly so.
_FAR = 1e150


def within_reach(ends: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals (n, K - 1), those that are too far out moved in, and their gaps."""
    near = ends.clip(-_FAR, _FAR)
    moved = near != ends
    if not moved.any():
        return ends, gaps
    return near, np.where(moved[:, 1:] | moved[:, :-1], np.diff(near, axis=1), gaps)


@dataclass(frozen=True)
class Terms:
    """Derivatives of weight times -log P, an entry an item of one class.

    A shift of the upper end by minus one unit is `u`, of the lower end `l`, of both (what a score
    does) `eta`. The names of two letters are second derivatives. An end at infinity has zeros.
    """

    eta: np.ndarray
    eta_eta: np.ndarray
    eta_u: np.ndarray
    eta_l: np.ndarray
    u: np.ndarray
    l: np.ndarray  # noqa: E741
    ul: np.ndarray

    @property
    def uu(self) -> np.ndarray:
        """A shift of the upper end is that of both less that of the lower one."""
        return self.eta_u - self.ul

    @property
    def ll(self) -> np.ndarray:
        """As for the upper end."""
        return self.eta_l - self.ul


class Link(ABC):
    """A density f with distribution function F, and what Newton needs of them."""

    name: str
    is_log_concave = True
    mean = 0.0
    # How many gradients cost less than the second derivatives that they may spare.
    gradients = 1

    @abstractmethod
    def cdf(self, z: np.ndarray) -> np.ndarray:
        """F(z)."""

    @abstractmethod
    def quantile(self, p: Any) -> Any:
        """The inverse of F."""

    @abstractmethod
    def isf(self, p: Any) -> Any:
        """The inverse of 1 - F."""

    @abstractmethod
    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log F(z)."""

    @abstractmethod
    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log(1 - F(z))."""

    @abstractmethod
    def log_pdf(self, z: np.ndarray) -> np.ndarray:
        """log f(z)."""

    @abstractmethod
    def slope(self, z: np.ndarray) -> np.ndarray:
        """f'(z) / f(z)."""

    @abstractmethod
    def _log_interior(self, upper: np.ndarray, lower: np.ndarray, gap: Any) -> np.ndarray:
        """log(F(upper) - F(lower)) for two finite ends, gap apart."""

    def log_interval(
        self, upper: np.ndarray | None, lower: np.ndarray | None, gap: Any
    ) -> np.ndarray:
        """log(F(upper) - F(lower)); None stands for an infinite end."""
        if upper is None:
            assert lower is not None
            return self.log_sf(lower)
        if lower is None:
            return self.log_cdf(upper)
        return self._log_interior(upper, lower, gap)

    def log_probabilities(self, z: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """log P(Y = k) for each item and class, from the ends z (n, K - 1) and their gaps."""
        n, m = z.shape
        result = np.empty((n, m + 1))
        result[:, 0] = self.log_cdf(z[:, 0])
        result[:, m] = self.log_sf(z[:, -1])
        for k in range(1, m):
            result[:, k] = self.log_interval(z[:, k], z[:, k - 1], gaps[..., k - 1])
        return result

    def value(self, upper, lower, gap, weights) -> float:
        """Weighted sum of -log P."""
        log_p = self.log_interval(upper, lower, gap)
        return -float(log_p.sum() if weights is None else weights @ log_p)

    def value_terms(self, upper, lower, gap, weights) -> tuple[float, Terms]:
        r"""Weighted sum of -log P and its derivatives.

        With :math:`r = f / P` and :math:`q = f' / P` at either end, the second derivatives of
        :math:`-\log P` are :math:`r_u^2 - q_u`, :math:`r_l^2 + q_l` and :math:`-r_u r_l`; a score
        moves both ends, so that its derivatives are the sums over the ends.
        """
        log_p = self.log_interval(upper, lower, gap)
        zero = np.zeros_like(log_p)
        ru, qu = zero, zero
        rl, ql = zero, zero
        if upper is not None:
            ru = np.exp(self.log_pdf(upper) - log_p)
            qu = _product(ru, self.slope(upper))
        if lower is not None:
            rl = np.exp(self.log_pdf(lower) - log_p)
            ql = _product(rl, self.slope(lower))
        w = 1.0 if weights is None else weights
        uu, ll, ul = w * (ru * ru - qu), w * (rl * rl + ql), -w * ru * rl
        value = -float(np.sum(w * log_p))
        return value, Terms(
            eta=w * (ru - rl),
            eta_eta=w * ((ru - rl) ** 2 - (qu - ql)),
            eta_u=uu + ul,
            eta_l=ll + ul,
            u=w * ru,
            l=-w * rl,
            ul=ul,
        )

    def slopes(self, upper, lower, gap, weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first derivatives of `Terms`: eta, u, l."""
        _, terms = self.value_terms(upper, lower, gap, weights)
        return terms.eta, terms.u, terms.l


def _product(density: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """f'/P from f/P and f'/f: zero far out, where f underflows before its slope overflows."""
    return np.multiply(density, slope, out=np.zeros_like(density), where=density > 0.0)
