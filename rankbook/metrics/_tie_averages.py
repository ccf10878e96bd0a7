"""Exact means of list measures over the orders of tied items; derived in `metrics.lists`.

Each function takes a block whose rows hold groups of tied items, and the grade that relevant items
exceed, and returns a value for each row.
"""

from __future__ import annotations

import numpy as np

from rankbook.metrics._blocks import Block

__all__ = ["mean_average_precision", "mean_first_relevant", "mean_push"]

# Widths whose third power is an integer in numpy.
_NARROW = 1 << 20


def mean_average_precision(block: Block, threshold: float, k: int | None) -> np.ndarray:
    """Average precision: (r/m) (c + 1 + (t-1)(r-1)/(m-1)) / (a + t), summed over t <= k - a."""
    relevant, found = block.group_hits(threshold)
    alone, before, kind = _place_means(block, k)
    sums = (found + 1) * alone.take(kind)
    sums += (relevant - 1) * before.take(kind)
    sums *= relevant
    sums, total = block.row_sums(sums), block.row_sums(relevant)
    return np.divide(sums, total, out=np.zeros(total.size), where=total > 0)


def _place_means(block: Block, k: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums of 1/(a + t) over m and of (t-1)/(a + t) over m (m-1), and each group's entry there.

    Terms are added up: differences of sums from the top lose digits far down a list.
    """
    inverse_ranks = 1 / np.arange(1.0, block.width + 1)
    if k is not None:
        inverse_ranks[k:] = 0
    if block.kinds is None:
        size, kind = block.sizes, np.arange(block.starts.size)
        terms = np.tile(inverse_ranks, block.n_rows)
        before = np.arange(float(terms.size))
        before -= np.repeat(block.starts * 1.0, size)
        before *= terms
        alone, before = (np.add.reduceat(v, block.starts) for v in (terms, before))
    else:
        largest, kind = block.kinds
        place = np.arange(largest)
        size = place + 1
        terms = inverse_ranks.take(np.arange(block.width)[:, None] + place, mode="clip")
        alone, before = (np.cumsum(v, axis=1) for v in (terms, place * terms))
    return np.ravel(alone / size), np.ravel(before / np.maximum(size * (size - 1), 1)), kind


def mean_first_relevant(block: Block, threshold: float, k: int | None) -> np.ndarray:
    """Reciprocal rank: the first group with a relevant item decides."""
    relevant, found = block.group_hits(threshold)
    groups = np.flatnonzero((relevant > 0) & (found == 0))
    values = np.zeros(block.n_rows)
    if groups.size == 0:
        return values
    # Many groups are alike. Wide rows are few, and their codes would overflow.
    first = alike = np.arange(groups.size)
    width = block.width + 1
    if width < _NARROW:
        code = (relevant[groups].astype(np.intp) * width + block.sizes[groups]) * width
        _, first, alike = np.unique(
            code + block.above[groups], return_index=True, return_inverse=True
        )
    first = groups[first]
    r, size, above = (v[first, None] for v in (relevant, block.sizes, block.above))
    place = np.arange(1, int((size - r).max()) + 2)
    # Once only relevant items are left the hazard is 1, and nothing survives beyond.
    hazard = np.minimum(r / np.maximum(size - place + 1, 1), 1)
    reached = np.cumprod(1 - hazard, axis=1)
    hazard[:, 1:] *= reached[:, :-1]
    if k is not None:
        hazard[above + place > k] = 0
    rows = np.searchsorted(block.first_groups, groups, side="right") - 1
    values[rows] = (hazard / (above + place)).sum(axis=1)[alike]
    return values


def mean_push(block: Block, threshold: float, total: np.ndarray, p: float) -> np.ndarray:
    """Sum over negatives of the mean of ((b + u) / n_+)^p, u uniform on 0..r, b positives below."""
    positive, above = (v.astype(np.intp) for v in block.group_hits(threshold))
    # Padding has nothing below it, so that its group adds 0 whatever its size.
    negative = block.sizes - positive
    below = total[block.row] - above - positive
    counts = positive + 1
    first = np.cumsum(counts) - counts
    climb = np.arange(counts.sum()) - np.repeat(first - below, counts)
    powers = (climb / np.repeat(total[block.row], counts)) ** p
    means = np.add.reduceat(powers, first) / counts
    return block.row_sums(negative * means)
