"""The tree that predicts: its tests, and a linear model for each leaf, smoothed or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from rankbook.models._node_models import NodeModels
from rankbook.models._tree_growth import Tree

__all__ = ["FittedTree", "fitted_tree"]

# Quinlan's constant: a model above weighs as much as so many items.
_SMOOTHING = 15.0
# Rows that are predicted at a time.
_BLOCK = 20_000


@dataclass
class FittedTree:
    """Tests in nodes, and in each leaf a constant and a row of coefficients.

    ``leaf[t]`` is the number of node t among the leaves, from left to right, or -1; `deviation`
    is the root mean squared error of the leaf's own model on its training items.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    depth: np.ndarray
    leaf: np.ndarray
    count: np.ndarray
    deviation: np.ndarray
    constant: np.ndarray
    coef: sp.csr_array

    def leaves_of(self, X: np.ndarray) -> np.ndarray:
        """The number of the leaf that each row falls into."""
        node = np.zeros(len(X), dtype=np.intp)
        inner = np.flatnonzero(self.leaf[node] < 0)
        while inner.size:
            at = node[inner]
            goes_left = X[inner, self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(goes_left, self.left[at], self.right[at])
            inner = inner[self.leaf[node[inner]] < 0]
        return self.leaf[node]

    def predict(self, Z: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """The values of the leaves' models at rows in the models' units."""
        values = self.constant[leaves]
        for begin in range(0, len(Z), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            rows = self.coef[leaves[block]]
            owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            terms = rows.data * Z[block][owner, rows.indices]
            values[block] += np.bincount(owner, terms, minlength=rows.shape[0])
        return values


def fitted_tree(
    tree: Tree, models: NodeModels, is_leaf: np.ndarray, n_columns: int, *, smoothing: bool
) -> FittedTree:
    """Keep what a pruned tree needs to predict."""
    kept = np.zeros(is_leaf.size, dtype=bool)
    kept[0] = True
    for nodes in tree.levels():
        inner = nodes[kept[nodes] & ~is_leaf[nodes]]
        kept[tree.left[inner]] = kept[tree.right[inner]] = True
    leaves = np.flatnonzero(kept & is_leaf)
    leaves = leaves[np.argsort(tree.start[leaves])]
    number = np.full(is_leaf.size, -1)
    number[leaves] = np.arange(leaves.size)
    name = np.cumsum(kept) - 1
    mix = _mixture(tree, leaves, _SMOOTHING if smoothing else 0.0)
    return FittedTree(
        feature=np.where(is_leaf, -1, tree.feature)[kept],
        threshold=np.where(is_leaf, np.nan, tree.threshold)[kept],
        left=np.where(is_leaf, -1, name[tree.left])[kept],
        right=np.where(is_leaf, -1, name[tree.right])[kept],
        depth=tree.depth[kept],
        leaf=number[kept],
        count=tree.count[kept],
        deviation=np.sqrt(models.squares / models.weight)[kept],
        constant=mix @ models.constant,
        coef=sp.csr_array(mix @ models.coefficients(n_columns)),
    )


def _mixture(tree: Tree, leaves: np.ndarray, smoothing: float) -> sp.csr_array:
    """What each node's model weighs in each leaf's.

    On the way up, a value p from a node of n items becomes (n p + k q) / (n + k) with the value q
    of the model above. That is linear, so that the models can be mixed once and for all.
    """
    share = tree.count / (tree.count + smoothing)
    # What is left, at the root, of a value that comes out of a node.
    kept = np.ones(share.size)
    for nodes in tree.levels()[1:]:
        kept[nodes] = share[nodes] * kept[tree.parent[nodes]]
    where, node = np.arange(leaves.size), leaves
    entries = [(where, node, kept[node])]
    while smoothing and where.size:
        inside = tree.parent[node] >= 0
        where, node = where[inside], node[inside]
        above = tree.parent[node]
        entries.append((where, above, (1.0 - share[node]) * kept[above]))
        node = above
    rows, columns, weights = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sp.csr_array((weights, (rows, columns)), shape=(leaves.size, share.size))
