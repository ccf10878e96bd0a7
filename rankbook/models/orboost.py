"""Ordinal regression boosting: the exponential loss at the two thresholds next to the label."""

from __future__ import annotations

import numpy as np

from rankbook.models._boosting import BoostedThresholds
from rankbook.models._boosting_risks import ExponentialThresholdRisk

__all__ = ["ORBoost"]


class ORBoost(BoostedThresholds):
    r"""Boosted ordinal regression with exponential loss and two neighbouring thresholds.

    It lowers the mean of

    .. math:: e^{-(f(x) - \theta_{y-1})} + e^{-(\theta_y - f(x))},
       \qquad \theta_0 = -\infty, \quad \theta_K = \infty,

    by adding weak learners to f; after each round the thresholds are set to the best in increasing
    order, by a closed form (Lin and Li, 2006; Uematsu and Lee, 2013, section 4.1).

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
    thresholds_ : ndarray of shape (K - 1,)
        The thresholds, in order; the last is 0.
    threshold_path_ : ndarray of shape (rounds + 1, K - 1)
        The thresholds before the first round and after each.
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
