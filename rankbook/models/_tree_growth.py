"""Growing the tree of M5': all nodes of a level at once, column by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Sample", "Tree", "grow"]

# A node whose deviation is below this share of the whole sample's is not split.
_DEVIATION_SHARE = 0.05
# Splits whose criteria agree to this relative difference are tied: the first column wins.
_TIE = 1e-9

# A variance on one side that is below this, the node's largest residual being one, is rounding.
_NO_VARIANCE = 1e-11
# Criteria in single precision are wrong by less than this share.
_ROUGH = 1e-4
# Numbers that a block of columns may hold.
_BLOCK = 30_000


@dataclass(frozen=True)
class Sample:
    """Rows to learn from: values, targets, their weights, and what each row counts as."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    counts: np.ndarray


@dataclass
class Tree:
    """Nodes in the order of their depth; a leaf has no children and the feature -1.

    The rows of node t are ``rows[start[t]:stop[t]]``; those of a child lie within its parent's.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    count: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    @property
    def is_leaf(self) -> np.ndarray:
        return self.feature < 0

    def levels(self) -> list[np.ndarray]:
        """The nodes of each depth, the root first."""
        ends = np.cumsum(np.bincount(self.depth))
        return np.split(np.arange(self.depth.size), ends[:-1])


def grow(sample: Sample, *, min_samples_leaf: int, power: float) -> Tree:
    """Split until nodes are small or alike.

    `power` is that of the standard deviation in the criterion.
    """
    grower = _Grower(sample, min_samples_leaf, power)
    while grower.segments.size:
        grower.split_level()
    return grower.tree()


class _Grower:
    """The level that is being split: for each column, rows by node and then by value.

    The nodes that are not split leave with their rows. All left children come before all right
    ones, so that a stable partition of a column is two selections.
    """

    def __init__(self, sample: Sample, min_samples_leaf: int, power: float) -> None:
        n, p = sample.X.shape
        self.sample, self.min_samples_leaf, self.power = sample, min_samples_leaf, power
        self.columns = np.asfortranarray(sample.X)
        order = [np.argsort(self.columns[:, j], kind="stable") for j in range(p)]
        self.order = np.array(order, dtype=np.intp).reshape(p, n)
        self.is_distinct = np.array(
            [bool((np.diff(self.columns[row, j]) > 0).all()) for j, row in enumerate(self.order)]
        )
        self.is_plain = bool((sample.weights == 1).all() and (sample.counts == 1).all())
        self.feature: list[np.ndarray] = []
        self.threshold: list[np.ndarray] = []
        self.left: list[np.ndarray] = []
        self.right: list[np.ndarray] = []
        self.parent: list[np.ndarray] = [np.array([-1])]
        self.n_nodes = 1
        self.leaf_of = np.zeros(n, dtype=np.intp)
        self.segments = np.array([0])  # names of the level's nodes
        self.sizes = np.array([n])
        mean = np.average(sample.y, weights=sample.weights)
        variance = np.average((sample.y - mean) ** 2, weights=sample.weights)
        self.least_variance = _DEVIATION_SHARE**2 * variance

    def split_level(self) -> None:
        starts = np.cumsum(self.sizes) - self.sizes
        level = _Level(self.sample, self.order[0], starts, self.sizes)
        open_ = (level.count >= self.min_samples_leaf) & (level.variance >= self.least_variance)
        open_ &= level.variance > 0
        column, position, cut = self._best_splits(level, open_)
        is_split = column >= 0
        self.feature.append(column)
        self.threshold.append(cut)
        names = np.full((2, self.segments.size), -1)
        total = int(is_split.sum())
        names[:, is_split] = self.n_nodes + np.arange(2 * total).reshape(2, total)
        self.left.append(names[0])
        self.right.append(names[1])
        self.parent.append(np.tile(self.segments[is_split], 2))
        self.n_nodes += 2 * total
        self._partition(level, column, position, is_split)
        self.segments = names[:, is_split].ravel()

    def _partition(
        self, level: _Level, column: np.ndarray, position: np.ndarray, is_split: np.ndarray
    ) -> None:
        """Send rows to the children; the rows of leaves leave."""
        leaves = np.flatnonzero(~is_split[level.node])
        self.leaf_of[self.order[0, leaves]] = self.segments[level.node[leaves]]
        where = np.flatnonzero(is_split[level.node])
        inside = level.node[where]
        side = np.full(self.leaf_of.size, 2, dtype=np.int8)
        side[self.order[column[inside], where]] = where > position[inside]
        lefts = (position - level.starts + 1)[is_split]
        self.sizes = np.concatenate([lefts, self.sizes[is_split] - lefts])
        order = np.empty((len(self.order), where.size), dtype=np.intp)
        middle = int(lefts.sum())
        for block in _blocks(*self.order.shape):
            rows = self.order[block]
            at = side[rows]
            order[block, :middle] = rows[at == 0].reshape(len(rows), -1)
            order[block, middle:] = rows[at == 1].reshape(len(rows), -1)
        self.order = order

    def _best_splits(self, level: _Level, open_: np.ndarray):
        """For each node the column, the last position on the left, and the threshold."""
        best = np.full(self.segments.size, np.inf)
        column = np.full(self.segments.size, -1)
        position = np.zeros(self.segments.size, dtype=np.intp)
        cut = np.full(self.segments.size, np.nan)
        places = _Places(level, open_, self.power, self.is_plain)
        if places.at.size == 0:
            return column, position, cut
        for block in _blocks(*self.order.shape):
            order = self.order[block]
            found = places.best(order, self._changes(block, order, places.at), best)
            for j, nodes, at, least in found:
                better = least < best[nodes] * (1 - _TIE)
                nodes, at = nodes[better], at[better]
                best[nodes], column[nodes], position[nodes] = least[better], block.start + j, at
        nodes = np.flatnonzero(column >= 0)
        j, at = column[nodes], position[nodes]
        low, high = (self.columns[self.order[j, at + step], j] for step in (0, 1))
        cut[nodes] = _between(low, high)
        return column, position, cut

    def _changes(self, block: slice, order: np.ndarray, at: np.ndarray) -> np.ndarray | None:
        """Whether the value of a column changes after some positions; None if all always do."""
        if self.is_distinct[block].all():
            return None
        changes = np.ones((len(order), at.size), dtype=bool)
        for j in np.flatnonzero(~self.is_distinct[block]):
            values = self.columns[order[j], block.start + j]
            changes[j] = (values[1:] > values[:-1])[at]
        return changes

    def tree(self) -> Tree:
        feature, left, right = (
            np.concatenate(parts) for parts in (self.feature, self.left, self.right)
        )
        parent = np.concatenate(self.parent)
        depth = np.repeat(np.arange(len(self.left)), [part.size for part in self.left])
        rows, start, stop = _nested_rows(self.leaf_of, left, right, depth)
        counts = np.concatenate([[0.0], np.cumsum(self.sample.counts[rows])])
        return Tree(
            feature=feature,
            threshold=np.concatenate(self.threshold),
            left=left,
            right=right,
            parent=parent,
            depth=depth,
            count=counts[stop] - counts[start],
            rows=rows,
            start=start,
            stop=stop,
        )


class _Level:
    """Sums over the nodes of a level, and of the left sides of their splits."""

    def __init__(
        self, sample: Sample, rows: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> None:
        self.starts, self.sample = starts, sample
        self.node = np.repeat(np.arange(sizes.size), sizes)
        weights, counts = sample.weights[rows], sample.counts[rows]
        self.weight = np.add.reduceat(weights, starts)
        self.count = np.add.reduceat(counts, starts)
        mean = np.add.reduceat(weights * sample.y[rows], starts) / self.weight
        residual = sample.y[rows] - mean[self.node]
        self.variance = np.add.reduceat(weights * residual**2, starts) / self.weight
        self.first, self.second = self._fixed_point(rows, residual, weights)
        share = np.maximum(np.floor(self.count / 5), 1.0)
        self.fewest = share + 1

    def _fixed_point(self, rows: np.ndarray, residual: np.ndarray, weights: np.ndarray):
        """Weighted residuals and their squares as integers, in units of the node's largest.

        Sums of integers are exact, so that equal partitions have equal criteria in whatever order
        a column brings their rows. Roots would magnify rounding: the fifth root of 1e-16 is 6e-4.
        """
        peak = np.maximum.reduceat(np.abs(residual), self.starts)
        relative = residual / np.where(peak > 0, peak, 1.0)[self.node]
        bits = int(min(61 - np.ceil(np.log2(self.weight.sum())), 52))
        self.unit = np.ldexp(1.0, -bits)
        sums = np.zeros((2, self.sample.y.size), dtype=np.int64)
        for place, values in zip(sums, (relative, relative**2), strict=True):
            place[rows] = np.rint(weights * np.rint(np.ldexp(values, bits)))
        self.residuals, self.squares = (np.add.reduceat(part[rows], self.starts) for part in sums)
        return sums


class _Places:
    """The places of a level where a node may be split, and the criterion there.

    A place is the position of the last item on the left. The sums of a node are the same in every
    column, since they are exact, so that all but the left sums is prepared once a level.
    """

    def __init__(self, level: _Level, open_: np.ndarray, power: float, is_plain: bool) -> None:
        self.level, self.power, self.is_plain = level, power, is_plain
        node = level.node
        position = np.arange(node.size)
        left = position - level.starts[node] + 1.0
        may = open_[node]
        may[:-1] &= node[1:] == node[:-1]
        may[-1:] = False
        if is_plain:
            may &= (left >= level.fewest[node]) & (level.count[node] - left >= level.fewest[node])
        self.at = np.flatnonzero(may)
        self.node = node[self.at]
        self.left = left[None, self.at]
        starts = np.flatnonzero(np.diff(self.node, prepend=-1))
        self.starts, self.owners = starts, self.node[starts]
        self.sizes = np.diff(np.append(starts, self.node.size))
        self.squares = level.squares[self.node]
        self.before = [
            (np.cumsum(sums) - sums)[self.node] for sums in (level.residuals, level.squares)
        ]

    def best(self, order: np.ndarray, changes: np.ndarray | None, best: np.ndarray):
        """Column, nodes, the first of their (tied) least places, and the criteria there.

        Nodes that another column splits better, by more than rounding, may be left out.
        """
        left, right, near, far = self._sides(order)
        allowed = self._allowed(order, changes)
        weight = self.level.weight
        rough = np.float32(left / weight[self.node]) * _rough_root(near, self.power)
        rough += np.float32(right / weight[self.node]) * _rough_root(far, self.power)
        if allowed is not None:
            rough[~allowed] = np.inf
        least = np.minimum.reduceat(rough, self.starts, axis=1)
        bound = np.minimum(least.min(axis=0), (best / weight)[self.owners]) * (1 + _ROUGH)
        limit = np.where(least <= bound, least * (1 + _ROUGH), -1.0)
        near_least = rough <= np.repeat(limit.astype(np.float32), self.sizes, axis=1)
        near_least &= rough < np.inf
        row, place = np.nonzero(near_least)
        left, right = (np.broadcast_to(side, near.shape)[row, place] for side in (left, right))
        spread = left * _root(near[row, place], self.power)
        spread += right * _root(far[row, place], self.power)
        node = self.node[place]
        ends = np.concatenate([[0], np.cumsum(near_least.sum(axis=1))])
        for j in np.flatnonzero(np.diff(ends)):
            inside = slice(ends[j], ends[j + 1])
            nodes, first, value = _first_least(spread[inside], node[inside])
            yield j, nodes, self.at[place[inside][first]], value

    def _sides(self, order: np.ndarray):
        """Weights and variances of the left and the right sides."""
        level = self.level
        sums = []
        for values, before in zip((level.first, level.second), self.before, strict=True):
            sums.append(np.cumsum(values[order], axis=1).take(self.at, axis=1))
            sums[-1] -= before
        left = self.left if self.is_plain else self._left_of(level.sample.weights, order)
        right = level.weight[self.node] - left
        first = sums[0] * level.unit
        near, far = sums[1] * level.unit, (self.squares - sums[1]) * level.unit
        with np.errstate(divide="ignore", invalid="ignore"):  # a right side may weigh nothing
            for variance, weight in ((near, left), (far, right)):
                variance /= weight
                mean = first / weight
                mean *= mean
                variance -= mean
        return left, right, near, far

    def _allowed(self, order: np.ndarray, changes: np.ndarray | None) -> np.ndarray | None:
        if self.is_plain:
            return changes
        left = self._left_of(self.level.sample.counts, order)
        fewest, count = self.level.fewest[self.node], self.level.count[self.node]
        allowed = (left >= fewest) & (count - left >= fewest)
        return allowed if changes is None else allowed & changes

    def _left_of(self, values: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Sums from the beginning of a node up to each place."""
        values = values[order]
        sums = np.cumsum(values, axis=1)
        first = self.level.starts[self.node]
        return sums[:, self.at] - sums[:, first] + values[:, first]


