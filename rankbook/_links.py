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
from scipy.special import expit, log_ndtr, logit, ndtr, ndtri

from rankbook._softplus import (
    SAFE,
    interval_slopes,
    interval_sum,
    interval_terms,
    log_total,
    softplus_slope,
    softplus_sum,
    softplus_terms,
)

__all__ = ["LINKS", "Link", "Terms"]


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


class Probit(Link):
    """Standard normal errors."""

    name = "probit"

    def cdf(self, z):
        return ndtr(z)

    def quantile(self, p):
        return ndtri(p)

    def isf(self, p):
        return -ndtri(p)

    def log_cdf(self, z):
        return log_ndtr(z)

    def log_sf(self, z):
        return log_ndtr(-z)

    def log_pdf(self, z):
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi)

    def slope(self, z):
        return -z

    def _log_interior(self, upper, lower, gap):
        # By symmetry the interval can be mirrored into the left half, where log F is accurate.
        flip = upper + lower > 0
        high = log_ndtr(np.where(flip, -lower, upper))
        low = log_ndtr(np.where(flip, -upper, lower))
        return high + np.log(-np.expm1(low - high))


class CLogLog(Link):
    """Errors of the Gumbel distribution of minima, F(z) = 1 - exp(-exp z)."""

    name = "cloglog"
    mean = -float(np.euler_gamma)

    def cdf(self, z):
        return -np.expm1(-np.exp(z))

    def quantile(self, p):
        return np.log(-np.log1p(-np.asarray(p, dtype=float)))

    def isf(self, p):
        return np.log(-np.log(p))

    def log_cdf(self, z):
        # Three ranges of log(1 - exp(-e^z)): e^z may underflow, be small, or be large.
        rate = np.exp(np.maximum(z, -30.0))
        small = np.log(-np.expm1(-rate))
        large = np.log1p(-np.exp(-np.maximum(rate, 0.5)))
        return np.where(z < -30.0, z, np.where(rate < 0.5, small, large))

    def log_sf(self, z):
        return -np.exp(z)

    def log_pdf(self, z):
        return z - np.exp(z)

    def slope(self, z):
        return 1.0 - np.exp(z)

    def _log_interior(self, upper, lower, gap):
        # P = exp(-e^l) (1 - exp(-e^l (e^gap - 1))), and log(e^l (e^gap - 1)) = l + log expm1(gap).
        log_rate = lower + _log_expm1(gap)
        return -np.exp(lower) + self.log_cdf(log_rate)


def _log_expm1(gap: Any) -> Any:
    return gap + np.log(-np.expm1(-gap))


class LogLog(Link):
    """Errors of the Gumbel distribution of maxima, F(z) = exp(-exp(-z)): cloglog, mirrored."""

    name = "loglog"
    mean = float(np.euler_gamma)
    _mirror = CLogLog()

    def cdf(self, z):
        return np.exp(-np.exp(-z))

    def quantile(self, p):
        return -self._mirror.isf(p)

    def isf(self, p):
        return -self._mirror.quantile(p)

    def log_cdf(self, z):
        return self._mirror.log_sf(-z)

    def log_sf(self, z):
        return self._mirror.log_cdf(-z)

    def log_pdf(self, z):
        return self._mirror.log_pdf(-z)

    def slope(self, z):
        return -self._mirror.slope(-z)

    def _log_interior(self, upper, lower, gap):
        return self._mirror._log_interior(-lower, -upper, gap)


class Cauchit(Link):
    """Cauchy errors, F(z) = 1/2 + arctan(z) / pi: heavy tails, no log-concave density."""

    name = "cauchit"
    is_log_concave = False

    def cdf(self, z):
        return np.arctan2(1.0, -z) / np.pi

    def quantile(self, p):
        return -self.isf(p)

    def isf(self, p):
        return 1.0 / np.tan(np.pi * np.asarray(p, dtype=float))

    def log_cdf(self, z):
        return np.log(self.cdf(z))

    def log_sf(self, z):
        return np.log(self.cdf(-z))

    def log_pdf(self, z):
        return -np.log(np.pi) - np.log1p(z * z)

    def slope(self, z):
        return -2.0 * z / (1.0 + z * z)

    def _log_interior(self, upper, lower, gap):
        # The difference of two arctangents is the angle of one vector.
        return np.log(np.arctan2(gap, 1.0 + upper * lower) / np.pi)


