"""Joint distributions in rational numbers."""

from __future__ import annotations

from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np


def fractions(values: np.ndarray) -> np.ndarray:
    """Return an array of Fractions, each exactly the number given."""
    array = np.asarray(values, dtype=object)
    return np.vectorize(Fraction, otypes=[object])(array)


def rational_joint(posterior: Any, marginal: Any, m: int) -> np.ndarray | None:
    """Return the joint distribution in Fractions if it was given so, else None."""
    p = np.asarray(posterior, dtype=object)
    q = np.full(m, Fraction(1, m)) if marginal is None else np.asarray(marginal, dtype=object)
    if not all(isinstance(v, Rational) for v in (*p.ravel(), *q.ravel())):
        return None
    for sums, name in ((p.sum(axis=1), "posterior"), (np.array([q.sum()]), "marginal")):
        if (sums != 1).any():
            bad = sums[sums != 1][0]
            raise ValueError(f"{name} given in rationals must sum to exactly one, got {bad}")
    return fractions(q)[:, None] * fractions(p)
