"""Exact means of the expected reciprocal rank over the orders of tied items.

What a group of ties adds depends on how many items of each grade it has, and on how many items are
above it. Few items: the mean products E_t of `metrics.lists` are computed once for each
composition that may occur, and what they add once for each number of items above. More, all within
the cut-off: an integral. A group that the cut-off divides, and grades too many to be counted: its
symmetric polynomials, grade by grade where few places count, else item by item.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import cast

import numpy as np

from rankbook.metrics._blocks import Block, Function
from rankbook.metrics._cascade_integral import LARGEST_TOTAL, integral_cascade
from rankbook.metrics._large_ties import BELOW_ONE, large_cascade, last_place
from rankbook.metrics._tally import CODE_BITS, Tally

__all__ = ["mean_cascade"]

# A group's tail that adds less than this to a measure of order one is not summed.
_NEGLIGIBLE = 1e-18
# Up to here binomial coefficients are far from overflow.
_SMALL_GROUP = 512
# So many places of a group have symmetric polynomials, scaled by its size, far from underflow.
_FEW_PLACES = 64
# Items of the groups that are treated at once: few enough for the processor's cache.
_CHUNK = 1 << 15
# Tables hold so many values for each group of a block, and so many more.
_ENTRIES_PER_GROUP, _ENTRIES = 4, 1 << 10
# The logarithm of a probability that is zero.
_NEVER = -1e3

# What is tabulated, and of groups of how many items, by the number of grades and the width of rows.
Tables = dict[tuple[int, int], tuple[int, np.ndarray, np.ndarray]]


def mean_cascade(blocks: list[Block], stop: Function, k: int | None) -> list[np.ndarray]:
    """Expected reciprocal rank of each row; `stop` takes grades to probabilities of stopping."""
    tables: Tables = {}
    groups = [_Groups(block, stop, k, tables) for block in blocks]
    _integrate([g for g in groups if g.whole.size], stop)
    for group in groups:
        group.divided(stop)
    return [g.block.row_sums(g.values * g.reached) for g in groups]


class _Groups:
    """The groups of a block: what each adds to the measure, given that it is reached."""

    def __init__(self, block: Block, stop: Function, k: int | None, tables: Tables) -> None:
        self.block, self.k = block, block.width if k is None else min(k, block.width)
        tally = block.tally
        if tally is None:
            stops = block.apply(stop)
            passed = np.cumprod(1 - stops, axis=1)
            passed = np.concatenate([np.ones((block.n_rows, 1)), passed[:, :-1]], axis=1)
            self.reached, totals = passed.ravel()[block.starts], block.group_sums(stops)
            groups = np.arange(self.reached.size)
            self.values = np.empty(groups.size)
        else:
            stops = stop(np.arange(float(tally.n_grades)))
            with np.errstate(divide="ignore"):
                logs = np.maximum(np.log1p(-stops), _NEVER)
            self.reached = tally.products_above(logs)
            limit, self.values = _small_groups(block, tally, stops, self.k, tables)
            groups = np.flatnonzero(block.sizes >= limit)
            totals = tally.sums(stops, groups)
        # Right where only one item of the group can stop the reader: E_t falls by equal steps.
        inverse_ranks = block.mean_weights(1 / np.arange(1.0, self.k + 1), groups)
        self.values[groups] = totals * inverse_ranks
        # Elsewhere the group adds no more than the reader's chance to get there.
        several = (block.group_hits(0.0)[0][groups] > 1) & (self.values[groups] > 0)
        several &= self.reached[groups] > _NEGLIGIBLE
        inside = several & (block.above[groups] + block.sizes[groups] <= self.k)
        inside &= (totals <= LARGEST_TOTAL) & (tally is not None)
        self.whole, self._divided = groups[inside], groups[several & ~inside]
        self.inverse_ranks = inverse_ranks[inside]

    def divided(self, stop: Function) -> None:
        """Set the values of the groups that no integral serves."""
        groups, block, tally = self._divided, self.block, self.block.tally
        if groups.size == 0:
            return
        if tally is not None:
            # Where few places count, grades are less work than items.
            places = np.minimum(block.sizes, self.k - block.above)
            few = tally.n_grades * places[groups] < 2 * block.sizes[groups]
            few &= places[groups] <= _FEW_PLACES
            of_grades = stop(np.arange(float(tally.n_grades)))
            for some in _similar(places, groups[few]):
                self.values[some] = _first_places(
                    of_grades, tally.counts(some), block.above[some], self.k
                )
            groups = groups[~few]
        stops = block.apply(stop).ravel()
        large = block.sizes[groups] > _SMALL_GROUP
        for group in groups[large]:
            items = slice(block.starts[group], block.starts[group] + block.sizes[group])
            self.values[group] = large_cascade(
                stops[items],
                int(block.above[group]),
                self.k,
                _NEGLIGIBLE / self.reached[group],
            )
        for some in _similar(block.sizes, groups[~large]):
            self.values[some] = _group_cascade(
                stops, block.starts[some], block.sizes[some], block.above[some], self.k
            )


def _integrate(groups: list[_Groups], stop: Function) -> None:
    """Set the values of whole groups, of all blocks at once: many share their size and place."""
    if not groups:
        return
    parts = [cast(Tally, g.block.tally).counts(g.whole) for g in groups]
    n_grades = max(map(len, parts))
    counts = np.hstack([np.pad(part, ((0, n_grades - len(part)), (0, 0))) for part in parts])
    above = np.concatenate([g.block.above[g.whole] for g in groups])
    ranks = np.concatenate([g.inverse_ranks for g in groups])
    values = integral_cascade(stop(np.arange(float(n_grades))), counts, above, ranks)
    ends = np.cumsum([g.whole.size for g in groups])
    for group, part in zip(groups, np.split(values, ends), strict=False):
        group.values[group.whole] = part


def _small_groups(
    block: Block, tally: Tally, stops: np.ndarray, k: int, tables: Tables
) -> tuple[int, np.ndarray]:
    """A number of items, and what groups of fewer of them add, given that they are reached."""
    n_grades, limit = stops.size, min(tally.radix, int(block.sizes.max()) + 1)
    while limit and block.width * comb(limit - 1 + n_grades, n_grades) > (
        _ENTRIES_PER_GROUP * block.starts.size + _ENTRIES
    ):
        limit -= 1
    if limit < 2:
        return 0, np.empty(block.sizes.size)
    key = n_grades, block.width
    if key not in tables or tables[key][0] < limit:
        tables[key] = limit, *_table(stops, limit, tally.radix, block.width, k)
    limit, place, table = tables[key]
    return limit, table.take(place.take(tally.codes()) + block.above)


def _table(
    stops: np.ndarray, limit: int, radix: int, width: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """sum_t (E_{t-1} - E_t) / (a + t) of all groups of less than `limit` items.

    A row for each composition, a column for each a below `width`, in one vector, and the place at
    which the row of a composition's code begins.
    """
    compositions = _compositions(stops.size, limit - 1)
    sizes = compositions.sum(axis=0)
    falling = np.argsort(-sizes, kind="stable")
    compositions, sizes = compositions[:, falling], sizes[falling]
    item = np.arange(limit - 1)[:, None]
    grade = (np.cumsum(compositions, axis=0)[:, None] <= item).sum(axis=0)
    means = _mean_stops(stops[np.minimum(grade, stops.size - 1)], sizes, limit - 1)
    steps = np.where(item < sizes, means[1:] - means[:-1], 0)
    rank = np.arange(1, width + 1) + item
    # Other codes, of larger groups, find values that nobody uses.
    place = np.zeros(1 << CODE_BITS, dtype=np.intp)
    place[radix ** np.arange(stops.size) @ compositions] = np.arange(sizes.size) * width
    return place, np.ravel(steps.T @ np.where(rank <= k, 1 / rank, 0.0))


def _compositions(n_grades: int, largest: int) -> np.ndarray:
    """The counts of each grade (rows) in all groups of at most `largest` items (columns)."""
    counts = np.zeros((0, 1), dtype=np.intp)
    for _ in range(n_grades):
        choices = largest - counts.sum(axis=0) + 1
        first = np.cumsum(choices) - choices
        last = np.arange(choices.sum()) - np.repeat(first, choices)
        counts = np.vstack([np.repeat(counts, choices, axis=1), last])
    return counts


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
    each = stops[np.minimum(starts + item, stops.size - 1)]
    # Maclaurin's inequality, E_t <= E_1^t, says beyond which t nothing is left to add.
    least = (np.where(item < sizes, each, 0).sum(axis=0) / sizes).min()
    needed = int(min(longest, k - above.min(), last_place(1 - least, _NEGLIGIBLE)))
    place = np.arange(1, needed + 1)[:, None]
    means = _mean_stops(each, sizes, needed)
    steps = (means[1:] - means[:-1]) / (above + place)
    return np.where(place <= np.minimum(sizes, k - above), steps, 0).sum(axis=0)


def _first_places(stops: np.ndarray, counts: np.ndarray, above: np.ndarray, k: int) -> np.ndarray:
    """sum_t (E_{t-1} - E_t) / (a + t) of groups, one a column, whose first places count.

    `counts[i]` items stop with probability `stops[i]`, the first of which is zero. As in
    `_mean_stops`, but with all items of a grade at once.
    """
    sizes = counts.sum(axis=0)
    place = np.arange(1, int(np.minimum(sizes, k - above).max()) + 1)[:, None]

    def choices(n: np.ndarray) -> np.ndarray:
        """C(n, t) / m^t."""
        steps = np.maximum(n - place + 1, 0) / (place * sizes)
        return np.cumprod(np.vstack([np.ones(sizes.size), steps]), axis=0)

    n, total = counts[0], choices(counts[0])
    stopped = np.zeros_like(total)
    for stop, count in zip(stops[1:], counts[1:], strict=True):
        chance = -np.expm1(np.arange(len(total)) * np.log1p(-min(stop, BELOW_ONE)))[:, None]
        added = choices(count)
        stopping, passing = added * chance, added * (1 - chance)
        united = np.zeros_like(total)
        for s in range(len(total)):
            united[s:] += passing[: len(total) - s] * stopped[s]
            united[s:] += stopping[: len(total) - s] * total[s]
        n = n + count
        stopped, total = united, choices(n)
    # Beyond the last item there is no choice, and nothing is asked for.
    means = np.divide(stopped, total, out=np.zeros_like(total), where=total > 0)
    steps = (means[1:] - means[:-1]) / (above + place)
    return np.where(place <= np.minimum(sizes, k - above), steps, 0).sum(axis=0)


def _mean_stops(stops: np.ndarray, sizes: np.ndarray, needed: int) -> np.ndarray:
    """1 - E_t, t = 0, ..., needed, of the first sizes[g] entries of each column g; sizes decrease.

    For E_t itself, tiny chances to stop would be lost in rounding. The C(m, t) - e_t, e_t the
    symmetric polynomials of the chances to pass, add up, all terms positive, and are divided by
    the binomials.
    """
    means = np.zeros((needed + 1, sizes.size))
    choices = np.zeros(needed + 1)
    choices[0] = 1
    term, other = np.empty_like(means), np.empty_like(means)
    longer = np.searchsorted(-sizes, -np.arange(stops.shape[0]))
    for j, columns in enumerate(longer.tolist()):
        last = min(j + 1, needed)
        # Of the choices of t - 1 items before item j, those that stop, and by j the others.
        product = np.multiply(1 - stops[j, :columns], means[:last, :columns], term[:last, :columns])
        product += np.multiply(stops[j, :columns], choices[:last, None], other[:last, :columns])
        means[1 : last + 1, :columns] += product
        choices[1 : last + 1] += choices[:last]
    place = np.arange(needed)[:, None]
    # C(m, t + 1) = C(m, t) (m - t) / (t + 1); beyond t = m nothing is asked for.
    means[1:] /= np.cumprod(np.where(place < sizes, (sizes - place) / (place + 1), 1), axis=0)
    return means
