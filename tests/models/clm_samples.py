"""Samples and plain formulas that the tests of cumulative link models share."""

import numpy as np
import pytest
from scipy import stats

from rankbook._links import LINKS

DISTRIBUTIONS = {
    "logit": stats.logistic,
    "probit": stats.norm,
    "cloglog": stats.gumbel_l,
    "loglog": stats.gumbel_r,
    "cauchit": stats.cauchy,
}
ALL_LINKS = pytest.mark.parametrize("link", list(LINKS))
CONCAVE_LINKS = pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "loglog"])


def simulate(n=400, p=3, link="logit", seed=0, cuts=(-1.5, 0.0, 0.7, 2.0)):
    """Columns on different scales and an ordinal response of the given link."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1.0, 20.0, 0.1])[:p] + np.array([0.0, 50.0, 3.0])[:p]
    b = np.array([0.8, -0.05, 4.0])[:p]
    latent = (X - X.mean(axis=0)) @ b + DISTRIBUTIONS[link].rvs(size=n, random_state=rng)
    return X, np.digitize(latent, cuts)


def standardised(**options):
    """The same sample with columns of mean 0 and deviation 1."""
    X, y = simulate(**options)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def interval(link, lower, upper):
    """F(upper) - F(lower), on the side where it does not cancel."""
    law = DISTRIBUTIONS[link]
    right = law.sf(lower) - law.sf(upper)
    return np.where(lower > 0, right, law.cdf(upper) - law.cdf(lower))


def direct_nll(params, X, y, link, weights=None, alpha=0.0):
    """The sum of minus log-likelihoods as the formula reads, and n times the ridge term."""
    p = X.shape[1]
    ends = np.concatenate([[-np.inf], params[p:], [np.inf]])
    eta = X @ params[:p]
    prob = interval(link, ends[y] - eta, ends[y + 1] - eta)
    w = np.ones(len(y)) if weights is None else weights
    return -w @ np.log(prob) + w.sum() * alpha / 2 * params[:p] @ params[:p]


def general_nll(params, X, y, link, **roles):
    """The same with nominal and scale effects."""
    terms = general_terms(params, X, y, link, **roles)
    return terms.sum() if np.all(np.isfinite(terms)) else np.inf


def general_terms(params, X, y, link, *, nominal=(), scale=(), offset=0.0):
    """Minus the log-probability of each item; parameters in the order of `params_`."""
    n, p = X.shape
    m = y.max()
    plain = [j for j in range(p) if j not in nominal]
    b, rest = params[: len(plain)], params[len(plain) :]
    own, rest = rest[: len(nominal) * m].reshape(len(nominal), m), rest[len(nominal) * m :]
    theta, zeta = rest[:m], rest[m:]
    z = theta - (X[:, plain] @ b + offset)[:, None] - X[:, list(nominal)] @ own
    z = z / np.exp(X[:, list(scale)] @ zeta)[:, None]
    ends = np.hstack([np.full((n, 1), -np.inf), z, np.full((n, 1), np.inf)])
    prob = interval(link, ends[np.arange(n), y], ends[np.arange(n), y + 1])
    return -np.log(np.maximum(prob, 0.0), out=np.full(n, -np.inf), where=prob > 0)
