"""A mixture of normal distributions on the line, one a class: risks by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, softmax

from rankbook._arrays import as_array, as_float
from rankbook._cost_scale import require_scale_condition
from rankbook._validation import (
    check_costs,
    check_probabilities,
    check_rng,
    check_same_length,
    check_scalar,
    check_ties,
    check_vector,
)
from rankbook.population._levels import misranked, pair_mass

_REACH = 9.0  # standard deviations; the mass beyond is below 1e-18
_NODES = 6144  # of the coarse grid, for each class
_JUMP = 50.0  # a cell this much steeper than both neighbours is searched for a jump
_CHUNK = 1 << 21
_NODES_A_TURN = 32  # a score that turns more often than that is not resolved by the grid
_LARGEST = float(np.finfo(float).max)
_TINY = 2.0**-600  # keeps the order of numbers whose products would overflow

ScoreFunction = Callable[[np.ndarray], np.ndarray]


class NormalMixture:
    r"""Classes with normal features, :math:`X \mid Y = k \sim N(\mu_k, \sigma_k^2)`.

    Parameters
    ----------
    means : array-like of shape (K,)
        Mean of each class, K >= 2.
    sds : float or array-like of shape (K,), default=1.0
        Standard deviations, positive.
    priors : array-like of shape (K,), optional
        Class probabilities; equal by default.

    Notes
    -----
    A risk is computed from the score function's values on a grid, as the exact risk of the function
    that is linear between grid points, with the exact class masses of the cells; jumps are located
    by bisection, and two grids are combined by Richardson extrapolation. The error is about 1e-9
    where the score is smooth and changes slowly, about 1e-7 with kinks, and grows with the number
    of turns: 3e-7 was seen for sin(20 x). Equal neighbouring values are a tie; where a flat piece
    begins and ends is located by bisection. One that lies between two grid points, less than
    0.003 standard deviations apart, is not seen, which with `ties` other than one half is an
    error of about 1e-6.

    Examples
    --------
    Two normals: the AUC is :math:`\Phi((\mu_2 - \mu_1) / \sqrt{\sigma_1^2 + \sigma_2^2})`.

    >>> mixture = NormalMixture([0, 1], [1, 2], [0.5, 0.5])
    >>> risk = mixture.risk(lambda x: x[:, 0])
    >>> print(f"{risk:.9f} {ndtr(-1 / np.sqrt(5)):.9f}")
    0.327360423 0.327360423
    """

    def __init__(self, means: Any, sds: Any = 1.0, priors: Any = None) -> None:
        self.means = check_vector(means, "means")
        K = self.means.size
        if K < 2:
            raise ValueError(f"means must have at least two entries, one a class, got {K}")
        if as_array(sds, "sds").ndim == 0:
            sds = np.full(K, check_scalar(sds, "sds"))
        self.sds = check_vector(sds, "sds")
        check_same_length(self.sds.size, K, "sds", "means")
        if (self.sds <= 0).any():
            raise ValueError(f"sds must be positive, got {self.sds.min()}")
        priors = np.full(K, 1.0 / K) if priors is None else priors
        self.priors = check_probabilities(priors, K, name="priors")
        self._pair_mass = pair_mass(self.priors)
        if self._pair_mass <= 0:
            raise ValueError("priors must give at least two classes a positive probability")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.means.size

    def __repr__(self) -> str:
        return f"NormalMixture({self.means.tolist()}, {self.sds.tolist()}, {self.priors.tolist()})"

    def _log_joint(self, x: Any) -> np.ndarray:
        z = (self._points(x)[:, None] - self.means) / self.sds
        with np.errstate(over="ignore"):
            return self._log_priors() - z**2 / 2 - np.log(self.sds) - np.log(2 * np.pi) / 2

    def _log_ratios(self, x: Any) -> np.ndarray:
        """Return the log of the joint density over that of the class whose mean is nearest.

        The difference of two squared distances is a product of a difference and a sum, which
        neither cancels nor overflows where the squares would.
        """
        x = self._points(x)[:, None]
        log_priors = self._log_priors()
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.where(np.isfinite(log_priors), np.abs(x - self.means) / self.sds, np.inf)
            nearest = np.argmin(reach, axis=1)
            # So far out that classes of one spread seem equally near, the mean decides.
            apart, middle = self._factors(x, nearest, _TINY)
            nearest = np.where(np.isfinite(log_priors), apart * middle, np.inf).argmin(axis=1)
            apart, middle = self._factors(x, nearest, 1.0)
            squares = np.where(apart == 0, 0.0, apart * middle)
            spread = np.log(self.sds / self.sds[nearest, None])
            ratios = log_priors - log_priors[nearest, None] - spread - squares
        return np.where(self.priors > 0, np.minimum(ratios, _LARGEST), -np.inf)

    def _factors(self, x: np.ndarray, nearest: np.ndarray, unit: float) -> list[np.ndarray]:
        """Half the squared distances of x, less that of `nearest`, as a product; one times unit."""
        mean, sd = self.means[nearest, None], self.sds[nearest, None]
        apart = x * ((1 - self.sds / sd) / self.sds) - (self.means / self.sds - mean / sd)
        return [apart, (x - self.means) * (unit / 2) / self.sds + (x - mean) * (unit / 2) / sd]

    def _log_priors(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.priors)

    def _points(self, x: Any) -> np.ndarray:
        x = as_float(x, "x")
        return check_vector(x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x, "x")

    def density(self, x: Any) -> np.ndarray:
        """Return the density of the feature, all classes together.

        Parameters
        ----------
        x : array-like of shape (n,) or (n, 1)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            The density.

        Examples
        --------
        >>> NormalMixture([-1, 1]).density([0.0]).round(4).tolist()
        [0.242]
        """
        return np.exp(self._log_joint(x)).sum(axis=1)

    def posterior(self, x: Any) -> np.ndarray:
        """Return P(Y = k | x).

        Parameters
        ----------
        x : array-like of shape (n,) or (n, 1)
            Points.

        Returns
        -------
        ndarray of shape (n, K)
            The posterior, exact far into the tails.

        Examples
        --------
        >>> NormalMixture([-1, 1]).posterior([0.0, 40.0]).round(12).tolist()
        [[0.5, 0.5], [0.0, 1.0]]
        """
        return softmax(self._log_ratios(x), axis=1)

    def risk(self, score_function: ScoreFunction, costs: Any = None, ties: float = 0.5) -> float:
        """Return the expected cost of a pair with different labels.

        Parameters
        ----------
        score_function : callable
            Takes points of shape (n, 1), as `decision_function` does, and returns (n,) scores.
        costs : None, str or array-like of shape (K, K)
            The costs.
        ties : float, default=0.5
            What a tied pair counts.

        Returns
        -------
        float
            The risk; see the notes of the class for its error.

        Raises
        ------
        ValueError
            If the score goes up and down so often that the grid cannot follow it.

        Examples
        --------
        >>> mixture = NormalMixture([-1, 1])
        >>> round(mixture.risk(lambda x: np.sign(x[:, 0])), 9)
        0.158655254
        """
        if not callable(score_function):
            raise TypeError(f"score_function must be callable, got {score_function!r}")
        c = check_costs(costs, self.n_classes)
        ties = check_ties(ties)
        grid = self._grid()
        _require_resolved(_evaluate(score_function, grid))
        coarse = _bracket_flats(score_function, _bracket_jumps(score_function, grid))
        fine = np.sort(np.concatenate((coarse, (coarse[1:] + coarse[:-1]) / 2)))
        risks = [self._grid_risk(score_function, nodes, c, ties) for nodes in (coarse, fine)]
        return float(max(0.0, risks[1] + (risks[1] - risks[0]) / 3))

    def bayes_risk(self, costs: Any = None) -> float:
        """Return the least risk of any score function.

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            Costs from a scale (any costs if K <= 3); any costs at all if the classes have one
            standard deviation and their means increase or decrease with the class.

        Returns
        -------
        float
            The risk.

        Raises
        ------
        CostConditionError
            If no closed form of the best ordering is known.

        Examples
        --------
        >>> print(f"{NormalMixture([0, 1]).bayes_risk():.9f} {ndtr(-1 / np.sqrt(2)):.9f}")
        0.239750061 0.239750061
        """
        c = check_costs(costs, self.n_classes)
        return self.risk(self._bayes_score_function(c), c)

    def sample(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw items.

        Parameters
        ----------
        n : int
            Number of items.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n, 1)
            Features.
        y : ndarray of shape (n,)
            Labels 0..K-1.

        Examples
        --------
        >>> X, y = NormalMixture([-100, 100]).sample(6, rng=0)
        >>> bool(((X[:, 0] > 0) == (y == 1)).all())
        True
        """
        n = check_scalar(n, "n", low=1, integer=True)
        rng = check_rng(rng)
        y = rng.choice(self.n_classes, size=n, p=self.priors / self.priors.sum())
        return (self.means[y] + self.sds[y] * rng.standard_normal(n))[:, None], y

    def _bayes_score_function(self, c: np.ndarray) -> ScoreFunction:
        steps = np.diff(self.means)
        if np.ptp(self.sds) == 0 and ((steps >= 0).all() or (steps <= 0).all()):
            sign = 1.0 if steps.sum() >= 0 else -1.0
            return lambda x: sign * x[:, 0]  # every likelihood ratio is monotone in x
        if self.n_classes == 3 and c[0, 2] == 0:
            return lambda x: _signed_log_ratio(self._log_joint(x), c)
        require_scale_condition(c, "Discretise, and use FinitePopulation.bayes_scores.")
        with np.errstate(divide="ignore"):
            upper, lower = np.log(c[0]), np.log(c[:, -1])

        def log_ratio(x: np.ndarray) -> np.ndarray:
            log_joint = self._log_joint(x)
            return logsumexp(log_joint + upper, axis=1) - logsumexp(log_joint + lower, axis=1)

        return log_ratio

    def _grid(self) -> np.ndarray:
        used = self.priors > 0
        unit = np.linspace(-_REACH, _REACH, _NODES)
        return np.unique((self.means[used, None] + self.sds[used, None] * unit).ravel())

    def _grid_risk(
        self, score_function: ScoreFunction, nodes: np.ndarray, c: np.ndarray, ties: float
    ) -> float:
        values = _evaluate(score_function, nodes)
        cdf = ndtr((nodes[:, None] - self.means) / self.sds)
        points, spread = _level_masses(values, np.diff(cdf, axis=0) * self.priors)
        # Points and the intervals above them alternate; half the pairs in an interval are wrong.
        levels = np.empty((2 * points.shape[0] - 1, self.n_classes))
        levels[::2], levels[1::2] = points, spread
        below, _ = misranked(levels)
        same = ties * (points.T @ points) + 0.5 * (spread.T @ spread)
        return float((c * (below + same)).sum() / self._pair_mass)


