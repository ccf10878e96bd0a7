"""Growing the tree of M5': all nodes of a level at once, column by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Sample", "Tree", "grow"]

# A node whose deviation is below this share of the whole sample's is not split.
_DEVIATION_SHARE = 0.05
# Splits whose criteria agree to this relative difference are tied: the first column wins.
_TIE = 1e-9


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


def grow(sample: Sample, *, min_instances: int, power: float) -> Tree:
    """Split until nodes are small or alike.

    `power` is that of the standard deviation in the criterion.
    """
    grower = _Grower(sample, min_instances, power)
    while grower.segments.size:
        grower.split_level()
    return grower.tree()


class _Grower:
    """The level that is being split: for each column, rows by node and then by value.

    The nodes that are not split leave with their rows. All left children come before all right
    ones, so that a stable partition of a column is two selections.
    """

    def __init__(self, sample: Sample, min_instances: int, power: float) -> None:
        n, p = sample.X.shape
        self.sample, self.min_instances, self.power = sample, min_instances, power
        self.columns = np.asfortranarray(sample.X)
        order = [np.argsort(self.columns[:, j], kind="stable") for j in range(p)]
        self.order = np.array(order, dtype=np.intp).reshape(p, n)
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
        rows = self.order[0]
        starts = np.cumsum(self.sizes) - self.sizes
        level = _Level(self.sample, rows, starts, self.sizes)
        open_ = (level.count >= self.min_instances) & (level.variance >= self.least_variance)
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
        self._partition(level, column, position, starts, names, is_split)

    def _partition(self, level, column, position, starts, names, is_split) -> None:
        """Send rows to the children; the rows of leaves leave."""
        side = np.full(self.leaf_of.size, 2, dtype=np.int8)
        lefts = np.zeros(self.segments.size, dtype=np.intp)
        for t in np.flatnonzero(is_split):
            inside = self.order[column[t], starts[t] : starts[t] + self.sizes[t]]
            lefts[t] = position[t] - starts[t] + 1
            side[inside[: lefts[t]]] = 0
            side[inside[lefts[t] :]] = 1
        rows = self.order[0]
        leaves = side[rows] == 2
        self.leaf_of[rows[leaves]] = self.segments[level.node[leaves]]
        where = side[self.order]
        p = len(self.order)
        self.order = np.concatenate([self.order[where == s].reshape(p, -1) for s in (0, 1)], axis=1)
        self.sizes = np.concatenate([lefts[is_split], (self.sizes - lefts)[is_split]])
        self.segments = names[:, is_split].ravel()

    def _best_splits(self, level: _Level, open_: np.ndarray):
        """For each node the column, the last position on the left, and the threshold."""
        best = np.full(self.segments.size, np.inf)
        column = np.full(self.segments.size, -1)
        position = np.zeros(self.segments.size, dtype=np.intp)
        cut = np.full(self.segments.size, np.nan)
        if not open_.any():
            return column, position, cut
        for j, order in enumerate(self.order):
            values = self.columns[order, j]
            places = level.places(values, order, open_, self.is_plain)
            if places.size == 0:
                continue
            spread = level.spread(places, order, self.power, self.is_plain)
            nodes, where, least = _first_least(spread, level.node[places])
            better = least < best[nodes] * (1 - _TIE)
            nodes, where = nodes[better], places[where[better]]
            best[nodes], column[nodes], position[nodes] = least[better], j, where
            cut[nodes] = _between(values[where], values[where + 1])
        return column, position, cut

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
        self.squares = np.add.reduceat(weights * residual**2, starts)
        self.variance = self.squares / self.weight
        # Around the node's own mean, so that sums over a node lose no digits.
        self.residual = np.zeros(sample.y.size)
        self.residual[rows] = residual
        share = np.maximum(np.floor(self.count / 5), 1.0)
        self.fewest = share + 1

    def places(
        self, values: np.ndarray, order: np.ndarray, open_: np.ndarray, is_plain: bool
    ) -> np.ndarray:
        """Positions of the last item on the left of the splits that are allowed."""
        node = self.node
        may = np.zeros(values.size, dtype=bool)
        may[:-1] = (values[1:] > values[:-1]) & (node[1:] == node[:-1])
        places = np.flatnonzero(may & open_[node])
        inside = node[places]
        if is_plain:
            left = places - self.starts[inside] + 1.0
        else:
            left = self._left(self.sample.counts[order], places)
        fewest = self.fewest[inside]
        return places[(left >= fewest) & (self.count[inside] - left >= fewest)]

    def _left(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Sums from the beginning of a node up to each place."""
        sums = np.cumsum(values)
        first = self.starts[self.node[places]]
        return sums[places] - sums[first] + values[first]

    def spread(
        self, places: np.ndarray, order: np.ndarray, power: float, is_plain: bool
    ) -> np.ndarray:
        """The mean over both sides of the deviation's power: less is better."""
        node = self.node[places]
        residual = self.residual[order]
        if is_plain:
            weighted = residual
            left = places - self.starts[node] + 1.0
        else:
            weights = self.sample.weights[order]
            weighted = residual * weights
            left = self._left(weights, places)
        total, first, second = (
            self.weight[node],
            self._left(weighted, places),
            self._left(weighted * residual, places),
        )
        right = total - left
        near = np.maximum(second / left - (first / left) ** 2, 0.0)
        far = np.maximum((self.squares[node] - second) / right - (first / right) ** 2, 0.0)
        return (left * _root(near, power) + right * _root(far, power)) / total


def _root(variance: np.ndarray, power: float) -> np.ndarray:
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
