r"""The risks that boosted rankers lower: of pairs, of thresholds, of squares.

All are means, over pairs with different labels or over items, and all know how to set anew what
weak learners do not hold. Thresholds are kept in order; the last one is fixed at zero, which loses
nothing, since a constant is added to all scores in its place.
"""

from __future__ import annotations

import numpy as np

from rankbook import losses
from rankbook.solvers import PairSums, minimize
from rankbook.solvers.boosting import Derivatives, line_search

__all__ = ["ExponentialThresholdRisk", "LikelihoodRisk", "PairRisk", "SquaredRisk", "ThresholdRisk"]

# A best threshold is looked for this far from where it was; scores of one class beyond the other's
# have theirs at infinity.
_FAR = 50.0


class PairRisk:
    r"""The surrogate pairwise risk, :math:`S(f) / N`, through `PairSums`."""

    def __init__(self, sums: PairSums) -> None:
        self.sums, self.n = sums, sums.n
        self.thresholds = np.empty(0)

    def risk(self, scores: np.ndarray) -> float:
        """The mean over the pairs with different labels."""
        return self.sums.at(scores).value / self.sums.different

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Its derivative with respect to each score."""
        return self.sums.at(scores).gradient() / self.sums.different

    def along(self, scores: np.ndarray, direction: np.ndarray) -> Derivatives:
        """Slope and curvature along a direction."""
        total, sums = self.sums.different, self.sums

        def derivatives(t: float) -> tuple[float, float]:
            slope, curvature = sums.slope_and_curvature(scores + t * direction, direction)
            return slope / total, curvature / total

        return derivatives

    def refit(self, scores: np.ndarray) -> float:
        """Nothing to set: a constant changes no pair."""
        return 0.0


class SquaredRisk:
    r"""The mean of :math:`w (v - f)^2` over items with values v."""

    def __init__(self, values: np.ndarray, weight: np.ndarray) -> None:
        self.values, self.weight, self.n = values, weight / weight.sum(), len(values)
        self.thresholds = np.empty(0)

    def risk(self, scores: np.ndarray) -> float:
        """The mean squared error."""
        return float(self.weight @ (self.values - scores) ** 2)

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Its derivative with respect to each score."""
        return 2.0 * self.weight * (scores - self.values)

    def along(self, scores: np.ndarray, direction: np.ndarray) -> Derivatives:
        """Slope and curvature along a direction."""
        slope = float(self.gradient(scores) @ direction)
        curvature = 2.0 * float(self.weight @ direction**2)
        return lambda t: (slope + t * curvature, curvature)

    def refit(self, scores: np.ndarray) -> float:
        """The mean of the residuals."""
        return float(self.weight @ (self.values - scores))


