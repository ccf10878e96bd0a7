r"""Links of cumulative models: the distribution of the latent error, in forms that do not cancel.

An item of class k with score eta has the probability :math:`P = F(u) - F(l)`, where
:math:`u = \theta_k - \eta` and :math:`l = \theta_{k-1} - \eta`. Each link gives :math:`-\log P`
and its derivatives. At extreme scores both values of F round to 0 or to 1, so the difference is
never taken: it is rewritten through logarithms, ``expm1`` and the gap :math:`u - l`, which is the
same for all items of a class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, logit, ndtr, ndtri

__all__ = ["LINKS", "Link", "Terms"]


@dataclass(frozen=True)
class Terms:
    """Derivatives of the weighted sum of -log P over items of one class.

    `eta`, `eta_eta`, `eta_u`, `eta_l` have an entry an item (derivatives with respect to its own
    score, and mixed with the upper and lower threshold); the rest are sums over the items.
    """

    eta: np.ndarray
    eta_eta: np.ndarray
    eta_u: np.ndarray
    eta_l: np.ndarray
    u: float
    l: float  # noqa: E741
    uu: float
    ll: float
    ul: float


class Link(ABC):
    """A log-concave density f with distribution function F, and what Newton needs of them."""

    name: str

    @abstractmethod
    def cdf(self, z: np.ndarray) -> np.ndarray:
        """F(z)."""

    @abstractmethod
    def quantile(self, p: np.ndarray) -> np.ndarray:
        """The inverse of F."""

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
    def _log_interior(self, upper: np.ndarray, lower: np.ndarray, gap: float) -> np.ndarray:
        """log(F(upper) - F(lower)) for two finite ends, gap apart."""

    def log_interval(
        self, upper: np.ndarray | None, lower: np.ndarray | None, gap: float | None
    ) -> np.ndarray:
        """log(F(upper) - F(lower)); None stands for an infinite end."""
        if lower is None:
            return self.log_cdf(upper)
        if upper is None:
            return self.log_sf(lower)
        return self._log_interior(upper, lower, gap)

    def value(self, upper, lower, gap, weights) -> float:
        """Weighted sum of -log P."""
        log_p = self.log_interval(upper, lower, gap)
        return -float(log_p.sum() if weights is None else weights @ log_p)

    def value_terms(self, upper, lower, gap, weights) -> tuple[float, Terms]:
        r"""Weighted sum of -log P and its derivatives.

        With :math:`r = f / P` and :math:`q = f' / P` at either end, the second derivatives of
        :math:`-\log P` are :math:`r_u^2 - q_u`, :math:`r_l^2 + q_l` and :math:`-r_u r_l`; a score
        moves both ends, so that its derivatives are minus the sums over the ends.
        """
        log_p = self.log_interval(upper, lower, gap)
        zero = np.zeros_like(log_p)
        ru, qu = zero, zero
        rl, ql = zero, zero
        if upper is not None:
            ru = np.exp(self.log_pdf(upper) - log_p)
            qu = ru * self.slope(upper)
        if lower is not None:
            rl = np.exp(self.log_pdf(lower) - log_p)
            ql = rl * self.slope(lower)
        w = 1.0 if weights is None else weights
        uu, ll, ul = w * (ru * ru - qu), w * (rl * rl + ql), -w * ru * rl
        value = -float(np.sum(w * log_p))
        return value, Terms(
            eta=w * (ru - rl),
            eta_eta=w * ((ru - rl) ** 2 - (qu - ql)),
            eta_u=-(uu + ul),
            eta_l=-(ll + ul),
            u=-float(np.sum(w * ru)),
            l=float(np.sum(w * rl)),
            uu=float(np.sum(uu)),
            ll=float(np.sum(ll)),
            ul=float(np.sum(ul)),
        )


class Probit(Link):
    """Standard normal errors."""

    name = "probit"

    def cdf(self, z):
        return ndtr(z)

    def quantile(self, p):
        return ndtri(p)

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

    def cdf(self, z):
        return -np.expm1(-np.exp(z))

    def quantile(self, p):
        return np.log(-np.log1p(-np.asarray(p, dtype=float)))

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


def _log_expm1(gap: float) -> float:
    return float(gap + np.log(-np.expm1(-gap)))


class Logit(Link):
    r"""Logistic errors: the proportional odds model.

    Here :math:`P = F(u) (1 - F(l)) (1 - e^{-(u - l)})`, so that

    .. math:: -\log P = \log(1 + e^{-u}) + \log(1 + e^{l}) - \log(1 - e^{-(u - l)}),

    whose last term depends on the class alone (Uematsu and Lee, 2013, section 4.2).
    """

    name = "logit"

    def cdf(self, z):
        return expit(z)

    def quantile(self, p):
        return logit(p)

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

    def value_terms(self, upper, lower, gap, weights):
        """As the general rule, with two exponentials an item and no logarithm."""
        n = len(lower if upper is None else upper)
        zero = np.zeros(n)
        value = uu = ll = ul = su = sl = 0.0
        above, below, var_u, var_l = zero, zero, zero, zero
        total = float(n) if weights is None else float(weights.sum())
        if upper is not None:
            part, above, var_u = _softplus_terms(-upper, weights)
            value, su, uu = value + part, -float(above.sum()), float(var_u.sum())
        if lower is not None:
            part, below, var_l = _softplus_terms(lower, weights)
            value, sl, ll = value + part, float(below.sum()), float(var_l.sum())
        if gap is not None:
            e = np.expm1(gap)
            first, second = total / e, total * (1.0 + 1.0 / e) / e
            value -= total * np.log(-np.expm1(-gap))
            su, sl = su - first, sl + first
            uu, ll, ul = uu + second, ll + second, -second
        terms = Terms(above - below, var_u + var_l, -var_u, -var_l, su, sl, uu, ll, ul)
        return value, terms


# Sixteen factors 1 + e^40 have a product below e^650, which does not overflow.
_FACTORS, _SAFE = 16, 40.0


def _softplus_terms(z: np.ndarray, weights: np.ndarray | None):
    """Sum of w log(1 + e^z), and its first and second derivatives item by item."""
    if z.max(initial=0.0) <= _SAFE:
        growth = np.exp(z)
        base = growth + 1.0
        inverse = 1.0 / base
        first = growth * inverse
        second = first * inverse
        if weights is None:
            return _log_sum(base), first, second
        value = float(weights @ np.log(base))
    else:
        first = expit(z)
        second = first * expit(-z)
        value = np.logaddexp(0.0, z)
        value = float(value.sum() if weights is None else weights @ value)
        if weights is None:
            return value, first, second
    return value, weights * first, weights * second


def _log_sum(factors: np.ndarray) -> float:
    """Sum of logarithms with one logarithm to sixteen factors."""
    whole = len(factors) // _FACTORS * _FACTORS
    products = np.multiply.reduce(factors[:whole].reshape(_FACTORS, -1), axis=0)
    return float(np.log(products).sum() + np.log(factors[whole:]).sum())


LINKS: dict[str, Link] = {link.name: link for link in (Logit(), Probit(), CLogLog())}
