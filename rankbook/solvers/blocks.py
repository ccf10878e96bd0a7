"""A function that is a sum over blocks of rows, as the solvers take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankbook.solvers.newton import Objective

__all__ = ["SumOfBlocks"]


class SumOfBlocks:
    r"""The sum of objectives, :math:`\sum_k w_k F_k(x)`: value, gradient and Hessian are sums.

    Parameters
    ----------
    blocks : sequence of Objective
        Functions of the same parameters, one a block of rows.
    weights : array-like of shape (k,), optional
        What each counts, 1 by default: for means over blocks, the blocks' shares.
    call : callable, optional
        ``call(function, blocks)`` maps a function over the blocks and returns the results in
        order; the built-in `map` by default. A cluster's `map` does as well.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.solvers import minimize
    >>> class Square:
    ...     def __init__(self, centre):
    ...         self.centre = centre
    ...     def value(self, x):
    ...         return float((x - self.centre) @ (x - self.centre))
    ...     def value_gradient_hessian(self, x):
    ...         return self.value(x), 2.0 * (x - self.centre), 2.0 * np.eye(len(x))
    >>> total = SumOfBlocks([Square(0.0), Square(3.0)], weights=[2.0, 1.0])
    >>> minimize(total, np.array([5.0])).x
    array([1.])
    """

    def __init__(
        self,
        blocks: Sequence[Objective],
        weights: Any = None,
        call: Callable[[Callable, Sequence[Objective]], Any] = map,
    ) -> None:
        if not len(blocks):
            raise ValueError("blocks must not be empty")
        self.blocks = blocks
        self.weights = np.ones(len(blocks)) if weights is None else np.asarray(weights, float)
        if self.weights.shape != (len(blocks),):
            raise ValueError(
                f"weights must have shape ({len(blocks)},), one a block, got {self.weights.shape}"
            )
        self._call = call

    def value(self, x: np.ndarray) -> float:
        """Return the sum of the blocks' values.

        Parameters
        ----------
        x : ndarray of shape (p,)
            Parameters.

        Returns
        -------
        float
            The value.
        """
        return float(self.weights @ list(self._call(lambda block: block.value(x), self.blocks)))

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Return the sums of values, gradients and Hessians.

        Parameters
        ----------
        x : ndarray of shape (p,)
            Parameters.

        Returns
        -------
        value : float
            The value.
        gradient : ndarray of shape (p,) or None
            The gradient; None outside the domain of a block.
        hessian : ndarray of shape (p, p), callable or None
            A sum of arrays where all blocks give arrays, else the sum of the products.
        """
        parts = list(self._call(lambda block: block.value_gradient_hessian(x), self.blocks))
        value = float(self.weights @ [part[0] for part in parts])
        if not np.isfinite(value):
            return value, None, None
        gradient = self.weights @ np.stack([part[1] for part in parts])
        hessians = [part[2] for part in parts]
        if not any(callable(hessian) for hessian in hessians):
            return value, gradient, np.tensordot(self.weights, np.stack(hessians), axes=1)
        return value, gradient, lambda v: self._product(hessians, v)

    def _product(self, hessians: list, v: np.ndarray) -> np.ndarray:
        images = [h(v) if callable(h) else h @ v for h in hessians]
        return self.weights @ np.stack(images)
