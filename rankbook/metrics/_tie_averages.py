"""Exact means of list measures over the orders of tied items; derived in `metrics.lists`.

Each function takes a block whose rows hold groups of tied items, and the number of relevant items
in each group or the probability of stopping at each place, and returns a value for each row.
"""

from __future__ import annotations

import numpy as np

from rankbook.metrics._large_ties import large_cascade, last_place
from rankbook.metrics._ranked import Block

__all__ = ["mean_average_precision", "mean_cascade", "mean_first_relevant", "mean_push"]

# A group's tail that adds less than this to a measure of order one is not summed.
_NEGLIGIBLE = 1e-18
# Up to here binomial coefficients are far from overflow.
_SMALL_GROUP = 512
# Items of the groups that are treated at once: few enough for the processor's cache.
_CHUNK = 1 << 15


def _before(block: Block, groups: np.ndarray) -> np.ndarray:
    """For each group, the sum over the groups above it in its row."""
    before = np.cumsum(groups) - groups
    return before - before[block.above == 0][block.row]


def mean_average_precision(block: Block, relevant: np.ndarray, k: int | None) -> np.ndarray:
    """Average precision: (r/m) (c + 1 + (t-1)(r-1)/(m-1)) / (a + t), summed over t <= k - a."""
    k = block.width if k is None else min(k, block.width)
    size, above = block.sizes, block.above
    slope = (relevant - 1) / np.maximum(size - 1, 1)
    constant = _before(block, relevant) + 1 - above * slope
    first, last = np.minimum(above, k), np.minimum(above + size, k)
    inverse_ranks = _inverse_ranks(block, k)
    # (t - 1 + a) / (a + t) = 1 - 1 / (a + t) sums to the places less their inverse ranks.
    sums = constant * inverse_ranks + slope * (last - first - inverse_ranks)
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


def mean_cascade(block: Block, stops: np.ndarray, k: int | None) -> np.ndarray:
    """Expected reciprocal rank from the mean products E_t of the groups' passing probabilities."""
    k = block.width if k is None else min(k, block.width)
    passed = np.cumprod(1 - stops, axis=1)
    passed = np.concatenate([np.ones((block.n_rows, 1)), passed[:, :-1]], axis=1)
    reached = passed.ravel()[block.starts]
    mean_stop = block.group_sums(stops) / block.sizes
    # Right where only one item of the group can stop the reader: E_t falls by equal steps.
    values = reached * mean_stop * _inverse_ranks(block, k)
    # Elsewhere the group adds no more than the reader's chance to get there.
    several = np.flatnonzero((block.group_hits(0.0) > 1) & (values > 0) & (reached > _NEGLIGIBLE))
    large = block.sizes[several] > _SMALL_GROUP
    for group in several[large]:
        items = slice(block.starts[group], block.starts[group] + block.sizes[group])
        values[group] = reached[group] * large_cascade(
            stops.ravel()[items], int(block.above[group]), k, _NEGLIGIBLE / reached[group]
        )
    several = several[~large]
    # Two-byte integers are sorted by radix, in linear time.
    falling = (_SMALL_GROUP - block.sizes[several]).astype(np.uint16)
    several = several[np.argsort(falling, kind="stable")]
    magnitude = np.frexp(block.sizes[several] - 0.5)[1]
    for level in np.flatnonzero(np.bincount(magnitude)):
        similar = several[magnitude == level]
        rows = max(_CHUNK >> int(level), 1)
        for groups in np.split(similar, range(rows, similar.size, rows)):
            values[groups] = reached[groups] * _group_cascade(
                stops.ravel(), block.starts[groups], block.sizes[groups], block.above[groups], k
            )
    return block.row_sums(values)


def _inverse_ranks(block: Block, k: int) -> np.ndarray:
    """The sum of 1/rank over each group's places up to rank k."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, block.width + 1))])
    first, last = np.minimum(block.above, k), np.minimum(block.above + block.sizes, k)
    return harmonic[last] - harmonic[first]


def _group_cascade(
    stops: np.ndarray, starts: np.ndarray, sizes: np.ndarray, above: np.ndarray, k: int
) -> np.ndarray:
    """sum_t (E_{t-1} - E_t) / (a + t) for small groups of similar size, largest first."""
    longest = int(sizes[0])
    item = np.arange(longest)[:, None]
    # A column for each group: the long axis is the contiguous one.
    passes = 1 - stops[np.minimum(starts + item, stops.size - 1)]
    # Maclaurin's inequality, E_t <= E_1^t, says beyond which t nothing is left to add.
    largest = (np.where(item < sizes, passes, 0).sum(axis=0) / sizes).max()
    needed = int(min(longest, k - above.min(), last_place(largest, _NEGLIGIBLE)))
    place = np.arange(1, needed + 1)[:, None]
    means = _mean_products(passes, sizes, needed)
    steps = (means[:-1] - means[1:]) / (above + place)
    return np.where(place <= np.minimum(sizes, k - above), steps, 0).sum(axis=0)


def _mean_products(passes: np.ndarray, sizes: np.ndarray, needed: int) -> np.ndarray:
    """E_t, t = 0, ..., needed, of the first sizes[g] entries of each column g; sizes decrease.

    The symmetric polynomials e_t add up, all terms positive, and are divided by the binomials.
    """
    means = np.zeros((needed + 1, sizes.size))
    means[0] = 1
    term = np.empty_like(means)
    longer = np.searchsorted(-sizes, -np.arange(passes.shape[0]))
    for j, columns in enumerate(longer.tolist()):
        last = min(j + 1, needed)
        product = np.multiply(passes[j, :columns], means[:last, :columns], term[:last, :columns])
        means[1 : last + 1, :columns] += product
    place = np.arange(needed)[:, None]
    # C(m, t + 1) = C(m, t) (m - t) / (t + 1); beyond t = m nothing is asked for.
    means[1:] /= np.cumprod(np.maximum(sizes - place, 1) / (place + 1), axis=0)
    return means


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
