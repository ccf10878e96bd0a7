r"""Logistic pair sums: cells, convolution, and plain sums where those are cheaper.

Scores are put into cells of width 1/4. Pairs in cells up to 48 apart are *near* and are summed by
`_cell_kernels` (interpolation, then FFT). Beyond, the loss equals its asymptote
:math:`(-s)_+` up to :math:`e^{-48}`, which running sums over cells give exactly. Where no occupied
cell is within reach of the next, the items split into **runs**; a run of few items in many cells
is summed pair by pair.

Error bound: interpolation changes each near pair's loss by at most 1e-12 of itself. Rounding in
the FFT adds at most 1e-13 of the summed weights, so where the sum is below 1e-2 of those the
convolution is done cell by cell instead. Far pairs lose at most 1.4e-21 of their weight. Together
the sum is within 1e-10 of itself, unless it is below 1e-10 of the pairs' weight: then every pair
is right by a wide margin, and the error is at most 1.4e-21 of that weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from rankbook.losses import Loss
from rankbook.solvers._cell_kernels import DEGREE, REACH, WIDTH, chebyshev_basis, convolve
from rankbook.solvers._pair_data import PairData

__all__ = ["CellPairs", "CellPoint"]

# A cell costs the convolution about as much as 50 pairs cost the direct sum.
_PAIRS_PER_CELL = 50
_SMALL_GRID = 1024
_FEW_ITEMS = 16
# Below this mean loss the FFT's rounding, relative to the largest kernel value, would show.
_SMALL_MEAN = 1e-2


class CellPairs:
    """Sums of a loss with a `tail` over pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        # Column r holds the upper weights of term r, column R + r the lower ones.
        self.weights = np.concatenate([data.upper, data.lower]).T.copy()
        self.total = data.total

    def at(self, scores: np.ndarray) -> CellPoint:
        """Evaluate at the scores."""
        return CellPoint(self, scores)


@dataclass(frozen=True)
class _Cells:
    """Occupied cells, sorted by query and place.

    Attributes
    ----------
    place : ndarray of shape (C,)
        Number of each cell on the line; its left edge is at place * WIDTH.
    query : ndarray of shape (C,)
        Query of each cell's items.
    of_item : ndarray of shape (n,)
        Index of each item's cell.
    run : ndarray of shape (C,)
        Run of each cell: runs are never within reach of each other.
    """

    place: np.ndarray
    query: np.ndarray
    of_item: np.ndarray
    run: np.ndarray

    @classmethod
    def build(cls, scores: np.ndarray, query: np.ndarray, n_queries: int) -> _Cells:
        """Find the occupied cells: by counting where they are few, else by sorting."""
        place = np.floor(scores / WIDTH)
        low, high = place.min(), place.max()
        stride = high - low + 1
        if stride * n_queries <= 4 * len(scores) + 4096:
            key = (place - low).astype(np.intp)
            if n_queries > 1:
                key += query * int(stride)
            present = np.bincount(key, minlength=int(stride) * n_queries) > 0
            of_item = (np.cumsum(present) - 1)[key]
            found = np.flatnonzero(present)
            cell_query, cell_place = found // int(stride), found % int(stride) + low
        else:
            order = np.lexsort((place, query))
            cell_place, cell_query = place[order], query[order]
            new = np.ones(len(order), dtype=bool)
            new[1:] = (np.diff(cell_place) != 0) | (np.diff(cell_query) != 0)
            of_item = np.empty(len(order), dtype=np.intp)
            of_item[order] = np.cumsum(new) - 1
            cell_place, cell_query = cell_place[new], cell_query[new]
        apart = (np.diff(cell_place) > REACH) | (np.diff(cell_query) != 0)
        run = np.concatenate([[0], np.cumsum(apart)])
        return cls(cell_place, cell_query, of_item, run)


