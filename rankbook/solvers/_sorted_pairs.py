r"""Pair sums of losses made of hinges: one sort, then running sums.

A pair loses :math:`(m - (f_a - f_b))_+` to some power, :math:`m` the margin. With the lower items
sorted, those that item :math:`a` loses to are the ones above :math:`c = f_a - m`, a suffix; and the
power sums over suffixes obey recursions with non-negative terms only,

.. math::

    N_k = N_{k+1} + w_k, \quad
    G_k = G_{k+1} + \delta_k N_{k+1}, \quad
    Q_k = Q_{k+1} + 2 \delta_k G_{k+1} + \delta_k^2 N_{k+1},
    \qquad \delta_k = f_{k+1} - f_k,

for :math:`\sum w`, :math:`\sum w (f - f_k)` and :math:`\sum w (f - f_k)^2` over the suffix from
:math:`k`. Nothing is subtracted, so nothing cancels, however far apart the scores are (the usual
:math:`\sum w f^2 - 2 c \sum w f + c^2 \sum w` loses all digits at :math:`f \approx 10^8`).
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np

from rankbook.losses import Loss
from rankbook.solvers._pair_data import PairData, Side

__all__ = ["HingePoint", "SortedPairs"]


def _running(increments: np.ndarray) -> np.ndarray:
    """Suffix sums with a final zero: out[:, k] = sum of increments[:, k:]."""
    out = np.zeros((increments.shape[0], increments.shape[1] + 1))
    np.cumsum(increments[:, ::-1], axis=1, out=out[:, -2::-1] if out.shape[1] > 1 else out[:, :0])
    return out


def _within(running: np.ndarray, first: np.ndarray, ends: np.ndarray | None) -> np.ndarray:
    """Suffix sums from `first` to the end of the query."""
    sums = np.take(running, first, axis=1)
    if ends is not None:
        sums -= np.take(running, ends, axis=1)
    return sums


def _total(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


class _Suffixes:
    """Power sums over suffixes of sorted scores, within queries, about the first score."""

    def __init__(self, scores: np.ndarray, weights: np.ndarray, ends: np.ndarray | None) -> None:
        self.scores = scores
        self.weights = weights
        self.ends = ends

    def _later(self, running: np.ndarray) -> np.ndarray:
        later = running[:, 1:]
        return later if self.ends is None else later - np.take(running, self.ends, axis=1)

    @cached_property
    def padded(self) -> np.ndarray:
        """The scores, the last one twice: a suffix may be empty."""
        return np.append(self.scores, self.scores[-1:])

    @cached_property
    def gaps(self) -> np.ndarray:
        gaps = np.diff(self.scores, append=self.scores[-1:])
        if self.ends is not None:
            # The last item of a query has no successor.
            gaps[self.ends - 1] = 0.0
        return gaps

    @cached_property
    def zeroth(self) -> np.ndarray:
        return _running(self.weights)

    @cached_property
    def first(self) -> np.ndarray:
        return _running(self.gaps * self._later(self.zeroth))

    @cached_property
    def second(self) -> np.ndarray:
        inner = 2.0 * self._later(self.first) + self.gaps * self._later(self.zeroth)
        return _running(self.gaps * inner)


class _Tails:
    """Sums of w (f - cut)^degree over suffixes, a cut and a first item each, shape (R, m)."""

    def __init__(
        self, sums: _Suffixes, start: np.ndarray, cut: np.ndarray, ends: np.ndarray | None
    ) -> None:
        self._sums, self._start, self._cut, self._ends = sums, start, cut, ends

    def _within(self, running: np.ndarray) -> np.ndarray:
        return _within(running, self._start, self._ends)

    @cached_property
    def _gap(self) -> np.ndarray:
        if not len(self._sums.scores):
            return np.zeros(len(self._start))
        return np.take(self._sums.padded, self._start) - self._cut

    @cached_property
    def _linear(self) -> np.ndarray:
        return self._within(self._sums.first)

    @cached_property
    def _zeroth(self) -> np.ndarray:
        return self._within(self._sums.zeroth)

    @cached_property
    def _first(self) -> np.ndarray:
        return self._linear + self._gap * self._zeroth

    def moment(self, degree: int) -> np.ndarray:
        """The sums of a degree, 0 to 2; not to be changed in place."""
        if degree < 2:
            return self._first if degree else self._zeroth
        return self._within(self._sums.second) + self._gap * (self._linear + self._first)


def _bisect(
    values: np.ndarray, targets: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """First index in [start, end) whose sorted value reaches the target, for all at once.

    Exact, where an offset per query would round.
    """
    low, high = start.copy(), end.copy()
    while (active := low < high).any():
        middle = (low + high) // 2
        right = active & (values[np.minimum(middle, len(values) - 1)] < targets)
        low, high = np.where(right, middle + 1, low), np.where(right, high, middle)
    return low


class SortedPairs:
    """Sums of losses made of hinges over pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        self.upper = data.side(data.upper)
        self.lower = data.side(data.lower)

    def with_loss(self, loss: Loss) -> SortedPairs:
        """The same pairs with another loss."""
        other = copy(self)
        other.loss = loss
        return other

    def at(self, scores: np.ndarray) -> HingePoint:
        """Evaluate at the scores."""
        return HingePoint(self, scores)


class _SortedSide:
    """One side in the order of the scores, within queries."""

    def __init__(self, side: Side, scores: np.ndarray, grouped: bool) -> None:
        f = scores[side.items]
        order = np.argsort(f)
        if grouped:
            # Faster than by both at once: integers of 16 bits are sorted in linear time.
            order = order[np.argsort(side.key[order], kind="stable")]
        self.items = side.items[order]
        self.scores = f[order]
        self.weights = side.weights if side.is_uniform else side.weights[:, order]