class ThresholdRisk:
    r"""The mean of :math:`\ell(f - \theta_{y-1}) + \ell(\theta_y - f)`: two neighbours' losses.

    Given the scores, each threshold has a convex problem of its own; where their solutions are out
    of order, neighbours are pooled, which is exact for convex functions of single thresholds
    under an order (the argument for isotonic regression carries over).
    """

    def __init__(
        self, codes: np.ndarray, n_classes: int, weight: np.ndarray, loss: losses.Loss
    ) -> None:
        self.codes, self.loss, self.n = codes, loss, len(codes)
        self.weight = weight / weight.sum()
        # Items of a class lie together: thresholds concern two neighbouring classes each.
        self._order = np.argsort(codes, kind="stable")
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_classes))])
        self.mass = np.bincount(codes, self.weight, n_classes)
        self.thresholds = np.zeros(n_classes - 1)

    def _margins(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        return scores - theta[self.codes], theta[self.codes + 1] - scores

    def risk(self, scores: np.ndarray) -> float:
        """The mean of both losses."""
        below, above = self._margins(scores)
        return float(self.weight @ (self.loss(below) + self.loss(above)))

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Its derivative with respect to each score."""
        below, above = self._margins(scores)
        return self.weight * (self.loss.derivative(below) - self.loss.derivative(above))

    def along(self, scores: np.ndarray, direction: np.ndarray) -> Derivatives:
        """Slope and curvature along a direction."""
        below, above = self._margins(scores)
        weighted = self.weight * direction
        squared = weighted * direction

        def derivatives(t: float) -> tuple[float, float]:
            _, down, bend_down = self.loss.terms(below + t * direction)
            _, up, bend_up = self.loss.terms(above - t * direction)
            return weighted @ (down - up), squared @ (bend_down + bend_up)

        return derivatives

    def refit(self, scores: np.ndarray) -> float:
        """Set the thresholds; the last becomes zero."""
        self.thresholds = self._best(scores)
        last = self.thresholds[-1]
        self.thresholds = self.thresholds - last
        return -float(last)

    def _best(self, scores: np.ndarray) -> np.ndarray:
        f, w = scores[self._order], self.weight[self._order]
        alone = self._separate(f, w)
        blocks = [(k, k + 1, theta) for k, theta in enumerate(alone)]
        pooled: list[tuple[int, int, float]] = []
        for first, end, theta in blocks:
            while pooled and pooled[-1][2] > theta:
                first = pooled.pop()[0]
                theta = self._pooled(f, w, first, end, theta)
            pooled.append((first, end, theta))
        return np.concatenate([np.full(end - first, theta) for first, end, theta in pooled])

    def _separate(self, f: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The best value of each threshold if no order were asked for."""
        pairs = enumerate(self.thresholds)
        return np.array([self._pooled(f, w, k, k + 1, theta) for k, theta in pairs])

    def _pooled(self, f: np.ndarray, w: np.ndarray, first: int, end: int, start: float) -> float:
        """The best common value of some thresholds, from a first guess."""
        above = slice(self._ends[first], self._ends[end])
        below = slice(self._ends[first + 1], self._ends[end + 1])

        def derivatives(theta: float) -> tuple[float, float]:
            _, up, bend_up = self.loss.terms(theta - f[above])
            _, down, bend_down = self.loss.terms(f[below] - theta)
            slope = w[above] @ up - w[below] @ down
            return slope, w[above] @ bend_up + w[below] @ bend_down

        return _root(derivatives, start)


def _root(derivatives: Derivatives, start: float) -> float:
    """Where a convex function of one number is least, from a first guess."""
    slope, _ = derivatives(start)
    if slope == 0.0:
        return start
    sign = -np.sign(slope)

    def forward(t: float) -> tuple[float, float]:
        slope, curvature = derivatives(start + sign * t)
        return sign * slope, curvature

    return float(start + sign * line_search(forward, _FAR))


class ExponentialThresholdRisk(ThresholdRisk):
    r"""ORBoost's risk; a threshold is half the log of the ratio of two sums.

    With :math:`A_k = \sum_{y = k} w e^{f}` and :math:`B_k = \sum_{y = k} w e^{-f}` the terms with
    :math:`\theta_k` are :math:`A_k e^{-\theta_k} + B_{k+1} e^{\theta_k}`.
    """

    def __init__(self, codes: np.ndarray, n_classes: int, weight: np.ndarray) -> None:
        super().__init__(codes, n_classes, weight, losses.Exponential())

    def _separate(self, f: np.ndarray, w: np.ndarray) -> np.ndarray:
        self._log_sums = [_log_sums(sign * f, w, self._ends) for sign in (1.0, -1.0)]
        rising, falling = self._log_sums
        return 0.5 * (rising[:-1] - falling[1:])

    def _pooled(self, f: np.ndarray, w: np.ndarray, first: int, end: int, start: float) -> float:
        rising, falling = self._log_sums
        up = np.logaddexp.reduce(rising[first:end])
        return float(0.5 * (up - np.logaddexp.reduce(falling[first + 1 : end + 1])))


def _log_sums(values: np.ndarray, weight: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Logarithm of the weighted sum of exponentials over each stretch."""
    largest = np.maximum.reduceat(values, ends[:-1])
    lengths = np.diff(ends)
    scaled = weight * np.exp(values - np.repeat(largest, lengths))
    return largest + np.log(np.add.reduceat(scaled, ends[:-1]))


class LikelihoodRisk(ThresholdRisk):
    r"""Minus the mean log-likelihood of proportional odds.

    It is the logistic `ThresholdRisk` and a term of the thresholds alone,

    .. math:: -\log\bigl(F(\theta_y - f) - F(\theta_{y-1} - f)\bigr) = \ell(f - \theta_{y-1})
       + \ell(\theta_y - f) - \log\bigl(1 - e^{-(\theta_y - \theta_{y-1})}\bigr),

    so that the two have one gradient in f and different thresholds. The last term keeps the
    thresholds strictly in order.
    """

    def __init__(self, codes: np.ndarray, n_classes: int, weight: np.ndarray) -> None:
        super().__init__(codes, n_classes, weight, losses.Logistic())

    def risk(self, scores: np.ndarray) -> float:
        """Minus the mean log-likelihood."""
        return super().risk(scores) + _gap_terms(self.thresholds, self.mass)[0]

    def _best(self, scores: np.ndarray) -> np.ndarray:
        f, w = scores[self._order], self.weight[self._order]
        problem = _LikelihoodThresholds(f, w, self._ends, self.mass, self.loss)
        start = self.thresholds
        if not (np.diff(start) > 0).all():
            # The first time: the best for scores that are all zero.
            below = np.cumsum(self.mass)[:-1]
            start = np.log(below) - np.log1p(-below)
        return minimize(problem, start, tol=1e-14, max_iter=100).x


def _gap_terms(theta: np.ndarray, mass: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The likelihood's term of the thresholds, and its derivatives by each gap."""
    gaps = np.diff(theta)
    if not (gaps > 0).all():
        return np.inf, gaps, gaps
    inner = mass[1:-1]
    shrink = 1.0 / np.expm1(gaps)
    return float(-inner @ np.log(-np.expm1(-gaps))), -inner * shrink, inner * shrink * (1 + shrink)


class _LikelihoodThresholds:
    """The likelihood as a function of the thresholds, for Newton's method."""

    def __init__(
        self,
        f: np.ndarray,
        w: np.ndarray,
        ends: np.ndarray,
        mass: np.ndarray,
        loss: losses.Loss,
    ) -> None:
        self.f, self.w, self.ends, self.mass, self.loss = f, w, ends, mass, loss

    def value(self, x: np.ndarray) -> float:
        return self.value_gradient_hessian(x)[0]

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, by_gap, bend_gap = _gap_terms(x, self.mass)
        gradient, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
        if not np.isfinite(value):
            return np.inf, gradient, hessian
        for k, theta in enumerate(x):
            own = slice(self.ends[k], self.ends[k + 1])
            after = slice(self.ends[k + 1], self.ends[k + 2])
            for part, sign in ((own, 1.0), (after, -1.0)):
                loss, slope, bend = self.loss.terms(sign * (theta - self.f[part]))
                value += self.w[part] @ loss
                gradient[k] += sign * (self.w[part] @ slope)
                hessian[k, k] += self.w[part] @ bend
        for k, (slope, bend) in enumerate(zip(by_gap, bend_gap, strict=True)):
            gradient[k : k + 2] += [-slope, slope]
            hessian[k : k + 2, k : k + 2] += bend * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return float(value), gradient, hessian