class CellPoint:
    """Value, gradient and Hessian products at given scores."""

    def __init__(self, pairs: CellPairs, scores: np.ndarray) -> None:
        self._pairs = pairs
        self._scores = scores
        data = pairs.data
        self._n_terms = len(data.upper)
        self._cells = _Cells.build(scores, data.query, data.n_queries)
        self._far = _Far(self._cells, scores, pairs.weights)
        self._choose_paths()
        self.value = self._value()

    def _choose_paths(self) -> None:
        """Send each run to the grid or to the direct sum, whichever is cheaper."""
        cells = self._cells
        first = np.flatnonzero(np.concatenate([[True], np.diff(cells.run) > 0]))
        last = np.append(first[1:], len(cells.run)) - 1
        length = cells.place[last] - cells.place[first] + 1
        run_of_item = cells.run[cells.of_item]
        size = np.bincount(run_of_item)
        gridded = size.astype(float) ** 2 > _PAIRS_PER_CELL * (length + REACH)
        if (length + REACH).sum() <= _SMALL_GRID:
            # Then the convolution takes less time than the direct sum's loop over neighbours.
            gridded |= size > _FEW_ITEMS
        self._grid = self._direct = None
        if gridded.any():
            start = np.cumsum(np.where(gridded, length + REACH, 0)) - (length + REACH)
            shift = np.where(gridded, start - cells.place[first], 0.0)
            on_grid = gridded[run_of_item]
            items = None if on_grid.all() else np.flatnonzero(on_grid)
            position = cells.place + shift[cells.run]
            self._grid = _Grid(self._scores, cells, position, items)
        if not gridded.all():
            direct = np.flatnonzero(~gridded[run_of_item])
            self._direct = _Direct(self._pairs, self._scores, run_of_item, size, direct)
        self._far.set_window(self._cells, gridded)

    def _value(self) -> float:
        value = self._far.value(self._n_terms)
        if self._direct is not None:
            value += self._direct.value
        self.exact = False
        if self._grid is not None:
            near = self._grid_value()
            if value + near < _SMALL_MEAN * self._pairs.total:
                self.exact = True
                near = self._grid_value()
            value += near
        return value

    def _grid_value(self) -> float:
        r = self._n_terms
        moments = self._moments
        potential = convolve(moments[:, :, r:], (self._pairs.loss, "loss"), self.exact)
        return float((moments[:, :, :r] * potential).sum())

    @cached_property
    def _moments(self) -> np.ndarray:
        assert self._grid is not None
        return self._grid.spread(self._pairs.weights)

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        r = self._n_terms
        weights = self._pairs.weights
        pull = self._far.counts()
        if self._grid is not None:
            potential = np.concatenate(
                [
                    convolve(self._moments[:, :, r:], (self._pairs.loss, "slope"), self.exact),
                    convolve(
                        self._moments[:, :, :r], (self._pairs.loss, "slope_reversed"), self.exact
                    ),
                ],
                axis=2,
            )
            self._grid.gather(potential, into=pull)
        pull *= weights
        out = pull[:, r:].sum(axis=1) - pull[:, :r].sum(axis=1)
        if self._direct is not None:
            out[self._direct.items] += self._direct.gradient
        return out

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        out = np.zeros(len(v))
        if self._grid is not None:
            weighted = self._pairs.weights * v[:, None]
            moments = self._swap(self._grid.spread(weighted))
            moved = np.zeros_like(weighted)
            self._grid.gather(
                convolve(moments, (self._pairs.loss, "curvature"), self.exact), into=moved
            )
            moved *= self._pairs.weights
            out += self._curvature * v - moved.sum(axis=1)
        if self._direct is not None:
            out[self._direct.items] += self._direct.hessian_product(v[self._direct.items])
        return out

    def _swap(self, moments: np.ndarray) -> np.ndarray:
        """Exchange the upper and the lower columns: what meets what in a pair."""
        r = self._n_terms
        return np.concatenate([moments[:, :, r:], moments[:, :, :r]], axis=2)

    @cached_property
    def _curvature(self) -> np.ndarray:
        moments = self._swap(self._moments)
        total = np.zeros_like(self._pairs.weights)
        assert self._grid is not None
        self._grid.gather(
            convolve(moments, (self._pairs.loss, "curvature"), self.exact), into=total
        )
        return (self._pairs.weights * total).sum(axis=1)


