"""Least squares on the labels as numbers, boosted."""

from __future__ import annotations

import numpy as np

from rankbook._docs import documented
from rankbook.models._base import label_values
from rankbook.models._boosting import BOOSTING_ATTRIBUTES, BOOSTING_PARAMETERS, BoostedRanker
from rankbook.models._boosting_risks import SquaredRisk

__all__ = ["RegressionBoost"]


@documented(
    boosting_parameters=BOOSTING_PARAMETERS,
    boosting_attributes=BOOSTING_ATTRIBUTES,
)
class RegressionBoost(BoostedRanker):
    r"""Boosted regression of the labels, which ranks by an estimate of :math:`E(Y \mid x)`.

    It lowers the mean of :math:`(y - f(x))^2` by adding weak learners to f. Labels that are numbers
    count as they are, unless another order than theirs was declared; others as 0, 1, ..., K-1
    (Uematsu and Lee, 2013, section 6.2, REG).

    Parameters
    ----------
    %(boosting_parameters)s

    Attributes
    ----------
    %(boosting_attributes)s

    References
    ----------
    K. Uematsu and Y. Lee, "Statistical optimality in multipartite ranking and ordinal
    regression", 2013: section 6.2.

    Examples
    --------
    >>> from rankbook.models import RegressionBoost
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = RegressionBoost(n_iter=100).fit(X, [1, 2, 2, 5])
    >>> model.predict(X).round(2)
    array([1., 2., 2., 5.])
    """

    def _objective(
        self, codes: np.ndarray, weight: np.ndarray, query: np.ndarray | None
    ) -> SquaredRisk:
        values = label_values(self.classes_)
        return SquaredRisk(values[codes], weight)
