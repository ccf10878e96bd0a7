r"""The kernel machine on pairs by a primal-dual interior point, then made exact.

With rows :math:`L_a` of a factor of the kernel, scores :math:`f = Lw` and pairs k of an upper and a
lower item, the machine and its dual are

.. math::

    &\min_{w, \xi \ge 0} \tfrac12 \|w\|^2 + \sum_k c_k \xi_k,
    \quad f_u - f_l + \xi_k - 1 = s_k \ge 0; \\
    &\max_{0 \le \alpha \le c} \sum_k \alpha_k
    - \tfrac12 \Bigl\| \sum_k \alpha_k (L_u - L_l) \Bigr\|^2.

The pairs' variables are eliminated from each Newton step: what is left has one unknown a column of
L, and its matrix is :math:`I + L^\top G L` with the Laplacian G of the pairs' curvatures. Vectors
have the length of the list of pairs; no matrix does.

At the solution the pairs with margin one tie their items together. Given which pairs these are, the
scores solve one linear system: that is the last step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, lstsq
from scipy.sparse.csgraph import minimum_spanning_tree

from rankbook.solvers.kernels import KernelMatrix

__all__ = ["ItemPairs", "exact_coefficients", "interior_point"]

# The relative gap to reach, if rounding allows it: the last steps are as cheap as the first.
_GAP = 1e-11
_MAX_STEPS = 150
# So many steps in a row that do not narrow the gap by this factor end the iteration.
_STALLED, _PATIENCE = 0.9, 4
_TO_BOUNDARY = 0.995
# Corrections towards the centre (Gondzio's) of a step shorter than this, for a longer one.
_CORRECTORS, _LONG, _STRETCH, _EXTRA = 4, 0.9, 1.1, 0.1
# Margins this close to one may be one; each is tried, and the lowest objective kept.
_CLOSE = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
# Pairs with margin one join the items into trees with at most so many edges.
_MAX_EDGES = 1500
_BYTES = 160.0


@dataclass(frozen=True)
class ItemPairs:
    """The pairs of items whose classes differ by at most a number, each with its weight.

    Attributes
    ----------
    upper, lower : ndarrays of int of shape (t,)
        Items of the higher and of the lower class.
    weight : ndarray of shape (t,)
        The product of the items' weights.
    n : int
        Number of items.
    """

    upper: np.ndarray
    lower: np.ndarray
    weight: np.ndarray
    n: int

    @classmethod
    def build(cls, codes: np.ndarray, item_weight: np.ndarray, reach: int) -> ItemPairs:
        """List the pairs.

        Parameters
        ----------
        codes : ndarray of int of shape (n,)
            Classes, numbered in their order.
        item_weight : ndarray of shape (n,)
            Weights of the items.
        reach : int
            The largest difference of classes.

        Returns
        -------
        ItemPairs
            The pairs.
        """
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], np.arange(codes.max() + 2))
        low = first[np.maximum(codes - reach, 0)]
        count = first[codes] - low
        upper = np.repeat(np.arange(len(codes)), count)
        start = np.repeat(low - np.cumsum(count) + count, count)
        lower = order[start + np.arange(len(upper))]
        return cls(upper, lower, item_weight[upper] * item_weight[lower], len(codes))

    @staticmethod
    def memory(n_pairs: float) -> float:
        """Bytes that the variables of so many pairs take."""
        return _BYTES * n_pairs

    def margins(self, f: np.ndarray) -> np.ndarray:
        """Differences of the pairs' scores."""
        return f[self.upper] - f[self.lower]

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The sum of the pairs' values at each item: plus at the upper, minus at the lower."""
        out = np.bincount(self.upper, values, self.n)
        return out - np.bincount(self.lower, values, self.n)

    def curvature(self, L: np.ndarray, values: np.ndarray) -> np.ndarray:
        """L' G L, G the Laplacian of the pairs' values."""
        degree = np.bincount(self.upper, values, self.n) + np.bincount(self.lower, values, self.n)
        table = sp.csr_array((values, (self.upper, self.lower)), shape=(self.n, self.n)).toarray()
        half = L.T @ (table @ L)
        return (L * degree[:, None]).T @ L - half - half.T


