"""Boosting on pairs: RankBoost, for any number of classes and any pair loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from rankbook import losses
from rankbook._cost_scale import require_scale_condition, with_consistent_terms
from rankbook._docs import documented
from rankbook._validation import check_costs, check_qid
from rankbook.models._boosting import BOOSTING_ATTRIBUTES, BOOSTING_PARAMETERS, BoostedRanker
from rankbook.models._boosting_risks import PairRisk
from rankbook.solvers import PairSums

__all__ = ["PairwiseBoost"]


@documented(
    boosting_parameters=BOOSTING_PARAMETERS,
    boosting_attributes=BOOSTING_ATTRIBUTES,
)
class PairwiseBoost(BoostedRanker):
    r"""Boosted ranker that lowers a surrogate of the pairwise risk over all pairs.

    It lowers

    .. math:: \frac{1}{N} \sum_{j, i} m_{ji} \sum_{a : y_a = i} \; \sum_{b : y_b = j}
        w_a w_b\, \ell\bigl(f(x_a) - f(x_b)\bigr)

    by adding weak learners to f, N the number (with weights, the total weight) of pairs with
    different labels. No pair is formed: with exponential loss a round costs O(n K).

    With two classes, exponential loss and ``weak="stump"`` this is RankBoost (Freund et al., 2003).

    Parameters
    ----------
    costs : {"linear", "constant", "dcg"}, None or array-like of shape (K, K), default="linear"
        ``costs[j, i]``, j < i, of ranking an item of class j above one of class i. None means
        constant.
    consistent : bool, default=True
        If true, the weights are :math:`m_{ji} = c_{1i} c_{jK} / c_{1K}` for all classes i and j
        (Uematsu and Lee, 2013, Theorem 4); if false, :math:`m_{ji} = c_{ji}` for j < i alone.
    loss : str or Loss, default="exponential"
        Loss of a score difference: "exponential", "logistic", "squared_hinge", "hinge", "squared".
    %(boosting_parameters)s

    Attributes
    ----------
    pair_weights_ : ndarray of shape (K, K)
        The matrix m.
    %(boosting_attributes)s

    Raises
    ------
    CostConditionError
        By `fit`, if `consistent` and the costs of three or more classes do not come from a scale.

    References
    ----------
    Y. Freund, R. Iyer, R. Schapire and Y. Singer, "An efficient boosting algorithm for combining
    preferences", 2003.

    K. Uematsu and Y. Lee, "Statistical optimality in multipartite ranking and ordinal
    regression", 2013: sections 5.1 and 6.1.

    Examples
    --------
    >>> from rankbook.models import PairwiseBoost
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = PairwiseBoost(n_iter=10, weak="stump").fit(X, [1, 3, 2, 3])
    >>> model.score(X, [1, 3, 2, 3])
    1.0
    """

    def __init__(
        self,
        costs: Any = "linear",
        consistent: bool = True,
        loss: str | losses.Loss = "exponential",
        n_iter: int = 300,
        weak: str = "univariate",
        bandwidth: float = 0.5,
        selection: str = "gradient",
        validation_fraction: float = 0.0,
        max_centres: int | None = None,
        random_state: Any = None,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_iter=n_iter,
            weak=weak,
            bandwidth=bandwidth,
            selection=selection,
            validation_fraction=validation_fraction,
            max_centres=max_centres,
            random_state=random_state,
            labels=labels,
            verbose=verbose,
        )
        self.costs = costs
        self.consistent = consistent
        self.loss = loss

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        validation: tuple | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PairwiseBoost:
        """Add weak learners.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Ordered labels.
        validation : tuple (X, y) or (X, y, qid), default=None
            Other items: the number of rounds with the smallest risk there is kept.
        qid : array-like of shape (n,), default=None
            Query of every item; pairs are formed within queries.
        group : array-like of shape (n_queries,), default=None
            In place of `qid`, the sizes of consecutive queries.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        PairwiseBoost
            The fitted estimator.
        """
        query = other = None
        if qid is not None or group is not None:
            query = check_qid(qid, _num_samples(X), group=group)
        if isinstance(validation, (tuple, list)) and len(validation) == 3:
            other = check_qid(validation[2], _num_samples(validation[0]), "validation[2]")
        if validation is not None and query is not None and other is None:
            raise TypeError("validation must be a tuple (X, y, qid), since fit was given queries")
        return self._fit(X, y, validation, sample_weight, query, other)

    def _check_parameters(self) -> None:
        losses.get(self.loss)
        if not isinstance(self.consistent, (bool, np.bool_)):
            raise TypeError(f"consistent must be True or False, got {self.consistent!r}")
        super()._check_parameters()

    def _objective(
        self, codes: np.ndarray, weight: np.ndarray, query: np.ndarray | None
    ) -> PairRisk:
        matrix = check_costs(self.costs, len(self.classes_))
        if self.consistent and len(self.classes_) > 2:
            require_scale_condition(matrix, "Set consistent=False, or use costs from a scale.")
            matrix = with_consistent_terms(matrix)
        self.pair_weights_ = matrix
        sums = PairSums(
            codes,
            self.loss,
            matrix,
            sample_weight=weight,
            qid=query,
            labels=range(len(self.classes_)),
        )
        if not sums.different > 0:
            raise ValueError(
                "y must hold two items of positive weight with different labels (in one query, if "
                "there are queries), in the validation set too; got none"
            )
        return PairRisk(sums)
