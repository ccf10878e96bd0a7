r"""Sums of a loss over all pairs of items, without forming the pairs where they are many.

For scores :math:`f`, classes :math:`y`, item weights :math:`w` and class-pair weights :math:`m`,

.. math::

    S(f) = \sum_{i, j} m_{ji} \sum_{a : y_a = i} \; \sum_{b : y_b = j} w_a w_b\, \ell(f_a - f_b),

both items of one query. With costs :math:`m_{ji} = c_{ji}`, :math:`j < i`, this is the surrogate of
the pairwise risk (Uematsu and Lee, 2013, section 5.1); the terms that their Theorem 4 adds put
weight on the diagonal and below it, which is allowed here.

========================  =======================================  =================
loss                      method                                   cost
========================  =======================================  =================
exponential               the sum over pairs factors               O(n)
squared                   masses and means of the classes          O(n)
hinge, squared hinge      sort, then running sums                  O(n log n)
logistic                  interpolation to cells, FFT convolution  O(n)
any, in small queries     the pairs themselves                     O(pairs)
========================  =======================================  =================

Queries with so few pairs that keeping them is less work than the sort or the cells are summed pair
by pair, each query by the cheaper way; for the plain hinge, whose minimum is found exactly where
pairs are kept, up to a hundred an item are. A loss that none of the methods fits, such as one of
your own, is summed pair by pair throughout. Memory is otherwise linear in n. A matrix :math:`m`
whose rows take R directions multiplies the work by R: once for Theorem 4's weights, at most K - 1
times for any costs.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from rankbook import losses
from rankbook._validation import (
    check_choice,
    check_costs,
    check_labels,
    check_qid,
    check_same_length,
    check_scalar,
    check_square,
    check_vector,
    check_weights,
)
from rankbook.solvers._engines import choose, keeps_all
from rankbook.solvers._explicit_pairs import ExplicitPairs
from rankbook.solvers._exponential_pairs import ExponentialPoint
from rankbook.solvers._pair_data import PairData
from rankbook.solvers.equal_items import equal_items

__all__ = ["PairPoint", "PairSums"]


class PairPoint(Protocol):
    """A pair sum at given scores; derivatives are computed when asked for.

    For losses made of hinges, `value_of(loss)` is the sum of another such loss at the same scores,
    and `dual_sum` is minus the sum of the derivative over pairs: with a smoothed hinge, the linear
    part of a feasible dual value of the hinge itself. Where all pairs are kept, `laplacian` is the
    Hessian as a sparse matrix, and `curved` holds its edges: upper items, lower items, curvatures.
    """

    value: float
    dual_sum: float
    laplacian: sp.csr_array
    curved: tuple[np.ndarray, np.ndarray, np.ndarray]

    def value_of(self, loss: losses.Loss) -> float:
        """Sum of another loss made of hinges at the same scores."""

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score, shape (n,)."""

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector, shape (n,)."""


def _pair_weights(costs: Any, n_classes: int) -> np.ndarray:
    """Any non-negative K x K matrix; names and None as for costs."""
    if costs is None or isinstance(costs, str):
        return check_costs(costs, n_classes)
    matrix = check_square(costs, "costs")
    if len(matrix) != n_classes:
        raise ValueError(
            f"costs must have shape ({n_classes}, {n_classes}) for {n_classes} classes, "
            f"got {matrix.shape}"
        )
    return matrix


class PairSums:
    r"""A loss summed over all weighted pairs of items, as a function of the scores.

    Parameters
    ----------
    y : array-like of shape (n,)
        Ordered labels.
    loss : str or Loss, default="logistic"
        The loss of a score difference; a name is one that `rankbook.losses.get` knows.
    costs : None, str or array-like of shape (K, K), default=None
        Weight [j, i] of a pair of an item of class i that should be above one of class j. None
        means constant, "linear" and "dcg" are known by name; an array may be non-zero anywhere.
    sample_weight : array-like of shape (n,), optional
        A pair weighs the product of its items' weights.
    qid : array-like of shape (n,), optional
        Pairs are formed within queries only.
    labels : array-like, optional
        All classes, lowest first, where `y` may lack some or their order is not that of numbers.
    smoothing : float, default=0.0
        For the hinge alone: width of the parabola that rounds off its kink.
    method : {"auto", "explicit", "implicit"}, default="auto"
        Whether pairs are kept. "auto" decides for each query by counted work.

    Attributes
    ----------
    loss : Loss
        The loss.
    classes : ndarray of shape (K,)
        The labels, lowest first.
    pair_weights : ndarray of shape (K, K)
        The weight of a pair of classes, as used.
    n, n_queries : int
        Numbers of items and of queries.
    n_kept : int or None
        Number of pairs, if all are kept; None if some are summed without being formed.
    pairs : tuple of ndarrays or None
        The kept pairs: upper items, lower items, and weights (one number, if all are equal).
    total : float
        Sum of the weights of all pairs: S for a loss that is one everywhere.
    different : float
        Sum of the products of item weights over the pairs with different labels.

    Notes
    -----
    An item is paired with itself where its class has weight on the diagonal, as it is when the
    sample is read as a population: this adds a constant.

    Accuracy. Exponential sums work with logarithms of the factors, so that scores of 1e3 do no
    harm; `log_value` at a point stays finite where the value overflows. Hinge sums accumulate terms
    of one sign. The logistic sum is within a relative 1e-10 for any spread of scores (see
    `rankbook.solvers._smooth_pairs` for the bound and its one exception, sums that vanish), its
    derivatives within 1e-10 of their largest entries or of the item's pair weight.

    Examples
    --------
    Two pairs, of differences 2 and 1:

    >>> sums = PairSums([0, 0, 1], loss="squared_hinge")
    >>> point = sums.at([0.5, 1.5, 2.0])
    >>> point.value
    0.25
    >>> point.gradient().tolist()
    [0.0, 1.0, -1.0]
    >>> point.hessian_product([0.0, 0.0, 1.0]).tolist()
    [0.0, -2.0, 2.0]
    """

    def __init__(
        self,
        y: Any,
        loss: str | losses.Loss = "logistic",
        costs: Any = None,
        *,
        sample_weight: Any = None,
        qid: Any = None,
        labels: Any = None,
        smoothing: float = 0.0,
        method: str = "auto",
    ) -> None:
        codes, self.classes = check_labels(y, labels=labels)
        matrix = _pair_weights(costs, len(self.classes))
        weight = check_weights(sample_weight, len(codes))
        self.loss = losses.get(loss)
        self._method = check_choice(method, ("auto", "explicit", "implicit"), "method")
        smoothing = check_scalar(smoothing, "smoothing", low=0.0, high=1.0)
        if smoothing:
            if self.loss.is_smooth:
                raise ValueError(f"smoothing is for a loss with a kink, got {self.loss.name}")
            self.loss = self.loss.smoothed(smoothing)
        self._set_data(PairData.build(codes, matrix, weight, check_qid(qid, len(codes))))
        if not matrix.any():
            raise ValueError("costs must weight at least one pair of classes, got zeros only")
        if not np.isfinite(self.total + self.different):
            raise ValueError("sample_weight and costs must give pairs a finite total weight")

    def _set_data(self, data: PairData) -> None:
        self._data = data
        self._engine: Any = None
        self.pair_weights = data.matrix
        self.n, self.n_queries = data.n, data.n_queries
        self.total, self.different = data.total, data.different

    @property
    def engine(self) -> Any:
        """The method that sums; chosen, and its data prepared, when first asked for."""
        if self._engine is None:
            self._engine = choose(self._data, self.loss, self._method)
        return self._engine

    @property
    def n_kept(self) -> int | None:
        """Number of pairs, if all are kept; they need not have been listed yet."""
        if self._engine is not None:
            return None if self.pairs is None else len(self.pairs[0])
        kept = keeps_all(self._data, self.loss, self._method)
        return int(self._data.pair_counts.sum()) if kept else None

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Upper items, lower items and weights of the pairs (one, if all are equal), if kept."""
        engine = self.engine
        if not isinstance(engine, ExplicitPairs):
            return None
        return engine.upper, engine.lower, engine.weight

    def subset(self, rows: Any) -> PairSums:
        """Return the sum over the pairs of some items.

        Parameters
        ----------
        rows : array-like of int
            The items.

        Returns
        -------
        PairSums
            A function of their scores.
        """
        other = copy(self)
        other._set_data(self._data.subset(np.asarray(rows)))
        return other

    def thinned(self, share: float) -> tuple[np.ndarray, PairSums]:
        """Return a random part of the items, or of the queries where there are some.

        Of one list's items the rare classes' are taken first, and the others weigh more, as many
        times as there are more of them: so the part's mean is close to the whole's.

        Parameters
        ----------
        share : float
            The part, between 0 and 1.

        Returns
        -------
        rows : ndarray of int
            The items; the same at each call.
        part : PairSums
            A function of their scores.
        """
        other = copy(self)
        rows, data = self._data.thinned(share)
        other._set_data(data)
        return rows, other

    def merged(self, X: Any) -> tuple[np.ndarray, PairSums] | None:
        """Return the same sum with items that are equal in X, class and query as one.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n, p)
            Items.

        Returns
        -------
        rows : ndarray of int
            An item of each group, whose weight is the group's.
        part : PairSums
            A function of their scores. None in place of both where most items differ.
        """
        found = equal_items(X, self._data.query * len(self.classes) + self._data.codes)
        if found is None:
            return None
        other = copy(self)
        other._set_data(self._data.merged(*found))
        return found[0], other

    def scatter(self, X: Any) -> np.ndarray:
        """Return the weighted sum over pairs of d d', with d the difference of their rows of X.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (p, p)
            Half the Hessian of the squared loss in the coefficients of X, from the rows' sums in
            each class and query: digits are lost where these are far from zero.
        """
        return self._data.scatter(X)

    def unkept(self) -> PairSums:
        """Return the same sum without a list of pairs, however few they are."""
        other = copy(self)
        other._method, other._engine = "implicit", None
        return other

    def with_loss(self, loss: losses.Loss) -> PairSums:
        """Return the sum of another loss over the same pairs.

        Parameters
        ----------
        loss : Loss
            The loss.

        Returns
        -------
        PairSums
            It shares what was prepared for this one where both losses are made of hinges.
        """
        other = copy(self)
        other.loss = loss
        shared = bool(loss.hinge_parts and self.loss.hinge_parts)
        other._engine = self.engine.with_loss(loss) if shared else None
        return other

    def margin_rows(self, X: Any) -> sp.csr_array:
        """Return rows whose products with a direction are margins of the pairs' scores X b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        csr_array of shape (m, p + t)
            For `rankbook.solvers.separation`: a threshold for each query and rank-one term of the
            pair weights stands between the upper and the lower items, so that m is linear in n.
        """
        return self._data.margin_rows(X)

    def at(self, scores: Any) -> PairPoint:
        """Evaluate at the scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            One score an item.

        Returns
        -------
        PairPoint
            With `value`, `gradient()` and `hessian_product(v)`.
        """
        scores = check_vector(scores, "scores")
        check_same_length(len(scores), self.n, "scores", "y")
        return _Checked(self.engine.at(scores), self.n)

    def slope_and_curvature(self, scores: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
        """Return the first two derivatives of the sum at the scores along a direction.

        Parameters
        ----------
        scores, direction : ndarray of shape (n,)
            Where, and which way; they are not checked, since line searches ask often.

        Returns
        -------
        tuple of float
            Slope and curvature.
        """
        point = self.engine.at(scores)
        if isinstance(point, ExponentialPoint):
            return point.along(direction)
        return (
            float(point.gradient() @ direction),
            float(direction @ point.hessian_product(direction)),
        )


class _Checked:
    """A point whose vectors are checked; everything else is the engine's."""

    def __init__(self, point: Any, n: int) -> None:
        self._point = point
        self._n = n

    def __getattr__(self, name: str) -> Any:
        return getattr(self._point, name)

    def hessian_product(self, v: Any) -> np.ndarray:
        """Product of the Hessian with a vector."""
        v = check_vector(v, "v")
        check_same_length(len(v), self._n, "v", "y")
        return self._point.hessian_product(v)
