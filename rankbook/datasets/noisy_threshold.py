r"""Two-class models whose best ranking is known: a thresholded function and noisy labels.

Section 5.1 of Kotlowski, Dembczynski and Huellermeier (2011). Items are uniform on the unit cube;
the clean label is 1 where :math:`f(x) \ge 0`; each label is then changed with probability
:math:`\kappa`. So the posterior takes two values only,

.. math:: P(Y = 1 \mid x) = 1 - \kappa \text{ if } f(x) \ge 0, \quad \kappa \text{ otherwise},

and a best ranker has two levels. With :math:`q = P(f(x) \ge 0)` and the class prior
:math:`p = q (1 - \kappa) + (1 - q) \kappa`, its risk, ties counting one half, is

.. math:: R^* = \frac{\kappa}{2} \left( \frac{1 - q}{p} + \frac{q}{1 - p} \right).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rankbook._arrays import as_float, require_finite
from rankbook._validation import check_rng, check_scalar

__all__ = [
    "LinearFunction",
    "NoisyThresholdModel",
    "RuleFunction",
    "make_linear_model",
    "make_rule_model",
    "noise_for_bayes_risk",
]

# Items on which the rules' threshold is set: the clean share is then right to about 0.001.
_CALIBRATION = 200_000
_BLOCK = 2000


def noise_for_bayes_risk(prior: float, bayes_risk: float) -> tuple[float, float]:
    r"""Return the noise and the clean share that give a class prior and a least rank risk.

    With :math:`v = p (1 - p)` and the risk r, eliminating q from the two equations of this module
    leaves :math:`\kappa^2 - B \kappa + 2 v r = 0`, :math:`B = 1 - 2 v (1 - 2 r)`. The smaller root
    is

    .. math:: \kappa = \frac{B - \sqrt{B^2 - 8 v r}}{2}, \qquad
       q = \frac{p - \kappa}{1 - 2 \kappa}.

    Parameters
    ----------
    prior : float
        Probability p of the positive class *after* the noise, between 0 and 1.
    bayes_risk : float
        The rank risk r of the best ranker, at least 0 and less than 1/2.

    Returns
    -------
    noise : float
        The probability :math:`\kappa` that a label is changed.
    share : float
        The probability q of a positive label before the noise.

    Examples
    --------
    >>> from rankbook.datasets import noise_for_bayes_risk
    >>> tuple(round(v, 6) for v in noise_for_bayes_risk(0.5, 0.1))
    (0.1, 0.5)
    >>> tuple(round(v, 6) for v in noise_for_bayes_risk(0.9, 0.1))
    (0.021572, 0.918035)
    """
    p = check_scalar(prior, "prior", low=0.0, high=1.0, strict_low=True)
    r = check_scalar(bayes_risk, "bayes_risk", low=0.0, high=0.5)
    if p == 1.0:
        raise ValueError("prior must be less than 1, got 1.0")
    if r == 0.5:
        raise ValueError("bayes_risk must be less than 0.5, got 0.5")
    v = p * (1 - p)
    b = 1 - 2 * v * (1 - 2 * r)
    # The smaller root, in the form that does not cancel.
    noise = 4 * v * r / (b + np.sqrt(b * b - 8 * v * r))
    return float(noise), float((p - noise) / (1 - 2 * noise))


@dataclass(frozen=True)
class LinearFunction:
    """The function a_0 + a'x."""

    weights: np.ndarray
    offset: float

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.weights.size

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values at the rows of X."""
        return X @ self.weights + self.offset


@dataclass(frozen=True)
class RuleFunction:
    """The function a_0 + sum of a_i over the rules that hold.

    Condition c belongs to rule `rule[c]` and says that feature `feature[c]` is at least
    `threshold[c]` (at most, where `is_upper[c]`); conditions are sorted by rule.
    """

    weights: np.ndarray
    offset: float
    rule: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    is_upper: np.ndarray
    n_features: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values at the rows of X."""
        values = np.full(X.shape[0], self.offset)
        conditions = np.split(np.arange(self.rule.size), np.flatnonzero(np.diff(self.rule)) + 1)
        for weight, its in zip(self.weights, conditions, strict=True):
            holds = np.ones(X.shape[0], dtype=bool)
            for c in its:
                column = X[:, self.feature[c]]
                limit = self.threshold[c]
                holds &= column <= limit if self.is_upper[c] else column >= limit
            values += weight * holds
        return values


