"""Pairs of groups, the items of one class in one query: as few as occur, whatever K is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankbook.solvers._pair_data import PairData

__all__ = ["GroupPairs", "Partners", "ranges"]


def ranges(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Consecutive integers from each first one, laid end to end."""
    total = int(lengths.sum())
    index = np.int32 if total < 2**31 else np.int64
    out = np.repeat((first - (np.cumsum(lengths) - lengths)).astype(index), lengths)
    out += np.arange(total, dtype=index)
    return out


@dataclass(frozen=True)
class GroupPairs:
    """The groups that occur and their pairs of positive weight.

    Attributes
    ----------
    present : ndarray of int of shape (G,)
        The query times K plus the class of each group, in order.
    above, below : ndarrays of int
        Places of the upper and of the lower group of each pair; sorted by the upper one.
    weight : ndarray
        The pair's entry of the matrix.
    """

    present: np.ndarray
    above: np.ndarray
    below: np.ndarray
    weight: np.ndarray

    @classmethod
    def build(cls, data: PairData, present: np.ndarray) -> GroupPairs:
        """List the pairs of groups of one query."""
        query, code = np.divmod(present, len(data.matrix))
        groups = np.bincount(query, minlength=data.n_queries)
        above = np.repeat(np.arange(len(query)), groups[query])
        below = ranges((np.cumsum(groups) - groups)[query], groups[query])
        weight = data.matrix[code[below], code[above]]
        counts = weight > 0
        return cls(present, above[counts], below[counts], weight[counts])


class Partners:
    """Sums of exponentials over the partners of each group.

    Parameters
    ----------
    own, other : ndarrays of int
        The group of each pair and its partner.
    log_weight : ndarray
        The logarithm of the pair's weight.
    n_groups : int
        Number of groups.
    """

    def __init__(
        self, own: np.ndarray, other: np.ndarray, log_weight: np.ndarray, n_groups: int
    ) -> None:
        order = np.argsort(own, kind="stable")
        self._other, self._log_weight = other[order], log_weight[order]
        counts = np.bincount(own, minlength=n_groups)
        self._paired = np.flatnonzero(counts)
        self._counts = counts[self._paired]
        self._starts = np.cumsum(self._counts) - self._counts
        self._n_groups = n_groups

    def log_sums(self, log_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of each group's sum (minus infinity without partners); pairs' shares."""
        sums = np.full(self._n_groups, -np.inf)
        terms = self._log_weight + log_values[self._other]
        if len(terms):
            top = np.maximum.reduceat(terms, self._starts)
            shares = np.exp(terms - np.repeat(top, self._counts))
            total = np.add.reduceat(shares, self._starts)
            sums[self._paired] = top + np.log(total)
            terms = shares / np.repeat(total, self._counts)
        return sums, terms

    def means(self, shares: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The mean of the partners' values for each group, zero without partners."""
        means = np.zeros(self._n_groups)
        if len(shares):
            means[self._paired] = np.add.reduceat(shares * values[self._other], self._starts)
        return means
