"""The value-regularised linear ranker: a pairwise method with a closed form."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from rankbook._validation import (
    check_labels,
    check_qid,
    check_same_length,
    check_scalar,
    check_weights,
)
from rankbook.models._base import LinearRankerMixin

__all__ = ["ValueRegularizedRanker"]

# Up to this many rows of the normal equations they are formed and factorised; beyond it a dense
# matrix of that order would cost more memory than sparse data themselves, and conjugate gradients
# need products with X alone.
_DIRECT_LIMIT = 6000


class ValueRegularizedRanker(LinearRankerMixin, BaseEstimator):
    r"""Linear ranker with the value-regularised linear loss.

    With `i` preferred to `j` at weight :math:`a_{ij}`, it minimises

    .. math::
        \frac1N \sum_{(i, j)} a_{ij}\, b^\top (x_j - x_i)
        + \frac{\theta}{n} \sum_{i=1}^n (b^\top x_i)^2 + \frac{\alpha}{2} b^\top b,

    the first sum over the `N` preferred pairs and the second over the `n` items: the surrogate of
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

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients `b`.
    objective_ : float
        The minimum.
    n_pairs_ : int
        The number `N` of pairs.
    classes_ : ndarray
        The sorted labels, after `fit` only.
    n_features_in_ : int
        The number of features.

    Notes
    -----
    There is no intercept: adding a constant to all scores changes no pair. The mean squared score
    is not shift invariant though, so that centring the columns of `X` changes the model unless
    `theta` is 0.

    Time and memory are linear in the number of items, :math:`O(n p^2)` and :math:`O(n p)` for
    `p` features; with fewer items than features the system of order `n` is solved instead.
    Sparse `X` stays sparse. Systems of an order above 6000 go to conjugate gradients.

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

    def __init__(self, theta: float = 1e-4, alpha: float = 1.0) -> None:
        self.theta = theta
        self.alpha = alpha

    def fit(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None
    ) -> ValueRegularizedRanker:
        """Fit to all pairs of different labels within a query, without forming them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            The items' features.
        y : array-like of shape (n,)
            The labels. Numbers count as they are: a pair weighs the difference of its labels.
            Labels that are not numbers are replaced by 0, 1, ..., K-1 in sorted order.
        qid : array-like of shape (n,), optional
            The query of each item; one query by default.

        Returns
        -------
        ValueRegularizedRanker
            The fitted estimator.
        """
        X = self._check_features(X)
        grades, codes, classes = _grades(y, X.shape[0])
        queries = check_qid(qid, X.shape[0])
        if queries is None:
            queries = np.zeros(X.shape[0], dtype=np.intp)
        n_pairs = _count_pairs(codes, queries, classes.size)
        if n_pairs == 0:
            raise ValueError("qid must leave a query with two different labels in y, got none")
        sizes = np.bincount(queries)
        means = np.bincount(queries, weights=grades) / sizes
        self._solve(X, sizes[queries] * (grades - means[queries]), n_pairs)
        self.classes_ = classes
        return self

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
        X = self._check_features(X)
        winners, losers = _check_pairs(pairs, X.shape[0])
        if weights is not None:
            check_same_length(np.size(weights), winners.size, "weights", "pairs")
        w = check_weights(weights, winners.size, name="weights")
        gains, losses = (np.bincount(rows, w, minlength=X.shape[0]) for rows in (winners, losers))
        self._solve(X, (gains - losses).astype(float), winners.size)
        if hasattr(self, "classes_"):
            del self.classes_
        return self

    def _check_features(self, X):
        theta = check_scalar(self.theta, "theta", low=0.0)
        alpha = check_scalar(self.alpha, "alpha", low=0.0)
        if theta == 0.0 and alpha == 0.0:
            raise ValueError(
                "theta and alpha must not both be 0: the linear loss alone is unbounded below"
            )
        return validate_data(
            self, X, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_min_samples=2
        )

    def _solve(self, X, balance, n_pairs):
        n, theta, alpha = X.shape[0], float(self.theta), float(self.alpha)
        u = balance / n_pairs
        gradient = np.asarray(X.T @ u).ravel()
        self.coef_ = _ridge_solve(X, u, gradient, 2.0 * theta / n, alpha)
        self.n_pairs_ = int(n_pairs)
        scores = np.asarray(X @ self.coef_).ravel()
        regularizers = theta * (scores @ scores) / n + 0.5 * alpha * (self.coef_ @ self.coef_)
        self.objective_ = float(regularizers - self.coef_ @ gradient)


def _grades(y, n):
    """Return labels as numbers, as codes 0..K-1, and the sorted classes."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    check_same_length(y.size, n, "y", "X")
    codes, classes = check_labels(y)
    numeric = np.issubdtype(classes.dtype, np.number) or classes.dtype == bool
    grades = classes.astype(float) if numeric else np.arange(classes.size, dtype=float)
    return grades[codes], codes, classes


def _count_pairs(codes, queries, n_classes):
    """Count the pairs of different labels within a query."""
    sizes = np.bincount(queries).astype(np.int64)
    _, cells = np.unique(queries.astype(np.int64) * n_classes + codes, return_counts=True)
    cells = cells.astype(np.int64)
    return int((sizes @ sizes - cells @ cells) // 2)


def _check_pairs(pairs, n):
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


def _ridge_solve(X, u, gradient, scale, alpha):
    """Solve (scale X'X + alpha I) b = X'u, on the smaller side; least norm if singular."""
    n, p = X.shape
    if scale == 0.0:
        return gradient / alpha
    if min(n, p) > _DIRECT_LIMIT:
        return _conjugate_gradients(X, gradient, scale, alpha)
    if p <= n:
        return _solve_psd(_gram(X.T, X) * scale, gradient, alpha)
    # X'(scale XX' + alpha I)^-1 u is the same vector, and in the range of X' when alpha is 0.
    return np.asarray(X.T @ _solve_psd(_gram(X, X.T) * scale, u, alpha)).ravel()


def _gram(left, right):
    gram = left @ right
    return gram.toarray() if sp.issparse(gram) else np.asarray(gram)


def _solve_psd(matrix, rhs, alpha):
    """Solve (matrix + alpha I) v = rhs for a positive semidefinite matrix.

    Where alpha is lost to rounding, the null space is left out: X'u has no part in it, and X'
    sends it to zero.
    """
    order = matrix.shape[0]
    rounding = order * np.finfo(float).eps * np.trace(matrix)
    if alpha > rounding:
        matrix.flat[:: order + 1] += alpha
        return cho_solve(cho_factor(matrix, lower=True, overwrite_a=True), rhs)
    values, vectors = eigh(matrix)
    keep = values > rounding
    return vectors[:, keep] @ ((vectors[:, keep].T @ rhs) / (values[keep] + alpha))


def _conjugate_gradients(X, gradient, scale, alpha):
    p = X.shape[1]
    operator = LinearOperator(
        (p, p), matvec=lambda b: scale * (X.T @ (X @ b)) + alpha * b, dtype=np.float64
    )
    solution, info = cg(operator, gradient, rtol=1e-12, atol=0.0, maxiter=20 * p)
    if info:
        raise RuntimeError(
            f"conjugate gradients did not converge in {info} steps; scale the columns of X or "
            "raise alpha"
        )
    return solution
