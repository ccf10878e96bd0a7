"""Exact means of list measures over the orders of tied items; derived in `metrics.lists`.

Each function takes a block whose rows hold groups of tied items, and the number of relevant items
in each group, and returns a value for each row.
"""

from __future__ import annotations

import numpy as np

from rankbook.metrics._blocks import Block

__all__ = ["mean_average_precision", "mean_first_relevant", "mean_push"]


def _before(block: Block, groups: np.ndarray) -> np.ndarray:
    """For each group, the sum over the groups above it in its row."""
    before = np.cumsum(groups) - groups
    return before - before[block.first_groups][block.row]


def mean_average_precision(block: Block, relevant: np.ndarray, k: int | None) -> np.ndarray:
    """Average precision: (r/m) (c + 1 + (t-1)(r-1)/(m-1)) / (a + t), summed over t <= k - a."""
    k = block.width if k is None else min(k, block.width)
    size, above = block.sizes, block.above
    slope = (relevant - 1) / np.maximum(size - 1, 1)
    constant = _before(block, relevant) + 1 - above * slope
    n_places = np.clip(k - above, 0, size)
    inverse_ranks = block.inverse_ranks(k)
    # (t - 1 + a) / (a + t) = 1 - 1 / (a + t) sums to the places less their inverse ranks.
    sums = constant * inverse_ranks + slope * (n_places - inverse_ranks)
    total = block.row_sums(relevant)
    sums = block.row_sums(relevant / size * sums)
    return np.divide(sums, total, out=np.zeros(total.size), where=total > 0)


def mean_first_relevant(block: Block, relevant: np.ndarray, k: int | None) -> np.ndarray:
    """Reciprocal rank: the first group with a relevant item decides."""
    groups = np.flatnonzero(relevant > 0)
    row = block.row[groups]
    groups = groups[np.diff(row, prepend=-1) > 0]
    values = np.zeros(block.n_rows)
    if groups.size == 0:
        return values
    r = relevant[groups, None]
    size, above = block.sizes[groups, None], block.above[groups, None]
    place = np.arange(1, int((size - r).max()) + 2)
    # Once only relevant items are left the hazard is 1, and nothing survives beyond.
    hazard = np.minimum(r / np.maximum(size - place + 1, 1), 1)
    reached = np.cumprod(1 - hazard, axis=1)
    hazard[:, 1:] *= reached[:, :-1]
    if k is not None:
        hazard[above + place > k] = 0
    values[block.row[groups]] = (hazard / (above + place)).sum(axis=1)
    return values


def mean_push(block: Block, relevant: np.ndarray, total: np.ndarray, p: float) -> np.ndarray:
    """Sum over negatives of the mean of ((b + u) / n_+)^p, u uniform on 0..r, b positives below."""
    positive = relevant.astype(np.intp)
    # Padding has nothing below it, so that its group adds 0 whatever its size.
    negative = block.sizes - positive
    below = total[block.row] - _before(block, positive) - positive
    counts = positive + 1
    first = np.cumsum(counts) - counts
    climb = np.arange(counts.sum()) - np.repeat(first - below, counts)
    powers = (climb / np.repeat(total[block.row], counts)) ** p
    means = np.add.reduceat(powers, first) / counts
    return block.row_sums(negative * means)
