"""Ordinal regression boosting: the exponential loss at the two thresholds next to the label."""

from __future__ import annotations

import numpy as np

from rankbook._docs import documented
from rankbook.models._boosting import (
    BOOSTING_ATTRIBUTES,
    BOOSTING_PARAMETERS,
    THRESHOLD_ATTRIBUTES,
    BoostedThresholds,
)
from rankbook.models._boosting_risks import ExponentialThresholdRisk

__all__ = ["ORBoost"]


@documented(
    boosting_parameters=BOOSTING_PARAMETERS,
    threshold_attributes=THRESHOLD_ATTRIBUTES,
    boosting_attributes=BOOSTING_ATTRIBUTES,
)
class ORBoost(BoostedThresholds):
    r"""Boosted ordinal regression with exponential loss and two neighbouring thresholds.

    It lowers the mean of

    .. math:: e^{-(f(x) - \theta_{y-1})} + e^{-(\theta_y - f(x))},
       \qquad \theta_0 = -\infty, \quad \theta_K = \infty,

    by adding weak learners to f; after each round the thresholds are set to the best in increasing
    order, by a closed form (Lin and Li, 2006; Uematsu and Lee, 2013, section 4.1).

    Parameters
    ----------
    %(boosting_parameters)s

    Attributes
    ----------
    %(threshold_attributes)s
    %(boosting_attributes)s

    Notes
    -----
    At the population level f orders items as the pairwise risk does with the costs
    :math:`c_{ji} = e^{\theta_{i-1} - \theta_j} - e^{\theta_{j-1} - \theta_i}`, which
    `rankbook.costs.from_orboost_thresholds` gives. A constant is added to all scores after each
    round, so that fixing the last threshold at 0 restricts nothing.

    References
    ----------
    H.-T. Lin and L. Li, "Large-margin thresholded ensembles for ordinal regression", 2006.

    K. Uematsu and Y. Lee, "Statistical optimality in multipartite ranking and ordinal
    regression", 2013: sections 4.1 and 6.1.

    Examples
    --------
    >>> from rankbook.models import ORBoost
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> model = ORBoost(n_iter=20).fit(X, [1, 1, 2, 1, 3, 3])
    >>> model.thresholds_[-1]
    np.float64(0.0)
    >>> model.predict(X)
    array([1, 1, 2, 1, 3, 3])
    """

    def _objective(
        self, codes: np.ndarray, weight: np.ndarray, query: np.ndarray | None
    ) -> ExponentialThresholdRisk:
        return ExponentialThresholdRisk(codes, len(self.classes_), weight)