@dataclass(frozen=True)
class NoisyThresholdModel:
    """Uniform items, labels by the sign of a function, changed at random.

    Attributes
    ----------
    function : callable
        The function f of the items.
    noise : float
        Probability that a label is changed.
    share : float
        Probability that f is at least 0.
    """

    function: Any
    noise: float
    share: float

    @property
    def prior(self) -> float:
        """Probability of the positive class, after the noise."""
        return self.share * (1 - self.noise) + (1 - self.share) * self.noise

    @property
    def bayes_risk(self) -> float:
        """Rank risk of the best ranker, ties counting one half."""
        q, p = self.share, self.prior
        return 0.5 * self.noise * ((1 - q) / p + q / (1 - p))

    def bayes_scores(self, X: ArrayLike) -> np.ndarray:
        """Return the scores of a best ranker, 1 where f is at least 0 and else 0.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The scores.
        """
        return (self.function(self._check(X)) >= 0).astype(float)

    def posterior(self, X: ArrayLike) -> np.ndarray:
        """Return P(Y = 0 | x) and P(Y = 1 | x).

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n, 2)
            The probabilities.
        """
        eta = self.noise + (1 - 2 * self.noise) * self.bayes_scores(X)
        return np.column_stack([1 - eta, eta])

    def sample(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw items and labels.

        Parameters
        ----------
        n : int
            Number of items.
        rng : None, int or numpy Generator, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n, n_features)
            Items.
        y : ndarray of shape (n,)
            Labels 0 and 1.
        """
        n = check_scalar(n, "n", low=1, integer=True)
        rng = check_rng(rng)
        X = rng.random((n, self.function.n_features))
        clean = self.function(X) >= 0
        return X, (clean ^ (rng.random(n) < self.noise)).astype(np.intp)

    def _check(self, X: ArrayLike) -> np.ndarray:
        X = as_float(X, "X")
        if X.ndim != 2 or X.shape[1] != self.function.n_features:
            raise ValueError(
                f"X must have shape (n, {self.function.n_features}), got shape {X.shape}"
            )
        require_finite(X, "X")
        return X


def make_linear_model(
    prior: float = 0.5, *, bayes_risk: float = 0.1, n_features: int = 50, rng: Any = None
) -> NoisyThresholdModel:
    r"""Draw a linear model: :math:`f(x) = a_0 + \sum_i a_i x_i` with normal coefficients.

    Parameters
    ----------
    prior : float, default=0.5
        Probability of the positive class, after the noise.
    bayes_risk : float, default=0.1
        Rank risk of the best ranker, exactly.
    n_features : int, default=50
        Number of features.
    rng : None, int or numpy Generator, default=None
        Source of randomness.

    Returns
    -------
    NoisyThresholdModel
        The model.

    Notes
    -----
    The offset is a quantile of :math:`\sum_i a_i x_i`. Its distribution is known through its
    characteristic function, a product of sincs; the quantile is found by inverting it, to about
    1e-10 for ten or more features.

    References
    ----------
    W. Kotlowski, K. Dembczynski and E. Huellermeier, "Bipartite ranking through minimization of
    univariate loss", ICML 2011: section 5.1. The paper does not say whether its priors are those
    before or after the noise; here they are those of the data.

    Examples
    --------
    >>> from rankbook.datasets import make_linear_model
    >>> model = make_linear_model(prior=0.9, rng=0)
    >>> round(model.prior, 6), round(model.bayes_risk, 6), round(model.noise, 4)
    (0.9, 0.1, 0.0216)
    >>> X, y = model.sample(1000, rng=1)
    >>> X.shape, float(y.mean())
    ((1000, 50), 0.883)
    """
    noise, share = noise_for_bayes_risk(prior, bayes_risk)
    n_features = check_scalar(n_features, "n_features", low=1, integer=True)
    weights = check_rng(rng).normal(size=n_features)
    offset = -_weighted_uniform_quantile(weights, 1 - share)
    return NoisyThresholdModel(LinearFunction(weights, offset), noise, share)


def _weighted_uniform_quantile(weights: np.ndarray, probability: float) -> float:
    """Quantile of sum a_i U_i for independent uniform U_i."""
    width = np.abs(weights).sum()
    # The centred sum lies within width / 2, so this step samples its density without aliasing.
    step = np.pi / width
    t = step * np.arange(1, 200_001)
    product = np.ones(t.size)
    for a in weights:
        product *= np.sinc(a * t / (2 * np.pi))
        # No factor exceeds one, so that what is negligible stays so.
        matters = np.abs(product) > 1e-17
        t, product = t[matters], product[matters]

    def excess(z: float) -> float:
        return (
            0.5 + z / (2 * width) + (product * np.sin(t * z) / t).sum() * step / np.pi - probability
        )

    return float(brentq(excess, -width / 2, width / 2, xtol=1e-13) + weights.sum() / 2)


def make_rule_model(
    prior: float = 0.5,
    *,
    bayes_risk: float = 0.1,
    n_features: int = 50,
    n_rules: int = 50,
    rng: Any = None,
) -> NoisyThresholdModel:
    r"""Draw a model of decision rules: :math:`f(x) = a_0 + \sum_i a_i r_i(x)`.

    A rule is a conjunction of conditions on single features. Their number is geometric with rate
    1/2; feature, threshold and direction of each are uniform; coefficients are normal.

    Parameters
    ----------
    prior : float, default=0.5
        Probability of the positive class, after the noise.
    bayes_risk : float, default=0.1
        Rank risk of the best ranker.
    n_features, n_rules : int, default=50
        Numbers of features and of rules.
    rng : None, int or numpy Generator, default=None
        Source of randomness.

    Returns
    -------
    NoisyThresholdModel
        The model.

    Notes
    -----
    The function takes finitely many values and its distribution has no closed form. The offset is
    an empirical quantile on 200,000 items, chosen between two values so that the share of positive
    clean labels is nearest to the one wanted. `share` is that of the calibration items, so that
    `prior` and `bayes_risk` of the model have the calibration's error, about 0.001.

    References
    ----------
    W. Kotlowski, K. Dembczynski and E. Huellermeier, "Bipartite ranking through minimization of
    univariate loss", ICML 2011: section 5.1.

    Examples
    --------
    >>> from rankbook.datasets import make_rule_model
    >>> model = make_rule_model(prior=0.5, rng=0)
    >>> round(model.prior, 2), round(model.bayes_risk, 2)
    (0.5, 0.1)
    """
    noise, share = noise_for_bayes_risk(prior, bayes_risk)
    n_features = check_scalar(n_features, "n_features", low=1, integer=True)
    n_rules = check_scalar(n_rules, "n_rules", low=1, integer=True)
    rng = check_rng(rng)
    lengths = rng.geometric(0.5, n_rules)
    n_conditions = int(lengths.sum())
    function = RuleFunction(
        weights=rng.normal(size=n_rules),
        offset=0.0,
        rule=np.repeat(np.arange(n_rules), lengths),
        feature=rng.integers(0, n_features, n_conditions),
        threshold=rng.random(n_conditions),
        is_upper=rng.random(n_conditions) < 0.5,
        n_features=n_features,
    )
    values = np.sort(_calibration_values(function, rng))
    cut, share = _nearest_cut(values, share)
    return NoisyThresholdModel(
        RuleFunction(**{**vars(function), "offset": -cut}), noise, float(share)
    )


def _calibration_values(function: RuleFunction, rng: np.random.Generator) -> np.ndarray:
    """Values at uniform items, drawn and judged block by block, to fit into a cache."""
    values = np.empty(_CALIBRATION)
    for start in range(0, _CALIBRATION, _BLOCK):
        block = values[start : start + _BLOCK]
        block[:] = function(rng.random((block.size, function.n_features)))
    return values


def _nearest_cut(values: np.ndarray, share: float) -> tuple[float, float]:
    """A cut between two distinct values, and the share of values above it."""
    gaps = np.flatnonzero(np.diff(values) > 1e-9 * (values[-1] - values[0]))
    if gaps.size == 0:
        raise ValueError("the rules take a single value: draw again with another rng or more rules")
    above = 1 - (gaps + 1) / values.size
    best = gaps[np.argmin(np.abs(above - share))]
    return float((values[best] + values[best + 1]) / 2), 1 - (best + 1) / values.size
