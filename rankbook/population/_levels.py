"""Class masses at the levels of a score: what is misranked and what is tied."""

from __future__ import annotations

from typing import Any

import numpy as np


def misranked(masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how much of each pair of classes is out of order, and how much is tied level by level.

    Sums and products alone: small masses keep their digits, and Fractions stay Fractions.

    Parameters
    ----------
    masses : ndarray of shape (L, K)
        Mass of each class at each level, lowest level first.

    Returns
    -------
    below : ndarray of shape (K, K)
        Entry [j, i] is the mass of pairs with the item of class i strictly below that of class j.
    same : ndarray of shape (K, K)
        Entry [j, i] is the mass of pairs at one level.
    """
    above = np.zeros_like(masses)
    above[:-1] = np.cumsum(masses[:0:-1], axis=0)[::-1]
    return above.T @ masses, masses.T @ masses


def group_levels(scores: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Add up the class masses of equal scores, lowest score first."""
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    first = np.flatnonzero(np.concatenate(([True], sorted_scores[1:] != sorted_scores[:-1])))
    return np.add.reduceat(masses[order], first, axis=0)


def pair_mass(priors: np.ndarray) -> Any:
    """Return P(Y > Y') for two independent draws: products alone, so that nothing cancels."""
    return priors[1:] @ np.cumsum(priors)[:-1]
