"""Large-margin rank boundaries: a kernel machine on pairs, and thresholds between neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankbook._docs import documented
from rankbook._progress import Report, progress
from rankbook._validation import check_scalar
from rankbook.exceptions import ThresholdOrderWarning
from rankbook.models._hinge_path import minimize_hinge
from rankbook.models._kernel_machine import MACHINE_DOCS, KernelMachine
from rankbook.models._pair_interior import ItemPairs, exact_coefficients, interior_point
from rankbook.models._pair_objective import Fit, PairRisk
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design
from rankbook.solvers.kernels import KernelMatrix, require_memory
from rankbook.solvers.low_rank import LowRank, pivoted_cholesky

__all__ = ["RankBoundarySVM"]

_MAX_ITER = 500
# Shares of the trace that a factor of the kernel may leave, and of the tolerance that the machine
# in its coordinates is solved to, until the gap with the kernel itself is small enough.
_ATTEMPTS = ((1e-8, 0.5), (1e-10, 0.05), (1e-12, 0.005), (1e-14, 0.0005))
# With at most so many pairs for each column of the factor, all are listed.
_PAIRS = 5000
# Margins this close to one are one; pairs this close to the closest are as close.
_MARGIN = 1e-3


@documented(**MACHINE_DOCS)
class RankBoundarySVM(KernelMachine):
    r"""Large-margin rank boundaries: a score from pairs of items, labels from thresholds.

    It minimises, over the function :math:`f(x) = \langle w, \phi(x) \rangle`,

    .. math::

        \tfrac12 \|w\|^2 + C \sum_{0 < y_a - y_b \le s} w_a w_b
        \max\bigl(0, 1 - (f(x_a) - f(x_b))\bigr),

    classes numbered in their order, and then puts each threshold midway between the two closest
    items of neighbouring classes that are ranked with their full margin.

    Parameters
    ----------
    %(kernel)s
    C : float, default=1.0
        Weight of each pair's hinge, positive.
    max_rank_difference : int, default=None
        The largest difference s of classes in a pair; None takes all pairs.
    %(kernel_parameters)s
    tol : float, default=1e-6
        Relative duality gap to stop at.
    max_memory : float, default=2.0
        Gigabytes that a factor of the kernel, or the list of pairs, may take.
    %(last_parameters)s

    Attributes
    ----------
    thresholds_ : ndarray of shape (K - 1,)
        Thresholds.
    support_ : ndarray of shape (n_sv,)
        Indices of the items with a coefficient that is not zero.
    %(machine_attributes)s
    rank_ : int
        Rank of that factor.
    %(class_attributes)s

    Raises
    ------
    KernelMemoryError
        By `fit`, if a factor of the kernel takes more than `max_memory`.

    Warns
    -----
    ThresholdOrderWarning
        By `fit`, if thresholds come out of order; `predict` takes the first that the score does
        not exceed.
    ConvergenceWarning
        By `fit`, if the gap is not within `tol`.

    Notes
    -----
    The dual maximises the sum of the pairs' variables :math:`0 \le a \le C` less half the squared
    norm of w. It has no equality constraint: there is no threshold in the pairs' hinges. (The
    constraint :math:`\alpha^\top z = 0` of the paper's (68) and (75) belongs to machines with one.)
    No matrix of pairs is formed. Items get coordinates, the rows of a factor of the kernel, in
    which the machine is linear. Where the pairs are not too many for the rank and the memory, they
    are listed, an interior point solves the machine with systems of the factor's rank, and one more
    linear system makes the scores exact, so that a weight is the same as so many copies. Where they
    are too many, sums over pairs are computed by sorting, to a gap of `tol`.

    The paper's (73) minimises the *signed* difference of the lower and the upper item, and so finds
    the pair that is farthest apart; here it is the closest. If several pairs are equally close, as
    pairs on the margin are, the weighted mean of their middles is taken. If no pair of neighbouring
    classes has its full margin, the threshold is midway between the two classes' mean scores.

    References
    ----------
    R. Herbrich, T. Graepel and K. Obermayer, "Large margin rank boundaries for ordinal
    regression", Advances in Large Margin Classifiers, 2000: sections 4 and 5.

    Examples
    --------
    >>> from rankbook.models import RankBoundarySVM
    >>> X = [[0.0], [1.0], [3.0], [4.0], [6.0], [7.0]]
    >>> y = ["low", "low", "mid", "mid", "high", "high"]
    >>> machine = RankBoundarySVM("linear", C=10.0, labels=["low", "mid", "high"]).fit(X, y)
    >>> machine.coef_.round(3), machine.thresholds_.round(3)
    (array([0.5]), array([1. , 2.5]))
    >>> machine.predict([[1.5], [4.5]]).tolist()
    ['low', 'mid']
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        C: float = 1.0,
        max_rank_difference: int | None = None,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_memory: float = 2.0,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.max_rank_difference = max_rank_difference
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_memory = max_memory
        self.labels = labels
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> RankBoundarySVM:
        """Fit the function and the thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items; for a precomputed kernel, the symmetric (n, n) matrix. Sparse for the linear
            and the rbf kernel.
        y : array-like of shape (n,)
            Ordered labels.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        RankBoundarySVM
            The fitted estimator.
        """
        matrix, codes, weight = self._prepare(X, y, sample_weight, 2)
        n_classes = len(self.classes_)
        reach = n_classes - 1
        if self.max_rank_difference is not None:
            reach = check_scalar(
                self.max_rank_difference, "max_rank_difference", low=1, integer=True
            )
        pairs = np.triu(np.ones((n_classes, n_classes)), 1)
        pairs -= np.triu(pairs, min(reach, n_classes) + 1)
        sums = PairSums(
            codes,
            "hinge",
            pairs,
            sample_weight=weight,
            labels=np.arange(n_classes),
        )
        # Where kernels are close to overflow the best point that is finite counts.
        quiet = np.errstate(over="ignore", invalid="ignore")
        with progress(self.verbose, _MAX_ITER) as report, quiet:
            beta, f = self._minimize(matrix, sums, _Listing(codes, weight, reach), report)
        self._store(matrix, beta, codes)
        self.thresholds_ = _between_neighbours(f, codes, weight, n_classes) + self._offset
        self._warn_if_early(self.dual_gap_ <= self.tol, matrix)
        if (np.diff(self.thresholds_) < 0).any():
            warnings.warn(
                f"the thresholds are out of order: {self.thresholds_.round(6).tolist()}. Some "
                "labels are never predicted.",
                ThresholdOrderWarning,
                stacklevel=2,
            )
        return self

    def _minimize(
        self, matrix: KernelMatrix, sums: PairSums, listing: _Listing, report: Report | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and scores; sets the objective, its gap, steps and rank."""
        self.dual_gap_, low = np.inf, None
        best, highest = (np.zeros(matrix.n), np.zeros(matrix.n)), 0.0
        self.objective_ = self.C * sums.at(best[1]).value
        for factor_tol, share in _ATTEMPTS:
            factor, low = _coordinates(matrix, factor_tol, low, 1e9 * self.max_memory)
            pairs = listing.pairs(factor.shape[1], 1e9 * self.max_memory)
            if pairs is None:
                fit = self._by_sorting(factor, sums, share, report)
                beta = np.zeros(matrix.n) if fit.slopes is None else -self.C * fit.slopes
                total, n_iter = self.C * fit.dual_sum, fit.n_iter
            else:
                alpha, n_iter = interior_point(factor, pairs, self.C, report)
                beta, total = pairs.spread(alpha), float(alpha.sum())
            f = matrix.product(beta)
            quadratic = float(beta @ f)
            highest = max(highest, total - 0.5 * quadratic)
            found = [(beta, f, 0.5 * quadratic + self.C * sums.at(f).value)]
            if pairs is not None and (exact := exact_coefficients(matrix, pairs, self.C, f)):
                found.append(exact)
            beta, f, objective = min(found, key=lambda candidate: candidate[2])
            if objective <= self.objective_:
                best, self.objective_ = (beta, f), objective
            gap = max(self.objective_ - highest, 0.0)
            if self.objective_ > 0:
                gap /= self.objective_
            if gap < self.dual_gap_:
                self.dual_gap_ = gap
                self.n_iter_, self.rank_ = max(1, n_iter), factor.shape[1]
            if gap <= self.tol:
                break
        return best

    def _by_sorting(
        self, factor: np.ndarray, sums: PairSums, share: float, report: Report | None
    ) -> Fit:
        """The machine in the factor's coordinates, without a list of pairs."""
        alpha = 1.0 / (self.C * sums.different)
        design = Design.build(factor, alpha)
        ridge = (alpha**0.5 / design.scale / design.unit) ** 2
        return minimize_hinge(PairRisk(design, sums, ridge), share * self.tol, _MAX_ITER, report)


class _Listing:
    """The list of all pairs, made once, if it is not too long for the rank and the memory."""

    def __init__(self, codes: np.ndarray, weight: np.ndarray, reach: int) -> None:
        self.codes, self.weight, self.reach = codes, weight, reach
        counts = np.bincount(codes)
        below = np.cumsum(counts) - counts
        self.count = float(
            sum(n * (below[k] - below[max(0, k - reach)]) for k, n in enumerate(counts))
        )
        self._pairs: ItemPairs | None = None

    def pairs(self, rank: int, max_memory: float) -> ItemPairs | None:
        if self.count > _PAIRS * rank or ItemPairs.memory(self.count) > max_memory:
            return None
        if self._pairs is None:
            self._pairs = ItemPairs.build(self.codes, self.weight, self.reach)
        return self._pairs


def _coordinates(
    matrix: KernelMatrix, tol: float, start: LowRank | None, max_memory: float
) -> tuple[np.ndarray, LowRank | None]:
    """Rows whose inner products are the kernels, up to the tolerance."""
    items = matrix.items
    if matrix.kernel.name == "linear" and items.shape[1] <= matrix.n:
        return (items.toarray() if sp.issparse(items) else items), None
    max_rank = min(matrix.n, max(1, int(max_memory // (16 * matrix.n))))
    low = pivoted_cholesky(matrix, tol, max_rank, start)
    if not low.complete and max_rank < matrix.n:
        require_memory(matrix.n, max_memory)
    return low.factor, low


def _between_neighbours(
    f: np.ndarray, codes: np.ndarray, weight: np.ndarray, n_classes: int
) -> np.ndarray:
    """The mean middles of the closest pairs of neighbouring classes that have their margin."""
    thresholds = np.empty(n_classes - 1)
    for k in range(n_classes - 1):
        order = np.flatnonzero(codes == k)[np.argsort(f[codes == k], kind="stable")]
        lower, above = f[order], codes == k + 1
        upper, mass = f[above], weight[above]
        place = np.searchsorted(lower, upper - (1.0 - _MARGIN), side="right")
        if not place.any():
            means = [np.average(f[codes == c], weights=weight[codes == c]) for c in (k, k + 1)]
            thresholds[k] = 0.5 * sum(means)
            continue
        closest = (upper[place > 0] - lower[place[place > 0] - 1]).min()
        first = np.searchsorted(lower, upper - closest - _MARGIN, side="left")
        # Sums over the lower items first, ..., place - 1 of each upper one, from running sums.
        first = np.minimum(first, place)
        sums = [np.append(0.0, np.cumsum(weight[order] * v)) for v in (1.0, lower - lower[0])]
        partners, scores = (running[place] - running[first] for running in sums)
        middles = mass @ (scores + partners * (upper - lower[0])) / (mass @ partners)
        thresholds[k] = lower[0] + 0.5 * middles
    return thresholds