class Logit(Link):
    r"""Logistic errors: the proportional odds model.

    Here :math:`P = F(u) (1 - F(l)) (1 - e^{-(u - l)})`, so that

    .. math:: -\log P = \log(1 + e^{-u}) + \log(1 + e^{l}) - \log(1 - e^{-(u - l)}),

    whose last term depends on the class alone (Uematsu and Lee, 2013, section 4.2).
    """

    name = "logit"
    gradients = 6

    def cdf(self, z):
        return expit(z)

    def quantile(self, p):
        return logit(p)

    def isf(self, p):
        return -logit(p)

    def log_cdf(self, z):
        return -np.logaddexp(0.0, -z)

    def log_sf(self, z):
        return -np.logaddexp(0.0, z)

    def log_pdf(self, z):
        return -np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z)))

    def slope(self, z):
        return -np.tanh(0.5 * z)

    def _log_interior(self, upper, lower, gap):
        return self.log_cdf(upper) + self.log_sf(lower) + np.log(-np.expm1(-gap))

    def value(self, upper, lower, gap, weights):
        """As the general rule, with an exponential an end and few logarithms."""
        value = 0.0
        if gap is not None and np.abs(upper).max(initial=0.0) <= SAFE / 2:
            value += interval_sum(upper, np.exp(-gap), weights)
        else:
            if upper is not None:
                value += softplus_sum(-upper, weights)
            if lower is not None:
                value += softplus_sum(lower, weights)
        if gap is not None:
            value -= log_total(-np.expm1(-gap), weights, len(upper))
        return value

    def value_terms(self, upper, lower, gap, weights):
        """As the general rule, with an exponential an end and few logarithms.

        With :math:`a = 1 / (e^{u - l} - 1)` the derivatives of the gap's term are a and
        :math:`a (1 + a)`.
        """
        n = len(lower if upper is None else upper)
        zero = np.zeros(n)
        value, ul = 0.0, zero
        above, below, var_u, var_l = zero, zero, zero, zero
        if gap is not None and np.abs(upper).max(initial=0.0) <= SAFE / 2:
            value, above, below, var_u, var_l = interval_terms(upper, np.exp(-gap), weights)
        else:
            if upper is not None:
                part, above, var_u = softplus_terms(-upper, weights)
                value += part
            if lower is not None:
                part, below, var_l = softplus_terms(lower, weights)
                value += part
        u, l = above, -below  # noqa: E741
        if gap is not None:
            share = -np.expm1(-gap)
            value -= log_total(share, weights, n)
            first = np.exp(-gap) / share
            second = first * (1.0 + first)
            if weights is not None:
                first, second = weights * first, weights * second
            u, l = u + first, l - first  # noqa: E741
            ul = np.full(n, -second)
        return value, Terms(above - below, var_u + var_l, var_u, var_l, u, l, ul)

    def slopes(self, upper, lower, gap, weights):
        """As the general rule, with one exponential an item and no logarithm."""
        if gap is None:
            end = softplus_slope(lower if upper is None else -upper)
            zero = np.zeros_like(end)
            parts = (-end, zero, -end) if upper is None else (end, end, zero)
        else:
            shrink = np.exp(-gap)
            above, below = interval_slopes(upper, lower, shrink)
            first = shrink / -np.expm1(-gap)
            parts = above - below, above + first, -(below + first)
        return parts if weights is None else tuple(weights * part for part in parts)


LINKS: dict[str, Link] = {
    link.name: link for link in (Logit(), Probit(), CLogLog(), LogLog(), Cauchit())
}