@dataclass(frozen=True)
class _State:
    """A point: weights w; slack s, shortfall xi and multiplier alpha of each pair."""

    w: np.ndarray
    s: np.ndarray
    xi: np.ndarray
    alpha: np.ndarray

    def moved(self, step: _State, length: float) -> _State:
        return _State(
            self.w + length * step.w,
            self.s + length * step.s,
            self.xi + length * step.xi,
            self.alpha + length * step.alpha,
        )


def interior_point(
    L: np.ndarray,
    pairs: ItemPairs,
    C: float,
    report: Callable[[int, float, float], None] | None = None,
) -> tuple[np.ndarray, int]:
    """Return the pairs' multipliers, between 0 and their bounds, and the number of steps."""
    bound = C * pairs.weight
    state = _State(
        np.zeros(L.shape[1]), np.full_like(bound, 0.5), np.full_like(bound, 1.5), 0.5 * bound
    )
    best, best_gap, stalled = state.alpha, np.inf, 0
    n_iter = 0
    while n_iter < _MAX_STEPS and stalled < _PATIENCE:
        value, gap = _gap(L, pairs, bound, state.alpha)
        if report is not None:
            report(n_iter, value, gap)
        stalled = 0 if gap < _STALLED * best_gap else stalled + 1
        if gap < best_gap:
            best, best_gap = state.alpha, gap
        if gap <= _GAP * value:
            break
        moved = _newton_step(L, pairs, bound, state)
        if moved is None:
            break
        state, n_iter = moved, n_iter + 1
    return best, n_iter


def _gap(
    L: np.ndarray, pairs: ItemPairs, bound: np.ndarray, alpha: np.ndarray
) -> tuple[float, float]:
    """The objective at the multipliers' weights, and how far it is above their dual value."""
    w = L.T @ pairs.spread(alpha)
    hinges = np.maximum(1.0 - pairs.margins(L @ w), 0.0)
    value = 0.5 * float(w @ w) + float(bound @ hinges)
    return value, value - (float(alpha.sum()) - 0.5 * float(w @ w))


def _newton_step(L: np.ndarray, pairs: ItemPairs, bound: np.ndarray, at: _State) -> _State | None:
    """Mehrotra's step: where to aim is seen from a step that aims at the solution itself."""
    room = bound - at.alpha
    width = at.xi / room + at.s / at.alpha
    system = pairs.curvature(L, 1.0 / width)
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    short = 1.0 + at.s - at.xi - pairs.margins(L @ at.w)
    left = L.T @ pairs.spread(at.alpha) - at.w

    def step(slack: np.ndarray, shortfall: np.ndarray) -> _State:
        target = short - shortfall / room + slack / at.alpha
        right = left + L.T @ pairs.spread(target / width)
        w = cho_solve(factor, right, check_finite=False)
        alpha = (target - pairs.margins(L @ w)) / width
        return _State(
            w, (slack - at.s * alpha) / at.alpha, (shortfall + at.xi * alpha) / room, alpha
        )

    products = at.alpha @ at.s + room @ at.xi
    aim = step(-at.alpha * at.s, -room * at.xi)
    far = at.moved(aim, _longest(at, aim, room))
    left_over = far.alpha @ far.s + (bound - far.alpha) @ far.xi
    centre = (left_over / products) ** 3 * products / (2 * len(bound))
    rights = [
        centre - at.alpha * at.s - aim.alpha * aim.s,
        centre - room * at.xi + aim.alpha * aim.xi,
    ]
    final, length = _centred(at, bound, centre, step, rights)
    moved = at.moved(final, _TO_BOUNDARY * length)
    positive = min(moved.s.min(), moved.xi.min(), moved.alpha.min(), (bound - moved.alpha).min())
    return moved if np.isfinite(moved.w).all() and positive > 0 else None


