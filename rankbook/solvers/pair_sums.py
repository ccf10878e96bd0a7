r"""Sums of a loss over all pairs of items, without forming the pairs.

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
hinge, squared hinge      sort, then running sums                  O(n log n)
logistic                  interpolation to cells, FFT convolution  O(n)
========================  =======================================  =================

Memory is linear in n throughout. A matrix :math:`m` whose rows take R directions multiplies the
work by R: once for Theorem 4's weights, at most K - 1 times for any costs.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from rankbook import losses
from rankbook._validation import (
    check_costs,
    check_labels,
    check_qid,
    check_same_length,
    check_scalar,
    check_scores,
    check_square,
    check_weights,
)
from rankbook.solvers._exponential_pairs import ExponentialPairs
from rankbook.solvers._pair_data import PairData
from rankbook.solvers._smooth_pairs import LogisticPairs
from rankbook.solvers._sorted_pairs import SortedPairs

__all__ = ["PairPoint", "PairSums"]


class PairPoint(Protocol):
    """A pair sum at given scores; derivatives are computed when asked for."""

    value: float

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
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or Loss, default="logistic"
        The loss of a score difference.
    costs : None, str or array-like of shape (K, K), default=None
        Weight [j, i] of a pair of an item of class i that should be above one of class j. None
        means constant, "linear" and "dcg" are known by name; an array may be non-zero anywhere.
    sample_weight : array-like of shape (n,), optional
        A pair weighs the product of its items' weights.
    qid : array-like of shape (n,), optional
        Pairs are formed within queries only.
    labels : array-like, optional
        The classes, where `y` may lack some.
    smoothing : float, default=0.0
        For the hinge alone: width of the parabola that rounds off its kink.

    Attributes
    ----------
    total : float
        Sum of the weights of all pairs: S for a loss that is one everywhere.

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
    ) -> None:
        codes, self.classes = check_labels(y, labels=labels)
        matrix = _pair_weights(costs, len(self.classes))
        weight = check_weights(sample_weight, len(codes))
        self.data = PairData.build(codes, matrix, weight, check_qid(qid, len(codes)))
        self.loss = losses.get(loss)
        smoothing = check_scalar(smoothing, "smoothing", low=0.0, high=1.0)
        if smoothing and self.loss.name != "hinge":
            raise ValueError(f"smoothing is for the hinge loss, got {self.loss.name}")
        self.total = self.data.total
        self.pairs = engine(self.loss, self.data, smoothing)

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
        scores = check_scores(scores)
        check_same_length(len(scores), self.data.n, "scores", "y")
        return _Checked(self.pairs.at(scores), self.data.n)


class _Checked:
    """A point whose vectors are checked; everything else is the engine's."""

    def __init__(self, point: PairPoint, n: int) -> None:
        self._point = point
        self._n = n

    def __getattr__(self, name: str) -> Any:
        return getattr(self._point, name)

    def hessian_product(self, v: Any) -> np.ndarray:
        """Product of the Hessian with a vector."""
        v = check_scores(v, "v")
        check_same_length(len(v), self._n, "v", "y")
        return self._point.hessian_product(v)


def engine(loss: losses.Loss, data: PairData, smoothing: float = 0.0) -> Any:
    """Return the method for a loss: an object with `at(scores)`, on data that are checked."""
    if not len(data.upper):
        raise ValueError("costs must weight at least one pair of classes, got zeros only")
    if loss.name == "exponential":
        return ExponentialPairs(data)
    if loss.name == "logistic":
        return LogisticPairs(data)
    if loss.name in ("hinge", "squared_hinge"):
        return SortedPairs(data, 1 if loss.name == "hinge" else 2, smoothing)
    raise ValueError(
        f"loss must be one of 'exponential', 'logistic', 'hinge', 'squared_hinge', got {loss!r}"
    )
