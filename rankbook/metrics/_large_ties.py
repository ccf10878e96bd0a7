r"""Expected reciprocal rank of one large group of tied items: the work is in its distinct grades.

A group that no cut-off divides is an integral, whose work grows with the square of the number of
nodes. They are few as long as the probabilities of stopping add up to no more than ten thousand.
Beyond that few places count, before a cut-off often so, too, and their means are computed one after
the other. Let a group of m items be passed with probabilities q. The first t items of a random
order are all passed with mean probability :math:`E_t = e_t(q) / \binom{m}{t}`. If all q are equal,
:math:`E_t = q^t`. For two groups of sizes m and m' put together, the number of items that come from
the first is hypergeometric, so that

.. math:: E_t = \sum_s \frac{\binom{m}{s} \binom{m'}{t - s}}{\binom{m + m'}{t}} E_s E'_{t - s},

a mean with positive weights, of which only those near :math:`s = t m / (m + m')` count. Tiny
probabilities of stopping would be lost in rounding beside 1: what is kept is :math:`1 - E_t`, for
which the product of two is :math:`F + (1 - F) F'`.

Where many places count the readers stop rarely, and the steps :math:`E_{t-1} - E_t` are a smooth
function of t, known from a few of its values. A step is the mean over the t-th item, stopped at
with probability p, of p times the mean product of t - 1 of the others. Such means are coefficients
of polynomials: with :math:`u(z) = z / (1 + z)`,

.. math:: E_{t-1} - E_t = \frac{1}{m} \frac{[z^{t-1}] (1 + z)^{m-1} \prod_i (1 - p_i u)
    \sum_i p_i / (1 - p_i u)}{[z^{t-1}] (1 + z)^{m-1}},

both by the trapezoidal rule on the circle that passes the saddle point of the second, where little
more than a Gaussian is summed. The first has its own saddle point nearby, as its readers rarely
stop, so that no digits cancel.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev

from rankbook.metrics._cascade_integral import LARGEST_TOTAL, integral_cascade

__all__ = ["BELOW_ONE", "large_cascade", "last_place"]

# Weights further than this many standard deviations from the mean are below 1e-20.
_REACH = 10.0
# Groups of up to so many different probabilities of stopping are integrated.
_DIFFERENT = 1 << 12
# Beyond so many places readers stop so rarely that the steps are smooth, and few values give them,
# if the probabilities of stopping are few as well.
_MANY_PLACES, _VALUES, _FEW_DIFFERENT = 1 << 12, 48, 1 << 8
# Points of half a circle, and their distance in standard deviations of the Gaussian.
_POINTS, _STEP = 64, 0.3
# The largest probability but one.
BELOW_ONE = 1 - 2.0**-53
# Entries of a matrix of weights, so that memory stays bounded.
_CHUNK = 1 << 18


def last_place(mean: float, negligible: float) -> float:
    """The t beyond which E_t is negligible, as E_t <= mean^t by Maclaurin's inequality."""
    if mean <= 0:
        return 1
    if mean >= 1:
        return np.inf
    return np.ceil(np.log(negligible) / np.log(mean)) + 1


def large_cascade(stops: np.ndarray, above: int, k: int, negligible: float) -> float:
    """sum_t (E_{t-1} - E_t) / (above + t) over the places up to rank k of one group."""
    if above + stops.size <= k and stops.sum() <= LARGEST_TOTAL:
        different, counts = np.unique(stops, return_counts=True)
        if different.size <= _DIFFERENT:
            inverse_ranks = (1 / np.arange(above + 1.0, above + stops.size + 1)).mean()
            counts, first = counts[:, None].astype(float), np.array([above])
            return float(integral_cascade(different, counts, first, np.array([inverse_ranks]))[0])
    needed = int(min(stops.size, k - above, last_place(1 - float(stops.mean()), negligible)))
    values, counts = np.unique(stops, return_counts=True)
    if needed > _MANY_PLACES and values.size <= _FEW_DIFFERENT:
        return _sum_of_smooth_steps(values, counts, above, needed)
    if values.size * needed <= stops.size or values.size == 1:
        means = _by_distinct_values(values, counts, needed)
    else:
        means = _item_by_item(stops, needed)
    return float(((means[1:] - means[:-1]) / (above + np.arange(1.0, needed + 1))).sum())


