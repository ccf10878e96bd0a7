"""Least squares on the labels as numbers, boosted."""

from __future__ import annotations

import numpy as np

from rankbook.models._boosting import BoostedRanker
from rankbook.models._boosting_risks import SquaredRisk

__all__ = ["RegressionBoost"]


class RegressionBoost(BoostedRanker):
    r"""Boosted regression of the labels, which ranks by an estimate of :math:`E(Y \mid x)`.

    It lowers the mean of :math:`(y - f(x))^2` by adding weak learners to f. Labels that are numbers
    count as they are, others as 0, 1, ..., K-1 (Uematsu and Lee, 2013, section 6.2, REG).

    Parameters
    ----------
    n_iter : int, default=300
        Number of rounds.
    weak : {"univariate", "joint", "stump"}, default="univariate"
        Gaussian bumps of one feature each, Gaussian bumps of all features together, or steps of
        one feature; bumps are centred at observed values.
    bandwidth : float, default=0.5
        The variance :math:`\sigma^2` of the bumps.
    selection : {"gradient", "greedy"}, default="gradient"
        Add the learner of greatest inner product with the gradient, or the one whose best step
        lowers the risk most (of the 64 of steepest slope per unit norm, if there are more).
    validation_fraction : float, default=0.0
        Share of the items that is held out to choose the number of rounds; of each class, or of
        the queries.
    max_centres : int, optional
        Most centres of bumps, of a feature (256 by default) or in all (2000 by default).
    random_state : None, int or numpy.random.Generator, default=None
        Draws the held-out items, and the centres of joint bumps if there are too many.
    labels : array-like, optional
        All classes, lowest first, where their order is not that of numbers.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in order.
    n_iter_ : int
        Number of rounds that are kept.
    train_risk_ : ndarray
        The risk after each round.
    validation_risk_ : ndarray
        The risk of the validation set after each round, if there was one.
    n_features_in_ : int
        Columns of X.

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
        classes = self.classes_
        numeric = np.issubdtype(classes.dtype, np.number) or classes.dtype == bool
        values = classes.astype(float) if numeric else np.arange(len(classes), dtype=float)
        return SquaredRisk(values[codes], weight)
