r"""Ordered labels from a latent utility that is cut at thresholds.

Item i has the utility

.. math:: U_i = x_i^\top b + a_{q(i)} + e^{x_i^\top \zeta} \varepsilon_i ,

with noise :math:`\varepsilon_i` of a distribution F and, where there are queries, an effect
:math:`a_q` of its query, and the label :math:`Y_i = k` iff
:math:`\theta_{k-1} < U_i \le \theta_k`. So

.. math:: P(Y_i \le k \mid x_i, a_{q(i)}) = F\bigl((\theta_k - x_i^\top b - a_{q(i)})
   \, e^{-x_i^\top \zeta}\bigr),

the cumulative link model (Herbrich et al., 1999, equation 3) with scale effects (McCullagh, 1980).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook._arrays import as_float, require_finite
from rankbook._link import within_reach
from rankbook._links import LINKS
from rankbook._room import require_room
from rankbook._validation import (
    check_choice,
    check_rng,
    check_same_length,
    check_scalar,
    check_thresholds,
    check_vector,
)

__all__ = ["LatentUtilityData", "LatentUtilityModel", "make_latent_utility"]

_N_FEATURES = 5
# Numbers an item that stand beside its features.
_BESIDE = 8

_NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "logit": lambda rng, n: rng.logistic(size=n),
    "probit": lambda rng, n: rng.standard_normal(n),
    "cloglog": lambda rng, n: -rng.gumbel(size=n),
    "loglog": lambda rng, n: rng.gumbel(size=n),
    "cauchit": lambda rng, n: rng.standard_cauchy(n),
}


@dataclass(frozen=True)
class LatentUtilityModel:
    """A linear utility, what is added to it, and where it is cut.

    Attributes
    ----------
    coef : ndarray of shape (p,)
        Coefficients b of the utility.
    thresholds : ndarray of shape (K - 1,)
        Thresholds, in increasing order.
    link : str
        Distribution of the noise, by the name of its link.
    scale_coef : ndarray of shape (p,)
        Coefficients of the logarithm of the noise's spread.
    query_sd : float
        Standard deviation of the effects of queries.
    """

    coef: np.ndarray
    thresholds: np.ndarray
    link: str
    scale_coef: np.ndarray
    query_sd: float

    def posterior(self, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Return P(Y = k | x), given what is added to the utility.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.
        offset : array-like of shape (n,), optional
            The effect of each item's query; 0 by default.

        Returns
        -------
        ndarray of shape (n, K)
            The posterior.
        """
        X = as_float(X, "X")
        if X.ndim != 2 or X.shape[1] != self.coef.size:
            raise ValueError(f"X must have shape (n, {self.coef.size}), got shape {X.shape}")
        require_finite(X, "X")
        location, spread = self._moments(X, "X")
        if offset is not None:
            offset = check_vector(offset, "offset")
            check_same_length(offset.size, X.shape[0], "offset", "X")
        with np.errstate(over="ignore", divide="ignore"):
            location = location if offset is None else location + offset
            ends = (self.thresholds - location[:, None]) / spread[:, None]
            gaps = np.diff(self.thresholds) / spread[:, None]
            return np.exp(LINKS[self.link].log_probabilities(*within_reach(ends, gaps)))

    def sample(self, n: int, rng: Any = None, *, n_queries: int | None = None) -> LatentUtilityData:
        """Draw items with standard normal features, and their labels.

        Parameters
        ----------
        n : int
            Number of items.
        rng : int, Generator or None, default=None
            Seed or generator.
        n_queries : int, optional
            Number of queries; without it there are none.

        Returns
        -------
        LatentUtilityData
            The record, with ``X``, ``y``, ``qid`` and more.
        """
        n = check_scalar(n, "n", low=1, integer=True)
        if n_queries is not None:
            check_scalar(n_queries, "n_queries", low=1, high=n, integer=True)
        generator = check_rng(rng)
        X = generator.standard_normal((n, self.coef.size))
        qid, offset = None, np.zeros(n)
        if n_queries is not None:
            query = np.arange(n) * n_queries // n
            with np.errstate(over="ignore"):
                offset = self.query_sd * generator.standard_normal(n_queries)[query]
            qid = query + 1
        location, spread = self._moments(X, "coef and scale_coef")
        with np.errstate(over="ignore", invalid="ignore"):
            utility = location + offset + spread * _NOISE[self.link](generator, n)
        if not np.isfinite(utility).all():
            raise ValueError(
                "coef, scale_coef and query_sd must give utilities within the range of floats, got "
                f"{utility[~np.isfinite(utility)][0]}"
            )
        y = np.searchsorted(self.thresholds, utility)
        return LatentUtilityData(X, y, qid, utility, offset, self)

    def _moments(self, X: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The utility without noise, and the spread of the noise."""
        with np.errstate(over="ignore", invalid="ignore"):
            location, spread = X @ self.coef, np.exp(X @ self.scale_coef)
        if not (np.isfinite(location) & np.isfinite(spread) & (spread > 0)).all():
            raise ValueError(
                f"{name} must give utilities and spreads within the range of floats, got "
                f"{location[np.argmax(np.abs(location))]} and {spread.min()} to {spread.max()}"
            )
        return location, spread


@dataclass(frozen=True)
class LatentUtilityData:
    """Items, labels, and the truth behind them.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Labels 0..K-1.
    qid : ndarray of shape (n,) or None
        The query of every item, 1, 2, ...; None without queries.
    utility : ndarray of shape (n,)
        The latent utilities, with noise.
    offset : ndarray of shape (n,)
        The effect of each item's query; 0 without queries.
    model : LatentUtilityModel
        Coefficients, thresholds and noise.
    """

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray | None
    utility: np.ndarray
    offset: np.ndarray
    model: LatentUtilityModel

    @property
    def posterior(self) -> np.ndarray:
        """P(Y = k | x, effect of the query) at the items, shape (n, K)."""
        return self.model.posterior(self.X, self.offset)


def make_latent_utility(
    n_samples: int = 1000,
    n_features: int | None = None,
    *,
    coef: Any = None,
    thresholds: Any = (-1.0, 1.0),
    link: str = "logit",
    scale_coef: Any = None,
    n_queries: int | None = None,
    query_sd: float = 1.0,
    rng: Any = None,
) -> LatentUtilityData:
    r"""Simulate ordered labels: a linear utility with noise, cut at thresholds.

    .. math:: U_i = x_i^\top b + a_{q(i)} + e^{x_i^\top \zeta} \varepsilon_i, \qquad
       Y_i = k \iff \theta_{k-1} < U_i \le \theta_k ,

    with standard normal features, :math:`\varepsilon_i \sim F`, and :math:`a_q \sim N(0, \sigma^2)`
    if there are queries. `CumulativeLink` with the same link, ``offset=data.offset`` and
    ``scale=`` the columns with a :math:`\zeta` is the model that drew the data.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of items.
    n_features : int, optional
        Number of features; by default that of `coef`, else that of `scale_coef`, else 5.
    coef : array-like of shape (n_features,), optional
        Coefficients b; drawn from N(0, 1) by default.
    thresholds : array-like of shape (K - 1,), default=(-1, 1)
        Thresholds, in increasing order.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default="logit"
        Noise with the logistic or the normal distribution, the Gumbel distribution of minima or
        that of maxima, or Cauchy's: F is that of the link in `CumulativeLink`.
    scale_coef : array-like of shape (n_features,), optional
        Coefficients :math:`\zeta` of the logarithm of the noise's spread; zero by default.
    n_queries : int, optional
        Number of queries, of equally many items up to one; without it there are none.
    query_sd : float, default=1.0
        Standard deviation :math:`\sigma` of the effects of queries.
    rng : int, Generator or None, default=None
        Seed or generator. What is drawn is, in this order: coefficients (unless given), features,
        effects (if there are queries), noise.

    Returns
    -------
    LatentUtilityData
        The record, with ``X``, ``y``, ``qid``, the true ``posterior`` and the ``model``, which
        gives the posterior of other items and draws further samples.

    Notes
    -----
    The posterior is that given the effect of the query. An effect moves all items of a query: it
    shifts their labels, does not change the order of their utilities, and so spoils the pairs
    across queries, not those within, of which fewer have different labels.

    References
    ----------
    P. McCullagh (1980), Regression models for ordinal data, J. R. Statist. Soc. B 42, 109-142.
    R. Herbrich, T. Graepel, K. Obermayer (1999), section 2.

    Examples
    --------
    >>> from rankbook.metrics import pairwise_risk
    >>> from rankbook.optimal import bayes_score
    >>> data = make_latent_utility(2000, coef=[1.0, -2.0], n_queries=100, query_sd=3.0, rng=0)
    >>> data.X.shape, data.posterior.shape, np.bincount(data.y).tolist()
    ((2000, 2), (2000, 3), [845, 372, 783])
    >>> scores = data.X @ data.model.coef
    >>> risks = [pairwise_risk(data.y, scores), pairwise_risk(data.y, scores, qid=data.qid)]
    >>> print("across queries {:.3f}, within {:.3f}".format(*risks))
    across queries 0.270, within 0.125
    >>> best = pairwise_risk(data.y, bayes_score(data.posterior))
    >>> print(f"across queries, effects known: {best:.3f}")
    across queries, effects known: 0.075
    """
    n_samples = check_scalar(n_samples, "n_samples", low=1, integer=True)
    given = {
        name: check_vector(values, name)
        for name, values in (("coef", coef), ("scale_coef", scale_coef))
        if values is not None
    }
    p = _check_n_features(n_features, given)
    theta = check_thresholds(thresholds)
    check_choice(link, tuple(LINKS), "link")
    query_sd = check_scalar(query_sd, "query_sd", low=0.0)
    require_room({"n_samples": n_samples, "n_features": p}, float(n_samples) * (p + _BESIDE))
    generator = check_rng(rng)
    b = given["coef"] if "coef" in given else generator.standard_normal(p)
    model = LatentUtilityModel(b, theta, link, given.get("scale_coef", np.zeros(p)), query_sd)
    return model.sample(n_samples, generator, n_queries=n_queries)


def _check_n_features(n_features: int | None, given: dict[str, np.ndarray]) -> int:
    """Return the number of features on which all agree that name one."""
    if n_features is not None:
        p = check_scalar(n_features, "n_features", low=1, integer=True)
    else:
        p = next((values.size for values in given.values()), _N_FEATURES)
    for name, values in given.items():
        if values.size != p:
            raise ValueError(
                f"{name} must have an entry for each of the n_features={p} features, got "
                f"{values.size}"
            )
    return p