class _Grid:
    """Items to moments of cells, and back."""

    def __init__(
        self, scores: np.ndarray, cells: _Cells, position: np.ndarray, items: np.ndarray | None
    ) -> None:
        self.items = items
        of_item = cells.of_item if items is None else cells.of_item[items]
        f = scores if items is None else scores[items]
        offset = f - cells.place[of_item] * WIDTH
        basis = chebyshev_basis(offset * (2.0 / WIDTH) - 1.0)
        cell = position[of_item].astype(np.int32)
        self.length = int(cell.max()) + 1
        columns = (cell[:, None] * DEGREE + np.arange(DEGREE, dtype=np.int32)).ravel()
        pointers = np.arange(0, DEGREE * len(f) + 1, DEGREE, dtype=np.int32)
        shape = (len(f), self.length * DEGREE)
        self.basis = csr_matrix((basis.ravel(), columns, pointers), shape=shape)

    def spread(self, columns: np.ndarray) -> np.ndarray:
        """Moments of every column of item weights, shape (L, 8, m)."""
        if self.items is not None:
            columns = columns[self.items]
        return (self.basis.T @ columns).reshape(self.length, DEGREE, -1)

    def gather(self, potential: np.ndarray, into: np.ndarray) -> None:
        """Add the interpolated sums at the items."""
        values = self.basis @ potential.reshape(self.length * DEGREE, -1)
        if self.items is None:
            into += values
        else:
            into[self.items] += values


class _Far:
    """Pairs out of reach, where the loss is (-s)_+: running sums over cells, nothing cancels."""

    def __init__(self, cells: _Cells, scores: np.ndarray, weights: np.ndarray) -> None:
        self.cells = cells
        self.scores = scores
        self.weights = weights

    def set_window(self, cells: _Cells, gridded: np.ndarray) -> None:
        """Note, for each cell, the first cell that is far above and one past the last far below."""
        count = len(cells.place)
        run_start = np.searchsorted(cells.run, cells.run, side="left")
        run_end = np.searchsorted(cells.run, cells.run, side="right")
        above, below = run_end, run_start
        if gridded.any() and count > 1:
            # Within a run cells are sorted by place; across runs a stride keeps them so.
            local = cells.place - cells.place[run_start]
            stride = float(local.max()) + 2.0 * REACH + 2.0
            key = local + cells.run * stride
            on_grid = gridded[cells.run]
            reach = np.searchsorted(key, key + REACH, side="right")
            above = np.where(on_grid, np.minimum(reach, run_end), run_end)
            reach = np.searchsorted(key, key - REACH, side="left")
            below = np.where(on_grid, np.maximum(reach, run_start), run_start)
        self.above, self.below = above, below
        self.query_end = np.searchsorted(cells.query, cells.query, side="right")
        self.query_start = np.searchsorted(cells.query, cells.query, side="left")
        self.any = bool((above < self.query_end).any())

    def _cell_sums(self, columns: np.ndarray) -> np.ndarray:
        index, count = self.cells.of_item, len(self.cells.place)
        return np.stack([np.bincount(index, c, count) for c in columns.T], axis=1)

    def _suffix(self, sums: np.ndarray) -> np.ndarray:
        out = np.zeros((len(sums) + 1, sums.shape[1]))
        out[:-1] = np.cumsum(sums[::-1], axis=0)[::-1]
        return out

    def counts(self) -> np.ndarray:
        """Per item, the weight of its far partners that it loses to: lower ones above, upper below.

        Columns follow the item's role, as the weights do.
        """
        r = self.weights.shape[1] // 2
        if not self.any:
            return np.zeros_like(self.weights)
        suffix = self._suffix(self._cell_sums(self.weights))
        lower_above = (suffix[self.above] - suffix[self.query_end])[:, r:]
        upper_below = (suffix[self.query_start] - suffix[self.below])[:, :r]
        return np.concatenate([lower_above, upper_below], axis=1)[self.cells.of_item]

    def value(self, r: int) -> float:
        """Sum of (f_b - f_a)_+ over far pairs."""
        if not self.any:
            return 0.0
        edge = self.cells.place * WIDTH
        inside = (self.scores - edge[self.cells.of_item])[:, None]
        upper, lower = self.weights[:, :r], self.weights[:, r:]
        mass, moment = self._cell_sums(lower), self._cell_sums(lower * inside)
        suffix = self._suffix(mass)
        later = suffix[1:] - suffix[self.query_end]
        gaps = np.diff(edge, append=edge[-1])
        gaps[np.unique(self.query_end) - 1] = 0.0
        # Distances from a cell's left edge to everything at or above it, in its query.
        reach = self._suffix(moment + gaps[:, None] * later)
        start = np.minimum(self.above, len(edge) - 1)
        weight = suffix[self.above] - suffix[self.query_end]
        beyond = reach[self.above] - reach[self.query_end] + (edge[start] - edge)[:, None] * weight
        beyond[self.above >= self.query_end] = 0.0
        mass, moment = self._cell_sums(upper), self._cell_sums(upper * inside)
        return float((mass * beyond).sum() - (moment * weight).sum())