class _Window:
    """Which pairs differ by less than a margin, and the power sums over them.

    ``first[k]`` is the first lower item that the k-th upper item loses to, and ``last[k]`` is one
    past the last upper item that loses to the k-th lower one.
    """

    def __init__(self, point: HingePoint, margin: float) -> None:
        self._point, self._margin = point, margin
        up, low, pairs = point.up, point.low, point.pairs
        cut = up.scores - margin
        n_low = len(low.items)
        # The second count is read off the first, so that a pair is in or out on both sides,
        # however its scores round.
        # At the kink the hinge takes its left derivative; the others have no second one there.
        reach = np.nextafter(cut, np.inf) if pairs.loss.is_smooth else cut
        if point.grouped:
            query, side = pairs.upper.query, pairs.lower
            self.first = _bisect(low.scores, reach, side.start[query], side.end[query])
        else:
            self.first = np.searchsorted(low.scores, reach, side="left")
        # Items of earlier queries are all counted, those of later ones are not.
        self.last = np.cumsum(np.bincount(self.first, minlength=n_low + 1))[:n_low]

    @cached_property
    def below(self) -> _Tails:
        """For each upper item, sums over the lower items that it loses to."""
        point = self._point
        cut = point.up.scores - self._margin
        return _Tails(point.lower_sums, self.first, cut, point.ends_up)

    @cached_property
    def above(self) -> _Tails:
        """For each lower item, sums over the upper items that lose to it."""
        point = self._point
        start, cut = len(point.up.items) - self.last, -(point.low.scores + self._margin)
        return _Tails(point.upper_sums, start, cut, point.ends_low)


class HingePoint:
    """Value, gradient and Hessian products at given scores."""

    def __init__(self, pairs: SortedPairs, scores: np.ndarray) -> None:
        self.pairs = pairs
        self.grouped = pairs.data.n_queries > 1
        self.up = _SortedSide(pairs.upper, scores, self.grouped)
        self.low = _SortedSide(pairs.lower, scores, self.grouped)
        self._windows: dict[float, _Window] = {}
        self.ends_up = self.ends_low = None
        if self.grouped:
            self.ends_up = pairs.lower.end[pairs.upper.query]
            self.ends_low = len(self.up.items) - pairs.upper.start[pairs.lower.query]

    @cached_property
    def lower_sums(self) -> _Suffixes:
        """Sums over the lower items above a score."""
        side = self.pairs.lower
        ends = side.end[side.query] if self.grouped else None
        return _Suffixes(self.low.scores, self.low.weights, ends)

    @cached_property
    def upper_sums(self) -> _Suffixes:
        """Sums over the upper items below a score: a suffix of the reflected scores."""
        side, m = self.pairs.upper, len(self.up.items)
        ends = m - side.start[side.query[::-1]] if self.grouped else None
        return _Suffixes(-self.up.scores[::-1], self.up.weights[:, ::-1], ends)

    def _window(self, margin: float) -> _Window:
        if margin not in self._windows:
            self._windows[margin] = _Window(self, margin)
        return self._windows[margin]

    def _parts(self) -> list[tuple[float, _Window, int]]:
        """The loss as a combination of (margin - s)_+^power: factor, window and power of each."""
        return [(c, self._window(margin), q) for c, margin, q in self.pairs.loss.hinge_parts]

    def _power_sum(self, window: _Window, degree: int) -> float:
        return float((self.up.weights * window.below.moment(degree)).sum())

    def _assemble(self, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Sum over terms and put both roles of each item together."""
        out = np.zeros(self.pairs.data.n)
        out[self.up.items] = (self.up.weights * upper).sum(axis=0)
        out[self.low.items] += (self.low.weights * lower).sum(axis=0)
        return out

    def value_of(self, loss: Loss) -> float:
        """The sum of another loss made of hinges over the same pairs at the same scores."""
        return sum(c * self._power_sum(self._window(m), q) for c, m, q in loss.hinge_parts)

    @property
    def value(self) -> float:
        """The sum over pairs."""
        return self.value_of(self.pairs.loss)

    @property
    def dual_sum(self) -> float:
        """Minus the sum of the derivative over pairs."""
        return sum(q * c * self._power_sum(w, q - 1) for c, w, q in self._parts())

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score; at the kink of the hinge, the left one."""
        upper = [-q * c * w.below.moment(q - 1) for c, w, q in self._parts()]
        lower = [q * c * w.above.moment(q - 1) for c, w, q in self._parts()]
        return self._assemble(_total(upper), _total(lower))

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Curvature of each item's pairs, as an upper and as a lower one."""
        return (
            _total([2.0 * c * w.below.moment(0) for c, w, _ in self._parts()]),
            _total([2.0 * c * w.above.moment(0) for c, w, _ in self._parts()]),
        )

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the (generalised) Hessian with a vector; zero for the plain hinge."""
        if not self.pairs.loss.is_smooth:
            return np.zeros(self.pairs.data.n)
        v_up, v_low = v[self.up.items], v[self.low.items]
        low_sums = _running(self.low.weights * v_low)
        up_sums = _running((self.up.weights * v_up)[:, ::-1])
        upper, lower = self._counts[0] * v_up, self._counts[1] * v_low
        for c, window, _ in self._parts():
            upper -= 2.0 * c * _within(low_sums, window.first, self.ends_up)
            lower -= 2.0 * c * _within(up_sums, len(v_up) - window.last, self.ends_low)
        return self._assemble(upper, lower)
