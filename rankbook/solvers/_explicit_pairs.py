r"""Pair sums over pairs that are kept: for many queries of few items, and for any loss.

With the indices of both members of each pair, a gradient is two counts with weights, and the
Hessian with respect to the scores is the Laplacian of the graph whose edges are the pairs, weighted
by their curvatures: :math:`X^\top L X` follows by one sparse product.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from rankbook.losses import Loss
from rankbook.solvers._group_pairs import GroupPairs, ranges
from rankbook.solvers._pair_data import PairData
from rankbook.solvers.design import laplacian

__all__ = ["ExplicitPairs", "ExplicitPoint"]

# Pairs that are worked on at a time.
_BLOCK = 16_384
# Products after which the sparse Hessian is worth forming.
_FEW_PRODUCTS = 4


def _listed(data: PairData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper item, lower item and class-pair weight of each pair, query by query.

    One weight is returned where it is that of all pairs.
    """
    n_classes = len(data.matrix)
    key = data.query * n_classes + data.codes
    order = np.argsort(key, kind="stable").astype(np.int32)
    # The groups of a class and query that occur, and the pairs of groups in a query.
    size = np.bincount(key, minlength=data.n_queries * n_classes)
    present = np.flatnonzero(size)
    start, size = (np.cumsum(size) - size)[present], size[present]
    groups = GroupPairs.build(data, present)
    above, below, weight = groups.above, groups.below, groups.weight
    # One number, if it is the weight of all pairs.
    if len(weight) == 0 or weight.min() == weight.max():
        weight = weight[:1]
    else:
        weight = np.repeat(weight, size[above] * size[below])
    # Each item of the upper group meets the run of the lower group's items.
    items = order[ranges(start[above], size[above])]
    below = np.repeat(below, size[above])
    partners = size[below]
    lower = order[ranges(start[below], partners)]
    return np.repeat(items, partners), lower, weight


class ExplicitPairs:
    """Sums of a loss over kept pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        self.upper, self.lower, weight = _listed(data)
        if not np.array_equal(data.weight, np.ones(data.n)):
            weight = weight * (data.weight[self.upper] * data.weight[self.lower])
            if len(weight) and (weight == weight[0]).all():
                weight = weight[:1]
        self.weight = weight

        self._scratch = np.empty(0)

    def with_loss(self, loss: Loss) -> ExplicitPairs:
        """The same pairs with another loss."""
        other = copy(self)
        other.loss = loss
        return other

    def at(self, scores: np.ndarray) -> ExplicitPoint:
        """Evaluate at the scores."""
        return ExplicitPoint(self, scores)

    def scratch(self) -> np.ndarray:
        """Room for a number a pair, to be used before anything else here is asked for."""
        if len(self._scratch) != len(self.upper):
            self._scratch = np.empty(len(self.upper))
        return self._scratch

    def differences(self, scores: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Score differences, some pairs at a time, so that they stay in the cache."""
        for start in range(0, len(self.upper), _BLOCK):
            part = slice(start, start + _BLOCK)
            difference = scores[self.upper[part]]
            difference -= scores[self.lower[part]]
            yield part, difference

    def sum(self, values: np.ndarray, part: slice) -> float:
        """The weighted sum over some pairs."""
        if len(self.weight) == 1:
            return float(self.weight[0] * values.sum())
        return float(self.weight[part] @ values)

    def weighted(self, values: np.ndarray) -> np.ndarray:
        """The values, multiplied in place by the weights."""
        if len(self.weight) > 1 or (len(self.weight) and self.weight[0] != 1.0):
            values *= self.weight
        return values

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Add each pair's value to its upper item and take it from its lower one."""
        out = np.bincount(self.upper, values, self.data.n)
        out -= np.bincount(self.lower, values, self.data.n)
        return out


class ExplicitPoint:
    """Value, gradient and Hessian at given scores.

    What is kept has the length of the scores; curvatures are computed when asked for.
    """

    def __init__(self, pairs: ExplicitPairs, scores: np.ndarray) -> None:
        self._pairs, self._scores = pairs, scores.copy()
        self._products = 0
        self.value, slope_sum = 0.0, 0.0
        slopes = pairs.scratch()
        with np.errstate(over="ignore"):
            for part, difference in pairs.differences(scores):
                loss, slope, _ = pairs.loss.terms(difference)
                self.value += pairs.sum(loss, part)
                slope_sum += pairs.sum(slope, part)
                slopes[part] = slope
            self._gradient = pairs.spread(pairs.weighted(slopes))
        self.dual_sum = -slope_sum

    def value_of(self, loss: Loss) -> float:
        """The sum of another loss over the same pairs at the same scores."""
        parts = self._pairs.differences(self._scores)
        return sum(self._pairs.sum(loss(difference), part) for part, difference in parts)

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        return self._gradient.copy()

    @cached_property
    def curved(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs with curvature: upper items, lower items, and weighted curvatures."""
        pairs = self._pairs
        weight = np.empty(len(pairs.upper))
        with np.errstate(over="ignore"):
            for part, difference in pairs.differences(self._scores):
                weight[part] = pairs.loss.terms(difference)[2]
        weight = pairs.weighted(weight)
        curved = np.flatnonzero(weight)
        if len(curved) > 0.7 * len(weight):
            return pairs.upper, pairs.lower, weight
        return pairs.upper[curved], pairs.lower[curved], weight[curved]

    @cached_property
    def laplacian(self) -> sp.csr_array:
        """The Hessian with respect to the scores, sparse."""
        return laplacian(*self.curved, self._pairs.data.n)

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        self._products += 1
        if self._products > _FEW_PRODUCTS:
            return self.laplacian @ v
        upper, lower, weight = self.curved
        image = v[upper]
        image -= v[lower]
        image *= weight
        n = self._pairs.data.n
        return np.bincount(upper, image, n) - np.bincount(lower, image, n)