class _Direct:
    """Runs whose pairs are so few that they are summed one by one, k-th neighbours at a time."""

    def __init__(
        self,
        pairs: CellPairs,
        scores: np.ndarray,
        run: np.ndarray,
        size: np.ndarray,
        items: np.ndarray,
    ) -> None:
        # Long runs first, so that the items with a k-th neighbour are about a prefix.
        rank = np.empty(len(size), dtype=np.intp)
        rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
        self.items = items[np.argsort(rank[run[items]], kind="stable")]
        self.run = run[self.items]
        self.f = scores[self.items]
        self.loss = pairs.loss
        r = len(pairs.data.upper)
        weights = pairs.weights[self.items]
        self.upper, self.lower = weights[:, :r].T.copy(), weights[:, r:].T.copy()
        sizes = size[self.run]
        self.prefix = [int(np.searchsorted(-sizes, -k, side="left")) for k in range(sizes.max())]
        self._sum()

    def _neighbours(self):
        """Slices of items and of their k-th neighbours in the same run, with the pair weights."""
        for k in range(1, len(self.prefix)):
            stop = self.prefix[k]
            a, b = slice(0, stop - k), slice(k, stop)
            same = self.run[a] == self.run[b]
            yield (
                a,
                b,
                self._pair(self.upper, self.lower, a, b) * same,
                (self._pair(self.lower, self.upper, a, b) * same),
            )

    @staticmethod
    def _pair(left: np.ndarray, right: np.ndarray, a: slice, b: slice) -> np.ndarray:
        if len(left) == 1:
            return left[0, a] * right[0, b]
        return np.einsum("ri,ri->i", left[:, a], right[:, b])

    def _sum(self) -> None:
        self.gradient = np.zeros(len(self.f))
        self.value = float((self.upper * self.lower).sum() * self.loss(0.0))
        for a, b, w_ab, w_ba in self._neighbours():
            s = self.f[a] - self.f[b]
            value_ab, slope_ab, _ = self.loss.terms(s)
            value_ba, slope_ba, _ = self.loss.terms(-s)
            self.value += float(w_ab @ value_ab + w_ba @ value_ba)
            pull = w_ab * slope_ab - w_ba * slope_ba
            self.gradient[a] += pull
            self.gradient[b] -= pull

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Contribution to the product of the Hessian with v, for the items here."""
        out = np.zeros(len(v))
        for a, b, w_ab, w_ba in self._neighbours():
            s = self.f[a] - self.f[b]
            curvature = w_ab * self.loss.terms(s)[2] + w_ba * self.loss.terms(-s)[2]
            term = curvature * (v[a] - v[b])
            out[a] += term
            out[b] -= term
        return out
