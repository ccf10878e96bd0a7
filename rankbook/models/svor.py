"""Support vector ordinal regression: one direction, parallel hyperplanes, hinges on both sides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankbook._docs import documented
from rankbook._progress import progress
from rankbook._validation import check_choice
from rankbook.exceptions import ThresholdOrderWarning
from rankbook.models._hinge_thresholds import best_thresholds
from rankbook.models._kernel_machine import MACHINE_DOCS, KernelMachine
from rankbook.solvers.interior_point import BoxProgram, solve

__all__ = ["SVOR"]

_MAX_ITER = 100


@documented(**MACHINE_DOCS)
class SVOR(KernelMachine):
    r"""Support vector ordinal regression, with any kernel, to a certified duality gap.

    It minimises, over the function :math:`f(x) = \langle w, \phi(x) \rangle` and the thresholds,

    .. math::

        \tfrac12 \|w\|^2 + C \sum_i w_i \sum_{j \in J(y_i)}
        \max\bigl(0, 1 - s_{ij} (f(x_i) - \theta_j)\bigr),
        \qquad s_{ij} = \begin{cases} 1 & y_i > j \\ -1 & y_i \le j, \end{cases}

    where :math:`J(y)` holds all thresholds ("implicit"), or the one or two next to class y
    ("explicit", where :math:`\theta_1 \le \dots \le \theta_{K-1}` is a constraint, and "free",
    where it is not). The thresholds are not penalised.

    Parameters
    ----------
    constraints : {"implicit", "explicit", "free"}, default="implicit"
        Chu and Keerthi's two formulations, and that of Shashua and Levin. Implicit thresholds
        come out in order by themselves; free ones may not.
    %(kernel)s
    C : float, default=1.0
        Weight of the hinges, positive.
    %(kernel_parameters)s
    tol : float, default=1e-6
        Relative duality gap to stop at.
    max_memory : float, default=2.0
        Gigabytes that the kernel may take, as a factor of low rank or dense.
    %(last_parameters)s

    Attributes
    ----------
    thresholds_ : ndarray of shape (K - 1,)
        Thresholds. Where the minimisers are an interval, its middle.
    support_ : ndarray of shape (n_sv,)
        Indices of the support vectors, the items with a coefficient that is not zero.
    %(machine_attributes)s
    rank_ : int
        Rank of that factor; the number of items where the kernel was dense.
    %(class_attributes)s

    Raises
    ------
    KernelMemoryError
        By `fit`, if no factor of low rank is exact enough, and the dense kernel takes more than
        `max_memory`.

    Warns
    -----
    ThresholdOrderWarning
        By `fit` with free thresholds, if they are out of order. They are returned as they are;
        `predict` takes the first that the score does not exceed.
    ConvergenceWarning
        By `fit`, if the gap is not within `tol`.

    Notes
    -----
    The dual has a variable for each hinge, :math:`0 \le a_{ij} \le C w_i`, and for each threshold
    the constraint :math:`\sum_i s_{ij} a_{ij} = 0`, with an order constraint's multipliers in it
    for "explicit". A primal-dual interior point solves it in about 20 Newton steps, each
    :math:`O(n r^2)` with a kernel of numerical rank r, :math:`O(n^3)` with one of full rank; there
    is no ridge. The gap is computed with the kernel itself.

    References
    ----------
    W. Chu and S. S. Keerthi, "Support vector ordinal regression", Neural Computation 19, 2007.
    A. Shashua and A. Levin, "Ranking with large margin principle: two approaches", NIPS 2002.

    Examples
    --------
    >>> from rankbook.models import SVOR
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = ["low", "low", "mid", "mid", "high", "high"]
    >>> machine = SVOR(kernel="linear", C=10.0, labels=["low", "mid", "high"]).fit(X, y)
    >>> machine.coef_.round(3), machine.thresholds_.round(3)
    (array([2.]), array([3., 7.]))
    >>> machine.predict([[1.2], [3.4]]).tolist()
    ['low', 'mid']
    """

    def __init__(
        self,
        constraints: str = "implicit",
        kernel: Any = "rbf",
        C: float = 1.0,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_memory: float = 2.0,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.constraints = constraints
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_memory = max_memory
        self.labels = labels
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> SVOR:
        """Fit the function and the thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items; for a precomputed kernel, the symmetric (n, n) matrix. Sparse for the linear
            and the rbf kernel.
        y : array-like of shape (n,)
            Ordered labels.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights: an item's hinges weigh C times its own.

        Returns
        -------
        SVOR
            The fitted estimator.
        """
        check_choice(self.constraints, ("implicit", "explicit", "free"), "constraints")
        matrix, codes, weight = self._prepare(X, y, sample_weight, 1)
        program = svor_program(codes, len(self.classes_), self.C * weight, self.constraints)
        with progress(self.verbose, _MAX_ITER, "Interior point") as report:
            found = solve(
                program,
                matrix,
                tol=self.tol,
                max_iter=_MAX_ITER,
                max_memory=1e9 * self.max_memory,
                report=report,
            )
        self._store(matrix, found.beta, codes)
        self.thresholds_ = found.theta + self._offset
        self.objective_ = found.primal
        self.dual_gap_ = found.gap
        self.n_iter_ = max(1, found.n_iter)
        self.rank_ = found.rank
        self._warn_if_early(found.converged, matrix)
        if (np.diff(self.thresholds_) < 0).any():
            warnings.warn(
                f"the free thresholds are out of order: {self.thresholds_.round(6).tolist()}. "
                "Some labels are never predicted; constraints='explicit' keeps the order.",
                ThresholdOrderWarning,
                stacklevel=2,
            )
        return self


def svor_program(
    codes: np.ndarray, n_classes: int, upper: np.ndarray, constraints: str
) -> BoxProgram:
    """Return the dual of the machine, but for the kernel.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Classes 0..K-1.
    n_classes : int
        K.
    upper : ndarray of shape (n,)
        Weight of each item's hinges.
    constraints : {"implicit", "explicit", "free"}
        Which thresholds an item has a hinge with, and whether their order is a constraint.

    Returns
    -------
    BoxProgram
        A variable for each hinge, then one for each order constraint.
    """
    count = n_classes - 1
    item, threshold = np.divmod(np.arange(len(codes) * count), count)
    if constraints != "implicit":
        near = (threshold == codes[item]) | (threshold == codes[item] - 1)
        item, threshold = item[near], threshold[near]
    sign = np.where(codes[item] > threshold, 1.0, -1.0)
    place = np.arange(len(item))
    link = sp.csr_array((sign, (item, place)), shape=(len(codes), len(item)))
    equality = sp.csr_array((sign, (threshold, place)), shape=(count, len(item)))
    bounds, linear = upper[item], np.ones(len(item))
    ordered = constraints == "explicit"
    if ordered and count > 1:
        orders = sp.diags_array([np.ones(count), -np.ones(count - 1)], offsets=[0, -1])
        equality = sp.csr_array(sp.hstack([equality, sp.csr_array(orders)[:, : count - 1]]))
        link = sp.csr_array(sp.hstack([link, sp.csr_array((len(codes), count - 1))]))
        bounds = np.append(bounds, np.full(count - 1, np.inf))
        linear = np.append(linear, np.zeros(count - 1))

    def thresholds(f: np.ndarray) -> np.ndarray:
        hinges = (f[item] - sign, sign, upper[item], threshold, count)
        return best_thresholds(*hinges, ordered=ordered)

    return BoxProgram(link, equality, bounds, linear, thresholds)
