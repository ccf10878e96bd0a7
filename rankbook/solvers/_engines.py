"""Which method sums a loss over which pairs, chosen by facts of the loss and by counted work."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook.losses import Loss
from rankbook.solvers._explicit_pairs import ExplicitPairs
from rankbook.solvers._exponential_pairs import ExponentialPairs
from rankbook.solvers._moment_pairs import MomentPairs
from rankbook.solvers._pair_data import PairData
from rankbook.solvers._smooth_pairs import CellPairs
from rankbook.solvers._sorted_pairs import SortedPairs

__all__ = ["choose", "keeps_all"]

# Cost of an item to a sort with queries, in kept pairs.
_SORTED_ITEM = 20.0
# The same where the loss has a kink, and of each further term of the weights: the exact minimum is
# found where pairs are kept.
_KINKED_ITEM, _KINKED_TERM = 100.0, 4.0
# The same for cells, and for the cells of a query that its items are spread over.
_CELL_ITEM = 50.0
_CELL_QUERY, _CELL_TERM = 20_000.0, 1000.0
# More pairs than this are not kept for the sake of many terms: they take more memory.
_MOST_PAIRS = 1e7


def _few_pairs(data: PairData, loss: Loss) -> np.ndarray:
    """For each query, whether to keep its pairs is less work, or little enough for exactness."""
    items, pairs = data.query_sizes, data.pair_counts
    if loss.hinge_parts and loss.is_smooth:
        return pairs <= _SORTED_ITEM * items
    terms = len(data.factors[0]) - 1 if pairs.sum() <= _MOST_PAIRS else 0
    if loss.hinge_parts:
        return pairs <= (_KINKED_ITEM + terms * _KINKED_TERM) * items
    return pairs <= _CELL_QUERY + terms * _CELL_TERM + _CELL_ITEM * items


def _kept(data: PairData, loss: Loss, method: str) -> np.ndarray:
    """For each query, whether its pairs are kept."""
    if method == "explicit":
        return np.ones(data.n_queries, dtype=bool)
    if loss.is_multiplicative or loss.is_quadratic:
        return np.zeros(data.n_queries, dtype=bool)
    if not loss.hinge_parts and not np.isfinite(loss.tail):
        return np.ones(data.n_queries, dtype=bool)
    return _few_pairs(data, loss) & (method == "auto")


def keeps_all(data: PairData, loss: Loss, method: str = "auto") -> bool:
    """Whether all pairs are kept, before any is."""
    return bool(_kept(data, loss, method).all())


def choose(data: PairData, loss: Loss, method: str = "auto") -> Any:
    """Return an object with `at(scores)` that sums the loss over the pairs."""
    few = _kept(data, loss, method)
    if few.all():
        return ExplicitPairs(data, loss)
    if loss.is_multiplicative:
        return ExponentialPairs(data, loss)
    if loss.is_quadratic:
        return MomentPairs(data, loss)
    implicit = SortedPairs if loss.hinge_parts else CellPairs
    if not few.any():
        return implicit(data, loss)
    kept = few[data.query]
    parts = [np.flatnonzero(kept), np.flatnonzero(~kept)]
    engines = [ExplicitPairs(data.subset(parts[0]), loss), implicit(data.subset(parts[1]), loss)]
    return SplitPairs(data, loss, parts, engines)


class SplitPairs:
    """Some queries summed by one method, the others by another."""

    def __init__(
        self, data: PairData, loss: Loss, rows: list[np.ndarray], engines: list[Any]
    ) -> None:
        self.data, self.loss, self.rows, self.engines = data, loss, rows, engines

    def with_loss(self, loss: Loss) -> SplitPairs:
        """The same pairs with another loss."""
        engines = [engine.with_loss(loss) for engine in self.engines]
        return SplitPairs(self.data, loss, self.rows, engines)

    def at(self, scores: np.ndarray) -> SplitPoint:
        """Evaluate at the scores."""
        points = [
            engine.at(scores[rows]) for engine, rows in zip(self.engines, self.rows, strict=True)
        ]
        return SplitPoint(points, self.rows, len(scores))


class SplitPoint:
    """Value, gradient and Hessian products at given scores: sums over the two parts."""

    def __init__(self, points: list[Any], rows: list[np.ndarray], n: int) -> None:
        self._points, self._rows, self._n = points, rows, n

    @property
    def value(self) -> float:
        """The sum over pairs."""
        return sum(point.value for point in self._points)

    def value_of(self, loss: Loss) -> float:
        """The sum of another loss over the same pairs at the same scores."""
        return sum(point.value_of(loss) for point in self._points)

    @property
    def dual_sum(self) -> float:
        """Minus the sum of the derivative over pairs."""
        return sum(point.dual_sum for point in self._points)

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        return self._joined([point.gradient() for point in self._points])

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        parts = zip(self._points, self._rows, strict=True)
        return self._joined([point.hessian_product(v[rows]) for point, rows in parts])

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        out = np.zeros(self._n)
        for rows, part in zip(self._rows, parts, strict=True):
            out[rows] = part
        return out
