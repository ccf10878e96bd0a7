r"""Thresholds that minimise a sum of hinges at given scores.

For a threshold :math:`\theta` the hinges :math:`u \max(0, 1 - s (f - \theta))`, :math:`s = \pm 1`,
are convex and piecewise linear, with a kink where :math:`\theta = f - s`; their sum has an interval
of minimisers, which ends at kinks. Where several thresholds must be in order, neighbours that are
not are pooled: a pool's common threshold minimises the sum of all its hinges. Both ends of the
intervals, pooled in this way, are optimal, and so is what lies midway.
"""

from __future__ import annotations

import numpy as np

__all__ = ["best_thresholds"]


def best_thresholds(
    kinks: np.ndarray,
    sign: np.ndarray,
    upper: np.ndarray,
    threshold: np.ndarray,
    count: int,
    *,
    ordered: bool,
) -> np.ndarray:
    """Return the middles of the optimal intervals, in increasing order if asked for.

    Parameters
    ----------
    kinks, sign, upper : ndarrays of shape (v,)
        Of each hinge, f - s, s and u.
    threshold : ndarray of int, shape (v,)
        The threshold it belongs to.
    count : int
        Number of thresholds.
    ordered : bool
        Whether they must not decrease.

    Returns
    -------
    ndarray of shape (count,)
        The thresholds.
    """
    order = np.lexsort((kinks, threshold))
    kinks, sign, upper = kinks[order], sign[order], upper[order]
    ends = np.searchsorted(threshold[order], np.arange(count + 1))
    parts = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    data: list[tuple[np.ndarray, ...]] = [(kinks[p], sign[p], upper[p]) for p in parts]
    if not ordered:
        return np.array([0.5 * sum(_interval(*hinges)) for hinges in data])
    return 0.5 * (_pooled(data, 0) + _pooled(data, 1))


def _interval(kinks: np.ndarray, sign: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Both ends of the set of minimisers; the kinks are sorted."""
    slope = np.cumsum(upper) - upper[sign < 0].sum()
    # Sums of equal bounds that cancel exactly do so in floats up to this.
    tiny = 1e-12 * float(upper.sum())
    last = len(kinks) - 1
    lower = min(int(np.searchsorted(slope, -tiny, side="left")), last)
    return kinks[lower], kinks[min(int(np.searchsorted(slope, tiny, side="right")), last)]


def _pooled(data: list[tuple[np.ndarray, ...]], end: int) -> np.ndarray:
    """One end of the intervals, with neighbours out of order pooled."""
    pools: list[tuple[tuple[np.ndarray, ...], float, int]] = []
    for hinges in data:
        pool = (hinges, _interval(*hinges)[end], 1)
        while pools and pools[-1][1] > pool[1]:
            others, _, size = pools.pop()
            joined = tuple(np.concatenate(both) for both in zip(others, pool[0], strict=True))
            order = np.argsort(joined[0], kind="stable")
            joined = tuple(array[order] for array in joined)
            pool = (joined, _interval(*joined)[end], size + pool[2])
        pools.append(pool)
    return np.repeat([value for _, value, _ in pools], [size for _, _, size in pools])