def _sum_of_smooth_steps(values: np.ndarray, counts: np.ndarray, above: int, needed: int) -> float:
    """sum_t (E_{t-1} - E_t) / (above + t), t <= needed: t from one power of two to the next."""
    total, first = 0.0, 1
    while first <= needed:
        last = min(2 * first - 1, needed)
        place = np.arange(first, last + 1.0)
        if place.size <= 2 * _VALUES:
            steps = _steps(values, counts, place)
        else:
            angle = np.pi * (np.arange(_VALUES) + 0.5) / _VALUES
            some = np.unique(np.round(0.5 * (first + last - (last - first) * np.cos(angle))))
            domain = [first, last]
            series = Chebyshev.fit(some, _steps(values, counts, some), some.size - 1, domain)
            steps = series(place)
        total += float((steps / (above + place)).sum())
        first = last + 1
    return total


def _steps(values: np.ndarray, counts: np.ndarray, place: np.ndarray) -> np.ndarray:
    """E_{t-1} - E_t at some places t of a large group, of readers who rarely stop.

    In a small one of odd degree the circle may pass z = -1, where u has its pole.
    """
    size = float(counts.sum())
    others, before = size - 1, place - 1
    share = (before / others)[:, None]
    deviation = np.sqrt(others * share * (1 - share))
    step = np.minimum(_STEP / np.maximum(deviation, 1.0), np.pi / _POINTS)
    angle = step * np.arange(_POINTS + 1)
    # 1 + z over its value on the real axis.
    turned = np.expm1(1j * angle)
    gaussian = np.exp(others * np.log1p(share * turned) - 1j * before[:, None] * angle)
    # The two halves of the circle have the same real parts; two points are on both.
    gaussian[:, [0, -1]] *= 0.5
    u = share * (1 + turned) / (1 + share * turned)
    log_passed, stopped = np.zeros(u.shape, dtype=complex), np.zeros(u.shape, dtype=complex)
    for value, count in zip(np.minimum(values, BELOW_ONE), counts, strict=True):
        log_passed += count * np.log1p(-value * u)
        stopped += count * value / (1 - value * u)
    inner = (gaussian * np.exp(log_passed) * stopped).real.sum(axis=1)
    return np.asarray(inner / gaussian.real.sum(axis=1) / size)


def _by_distinct_values(values: np.ndarray, counts: np.ndarray, needed: int) -> np.ndarray:
    # A reader who surely stops has a logarithm too: that of the next number below.
    logs = np.log1p(-np.minimum(values, BELOW_ONE))
    place = np.arange(needed + 1)
    means, size = -np.expm1(place * logs[0]), int(counts[0])
    for log, count in zip(logs[1:], counts[1:].tolist(), strict=True):
        means = _united(means, size, -np.expm1(place * log), count)
        size += count
    return means


def _united(first: np.ndarray, m: int, second: np.ndarray, other: int) -> np.ndarray:
    """The 1 - E_t of two groups put together, places in chunks."""
    # Beyond their common size the means do not exist, and nobody asks for them.
    n_places = min(first.size, m + other + 1)
    share = m / (m + other)
    reach = int(np.ceil(_REACH * (np.sqrt(n_places * share * (1 - share)) + 1)))
    width = min(2 * reach + 1, n_places)
    means = np.zeros(first.size)
    rows = max(_CHUNK // width, 1)
    for begin in range(0, n_places, rows):
        t = np.arange(begin, min(begin + rows, n_places))[:, None]
        low, high = np.maximum(t - other, 0), np.minimum(t, m)
        start = np.maximum(np.minimum((t * share).astype(np.intp) - reach, high - width + 1), low)
        s = start + np.arange(width)
        inside = s <= high
        s = np.minimum(s, high)
        # w(s) / w(s - 1) of the hypergeometric distribution, multiplied up along the row.
        ratio = (m - s[:, 1:] + 1.0) * (t - s[:, 1:] + 1.0)
        ratio /= np.where(inside[:, 1:], s[:, 1:] * (other - t + s[:, 1:] * 1.0), 1.0)
        log = np.zeros(s.shape)
        np.cumsum(np.log(np.where(inside[:, 1:], ratio, 1.0)), axis=1, out=log[:, 1:])
        weight = np.where(inside, np.exp(log - log.max(axis=1, keepdims=True)), 0.0)
        stopped = first[s]
        mean = (weight * (stopped + (1 - stopped) * second[t - s])).sum(axis=1)
        means[t.ravel()] = mean / weight.sum(axis=1)
    return means


def _item_by_item(stops: np.ndarray, needed: int) -> np.ndarray:
    """Item j + 1 is among the first t with chance t / (j + 1): a mean, so no digits are lost."""
    means = np.zeros(needed + 1)
    place = np.arange(1, needed + 1)
    for j, value in enumerate(stops.tolist()):
        last = min(j + 1, needed)
        now, before = means[1 : last + 1], means[:last]
        now += place[:last] / (j + 1) * (before + value * (1 - before) - now)
    return means
