"""Proportional odds with a boosted score in place of a linear one."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook import losses
from rankbook._docs import documented
from rankbook._validation import check_choice
from rankbook.models._boosting import (
    BOOSTING_ATTRIBUTES,
    BOOSTING_PARAMETERS,
    THRESHOLD_ATTRIBUTES,
    BoostedThresholds,
)
from rankbook.models._boosting_risks import LikelihoodRisk, ThresholdRisk

__all__ = ["ProportionalOddsBoost"]


@documented(
    boosting_parameters=BOOSTING_PARAMETERS,
    threshold_attributes=THRESHOLD_ATTRIBUTES,
    boosting_attributes=BOOSTING_ATTRIBUTES,
)
class ProportionalOddsBoost(BoostedThresholds):
    r"""Boosted proportional odds: the score f of a cumulative logit model is a sum of learners.

    With ``objective="likelihood"`` it lowers minus the mean log-likelihood of
    :math:`P(Y \le k \mid x) = F(\theta_k - f(x))`, F the logistic function. With
    ``objective="loss"`` it lowers the mean of

    .. math:: \log(1 + e^{-(f(x) - \theta_{y-1})}) + \log(1 + e^{-(\theta_y - f(x))}).

    The two differ by :math:`-\log(1 - e^{-(\theta_y - \theta_{y-1})})`, a term without f: they give
    different thresholds, and the likelihood keeps them apart (Uematsu and Lee, 2013, section 4.2).

    Parameters
    ----------
    objective : {"likelihood", "loss"}, default="likelihood"
        What is lowered.
    %(boosting_parameters)s

    Attributes
    ----------
    %(threshold_attributes)s
    %(boosting_attributes)s

    References
    ----------
    K. Uematsu and Y. Lee, "Statistical optimality in multipartite ranking and ordinal
    regression", 2013: sections 4.2 and 6.1.

    Examples
    --------
    >>> from rankbook.models import ProportionalOddsBoost
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> model = ProportionalOddsBoost(n_iter=20).fit(X, [1, 1, 2, 1, 3, 2])
    >>> model.thresholds_[-1]
    np.float64(0.0)
    >>> bool(model.train_risk_[-1] < model.train_risk_[0])
    True
    """

    def __init__(
        self,
        objective: str = "likelihood",
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
        self.objective = objective

    def _check_parameters(self) -> None:
        check_choice(self.objective, ("likelihood", "loss"), "objective")
        super()._check_parameters()

    def _objective(
        self, codes: np.ndarray, weight: np.ndarray, query: np.ndarray | None
    ) -> ThresholdRisk:
        if self.objective == "likelihood":
            return LikelihoodRisk(codes, len(self.classes_), weight)
        return ThresholdRisk(codes, len(self.classes_), weight, losses.Logistic())
