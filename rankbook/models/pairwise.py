"""Linear ranking from pairs: RankNet, RankSVM and RankBoost's objective as one family."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from rankbook import losses
from rankbook._cost_scale import require_scale_condition, with_consistent_terms
from rankbook._validation import check_costs, check_labels, check_qid, check_scalar, check_weights
from rankbook.models._base import LinearRankerMixin
from rankbook.models._pair_objective import (
    Callback,
    Fit,
    PairObjective,
    different_labels,
    minimize_hinge,
    minimize_smooth,
)
from rankbook.solvers._pair_data import PairData

__all__ = ["PairwiseRanker"]

_SMOOTH_TOL, _HINGE_TOL = 1e-10, 1e-6


class PairwiseRanker(LinearRankerMixin, BaseEstimator):
    r"""Linear ranker that minimises a surrogate of the pairwise risk over all pairs.

    It minimises, over the coefficients b,

    .. math::

        \frac{1}{N} \sum_{j, i} m_{ji} \sum_{a : y_a = i} \; \sum_{b' : y_{b'} = j}
        w_a w_{b'}\, \ell\bigl((x_a - x_{b'})^\top b\bigr) + \frac{\alpha}{2} b^\top b,

    N the number (with weights, the total weight) of pairs with different labels. Without queries
    all pairs count; with `qid`, the pairs of all queries are pooled. No pair is ever formed: a pass
    costs O(n p) and a sort, whatever the number of pairs.

    ===============  ============================================================
    loss             for two classes this is the objective of
    ===============  ============================================================
    "logistic"       RankNet (Burges et al., 2005), with a linear network
    "hinge"          RankSVM (Herbrich et al., 2000; Joachims, 2002)
    "squared_hinge"  RankSVM with squared slacks (as in PRSVM, Chapelle and Keerthi, 2010)
    "exponential"    RankBoost (Freund et al., 2003), over all linear scores at once
    ===============  ============================================================

    Parameters
    ----------
    loss : {"logistic", "exponential", "squared_hinge", "hinge"}, default="logistic"
        Loss of a score difference; or the loss object.
    costs : {"linear", "constant", "dcg"}, None or array-like of shape (K, K), default="linear"
        ``costs[j, i]``, j < i, of ranking an item of class j above one of class i. None means
        constant.
    consistent : bool, default=True
        If true, the weights are :math:`m_{ji} = c_{1i} c_{jK} / c_{1K}` for all classes i and j,
        equal ones included: Theorem 4 of Uematsu and Lee (2013), under which a calibrated loss
        orders items as the best ranking does. If false, :math:`m_{ji} = c_{ji}` for j < i alone.
        For two classes there is no difference.
    alpha : float, default=1.0
        Weight of the ridge; positive for the hinge, at least 0 for the others.
    tol : float, optional
        Relative accuracy of the objective. For smooth losses the iteration stops when half the
        squared Newton decrement, an estimate of the distance to the minimum, is at most `tol`
        times the objective; for the hinge, when a duality gap is. By default 1e-10 for smooth
        losses and 1e-6 for the hinge.
    max_iter : int, default=200
        Largest number of Newton steps on the full sample.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients. There is no intercept: it would cancel in every pair.
    classes_ : ndarray of shape (K,)
        The labels, in order.
    pair_weights_ : ndarray of shape (K, K)
        The matrix m.
    objective_ : float
        Objective at `coef_`.
    dual_gap_ : float
        Upper bound on the relative distance of `objective_` to the minimum: from a dual point for
        the hinge, from strong convexity, :math:`\|\nabla\|^2 / (2 \alpha)`, for the others
        (infinite with ``alpha=0``).
    n_iter_ : int
        Newton steps on the full sample.
    stopped_ : str
        Why the iteration stopped.
    n_features_in_ : int
        Columns of X.

    Raises
    ------
    CostConditionError
        By `fit`, if `consistent` and the costs of three or more classes do not come from a scale.

    Notes
    -----
    Smooth losses are minimised by Newton's method with conjugate gradients. The hinge is
    minimised through a parabola of width mu at its kink, with mu shrunk until the duality gap of
    the hinge itself is within `tol`. Large samples start from the fit of a tenth of the items.

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
    >>> ranker = PairwiseRanker(loss="hinge", alpha=0.1).fit(X, y)
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
        alpha: float = 1.0,
        tol: float | None = None,
        max_iter: int = 200,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.costs = costs
        self.consistent = consistent
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
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
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        PairwiseRanker
            The fitted estimator.
        """
        loss, tol = self._check_parameters()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            y_numeric=False,
            ensure_min_samples=2,
        )
        X = sp.csr_array(X) if sp.issparse(X) else _centred(X)
        data = self._pair_data(y, qid, sample_weight)
        objective = PairObjective.build(X, data, loss, float(self.alpha))
        fit = self._minimize(objective, loss, tol)
        if not fit.converged:
            warnings.warn(
                f"PairwiseRanker stopped early: {fit.reason}. Its objective is at most "
                f"{fit.gap:.1e} above the minimum.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = fit.coef
        self.objective_ = fit.value
        self.dual_gap_ = fit.gap / fit.value if fit.value > 0 else 0.0
        self.n_iter_ = max(1, fit.n_iter)
        self.stopped_ = fit.reason
        return self

    def _check_parameters(self) -> tuple[losses.Loss, float]:
        loss = losses.get(self.loss)
        smooth = loss.name != "hinge"
        check_scalar(self.alpha, "alpha", low=0.0, strict_low=not smooth)
        check_scalar(self.max_iter, "max_iter", low=1, integer=True)
        if not isinstance(self.consistent, (bool, np.bool_)):
            raise TypeError(f"consistent must be True or False, got {self.consistent!r}")
        if self.tol is None:
            return loss, _SMOOTH_TOL if smooth else _HINGE_TOL
        return loss, check_scalar(self.tol, "tol", low=0.0, strict_low=True)

    def _pair_data(
        self, y: np.ndarray, qid: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> PairData:
        """Codes, pair weights and queries; at least one pair must have different labels."""
        codes, self.classes_ = check_labels(y)
        matrix = check_costs(self.costs, self.classes_.size)
        if self.consistent and self.classes_.size > 2:
            require_scale_condition(matrix, "Set consistent=False, or use costs from a scale.")
            matrix = with_consistent_terms(matrix)
        self.pair_weights_ = matrix
        weight = check_weights(sample_weight, codes.size)
        data = PairData.build(codes, matrix, weight, check_qid(qid, codes.size))
        if different_labels(data) <= 0:
            where = "of positive weight" + (" within a query" if qid is not None else "")
            raise ValueError(f"y must hold two items {where} with different labels, got none")
        return data

    def _minimize(self, objective: PairObjective, loss: losses.Loss, tol: float) -> Fit:
        method = minimize_hinge if loss.name == "hinge" else minimize_smooth
        if not self.verbose:
            return method(objective, tol, self.max_iter)
        from tqdm.auto import tqdm

        with tqdm(total=self.max_iter, desc="Newton", unit="step", leave=False) as bar:

            def show(n_iter: int, value: float, gap: float) -> None:
                bar.update(n_iter - bar.n)
                bar.set_postfix(objective=f"{value:.6g}", to_go=f"{gap:.1e}")

            callback: Callback = show
            return method(objective, tol, self.max_iter, callback)


def _centred(X: np.ndarray) -> np.ndarray:
    """X less its column means where those dwarf the spread: differences then keep their digits."""
    rows = X[:: max(1, len(X) // 10_000)]
    centre = rows.mean(axis=0)
    if (np.abs(centre) <= 1e3 * rows.std(axis=0) + np.finfo(float).tiny).all():
        return X
    return X - centre
