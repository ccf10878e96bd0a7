"""Sums of log(1 + e^z) with their derivatives, by few exponentials and fewer logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

__all__ = [
    "SAFE",
    "interval_slopes",
    "interval_sum",
    "interval_terms",
    "log_total",
    "softplus_slope",
    "softplus_sum",
    "softplus_terms",
]

# Sixteen factors 1 + e^40 have a product below e^650, which does not overflow; sixteen factors of
# 1e-18 do not underflow.
_FACTORS, SAFE, _SMALL = 16, 40.0, 1e-18


def softplus_sum(z: np.ndarray, weights: np.ndarray | None) -> float:
    """Sum of w log(1 + e^z)."""
    if z.max(initial=0.0) <= SAFE:
        return log_total(np.exp(z) + 1.0, weights, len(z))
    values = np.logaddexp(0.0, z)
    return float(values.sum() if weights is None else weights @ values)


def softplus_terms(z: np.ndarray, weights: np.ndarray | None):
    """Sum of w log(1 + e^z), and its first and second derivatives item by item."""
    if z.max(initial=0.0) <= SAFE:
        growth = np.exp(z)
        base = growth + 1.0
        value = log_total(base, weights, len(z))
        inverse = 1.0 / base
        first = growth * inverse
        second = first * inverse
    else:
        value = softplus_sum(z, weights)
        first = expit(z)
        second = first * expit(-z)
    if weights is None:
        return value, first, second
    return value, weights * first, weights * second


def softplus_slope(z: np.ndarray) -> np.ndarray:
    """First derivative of log(1 + e^z), item by item."""
    return _logistic(np.exp(z)) if z.max(initial=0.0) <= SAFE else expit(z)


def interval_slopes(
    upper: np.ndarray, lower: np.ndarray, shrink: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The two calls of `softplus_slope` for both ends of an interval, by one exponential."""
    if np.abs(upper).max(initial=0.0) > SAFE / 2:
        return softplus_slope(-upper), softplus_slope(lower)
    growth = np.exp(-upper)
    other = growth + shrink
    return _logistic(growth), np.divide(shrink, other, out=other)


def _logistic(growth: np.ndarray) -> np.ndarray:
    whole = growth + 1.0
    return np.divide(growth, whole, out=whole)


def interval_terms(upper: np.ndarray, shrink: Any, weights: np.ndarray | None):
    """The two calls of `softplus_terms` for both ends of an interval, by one exponential.

    With :math:`g = e^{-u}` and `shrink` :math:`q = e^{l - u}`, :math:`e^l = q / g`.
    """
    growth = np.exp(-upper)
    base, other = growth + 1.0, growth + shrink
    value = _interval_value(base * other, upper, weights)
    np.divide(1.0, base, out=base)
    np.divide(1.0, other, out=other)
    above, below = growth * base, shrink * other
    np.multiply(base, above, out=base)
    np.multiply(growth, other, out=other)
    np.multiply(other, below, out=other)
    parts = (above, below, base, other)
    return value, *(parts if weights is None else (weights * part for part in parts))


def interval_sum(upper: np.ndarray, shrink: Any, weights: np.ndarray | None) -> float:
    """The first of the results of `interval_terms`."""
    growth = np.exp(-upper)
    factors = growth + shrink
    growth += 1.0
    factors *= growth
    return _interval_value(factors, upper, weights)


def _interval_value(factors: np.ndarray, upper: np.ndarray, weights: np.ndarray | None) -> float:
    if weights is None:
        return _log_sum(factors) + float(upper.sum())
    return float(weights @ (np.log(factors) + upper))


def log_total(factors: Any, weights: np.ndarray | None, n: int) -> float:
    """Sum of w log(factor) over n items, whose factors are positive and may be one for all."""
    if np.ndim(factors) == 0:
        return float(np.log(factors)) * (float(n) if weights is None else float(weights.sum()))
    if weights is not None:
        return float(weights @ np.log(factors))
    if factors.min(initial=1.0) < _SMALL:
        return float(np.log(factors).sum())
    return _log_sum(factors)


def _log_sum(factors: np.ndarray) -> float:
    """Sum of logarithms with one logarithm to sixteen factors."""
    whole = len(factors) // _FACTORS * _FACTORS
    products = np.multiply.reduce(factors[:whole].reshape(_FACTORS, -1), axis=0)
    return float(np.log(products).sum() + np.log(factors[whole:]).sum())
