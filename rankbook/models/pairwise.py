"""Linear ranking from pairs: RankNet, RankSVM and RankBoost's objective as one family."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from rankbook import losses
from rankbook._cost_scale import require_scale_condition, with_consistent_terms
from rankbook._progress import progress
from rankbook._validation import check_costs, check_qid, check_scalar, check_weights
from rankbook.models._base import LinearRankerMixin, check_items
from rankbook.models._degenerate import least_norm_pairs, warn_if_separated
from rankbook.models._hinge_path import minimize_hinge
from rankbook.models._pair_fit import from_zero, minimize_smooth
from rankbook.models._pair_objective import Fit, PairRisk
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design

__all__ = ["PairwiseRanker"]

_SMOOTH_TOL, _HINGE_TOL = 1e-10, 1e-6
# Without a ridge, scores that stay this close have not run off to infinity.
_LARGE_DIFFERENCE = 8.0


class PairwiseRanker(LinearRankerMixin, BaseEstimator):
    r"""Linear ranker that minimises a surrogate of the pairwise risk over all pairs.

    It minimises, over the coefficients b,

    .. math::

        \frac{1}{N} \sum_{j, i} m_{ji} \sum_{a : y_a = i} \; \sum_{b' : y_{b'} = j}
        w_a w_{b'}\, \ell\bigl((x_a - x_{b'})^\top b\bigr) + \frac{\alpha}{2} b^\top b,

    N the number (with weights, the total weight) of pairs with different labels. Without queries
    all pairs count; with `qid`, the pairs of all queries are pooled. Pairs are kept only in queries
    where they are few; otherwise a pass costs O(n p) and a sort, whatever the number of pairs.

    ===============  ============================================================
    loss             for two classes this is the objective of
    ===============  ============================================================
    "logistic"       RankNet (Burges et al., 2005), with a linear network
    "hinge"          RankSVM (Herbrich et al., 2000; Joachims, 2002)
    "squared_hinge"  RankSVM with squared slacks (as in PRSVM, Chapelle and Keerthi, 2010)
    "exponential"    RankBoost (Freund et al., 2003), over all linear scores at once
    "squared"        pairwise least squares (as in RankRLS, Pahikkala et al., 2009)
    ===============  ============================================================

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        Loss of a score difference: a name from the table, or one of your own.
    costs : {"linear", "constant", "dcg"}, None or array-like of shape (K, K), default="linear"
        ``costs[j, i]``, j < i, of ranking an item of class j above one of class i. None means
        constant.
    consistent : bool, default=True
        If true, the weights are :math:`m_{ji} = c_{1i} c_{jK} / c_{1K}` for all classes i and j,
        equal ones included: Theorem 4 of Uematsu and Lee (2013), under which a calibrated loss
        orders items as the best ranking does. If false, :math:`m_{ji} = c_{ji}` for j < i alone.
        For two classes there is no difference.
    alpha : float, default=1e-3
        Weight of the ridge; positive for the hinge, at least 0 for the others.
    tol : float, optional
        Relative accuracy of the objective. For smooth losses the iteration stops when half the
        squared Newton decrement, an estimate of the distance to the minimum, is at most `tol` times
        the objective (without a ridge: at the start); for the hinge, when a duality gap is. By
        default 1e-10 for smooth losses and 1e-6 for the hinge, whose gap is then brought to
        rounding where pairs are kept.
    max_iter : int, default=200
        Largest number of steps on the full sample: Newton's, those of BFGS, and rounds over pairs
        near the hinge's kink.
    labels : array-like, default=None
        All classes, lowest first; needed where the labels are neither numbers nor an ordered
        Categorical.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients. There is no intercept: it would cancel in every pair.
    classes_ : ndarray of shape (K,)
        The labels, lowest first.
    pair_weights_ : ndarray of shape (K, K)
        The matrix m.
    objective_ : float
        Objective at `coef_`.
    dual_gap_ : float
        Upper bound on the relative distance of `objective_` to the minimum: from a dual point for
        the hinge, from strong convexity, :math:`\|\nabla\|^2 / (2 \alpha)`, for the others
        (infinite with ``alpha=0``).
    n_iter_ : int
        Steps on the full sample, at least 1.
    stopped_ : str
        Why the iteration stopped.
    n_features_in_ : int
        Columns of X.

    Raises
    ------
    CostConditionError
        By `fit`, if `consistent` and the costs of three or more classes do not come from a scale.

    Warns
    -----
    SeparationWarning
        By `fit`, if ``alpha=0`` and some direction never lowers a pair's margin and raises some: a
        loss that does not reach zero has no minimiser then. The coefficients are finite, and the
        objective is within the tolerance of its infimum.
    CollinearityWarning
        By `fit`, if ``alpha=0`` and some combination of columns does not differ within any pair:
        the coefficients of least norm are given. Up to 1500 columns are examined.
    ConvergenceWarning
        By `fit`, if `max_iter` steps or rounding end it before `tol` is reached.

    Notes
    -----
    Columns are shifted and scaled inside the solver; the coefficients are those of X as
    given. Smooth losses are minimised by Newton's method with conjugate gradients. Where pairs are
    kept and it is no more work, the Hessian is a matrix, which is formed for a part of the sample
    and corrected by BFGS. The hinge of many items and up to 300 columns is minimised by BFGS too,
    as a sum over so many pairs is all but smooth; where its steps come to gain little, and with
    more columns, it is rounded off by a parabola of width mu at the kink, with mu shrunk until the
    duality gap of the hinge itself is within `tol`. Where pairs are kept, augmented Lagrangians
    take that gap to rounding, or to a `tol` that is given; with many pairs an item, steps along the
    sorted sum come first. Large samples start from the fit of a tenth of the items, and where a
    thousand random ones hold at most 500 different ones, equal items are fitted as one.

    With ``consistent=True`` the value includes pairs of an item with itself, which add a constant.

    References
    ----------
    K. Uematsu and Y. Lee, "Statistical optimality in multipartite ranking and ordinal
    regression", 2013: section 5.1.

    Examples
    --------
    >>> from rankbook.models import PairwiseRanker
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]
    >>> y = ["bad", "fair", "fair", "good", "good"]
    >>> labels = ["bad", "fair", "good"]
    >>> ranker = PairwiseRanker(loss="hinge", alpha=0.1, labels=labels).fit(X, y)
    >>> ranker.coef_.round(2) + 0.0
    array([1., 0.])
    >>> ranker.score(X, y)
    1.0
    """

    def __init__(
        self,
        loss: str = "logistic",
        costs: Any = "linear",
        consistent: bool = True,
        alpha: float = 1e-3,
        tol: float | None = None,
        max_iter: int = 200,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.costs = costs
        self.consistent = consistent
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.labels = labels
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PairwiseRanker:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Ordered labels.
        qid : array-like of shape (n,), default=None
            Query of every item; pairs are formed within queries.
        group : array-like of shape (n_queries,), default=None
            In place of `qid`, the sizes of consecutive queries.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        PairwiseRanker
            The fitted estimator.
        """
        loss, tol = self._check_parameters()
        items: Any = check_items(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2
        )
        codes = self._encode_labels(y, items.shape[0])
        sums, unit = self._pair_sums(codes, loss, qid, group, sample_weight)
        # Costs of any unit: the objective is divided by it, and so is the ridge.
        alpha = min(float(self.alpha) / unit, 1e300)
        design = Design.build(items, alpha)
        risk = PairRisk(design, sums, (alpha**0.5 / design.scale / design.unit) ** 2).merged()
        fit = self._minimize(risk, tol)
        self._warn(risk, fit, unit)
        coef = design.coef(fit.coef)
        self.coef_ = coef if self.alpha else least_norm_pairs(coef, design, sums)
        self.objective_ = unit * fit.value
        self.dual_gap_ = fit.gap / fit.value if fit.value > 0 else 0.0
        self.n_iter_ = max(1, fit.n_iter)
        self.stopped_ = fit.reason
        return self

    def _warn(self, risk: PairRisk, fit: Fit, unit: float) -> None:
        """Say if the minimum was not reached, or if there is none."""
        if not fit.converged:
            warnings.warn(
                f"PairwiseRanker stopped early: {fit.reason}. Its objective is at most "
                f"{unit * fit.gap:.1e} above the minimum.",
                ConvergenceWarning,
                stacklevel=3,
            )
        loss = risk.sums.loss
        if self.alpha == 0 and loss.is_non_increasing and not loss.reaches_zero:
            scores = risk.design.scores(fit.coef)
            if not fit.converged or np.ptp(scores) > _LARGE_DIFFERENCE:
                warn_if_separated(risk.sums.margin_rows(risk.design.X))

    def _check_parameters(self) -> tuple[losses.Loss, float]:
        loss = losses.get(self.loss)
        check_scalar(self.alpha, "alpha", low=0.0, strict_low=not loss.is_smooth)
        check_scalar(self.max_iter, "max_iter", low=1, integer=True)
        if not isinstance(self.consistent, (bool, np.bool_)):
            raise TypeError(f"consistent must be True or False, got {self.consistent!r}")
        if self.tol is None:
            return loss, _SMOOTH_TOL if loss.is_smooth else _HINGE_TOL
        return loss, check_scalar(self.tol, "tol", low=0.0, strict_low=True)

    def _pair_sums(
        self, codes: np.ndarray, loss: losses.Loss, qid: Any, group: Any, sample_weight: Any
    ) -> tuple[PairSums, float]:
        """The sum over pairs at costs of at most one, and the largest cost."""
        n_classes = len(self.classes_)
        matrix = check_costs(self.costs, n_classes)
        unit = float(matrix.max())
        if unit > 0:
            matrix = matrix / unit
        if self.consistent and n_classes > 2:
            require_scale_condition(matrix, "Set consistent=False, or use costs from a scale.")
            matrix = with_consistent_terms(matrix)
        self.pair_weights_ = unit * matrix
        weight = check_weights(sample_weight, codes.size)
        if weight is not None:
            weight = weight / weight.max()
        query = qid if group is None else check_qid(qid, codes.size, group=group)
        labels = np.arange(n_classes)
        sums = PairSums(codes, loss, matrix, sample_weight=weight, qid=query, labels=labels)
        if sums.different <= 0:
            where = "of positive weight" + (" within a query" if query is not None else "")
            raise ValueError(f"y must hold two items {where} with different labels, got none")
        return sums, unit

    def _minimize(self, risk: PairRisk, tol: float) -> Fit:
        with progress(self.verbose, self.max_iter) as report:
            if risk.sums.loss.is_smooth:
                fit = minimize_smooth(risk, tol, self.max_iter, report)
            else:
                fit = minimize_hinge(risk, tol, self.max_iter, report, aim=self.tol)
            return from_zero(risk, fit)