def _signed_log_ratio(log_joint: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return an increasing function of (c_23 p_3 - c_12 p_1) / p_2, the best score if c_13 = 0."""
    with np.errstate(divide="ignore"):
        terms = log_joint[:, [2, 0]] - log_joint[:, [1]] + np.log([c[1, 2], c[0, 1]])
        size, sign = logsumexp(terms, b=[1.0, -1.0], axis=1, return_sign=True)
    return sign * np.logaddexp(0.0, size)


def _evaluate(score_function: ScoreFunction, nodes: np.ndarray) -> np.ndarray:
    values = check_vector(score_function(nodes[:, None]), "score_function(x)")
    check_same_length(values.size, nodes.size, "score_function(x)", "x")
    return values


def _require_resolved(values: np.ndarray) -> None:
    """Raise if the score turns too often for the grid: its levels would be those of an alias."""
    steps = np.sign(np.diff(values))
    steps = steps[steps != 0]
    turns = int((steps[1:] != steps[:-1]).sum())
    if turns * _NODES_A_TURN > values.size:
        raise ValueError(
            f"score_function goes up and down too often to be resolved: {turns} turns on a grid of "
            f"{values.size} points, at most {values.size // _NODES_A_TURN} are taken"
        )


def _bracket_jumps(score_function: ScoreFunction, nodes: np.ndarray, rounds: int = 4) -> np.ndarray:
    """Add the two points next to each jump of the score, found by bisection, to the grid."""
    for _ in range(rounds):
        values = _evaluate(score_function, nodes)
        rise = np.abs(np.diff(values))
        beside = np.maximum(np.append(rise[1:], 0.0), np.insert(rise[:-1], 0, 0.0))
        cells = np.flatnonzero(rise > _JUMP * beside)
        low, high = nodes[cells], nodes[cells + 1]
        wide = high - low > 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        if not wide.any():
            break
        cells, low, high = cells[wide], low[wide], high[wide]
        at_low, at_high = values[cells], values[cells + 1]
        for _ in range(60):
            middle = (low + high) / 2
            at_middle = _evaluate(score_function, middle)
            left = np.abs(at_middle - at_low) > np.abs(at_high - at_middle)
            low, at_low = np.where(left, low, middle), np.where(left, at_low, at_middle)
            high, at_high = np.where(left, middle, high), np.where(left, at_middle, at_high)
        nodes = np.unique(np.concatenate((nodes, low, high)))
    return nodes


def _bracket_flats(score_function: ScoreFunction, nodes: np.ndarray) -> np.ndarray:
    """Add the two points next to each end of a flat piece of the score, found by bisection."""
    values = _evaluate(score_function, nodes)
    flat = np.diff(values) == 0
    # Nodes at which a flat piece begins or ends, and their neighbours outside of it.
    begins, ends = (
        np.flatnonzero(flat[1:] & ~flat[:-1]) + 1,
        np.flatnonzero(flat[:-1] & ~flat[1:]) + 1,
    )
    at = np.concatenate((begins, ends))
    if at.size == 0:
        return nodes
    inside, outside = nodes[at], nodes[np.concatenate((begins - 1, ends + 1))]
    for _ in range(64):
        middle = (inside + outside) / 2
        same = _evaluate(score_function, middle) == values[at]
        inside, outside = np.where(same, middle, inside), np.where(same, outside, middle)
    return np.unique(np.concatenate((nodes, inside, outside)))


def _level_masses(values: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return class masses at the distinct node values, and in the intervals between them.

    The score is linear in each cell, so that a cell spreads its mass evenly over the levels that it
    crosses; a cell whose ends have one value is a tie.
    """
    levels, rank = np.unique(values, return_inverse=True)
    first = np.minimum(rank[:-1], rank[1:])
    crossed = np.abs(np.diff(rank))
    K = masses.shape[1]
    points = np.zeros((levels.size, K))
    spread = np.zeros((levels.size - 1, K))
    flat = crossed == 0
    for k in range(K):
        points[:, k] = np.bincount(first[flat], masses[flat, k], levels.size)
    widths = np.diff(levels)
    # Cells are taken in chunks, so that a score which goes up and down often needs no more memory.
    chunk = np.cumsum(crossed) // _CHUNK
    for cells in np.split(np.arange(crossed.size), np.flatnonzero(np.diff(chunk)) + 1):
        count = crossed[cells]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        interval = np.repeat(first[cells], count) + offset
        span = levels[first[cells] + count] - levels[first[cells]]
        share = widths[interval] / np.repeat(span, count)
        for k in range(K):
            mass = np.repeat(masses[cells, k], count) * share
            spread[:, k] += np.bincount(interval, mass, levels.size - 1)
    return points, spread
