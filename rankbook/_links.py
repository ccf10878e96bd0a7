"""The links of cumulative models, by name: log F and its kin in forms that do not cancel."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from rankbook._link import Link
from rankbook._logit_link import Logit

__all__ = ["LINKS"]


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
        # P = exp(-e^l) (1 - exp(e^l - e^u)), and log(e^u - e^l) = u + log(1 - e^-gap).
        log_rate = upper + np.log(-np.expm1(-gap))
        return -np.exp(lower) + self.log_cdf(log_rate)


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


LINKS: dict[str, Link] = {
    link.name: link for link in (Logit(), Probit(), CLogLog(), LogLog(), Cauchit())
}
