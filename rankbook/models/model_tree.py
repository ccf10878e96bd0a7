"""Model trees: regression trees with linear models in their leaves, by M5'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from rankbook._docs import documented
from rankbook._validation import check_choice, check_flag, check_scalar, check_weights
from rankbook.models._base import check_items, check_target
from rankbook.models._leaf_models import fitted_tree
from rankbook.models._tree_growth import Sample, grow
from rankbook.models._tree_pruning import model_nodes
from rankbook.models._tree_text import tree_text

__all__ = ["ModelTree"]

# Powers below this one tell all positive deviations from zero, and nothing else.
_SMALLEST_POWER = 1e-30

_ITEMS = """
X : array-like of shape (n, p)
    Items.
"""


class ModelTree(RegressorMixin, BaseEstimator):
    r"""A regression tree with linear models in its leaves, M5'.

    A node T of n items is split where

    .. math:: \Delta = \sigma(T)^a - \sum_{i=1}^2 \frac{n_i}{n} \sigma(T_i)^a

    is largest, :math:`\sigma` the standard deviation of y and a the `split_power`; each side gets
    more than a fifth of the items, and at least two. Nodes with fewer than `min_samples_leaf`
    items, or with a deviation below 5 % of the whole sample's, are not split. From the bottom up,
    every node gets a least-squares model on the columns that are tested at it or below.
    Standardised coefficients above 1.5 are thrown out, the largest first. Then the column of the
    smallest one is left out as long as what Weka calls Akaike's criterion falls (less n, Mallows's
    C_p),
    :math:`(n - v_0) S / S_0 + 2 v` with S the sum of squares of v parameters and
    :math:`S_0` that of all :math:`v_0`. A subtree is replaced by its node's model unless the
    subtree has the smaller compensated error

    .. math:: \sqrt{S / n} \; \frac{n + 2 v}{n - v},

    (10 times the error if n is at most v), where a subtree has the parameters of its leaves and
    one a split. A prediction is smoothed on its way from the leaf up: the value p of a node of n
    items becomes :math:`(n p + 15 q) / (n + 15)`, q being the value of the model above.

    Parameters
    ----------
    min_samples_leaf : int, default=4
        A node with fewer items is not split. As in Weka, which calls it the least number of items
        in a leaf, the sides of a split may be smaller.
    smoothing : bool, default=True
        Whether predictions are smoothed.
    pruning : bool, default=True
        Whether subtrees that do not pay are replaced by models. The leaves of a tree that is not
        pruned have constants as their own models.
    split_power : float, default=0.4
        The power of the deviation in the criterion of a split. Weka's program takes 0.4, the fifth
        root of the variance; Wang and Witten describe 1.
    weighting : {"copies", "importance"}, default="copies"
        What ``sample_weight`` means: an item of weight 2 is two items, or one item that matters
        twice as much. In the second reading n counts rows, and only ratios of weights matter.

    Attributes
    ----------
    tree_ : object
        Tests and leaf models, as arrays.
    n_features_in_ : int
        Columns of X.

    Notes
    -----
    Weka's program M5P is the reference: the tests compare numbers of leaves and predictions, the
    same on nine data sets, pruned or not, smoothed or not. Weka takes values that differ by less
    than 1e-6 for equal, in whatever units they are; here equal means equal. Splits whose
    criteria agree to a relative 1e-9 are tied, and the first column and the lowest threshold win.

    All nodes of a level are split together, on columns that are sorted once. That takes time
    proportional to n p for each level, and memory for n p row numbers.

    References
    ----------
    J. R. Quinlan, "Learning with continuous classes", Australian Joint Conference on Artificial
    Intelligence, 1992. Y. Wang and I. H. Witten, "Induction of model trees for predicting
    continuous classes", European Conference on Machine Learning, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.models import ModelTree
    >>> x = np.arange(40.0)
    >>> y = np.where(x < 20, x, 120 - 2 * x)
    >>> tree = ModelTree(smoothing=False).fit(x[:, None], y)
    >>> print(tree.to_text(feature_names=["x"]))
    x <= 19.5: LM1 (20 items, error 0)
    x > 19.5: LM2 (20 items, error 0)
    <BLANKLINE>
    LM1: 0 + 1 x
    LM2: 120 - 2 x
    >>> tree.predict([[5.0], [30.0]]).round(6)
    array([ 5., 60.])
    """

    def __init__(
        self,
        min_samples_leaf: int = 4,
        smoothing: bool = True,
        pruning: bool = True,
        split_power: float = 0.4,
        weighting: str = "copies",
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.smoothing = smoothing
        self.pruning = pruning
        self.split_power = split_power
        self.weighting = weighting

    @documented(items=_ITEMS)
    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> ModelTree:
        """Grow the tree, fit its models and prune it.

        Parameters
        ----------
        %(items)s
        y : array-like of shape (n,)
            Numbers to predict.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; items of weight zero are left out.

        Returns
        -------
        ModelTree
            The fitted estimator.
        """
        min_samples_leaf = check_scalar(
            self.min_samples_leaf, "min_samples_leaf", low=2, integer=True
        )
        pruning = check_flag(self.pruning, "pruning")
        smoothing = check_flag(self.smoothing, "smoothing")
        power = check_scalar(self.split_power, "split_power", low=0, high=2, strict_low=True)
        power = max(power, _SMALLEST_POWER)
        check_choice(self.weighting, ("copies", "importance"), "weighting")
        items = check_items(self, X, dtype=np.float64)
        target = check_target(y, len(items))
        weights = check_weights(sample_weight, target.size)
        weights = np.ones(target.size) if weights is None else weights
        present = weights > 0
        items, target, weights = items[present], target[present], weights[present]
        counts = np.ones(target.size)
        if self.weighting == "copies":
            counts = weights
        else:
            weights = weights / weights.max()
        self._x_units, self._y_units = _Units.of(items), _Units.of(target)
        sample = Sample(items, self._y_units.to(target), weights, counts)
        tree = grow(sample, min_samples_leaf=min_samples_leaf, power=power)
        sample = replace(sample, X=self._x_units.to(items))
        models, is_leaf = model_nodes(sample, tree, pruning=pruning)
        self.tree_ = fitted_tree(tree, models, is_leaf, items.shape[1], smoothing=smoothing)
        return self

    @documented(items=_ITEMS)
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the values of the leaves' models.

        Parameters
        ----------
        %(items)s

        Returns
        -------
        ndarray of shape (n,)
            Predicted numbers.
        """
        items = self._check_items(X)
        values = self.tree_.predict(self._x_units.to(items), self.tree_.leaves_of(items))
        return self._y_units.back(values)

    @documented(items=_ITEMS)
    def apply(self, X: ArrayLike) -> np.ndarray:
        """Return the leaf that each item falls into.

        Parameters
        ----------
        %(items)s

        Returns
        -------
        ndarray of shape (n,)
            Numbers of leaves, from left to right, starting at 0; `to_text` calls the first LM1.
        """
        return self.tree_.leaves_of(self._check_items(X))

    def get_depth(self) -> int:
        """Return the largest number of tests that an item meets.

        Returns
        -------
        int
            0 for a tree that is a single model.
        """
        check_is_fitted(self, "tree_")
        return int(self.tree_.depth.max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        int
            At least 1.
        """
        check_is_fitted(self, "tree_")
        return self.tree_.constant.size

    def leaf_models(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear models of the leaves, in the units of X and y.

        Returns
        -------
        constants : ndarray of shape (n_leaves,)
            Their values at zero.
        coefficients : ndarray of shape (n_leaves, p)
            What multiplies each column; zero where a model does not use it.
        """
        check_is_fitted(self, "tree_")
        scaled = self.tree_.coef.toarray()
        constants = self.tree_.constant - scaled @ self._x_units.centre
        coefficients = scaled / self._x_units.scale * self._y_units.scale
        return self._y_units.back(constants), coefficients

    def to_text(self, *, feature_names: Sequence[str] | None = None, decimals: int = 4) -> str:
        """Return the tree and its models as text.

        Parameters
        ----------
        feature_names : sequence of p strings, default=None
            Names of the columns; by default those that `fit` saw, else x0, x1, and so on.
        decimals : int, default=4
            Significant digits of the numbers.

        Returns
        -------
        str
            A line a test, with the items in each leaf and the root mean squared error of its own
            model on them, then a line a model.
        """
        constants, coefficients = self.leaf_models()
        digits = check_scalar(decimals, "decimals", low=1, high=17, integer=True)
        names = self._names(feature_names)
        errors = self.tree_.deviation * self._y_units.scale
        return tree_text(self.tree_, errors, constants, coefficients, names, digits)

    def _names(self, feature_names: Sequence[str] | None) -> list[str]:
        if feature_names is None:
            default = [f"x{j}" for j in range(self.n_features_in_)]
            return list(getattr(self, "feature_names_in_", default))
        names = [str(name) for name in feature_names]
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"feature_names must hold {self.n_features_in_} names, got {len(names)}"
            )
        return names

    def _check_items(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self, "tree_")
        return check_items(self, X, reset=False, dtype=np.float64)


@dataclass(frozen=True)
class _Units:
    """Units in which sums of squares neither overflow nor lose digits.

    The scale is a power of two, so that dividing by it rounds nothing.
    """

    scale: Any
    centre: Any

    @classmethod
    def of(cls, values: np.ndarray) -> _Units:
        exponent = np.frexp(np.abs(values).max(axis=0))[1]
        scale = np.ldexp(1.0, np.clip(exponent, -1000, 1000))
        return cls(scale, (values / scale).mean(axis=0))

    def to(self, values: np.ndarray) -> np.ndarray:
        return values / self.scale - self.centre

    def back(self, values: np.ndarray) -> np.ndarray:
        return (values + self.centre) * self.scale
