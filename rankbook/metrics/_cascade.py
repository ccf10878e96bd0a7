"""Exact means of the expected reciprocal rank over the orders of tied items.

What a group of ties adds depends on how many items of each grade it has, and on how many items are
above it. Few items: the mean products E_t of `metrics.lists` are computed once for each
composition that occurs. More, all within the cut-off: an integral. A group that the cut-off
divides, and grades too many to be counted: its symmetric polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankbook.metrics._blocks import Block, Function
from rankbook.metrics._cascade_integral import integral_cascade
from rankbook.metrics._large_ties import large_cascade, last_place

__all__ = ["mean_cascade"]

# A group's tail that adds less than this to a measure of order one is not summed.
_NEGLIGIBLE = 1e-18
# Up to here binomial coefficients are far from overflow.
_SMALL_GROUP = 512
# Items of the groups that are treated at once: few enough for the processor's cache.
_CHUNK = 1 << 15
# Groups up to this size share their E_t, unless that would be more compositions than this.
_FEW_ITEMS = 16
_COMPOSITIONS = 1 << 16


def mean_cascade(block: Block, stop: Function, k: int | None) -> np.ndarray:
    """Expected reciprocal rank of each row; `stop` takes grades to probabilities of stopping."""
    k = block.width if k is None else min(k, block.width)
    counts = block.counts
    if counts is None:
        stops = block.apply(stop)
        passed = np.cumprod(1 - stops, axis=1)
        passed = np.concatenate([np.ones((block.n_rows, 1)), passed[:, :-1]], axis=1)
        reached, sums = passed.ravel()[block.starts], block.group_sums(stops)
    else:
        stops = stop(np.arange(float(len(counts))))
        logs, sums = np.stack([np.log1p(-stops), stops]) @ counts
        reached = _reached(block, logs)
    # Right where only one item of the group can stop the reader: E_t falls by equal steps.
    values = sums / block.sizes * block.inverse_ranks(k)
    # Elsewhere the group adds no more than the reader's chance to get there.
    several = np.flatnonzero((block.group_hits(0.0) > 1) & (values > 0) & (reached > _NEGLIGIBLE))
    if counts is not None:
        several = _by_counts(block, stops, counts, k, several, values)
        stops = block.apply(stop) if several.size else stops
    large = block.sizes[several] > _SMALL_GROUP
    for group in several[large]:
        items = slice(block.starts[group], block.starts[group] + block.sizes[group])
        values[group] = large_cascade(
            stops.ravel()[items], int(block.above[group]), k, _NEGLIGIBLE / reached[group]
        )
    for groups in _similar(block.sizes, several[~large]):
        values[groups] = _group_cascade(
            stops.ravel(), block.starts[groups], block.sizes[groups], block.above[groups], k
        )
    return block.row_sums(values * reached)


def _reached(block: Block, logs: np.ndarray) -> np.ndarray:
    """The exponential of the sum of `logs` over the groups above each one in its row."""
    n_groups = np.diff(block.first_groups, append=block.row.size)
    width = int(n_groups.max()) + 1
    cells = np.arange(block.row.size)
    cells += np.repeat(np.arange(block.n_rows) * width - block.first_groups, n_groups)
    table = np.zeros(block.n_rows * width)
    table[cells + 1] = logs
    # Sums within the rows: differences of sums over all of them would lose digits.
    table = np.cumsum(table.reshape(-1, width), axis=1).ravel()
    return np.exp(table[cells])


def _by_counts(
    block: Block,
    stops: np.ndarray,
    counts: np.ndarray,
    k: int,
    groups: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    """Set the values of groups for which the counts of grades will do, and return the others."""
    sizes, above = block.sizes[groups], block.above[groups]
    base = min(int(_COMPOSITIONS ** (1 / len(counts)) + 1e-9), _FEW_ITEMS + 1)
    few = sizes < base
    if few.any():
        now = groups[few]
        values[now] = _few_items(stops, counts[:, now], above[few], k, base)
    whole = (above + sizes <= k) & (sizes <= _SMALL_GROUP) & ~few
    if whole.any():
        now = groups[whole]
        inverse_ranks = block.inverse_ranks(k)[now]
        values[now] = integral_cascade(stops, counts[:, now], above[whole], inverse_ranks)
    return groups[~(few | whole)]


def _few_items(
    stops: np.ndarray, counts: np.ndarray, above: np.ndarray, k: int, base: int
) -> np.ndarray:
    """sum_t (E_{t-1} - E_t) / (a + t) of groups of less than `base` items."""
    code = (float(base) ** np.arange(len(counts)) @ counts).astype(np.intp)
    different = np.flatnonzero(np.bincount(code))
    place = np.empty(int(different[-1]) + 1, dtype=np.intp)
    place[code] = np.arange(code.size)
    compositions = counts[:, place[different]]
    falling = np.argsort(-compositions.sum(axis=0), kind="stable")
    compositions = compositions[:, falling]
    place[different[falling]] = np.arange(different.size)
    column, sizes = place[code], compositions.sum(axis=0)
    needed = int(sizes[0])
    item = np.arange(needed)[:, None]
    grade = (np.cumsum(compositions, axis=0)[:, None] <= item).sum(axis=0)
    passes = 1 - stops[np.minimum(grade, stops.size - 1)]
    means = _mean_products(passes, sizes, needed)
    steps = np.where(item < sizes, means[:-1] - means[1:], 0)
    inverse = 1 / np.arange(1.0, k + needed + 1)
    inverse[k:] = 0
    values = steps[0, column] * inverse[above]
    for t in range(1, needed):
        values += steps[t, column] * inverse[above + t]
    return values


def _similar(sizes: np.ndarray, groups: np.ndarray) -> Iterator[np.ndarray]:
    """Groups of similar size together, largest first, few enough for the processor's cache."""
    # Two-byte integers are sorted by radix, in linear time.
    falling = (_SMALL_GROUP - sizes[groups]).astype(np.uint16)
    groups = groups[np.argsort(falling, kind="stable")]
    magnitude = np.frexp(sizes[groups] - 0.5)[1]
    for level in np.flatnonzero(np.bincount(magnitude)):
        similar = groups[magnitude == level]
        rows = max(_CHUNK >> int(level), 1)
        yield from np.split(similar, range(rows, similar.size, rows))


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
