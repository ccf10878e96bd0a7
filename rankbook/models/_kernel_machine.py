"""What the kernel machines share: the kernel, support vectors, scores and labels from them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankbook._validation import check_scalar, check_weights
from rankbook.models._base import RankerMixin, check_items
from rankbook.solvers.kernels import Kernel, KernelMatrix

__all__ = ["KernelMachine"]

# Kernels of new items with support vectors are computed for so many entries at once.
_BLOCK = 2**22
# Coefficients of up to C cancel in scores of about one: beyond this, too many digits are lost.
_LARGE = 1e9
# A hinge's weight may be so many powers of ten from one, either way.
_ORDERS = 100


# What the docstrings of machines share.
MACHINE_DOCS = {
    "kernel": r"""
    kernel : {"rbf", "linear", "poly", "precomputed"} or callable, default="rbf"
        The kernel k; a callable takes two arrays of items and returns their matrix.
    """,
    "last_parameters": r"""
    labels : array-like, default=None
        All classes, lowest first; needed where the labels are neither numbers nor an ordered
        Categorical.
    verbose : int, default=0
        1 shows a progress bar.
    """,
    "machine_attributes": r"""
    dual_coef_ : ndarray of shape (n_sv,)
        Their coefficients: ``decision_function(x)`` is the sum of these times kernels.
    n_support_ : ndarray of shape (K,)
        Number of support vectors of each class.
    coef_ : ndarray of shape (p,)
        For the linear kernel alone, w.
    objective_ : float
        The objective at the returned model, with the kernel itself.
    dual_gap_ : float
        How far it is above the minimum at most, relative to `objective_`.
    n_iter_ : int
        Newton steps, with the last factor of the kernel.
    """,
    "class_attributes": r"""
    classes_ : ndarray of shape (K,)
        The labels, lowest first.
    n_features_in_ : int
        Columns of X.
    """,
    "kernel_parameters": r"""
    gamma : "scale" or float, default="scale"
        Of the rbf kernel :math:`\exp(-\gamma \|x - z\|^2)`, that is :math:`1 / (2 \sigma^2)`,
        and of the polynomial :math:`(\gamma x^\top z + c)^d`. "scale" is 1 / (p times the variance
        of the entries of X, weighted as the items are).
    degree : int, default=3
        The polynomial's d.
    coef0 : float, default=0.0
        The polynomial's c, at least 0.
    """,
}


class KernelMachine(RankerMixin, BaseEstimator):
    """A ranker with scores ``sum of dual_coef_ k(x, support vector)`` and thresholds.

    Parameters and attributes are those of its subclasses.
    """

    kernel: Any
    C: float
    gamma: Any
    degree: int
    coef0: float
    tol: float
    max_memory: float

    def _check_parameters(self) -> None:
        check_scalar(self.C, "C", low=0.0, strict_low=True)
        check_scalar(self.tol, "tol", low=0.0, strict_low=True)
        check_scalar(self.max_memory, "max_memory", low=0.0, strict_low=True)

    def _has(self, *names: str) -> bool:
        """Whether the kernel is one of those named."""
        return isinstance(self.kernel, str) and self.kernel in names

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, degree: int
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """The kernel matrix, codes and weights of the items that have a weight.

        A hinge weighs C times a product of so many weights as `degree` says.
        """
        self._check_parameters()
        items: Any = check_items(
            self, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        if self._has("precomputed") and items.shape[0] != items.shape[1]:
            raise ValueError(f"a precomputed kernel X must be square, got shape {items.shape}")
        codes = self._encode_labels(y, items.shape[0])
        weight = check_weights(sample_weight, codes.size)
        weight = np.ones(codes.size) if weight is None else weight
        heaviest = np.log10(float(self.C)) + degree * np.log10(weight.max())
        if abs(heaviest) > _ORDERS:
            raise ValueError(
                f"C times sample_weight must be between 1e-{_ORDERS} and 1e{_ORDERS} for the "
                f"heaviest hinge, got about 1e{heaviest:.0f}"
            )
        mass = np.bincount(codes, weight, len(self.classes_))
        if not (mass > 0).all():
            missing = self.classes_[mass == 0].tolist()
            raise ValueError(
                f"y must hold items of positive weight of every class, got none of {missing}"
            )
        self._rows = np.flatnonzero(weight > 0)
        if len(self._rows) < codes.size:
            items = items[self._rows]
            items = items[:, self._rows] if self._has("precomputed") else items
        weight = weight[self._rows]
        self._kernel = Kernel.build(
            self.kernel, items, self.gamma, self.degree, self.coef0, weight / weight.max()
        )
        matrix = KernelMatrix(self._kernel, items)
        if self._has("linear"):
            matrix.diagonal()  # refuses items whose kernels overflow
        return matrix, codes[self._rows], weight

    def _store(self, matrix: KernelMatrix, beta: np.ndarray, codes: np.ndarray) -> None:
        """Keep the items whose coefficient is not zero."""
        kept = np.flatnonzero(beta)
        self.support_ = self._rows[kept]
        self.dual_coef_ = beta[kept]
        self.n_support_ = np.bincount(codes[kept], minlength=len(self.classes_))
        self._support_items = None if self._has("precomputed") else matrix.items[kept]
        # The shift that the linear kernel works with moves scores and thresholds alike.
        self._offset = 0.0
        if self._kernel.name == "linear":
            self.coef_ = np.asarray(matrix.items.T @ beta).ravel()
            if self._kernel.shift is not None:
                self._offset = float(self._kernel.shift @ self.coef_)
        elif hasattr(self, "coef_"):
            del self.coef_
        del self._rows

    def _warn_if_early(self, converged: bool, matrix: KernelMatrix) -> None:
        """Say if the gap is not within the tolerance, and what would help."""
        if converged:
            return
        size = self.C * float(matrix.diagonal().max())
        cause = "rounding, or the number of steps, keeps it from narrowing further"
        if size > _LARGE:
            cause = (
                f"C times the largest kernel is {size:.1e}, and scores lose their digits. "
                "Scale the columns of X, or lower C"
            )
        warnings.warn(
            f"{type(self).__name__} stopped at a relative duality gap of {self.dual_gap_:.1e}, "
            f"above tol={self.tol}: {cause}.",
            ConvergenceWarning,
            stacklevel=3,
        )

    dual_gap_: float
    thresholds_: np.ndarray

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores, from the support vectors alone.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items; for a precomputed kernel, their kernels with the items of `fit`, (n, n_fit).

        Returns
        -------
        ndarray of shape (n,)
            The scores, higher for items ranked higher.
        """
        check_is_fitted(self, "dual_coef_")
        items: Any = check_items(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        if self._has("precomputed"):
            return items[:, self.support_] @ self.dual_coef_
        items = self._kernel.prepare(items)
        if self._kernel.name == "linear":
            return np.asarray(items @ self.coef_).ravel() + self._offset
        scores = np.zeros(items.shape[0])
        support: Any = self._support_items
        if sp.issparse(items) != sp.issparse(support):
            items, support = sp.csr_array(items), sp.csr_array(support)
        width = max(1, _BLOCK // max(1, len(self.dual_coef_)))
        for first in range(0, len(scores), width):
            block = self._kernel(items[first : first + width], support)
            scores[first : first + width] = block @ self.dual_coef_
        return scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the labels: that of the first threshold that the score does not exceed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items; for a precomputed kernel, their kernels with the items of `fit`, (n, n_fit).

        Returns
        -------
        ndarray of shape (n,)
            The labels; the highest where the score exceeds all thresholds.
        """
        scores = self.decision_function(X)
        # Thresholds out of order: one below an earlier one is never the first.
        first = np.maximum.accumulate(self.thresholds_)
        return self.classes_[np.searchsorted(first, scores, side="left")]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._has("linear", "rbf")
        tags.input_tags.pairwise = self._has("precomputed")
        return tags
