"""Data that leave a minimum unattained or coefficients undetermined, without a ridge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.losses import Squared
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design, least_norm_shift, null_space
from rankbook.solvers.separation import separation

__all__ = ["least_norm_items", "least_norm_pairs", "warn_if_separated"]

# Beyond this many columns their independence is not examined.
_MAX_COLUMNS = 1500


def warn_if_separated(rows: Any) -> None:
    """Warn if a direction lowers no margin and raises some."""
    found = separation(rows)
    if found is not None:
        warnings.warn(
            f"a linear score separates the classes of y {'' if found.complete else 'in part, '}"
            "so that the loss has no minimiser with alpha=0; the objective is within the tolerance "
            "of its infimum. Set alpha > 0",
            SeparationWarning,
            stacklevel=4,
        )


def _warn_collinear() -> None:
    warnings.warn(
        "columns of X are linearly dependent, so that the coefficients are not unique with "
        "alpha=0; those of least norm are given. Drop columns or set alpha > 0",
        CollinearityWarning,
        stacklevel=4,
    )


def least_norm_pairs(coef: np.ndarray, design: Design, sums: PairSums) -> np.ndarray:
    """Coefficients of least norm with the same score differences within all pairs."""
    p = len(coef)
    if p > _MAX_COLUMNS:
        return coef
    # Scatter of the differences: the Hessian of the squared loss.
    point = sums.with_loss(Squared()).at(np.zeros(sums.n))
    images = [design.adjoint(point.hessian_product(design.scores(e))) for e in np.eye(p)]
    flat = null_space(np.stack(images))
    if not flat.shape[1]:
        return coef
    _warn_collinear()
    directions = design.coef(flat)
    return coef + directions @ least_norm_shift(coef, directions)


def least_norm_items(
    coef: np.ndarray, intercept: float, design: Design, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Coefficients of least norm, and the intercept, that give all items the same scores."""
    p = len(coef)
    if p > _MAX_COLUMNS:
        return coef, intercept
    gram = np.empty((p + 1, p + 1))
    gram[:p, :p] = design.gram(weights)
    gram[:p, p] = gram[p, :p] = design.adjoint(weights)
    gram[p, p] = weights.sum()
    flat = null_space(gram)
    if not flat.shape[1]:
        return coef, intercept
    _warn_collinear()
    directions = design.coef(flat[:p])
    step = least_norm_shift(coef, directions)
    return coef + directions @ step, intercept + float(flat[p] @ step)
