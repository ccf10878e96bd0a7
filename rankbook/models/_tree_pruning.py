"""The models of a tree's nodes, and its pruning by the compensated error."""

from __future__ import annotations

import numpy as np

from rankbook.models._node_models import NodeModels, fit_models
from rankbook.models._tree_growth import Sample, Tree

__all__ = ["compensation", "model_nodes"]

# Weka's program counts a parameter twice in the numerator, and gives models with no degree of
# freedom left a factor of ten.
_MULTIPLIER = 2.0
_NO_FREEDOM = 10.0
# A node whose model errs less than this share of the whole sample's deviation needs no subtree.
_EXACT_SHARE = 1e-5


def compensation(n: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """The factor by which training errors of a model are raised."""
    n, parameters = np.asarray(n, dtype=float), np.asarray(parameters, dtype=float)
    free = n - parameters
    safe = np.where(free > 0, free, 1.0)
    return np.where(free > 0, (n + _MULTIPLIER * parameters) / safe, _NO_FREEDOM)


def model_nodes(sample: Sample, tree: Tree, *, pruning: bool) -> tuple[NodeModels, np.ndarray]:
    """Models of all nodes, from the deepest up, and which nodes are leaves in the end.

    A model may use the columns that are tested in the tree as grown below its node. A node keeps
    its subtree where that has the smaller error, both errors raised by `compensation`; a split
    counts as one parameter.
    """
    models = fit_models(sample, tree, _tested_below(tree, sample.X.shape[1]))
    is_leaf = tree.is_leaf.copy()
    squares, parameters = models.squares.copy(), models.parameters.copy()
    if not pruning:
        return models, is_leaf
    mean = np.average(sample.y, weights=sample.weights)
    variance = np.average((sample.y - mean) ** 2, weights=sample.weights)
    for nodes in reversed(tree.levels()):
        inner = nodes[~tree.is_leaf[nodes]]
        left, right = tree.left[inner], tree.right[inner]
        n = tree.count[inner]
        below = squares[left] + squares[right]
        sizes = parameters[left] + parameters[right] + 1
        own = models.squares[inner] * compensation(n, models.parameters[inner]) ** 2
        cut = own <= below * compensation(n, sizes) ** 2
        cut |= own < _EXACT_SHARE**2 * variance * models.weight[inner]
        is_leaf[inner[cut]] = True
        keep = inner[~cut]
        squares[keep], parameters[keep] = below[~cut], sizes[~cut]
    return models, is_leaf


def _tested_below(tree: Tree, n_columns: int) -> np.ndarray:
    """For each node, the columns that it or its subtree tests."""
    uses = np.zeros((tree.feature.size, n_columns), dtype=bool)
    for nodes in reversed(tree.levels()):
        inner = nodes[~tree.is_leaf[nodes]]
        uses[inner] = uses[tree.left[inner]] | uses[tree.right[inner]]
        uses[inner, tree.feature[inner]] = True
    return uses
