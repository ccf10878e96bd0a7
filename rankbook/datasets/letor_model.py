"""A simulator of learning-to-rank data: queries, features of items in them, graded labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from rankbook._room import require_room
from rankbook._validation import check_probabilities, check_rng, check_scalar
from rankbook.datasets.letor import LetorData

__all__ = ["make_letor"]

# Shares of the grades in MSLR-WEB, to two digits: most pages are irrelevant, hardly any perfect.
_GRADES = (0.52, 0.32, 0.13, 0.02, 0.01)
# Numbers an item that stand beside its features while they are drawn.
_BESIDE = 8


def make_letor(
    n_queries: int = 100,
    n_items: int = 20,
    n_features: int = 20,
    *,
    grades: Any = _GRADES,
    noise: float = 0.5,
    rng: Any = None,
) -> LetorData:
    r"""Simulate items of queries with graded labels.

    Query q has :math:`m_q \ge 2` items, two more than a Poisson number. Item i has a relevance

    .. math:: u_i = \sqrt{1 - \rho}\,\bigl(a_q + v_i\bigr) / \sqrt{5/4} + \sqrt{\rho}\, e_i,
       \qquad a_q \sim N(0, 1/4),\; v_i, e_i \sim N(0, 1),

    :math:`\rho` the noise, so that some queries have better items than others, and its grade is
    the number of quantiles of N(0, 1), at the cumulated shares of `grades`, that :math:`u_i`
    exceeds. Three kinds of features are mixed, in turn, as in web search: *signals*, increasing
    functions of :math:`v_i` with noise of their own, alternately straight, saturating and with a
    long tail; *features of the query*, equal for all its items, that tell of :math:`a_q` and so
    help to predict a grade but not to rank; and *noise*.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_items : int, default=20
        Mean number of items a query, at least 2.
    n_features : int, default=20
        Number of features.
    grades : array-like of shape (K,), default=(0.52, 0.32, 0.13, 0.02, 0.01)
        Expected shares of the grades 0..K-1; the default is about that of MSLR-WEB.
    noise : float, default=0.5
        Share of the relevance's variance that no feature knows, from 0 to 1.
    rng : int, Generator or None, default=None
        Seed or generator.

    Returns
    -------
    LetorData
        The record, with ``X``, ``y`` and ``qid`` (1, 2, ...).

    Examples
    --------
    >>> data = make_letor(n_queries=3, n_items=4, n_features=5, rng=0)
    >>> data.X.shape
    (15, 5)
    >>> data.y
    array([0, 0, 0, 0, 1, 1, 0, 0, 1, 2, 0, 1, 0, 0, 0])
    >>> data.qid
    array([1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3])
    """
    check_scalar(n_queries, "n_queries", low=1, integer=True)
    check_scalar(n_items, "n_items", low=2)
    check_scalar(n_features, "n_features", low=1, integer=True)
    require_room(
        {"n_queries": n_queries, "n_items": n_items, "n_features": n_features},
        float(n_queries) * n_items * (n_features + _BESIDE),
    )
    noise = check_scalar(noise, "noise", low=0.0, high=1.0)
    shares = check_probabilities(grades, name="grades")
    generator = check_rng(rng)
    sizes = 2 + generator.poisson(n_items - 2, size=n_queries)
    query = np.repeat(np.arange(n_queries), sizes)
    level = 0.5 * generator.normal(size=n_queries)
    signal = generator.normal(size=query.size)
    known = (level[query] + signal) / np.sqrt(1.25)
    relevance = np.sqrt(1.0 - noise) * known + np.sqrt(noise) * generator.normal(size=query.size)
    y = np.searchsorted(ndtri(np.cumsum(shares)[:-1].clip(0.0, 1.0)), relevance)
    X = np.empty((query.size, n_features))
    for j in range(n_features):
        X[:, j] = _feature(j, signal, level, query, generator)
    return LetorData(X, y, query + 1)


def _feature(
    j: int, signal: np.ndarray, level: np.ndarray, query: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The feature of column j: two signals, then one of the query, then one of noise, and so on."""
    kind = j % 4
    if kind == 2:
        return (level + 0.5 * rng.normal(size=level.size))[query]
    if kind == 3:
        return rng.normal(size=query.size)
    seen = signal + (1.0 + j / 8.0) * rng.normal(size=query.size)
    shape = (j // 2 + kind) % 3
    return seen if shape == 0 else ndtr(seen) if shape == 1 else np.exp(seen / 2.0)
