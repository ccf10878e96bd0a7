"""Ranking through classification: a linear score that minimises a loss of single items."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags

from rankbook import losses
from rankbook._progress import newton_callback, progress
from rankbook._validation import check_scalar, check_weights
from rankbook.models._base import LinearRankerMixin, check_items
from rankbook.models._degenerate import least_norm_items, warn_if_separated
from rankbook.models._margin_risk import MarginRisk
from rankbook.solvers import NewtonResult, minimize
from rankbook.solvers.design import Design, thinned_size

__all__ = ["UnivariateRanker"]

# A fit whose scores stay below this in size has not run off to infinity: each Newton step moves
# the scores of separated items by about one, and many are needed before their loss is negligible.
_LARGE_MARGIN = 12.0
# A thinned sample with this many items a parameter gives a start near the optimum.
_START_ITEMS = 100
_START_SHARE = 16


class UnivariateRanker(LinearRankerMixin, BaseEstimator):
    r"""Linear bipartite ranker trained on single items, not on pairs.

    It minimises

    .. math:: \frac{\sum_i w_i\, \ell(y_i (x_i^\top b + b_0))}{\sum_i w_i}
       + \frac{\alpha}{2} b^\top b, \qquad y_i \in \{-1, 1\},

    over the coefficients b and the free intercept :math:`b_0`, exactly, by Newton's method. The
    larger of the two labels is the positive one.

    Parameters
    ----------
    loss : {"logistic", "exponential", "squared_hinge", "squared"} or Loss, default="logistic"
        A proper loss: its minimiser orders items by their probability.
    alpha : float, default=1e-3
        Weight of the penalty, at least 0.
    balanced : bool, default=False
        Multiply the weights of each class by 1 / (2 P(class)), so that both classes weigh the
        same: the balanced loss of Kotlowski et al. (2011), section 3.2.
    tol : float, default=1e-20
        Newton stops when half the squared Newton decrement, the estimated distance to the
        optimal objective, is at most `tol`.
    max_iter : int, default=100
        Largest number of Newton steps.
    labels : array-like, default=None
        Both classes, the negative first; needed where the labels are neither numbers nor an
        ordered Categorical.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients b.
    intercept_ : float
        Intercept; it moves all scores alike and so does not change the ranking.
    classes_ : ndarray of shape (2,)
        The labels, the negative first.
    objective_ : float
        The minimum.
    n_iter_ : int
        Newton steps on the full sample.
    n_features_in_ : int
        Columns of X.

    Warns
    -----
    SeparationWarning
        By `fit`, if ``alpha=0`` and a hyperplane separates the classes: a loss that does not reach
        zero has no minimiser. The fit is finite and within `tol` of the infimum.
    CollinearityWarning
        By `fit`, if ``alpha=0`` and some columns, or a column and the intercept, are linearly
        dependent: the coefficients of least norm are given. Up to 1500 columns are examined.
    ConvergenceWarning
        By `fit`, if `max_iter` steps or rounding end it before `tol` is reached.

    Notes
    -----
    With logistic loss this is penalised logistic regression, scikit-learn's with
    ``C = 1 / (n * alpha)``. With exponential loss the optimal intercept can be profiled out,

    .. math:: \min_{b_0} \sum_i w_i e^{-y_i (c_i + b_0)}
       = 2 \sqrt{\sum_{y_i = 1} w_i e^{-c_i} \sum_{y_i = -1} w_i e^{c_i}},

    and the product under the root is RankBoost's sum over pairs: without a penalty the two give
    the same scores. Class weights only multiply it, so balancing changes nothing when
    ``alpha == 0``; when ``alpha > 0``, with p the share of the positive class, balanced exponential
    loss at `alpha` is unbalanced exponential loss at :math:`2 \alpha \sqrt{p (1 - p)}`.

    Up to 1500 columns the Hessian is formed, O(n p^2) a step; beyond, Newton systems are solved by
    conjugate gradients. Sparse X stays sparse. Columns are shifted and scaled inside the solver;
    the coefficients are those of X as given.

    References
    ----------
    W. Kotlowski, K. Dembczynski and E. Huellermeier, "Bipartite ranking through minimization of
    univariate loss", ICML 2011: sections 4 and 5.

    Examples
    --------
    >>> from rankbook.models import UnivariateRanker
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = ["bad", "good", "bad", "good"]
    >>> ranker = UnivariateRanker(alpha=0.1, labels=["bad", "good"]).fit(X, y)
    >>> ranker.decision_function([[0.5], [2.5]]).round(3)
    array([-0.637,  0.637])
    >>> ranker.score(X, y)
    0.75
    """

    def __init__(
        self,
        loss: str = "logistic",
        alpha: float = 1e-3,
        balanced: bool = False,
        tol: float = 1e-20,
        max_iter: int = 100,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.balanced = balanced
        self.tol = tol
        self.max_iter = max_iter
        self.labels = labels
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> UnivariateRanker:
        """Fit coefficients and intercept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Labels of two classes; the larger is the positive one.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights.

        Returns
        -------
        UnivariateRanker
            The fitted estimator.
        """
        loss = self._check_parameters()
        items: Any = check_items(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2
        )
        sign, weights = self._check_target(self._encode_labels(y, items.shape[0]), sample_weight)
        design = Design.build(items, float(self.alpha))
        ridge = (float(self.alpha) ** 0.5 / design.scale / design.unit) ** 2
        risk = MarginRisk(design, sign, weights, loss, ridge)
        result = self._minimize(risk)
        self._warn(risk, result)
        coef, intercept = design.coef(result.x[:-1]), float(result.x[-1])
        if self.alpha == 0:
            coef, intercept = least_norm_items(coef, intercept, design, weights)
        self.coef_ = coef
        self.intercept_ = intercept - float(design.shift @ coef)
        self.objective_ = result.value
        self.n_iter_ = max(1, result.n_iter)
        return self

    def _warn(self, risk: MarginRisk, result: NewtonResult) -> None:
        """Say if the minimum was not reached, or if there is none."""
        if not result.converged:
            warnings.warn(
                f"UnivariateRanker stopped early: {result.message}. Its objective is estimated "
                f"{result.decrement:.1e} above the minimum.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.alpha > 0 or risk.loss.reaches_zero:
            return
        kept = risk.weights > 0
        margins = risk.margins(result.x)[kept]
        if not result.converged or np.abs(margins).max() > _LARGE_MARGIN:
            rows = sp.csr_array(risk.design.subset(kept).X)
            ones = np.ones((rows.shape[0], 1))
            warn_if_separated(sp.hstack([rows, ones]) * risk.sign[kept][:, None])

    def _check_parameters(self) -> losses.Loss:
        loss = losses.get(self.loss)
        if not (loss.is_proper and loss.is_smooth):
            raise ValueError(
                f"loss must be proper and smooth, got {self.loss!r}: its minimiser does not order "
                "items by their probability. Take 'logistic', 'exponential', 'squared_hinge' or "
                "'squared'"
            )
        check_scalar(self.alpha, "alpha", low=0.0)
        check_scalar(self.tol, "tol", low=0.0)
        check_scalar(self.max_iter, "max_iter", low=1, integer=True)
        if not isinstance(self.balanced, (bool, np.bool_)):
            raise TypeError(f"balanced must be True or False, got {self.balanced!r}")
        return loss

    def _check_target(
        self, codes: np.ndarray, sample_weight: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labels as -1 and 1, and weights that sum to one."""
        if self.classes_.size != 2:
            raise ValueError(
                "Only binary classification is supported. y must hold two classes, got "
                f"{self.classes_.size}: {self.classes_[:10].tolist()}"
            )
        weights = check_weights(sample_weight, codes.size)
        weights = np.ones(codes.size) if weights is None else weights / weights.max()
        mass = np.bincount(codes, weights=weights)
        if not (mass > 0).all():
            missing = self.classes_[mass == 0].tolist()
            raise ValueError(
                f"sample_weight must be positive for items of both classes, got only zeros for "
                f"class {missing[0]!r}"
            )
        weights = weights / (2.0 * mass[codes]) if self.balanced else weights / mass.sum()
        return np.where(codes == 1, 1.0, -1.0), weights

    def _minimize(self, risk: MarginRisk) -> NewtonResult:
        with progress(self.verbose, self.max_iter) as report:
            result = minimize(
                risk,
                self._start(risk),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=newton_callback(report),
            )
        if result.converged and not result.x[:-1].any():
            # In small units zero is nearly as good as the minimiser, but has no direction.
            step = minimize(risk, result.x, tol=0.0, max_iter=1)
            result = replace(result, x=step.x, value=step.value, n_iter=step.n_iter)
        return result

    def _start(self, risk: MarginRisk) -> np.ndarray:
        """The best intercept, or with many items the fit of a thinned sample."""
        start, n = risk.start(), risk.sign.size
        n_items = thinned_size(n, start.size, _START_ITEMS, _START_SHARE)
        if n < 8 * n_items or self.alpha == 0:
            return start
        thin = risk.thinned(n_items)
        if np.unique(thin.sign[thin.weights > 0]).size < 2:
            return start
        early = minimize(thin, self._start(thin), tol=1e-6, max_iter=20)
        if not early.converged:
            return start
        if thin.hessian is not None:
            risk.set_hessian(thin.hessian)
        return early.x

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
