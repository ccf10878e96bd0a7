"""A function on an affine subspace, as Newton's method sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook.solvers.newton import Objective

__all__ = ["Restricted"]


class Restricted:
    """The objective at ``origin + basis @ t``, as a function of t."""

    def __init__(self, objective: Objective, origin: np.ndarray, basis: np.ndarray) -> None:
        self.objective = objective
        self.origin = origin
        self.basis = basis

    def point(self, t: np.ndarray) -> np.ndarray:
        """The point of the whole space."""
        return self.origin + self.basis @ t

    def value(self, t: np.ndarray) -> float:
        """Value alone."""
        return self.objective.value(self.point(t))

    def value_gradient_hessian(self, t: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient and Hessian with respect to t."""
        value, gradient, hessian = self.objective.value_gradient_hessian(self.point(t))
        if gradient is None:
            return value, None, None
        return value, self.basis.T @ gradient, self.basis.T @ hessian @ self.basis
