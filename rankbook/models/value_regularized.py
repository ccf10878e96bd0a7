"""The value-regularised linear ranker: a pairwise method with a closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankbook._pair_counts import pair_weight
from rankbook._validation import check_qid, check_same_length, check_scalar, check_weights
from rankbook.models._base import LinearRankerMixin, check_items, label_values
from rankbook.models._normal_equations import ridge_solve

__all__ = ["ValueRegularizedRanker"]

# Beyond this, products with features overflow.
_LARGEST_THETA = 1e100


class ValueRegularizedRanker(LinearRankerMixin, BaseEstimator):
    r"""Linear ranker with the value-regularised linear loss.

    With `i` preferred to `j` at weight :math:`a_{ij}`, it minimises

    .. math::
        \frac1N \sum_{(i, j)} a_{ij}\, b^\top (x_j - x_i)
        + \frac{\theta}{n} \sum_{i=1}^n (b^\top x_i)^2 + \frac{\alpha}{2} b^\top b,

    the first sum over the `N` preferred pairs and the second over the `n` items (with weights, a
    pair counts the product of its items', and both sums are weighted means): the surrogate of
    Duchi, Mackey and Jordan (2010), equation (14) with :math:`r(x) = x^2`, on scores that are
    linear in the features, as in their section 4. Only the balance of each item's weights counts,

    .. math:: u_i = \sum_j (a_{ij} - a_{ji}), \qquad
        \Bigl(\tfrac{2\theta}{n} X^\top X + \alpha I\Bigr) b = \tfrac1N X^\top u,

    so that a fit costs one pass over the pairs, or none at all when they come from labels: within
    a query of :math:`n_q` items with labels `y` and pairs weighted by their label differences,
    :math:`u_i = n_q (y_i - \bar y_q)`.

    Parameters
    ----------
    theta : float, default=1e-4
        Weight of the mean squared score, at least 0.
    alpha : float, default=1.0
        Weight of half the squared norm of the coefficients, at least 0. Where `alpha` is 0 and
        the coefficients are not unique, those of least norm are returned. `theta` and `alpha`
        may not both be 0: the loss is then unbounded below.
    labels : array-like, default=None
        All classes, lowest first; needed where the labels are neither numbers nor an ordered
        Categorical. They count as 0, 1, ..., K-1.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients `b`.
    objective_ : float
        The minimum.
    n_pairs_ : int or float
        The number `N` of pairs, or their total weight; of weights beyond 1e-100 to 1e100, in the
        unit that brings the largest to about one.
    classes_ : ndarray
        The labels, lowest first, after `fit` only.
    n_features_in_ : int
        The number of features.

    Notes
    -----
    There is no intercept: adding a constant to all scores changes no pair. The mean squared score
    is not shift invariant though, so that centring the columns of `X` changes the model unless
    `theta` is 0.

    Time and memory are linear in the number of items, :math:`O(n p^2)` and :math:`O(n p)` for
    `p` features; with fewer items than features the system of order `n` is solved instead.
    Sparse `X` stays sparse. Systems of an order above 6000 go to conjugate gradients. Columns are
    scaled to equal size inside the solver, and the solution is refined against X itself.

    References
    ----------
    J. C. Duchi, L. W. Mackey and M. I. Jordan, "On the consistency of ranking algorithms", ICML
    2010: equation (14), Theorem 13, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.models import ValueRegularizedRanker
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> model = ValueRegularizedRanker(theta=0.0, alpha=1.0).fit(X, [1, 2, 3])
    >>> model.coef_                # (1/3) X'u with u = 3 (y - 2)
    array([ 2., -1.])
    >>> model.decision_function(X)
    array([-1.,  1.,  4.])
    >>> pairs, weights = [[2, 1], [2, 0], [1, 0]], [1, 2, 1]
    >>> model.fit_pairs(X, pairs, weights).coef_
    array([ 2., -1.])
    """

    def __init__(self, theta: float = 1e-4, alpha: float = 1.0, labels: Any = None) -> None:
        self.theta = theta
        self.alpha = alpha
        self.labels = labels

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ValueRegularizedRanker:
        """Fit to all pairs of different labels within a query, without forming them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            The items' features.
        y : array-like of shape (n,)
            The labels. Numbers count as they are: a pair weighs the difference of its labels.
            Other labels, and those that `labels` puts in order, count as 0, 1, ..., K-1.
        qid : array-like of shape (n,), default=None
            The query of each item; one query by default.
        group : array-like of shape (n_queries,), default=None
            In place of `qid`, the sizes of consecutive queries.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        ValueRegularizedRanker
            The fitted estimator.
        """
        items = self._check_features(X)
        n = items.shape[0]
        codes = self._encode_labels(y, n)
        grades = self._grades()[codes]
        queries = check_qid(qid, n, group=group)
        queries = np.zeros(n, dtype=np.intp) if queries is None else queries
        weights = check_weights(sample_weight, n, relative=True)
        n_pairs = float(pair_weight(codes, weights, queries).sum())
        n_pairs = n_pairs if weights is not None else int(n_pairs)
        if n_pairs <= 0:
            raise ValueError(
                "qid must leave a query with two different labels in y (of positive weight), got "
                "none"
            )
        mass = np.bincount(queries, weights)
        w = np.ones(n) if weights is None else weights
        means = np.bincount(queries, w * grades) / np.where(mass > 0, mass, 1.0)
        balance = w * mass[queries] * (grades - means[queries])
        self._solve(items, balance, n_pairs, w / w.sum())
        return self

    def _grades(self) -> np.ndarray:
        """What a label counts: itself if it is a number whose order was not declared."""
        if self.labels is None:
            return label_values(self.classes_)
        return np.arange(len(self.classes_), dtype=float)

    def fit_pairs(
        self, X: ArrayLike, pairs: ArrayLike, weights: ArrayLike | None = None
    ) -> ValueRegularizedRanker:
        """Fit to given pairs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            The items' features. All `n` items enter the mean squared score.
        pairs : array-like of int, of shape (m, 2)
            Rows of `X`; the first of a pair is preferred to the second.
        weights : array-like of shape (m,), optional
            What a pair counts, never negative; 1 by default. The loss is divided by the number of
            pairs, whatever their weights.

        Returns
        -------
        ValueRegularizedRanker
            The fitted estimator.

        Examples
        --------
        >>> from rankbook.models import ValueRegularizedRanker
        >>> model = ValueRegularizedRanker(alpha=0.5)
        >>> float(model.fit_pairs([[0.0], [1.0]], [[1, 0]], [3.0]).coef_[0].round(3))
        5.999
        """
        items = self._check_features(X)
        n = items.shape[0]
        winners, losers = _check_pairs(pairs, n)
        if weights is not None:
            check_same_length(np.size(weights), winners.size, "weights", "pairs")
        w = check_weights(weights, winners.size, name="weights")
        gains, losses = (np.bincount(rows, w, minlength=n) for rows in (winners, losers))
        self._solve(items, (gains - losses).astype(float), winners.size, np.full(n, 1.0 / n))
        if hasattr(self, "classes_"):
            del self.classes_
        return self

    def _check_features(self, X: ArrayLike) -> Any:
        theta = check_scalar(self.theta, "theta", low=0.0, high=_LARGEST_THETA)
        alpha = check_scalar(self.alpha, "alpha", low=0.0)
        if theta == 0.0 and alpha == 0.0:
            raise ValueError(
                "theta and alpha must not both be 0: the linear loss alone is unbounded below"
            )
        return check_items(
            self, X, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_min_samples=2
        )

    def _solve(self, X: Any, balance: np.ndarray, n_pairs: float, weights: np.ndarray) -> None:
        theta, alpha = float(self.theta), float(self.alpha)
        u = balance / n_pairs
        self.coef_ = ridge_solve(X, u, 2.0 * theta * weights, alpha)
        self.n_pairs_ = n_pairs
        scores = np.asarray(X @ self.coef_).ravel()
        regularizers = theta * (weights @ scores**2) + 0.5 * alpha * (self.coef_ @ self.coef_)
        self.objective_ = float(regularizers - u @ scores)


def _check_pairs(pairs: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the preferred and of the other items."""
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"pairs must have shape (m, 2), preferred item first, got {array.shape}")
    if array.shape[0] == 0:
        raise ValueError("pairs must not be empty")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"pairs must hold integers, rows of X, got dtype {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= n:
        wrong = low if low < 0 else high
        raise ValueError(f"pairs must hold rows of X, 0 to {n - 1}, got {wrong}")
    same = np.flatnonzero(array[:, 0] == array[:, 1])
    if same.size:
        row = int(same[0])
        raise ValueError(
            f"pairs must join two different items, got {array[row].tolist()} at row {row}"
        )
    return array[:, 0], array[:, 1]