def _centred(
    at: _State,
    bound: np.ndarray,
    centre: float,
    step: Callable[[np.ndarray, np.ndarray], _State],
    rights: list[np.ndarray],
) -> tuple[_State, float]:
    """The step and its length, corrected while that makes it longer.

    Products that would come out far from the centre at a longer step are moved towards it.
    """
    room = bound - at.alpha
    final = step(*rights)
    length = _longest(at, final, room)
    for _ in range(_CORRECTORS):
        if length > _LONG:
            break
        trial = at.moved(final, min(1.0, _STRETCH * length + _EXTRA))
        products = trial.alpha * trial.s, (bound - trial.alpha) * trial.xi
        tries = [
            right + np.maximum(np.clip(there, 0.1 * centre, 10.0 * centre) - there, -10.0 * centre)
            for right, there in zip(rights, products, strict=True)
        ]
        corrected = step(*tries)
        longer = _longest(at, corrected, room)
        if longer < length + 0.1 * _EXTRA:
            break
        final, length, rights = corrected, longer, tries
    return final, length


def _longest(at: _State, step: _State, room: np.ndarray) -> float:
    """The longest step, at most 1, that leaves all variables positive."""
    length = 1.0 / _TO_BOUNDARY
    for value, change in (
        (at.s, step.s),
        (at.xi, step.xi),
        (at.alpha, step.alpha),
        (room, -step.alpha),
    ):
        length = min(length, 1.0 / max(float(np.max(-change / value)), _TO_BOUNDARY))
    return min(length, 1.0)


def exact_coefficients(
    matrix: KernelMatrix, pairs: ItemPairs, C: float, f: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return coefficients, scores and objective, from which pairs of f have their margin.

    Items joined by pairs with margin one differ by whole numbers, and a tree of such pairs says it
    without repetition. Pairs below their margin have their bound as multiplier, those above zero.
    """
    bound, short = C * pairs.weight, 1.0 - pairs.margins(f)
    best: tuple[np.ndarray, np.ndarray, float] | None = None
    seen = -1
    for close in _CLOSE:
        on = np.flatnonzero(np.abs(short) <= close)
        if len(on) == seen:
            continue
        seen = len(on)
        beta = pairs.spread(np.where(short > close, bound, 0.0))
        # Indices of 32 bits are what the graph routines of older versions of scipy take.
        ends = tuple(side[on].astype(np.int32) for side in (pairs.upper, pairs.lower))
        graph = sp.csr_array((np.ones(seen), ends), shape=(pairs.n,) * 2)
        tree = minimum_spanning_tree(graph).tocoo()
        if tree.nnz > _MAX_EDGES:
            continue
        if tree.nnz:
            beta = beta + _tied(matrix, tree.row, tree.col, beta)
        scores = matrix.product(beta)
        hinges = float(bound @ np.maximum(1.0 - pairs.margins(scores), 0.0))
        value = 0.5 * float(beta @ scores) + hinges
        if best is None or value < best[2]:
            best = beta, scores, value
    return best


def _tied(
    matrix: KernelMatrix, upper: np.ndarray, lower: np.ndarray, beta: np.ndarray
) -> np.ndarray:
    """What to add to the coefficients so that each of these pairs has margin one."""
    items, place = np.unique(np.concatenate([upper, lower]), return_inverse=True)
    up, low = place[: len(upper)], place[len(upper) :]
    columns = matrix.columns(items)[items]
    half = columns[:, up] - columns[:, low]
    scores = matrix.product(beta)
    wanted = 1.0 - (scores[upper] - scores[lower])
    multipliers = lstsq(half[up] - half[low], wanted, cond=1e-13, lapack_driver="gelsy")[0]
    n = len(beta)
    return np.bincount(upper, multipliers, n) - np.bincount(lower, multipliers, n)
