"""Three normal classes on the line: the simulation of Uematsu and Lee (2013), section 6.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._arrays import as_array
from rankbook._room import require_room
from rankbook._validation import check_rng, check_scalar
from rankbook.population import NormalMixture

__all__ = ["make_tripartite_normal"]

_CLASSES = 3
# Numbers an item: feature and label, mean and spread of its class, and the draw.
_NUMBERS = 5


def make_tripartite_normal(
    n_samples: Any = 1500,
    *,
    means: Any = (-2.0, 0.0, 2.0),
    sds: Any = 1.0,
    priors: Any = None,
    rng: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Simulate items of three classes, :math:`X \mid Y = k \sim N(\mu_k, \sigma_k^2)`.

    The least risks, the posterior and the density are those of
    `rankbook.population.NormalMixture` with the same means, standard deviations and priors. With
    the default ones and equal costs the best score is an increasing function of x, and of

    .. math:: f_0^*(x) = \frac{p_2(x) + p_3(x)}{p_1(x) + p_2(x)}
       = \frac{e^{2x} + e^2}{e^{-2x} + e^2} .

    Parameters
    ----------
    n_samples : int or array-like of shape (3,), default=1500
        Number of items, whose labels are then drawn; or the number of each class, which come one
        class after the other.
    means : array-like of shape (3,), default=(-2, 0, 2)
        Mean of each class.
    sds : float or array-like of shape (3,), default=1.0
        Standard deviations, positive.
    priors : array-like of shape (3,), optional
        Class probabilities; equal by default. They cannot be given with numbers of each class.
    rng : int, Generator or None, default=None
        Seed or generator.

    Returns
    -------
    X : ndarray of shape (n, 1)
        Features.
    y : ndarray of shape (n,)
        Labels 0, 1, 2.

    References
    ----------
    K. Uematsu and Y. Lee (2013), Statistical optimality in multipartite ranking and ordinal
    regression: section 6.1, where each class has 500 items.

    Examples
    --------
    >>> X, y = make_tripartite_normal([500, 500, 500], rng=0)
    >>> X.shape, np.bincount(y).tolist()
    ((1500, 1), [500, 500, 500])
    >>> from rankbook.metrics import pairwise_risk
    >>> X, y = make_tripartite_normal(200_000, rng=0)
    >>> print(f"{pairwise_risk(y, X[:, 0]):.4f} {NormalMixture([-2, 0, 2]).bayes_risk():.4f}")
    0.0532 0.0532
    """
    mixture = NormalMixture(means, sds, priors)
    if mixture.n_classes != _CLASSES:
        raise ValueError(f"means must have three entries, one a class, got {mixture.n_classes}")
    n = _check_n_samples(n_samples)
    if isinstance(n, np.ndarray) and priors is not None:
        raise ValueError("priors must be None where n_samples gives the number of each class")
    with np.errstate(over="ignore"):
        X, y = mixture.sample(n, rng) if isinstance(n, int) else _sample_counts(mixture, n, rng)
    if not np.isfinite(X).all():
        raise ValueError(
            f"means and sds must give features within the range of floats, got {mixture!r}"
        )
    return X, y


def _check_n_samples(n_samples: Any) -> int | np.ndarray:
    """Return the number of items, or the number of each class."""
    counts = as_array(n_samples, "n_samples")
    if counts.ndim == 0:
        n = check_scalar(n_samples, "n_samples", low=1, integer=True)
        require_room({"n_samples": n}, float(n) * _NUMBERS)
        return n
    if counts.shape != (_CLASSES,):
        raise ValueError(
            f"n_samples must be a number or have shape (3,), one number a class, got shape "
            f"{counts.shape}"
        )
    numbers = [check_scalar(n, "n_samples", low=0, integer=True) for n in counts.tolist()]
    if not any(numbers):
        raise ValueError("n_samples must have a positive sum, got [0, 0, 0]")
    require_room({"sum(n_samples)": sum(numbers)}, float(sum(numbers)) * _NUMBERS)
    return np.array(numbers)


def _sample_counts(
    mixture: NormalMixture, counts: np.ndarray, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat(np.arange(_CLASSES), counts)
    noise = check_rng(rng).standard_normal(y.size)
    return (mixture.means[y] + mixture.sds[y] * noise)[:, None], y
