"""The logistic link, whose terms cost an exponential an end."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from rankbook._link import Link, Terms
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

__all__ = ["Logit"]


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