def _blocks(p: int, n: int) -> list[slice]:
    """Columns that are treated together: so many that their numbers stay near the processor."""
    step = max(1, _BLOCK // max(n, 1))
    return [slice(begin, min(begin + step, p)) for begin in range(0, p, step)]


def _rough_root(variance: np.ndarray, power: float) -> np.ndarray:
    """`_root` to about five digits, several times faster."""
    rough = np.where(variance > _NO_VARIANCE, variance.astype(np.float32), np.float32(0.0))
    with np.errstate(divide="ignore"):
        np.log(rough, out=rough)
    rough *= np.float32(power / 2)
    return np.exp(rough, out=rough)


def _root(variance: np.ndarray, power: float) -> np.ndarray:
    variance = np.where(variance > _NO_VARIANCE, variance, 0.0)
    return np.sqrt(variance) if power == 1.0 else variance ** (power / 2)


def _first_least(values: np.ndarray, node: np.ndarray):
    """Nodes that have a place, the first of the (tied) least places of each, and its value."""
    starts = np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]]))
    least = np.minimum.reduceat(values, starts)
    sizes = np.diff(np.append(starts, values.size))
    tied = np.flatnonzero(values <= np.repeat(least * (1 + _TIE), sizes))
    owner = np.repeat(np.arange(starts.size), sizes)[tied]
    first = tied[np.concatenate([[True], owner[1:] != owner[:-1]])]
    return node[starts], first, least


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle of two values, or the lower one where rounding would send it to the right."""
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _nested_rows(leaf_of: np.ndarray, left: np.ndarray, right: np.ndarray, depth: np.ndarray):
    """An order of the rows in which those of every node stand together."""
    own = np.bincount(leaf_of, minlength=left.size)
    size = own.copy()
    levels = np.split(np.arange(left.size), np.cumsum(np.bincount(depth))[:-1])
    for nodes in reversed(levels):
        inner = nodes[left[nodes] >= 0]
        size[inner] += size[left[inner]] + size[right[inner]]
    start = np.zeros(left.size, dtype=np.intp)
    for nodes in levels:
        inner = nodes[left[nodes] >= 0]
        start[left[inner]] = start[inner]
        start[right[inner]] = start[inner] + size[left[inner]]
    rows = np.argsort(start[leaf_of], kind="stable")
    return rows, start, start + size
