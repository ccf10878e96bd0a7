"""Pictures over the triangle of posteriors of three classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbook._validation import (
    check_flag,
    check_posterior,
    check_same_length,
    check_scalar,
    check_vector,
)
from rankbook.plots._checks import check_axes, check_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.tri import TriContourSet

__all__ = ["simplex_axes", "simplex_contour", "simplex_grid", "to_plane"]

# Finer grids take matplotlib seconds to triangulate, and look no different.
_FINEST = 500
# Class 1 at the lower left, class 3 at the lower right, class 2 on top: up the scale is right.
_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])


def to_plane(posterior: Any) -> np.ndarray:
    """Return the points of the triangle at which posteriors of three classes are drawn.

    Parameters
    ----------
    posterior : array-like of shape (..., 3)
        P(Y = k | x).

    Returns
    -------
    ndarray of shape (..., 2)
        Points of a triangle of side 1: class 1 is its lower left corner, class 2 the top one,
        class 3 the lower right one.

    Examples
    --------
    >>> to_plane([[1, 0, 0], [0.5, 0, 0.5]])
    array([[0. , 0. ],
           [0.5, 0. ]])
    """
    p = check_posterior(posterior)
    if p.shape[-1] != 3:
        raise ValueError(f"posterior must have three classes, got {p.shape[-1]}")
    return p @ _CORNERS


def simplex_grid(n: int = 60) -> np.ndarray:
    """Return the posteriors with coordinates that are multiples of 1/n, inside the triangle.

    Parameters
    ----------
    n : int
        Number of steps along a side, at least 3.

    Returns
    -------
    ndarray of shape ((n - 1)(n - 2)/2, 3)
        Posteriors, all three probabilities positive.

    Examples
    --------
    >>> simplex_grid(4).tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    n = check_scalar(n, "n", low=3, integer=True)
    last, middle = np.meshgrid(np.arange(1, n), np.arange(1, n), indexing="ij")
    inside = last + middle < n
    last, middle = last[inside], middle[inside]
    return np.column_stack([n - last - middle, middle, last]) / n


def simplex_axes(ax: Axes, labels: Sequence[str] = ("1", "2", "3")) -> Axes:
    """Turn axes into an empty triangle with a label at each corner.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    labels : sequence of str
        What to write at the corners of class 1, 2 and 3.

    Returns
    -------
    matplotlib Axes
        The same axes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> [text.get_text() for text in simplex_axes(ax, ("low", "middle", "high")).texts]
    ['low', 'middle', 'high']
    >>> plt.close(figure)
    """
    check_axes(ax)
    labels = check_list(labels, "labels", 3)
    outline = np.vstack([_CORNERS, _CORNERS[:1]])
    ax.plot(*outline.T, color="0.35", linewidth=1.2, linestyle="-", zorder=4)
    places = (("right", "top"), ("center", "bottom"), ("left", "top"))
    for corner, label, (across, up) in zip(_CORNERS, labels, places, strict=True):
        ax.annotate(
            label,
            corner,
            ha=across,
            va=up,
            xytext=(0, 3 if up == "bottom" else -3),
            textcoords="offset points",
        )
    ax.set(aspect="equal", xlim=(-0.08, 1.08), ylim=(-0.1, 0.97))
    ax.axis("off")
    return ax


def simplex_contour(
    ax: Axes,
    function: Callable[[np.ndarray], np.ndarray],
    levels: Sequence[float],
    *,
    n: int = 90,
    filled: bool = False,
    **style: Any,
) -> TriContourSet:
    """Draw where a function of the posterior takes given values.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    function : callable
        Takes posteriors of shape (m, 3), returns m values.
    levels : sequence of float
        The values, in increasing order.
    n : int
        Steps along a side of the grid on which the function is evaluated, at most 500.
    filled : bool
        Fill the bands between the levels instead of drawing lines.
    **style
        Handed on to matplotlib's `tricontour` or `tricontourf`.

    Returns
    -------
    matplotlib TriContourSet
        What was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> drawn = simplex_contour(simplex_axes(ax), lambda p: p[:, 2] - p[:, 0], [-0.5, 0.0, 0.5])
    >>> drawn.levels.tolist()
    [-0.5, 0.0, 0.5]
    >>> plt.close(figure)
    """
    check_axes(ax)
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}")
    heights = check_vector(levels, "levels")
    posterior = simplex_grid(check_scalar(n, "n", low=3, high=_FINEST, integer=True))
    values = check_vector(function(posterior), "function(posterior)")
    check_same_length(values.size, len(posterior), "function(posterior)", "posterior")
    filled = check_flag(filled, "filled")
    draw = ax.tricontourf if filled else ax.tricontour
    return draw(*to_plane(posterior).T, values, levels=heights, **style)
