"""Drawings of weighted directed graphs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankbook._arrays import as_float, require_finite
from rankbook._edge_weights import check_edge_weights
from rankbook._validation import check_scalar
from rankbook.plots._checks import check_axes, check_list
from rankbook.plots.style import COLOURS

__all__ = ["circle_layout", "draw_graph"]

_NODE_RADIUS = 0.17
_BEND = 0.22
# Where along its edge a weight is written.
_LABEL = 0.4
# Beyond this, lengths would overflow.
_FAR = 1e100


def circle_layout(n: int) -> np.ndarray:
    """Return n points on the unit circle, the first on top, then clockwise.

    Parameters
    ----------
    n : int
        The number of points.

    Returns
    -------
    ndarray of shape (n, 2)
        The points.

    Examples
    --------
    >>> circle_layout(4).round(6).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, -0.0]]
    """
    n = check_scalar(n, "n", low=1, integer=True)
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.0


def _draw_edge(ax, start, end, text: str, bend: float, colour: str, style: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    direction = (end - start) / np.linalg.norm(end - start)
    arrow = FancyArrowPatch(
        start + _NODE_RADIUS * direction,
        end - _NODE_RADIUS * direction,
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-|>",
        mutation_scale=13,
        linewidth=1.5,
        linestyle=style,
        color=colour,
        shrinkA=0,
        shrinkB=0,
    )
    ax.add_patch(arrow)
    # The label rides on the arc, a quadratic Bezier curve, off its middle, where edges may cross.
    normal = np.array([direction[1], -direction[0]])
    control = (start + end) / 2 + normal * (bend * np.linalg.norm(end - start))
    t = _LABEL
    middle = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
    box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"}
    ax.text(*middle, text, ha="center", va="center", color=colour, fontsize=9, bbox=box)


def _check_positions(positions: Any, n: int) -> np.ndarray:
    points = as_float(positions, "positions")
    if points.shape != (n, 2):
        raise ValueError(f"positions must have shape ({n}, 2), got {points.shape}")
    require_finite(points, "positions")
    if len(np.unique(points, axis=0)) < n or np.abs(points).max() > _FAR:
        raise ValueError(f"positions must be distinct points within {_FAR:g} of zero")
    return points


def _edge(edge: Any) -> tuple[int, int]:
    try:
        i, j = edge
        return operator.index(i), operator.index(j)
    except (TypeError, ValueError):
        raise TypeError(f"highlight must hold pairs of nodes, got {edge!r}") from None


def draw_graph(
    weights: Any,
    *,
    ax: Any = None,
    positions: Any = None,
    labels: Sequence[str] | None = None,
    highlight: Iterable[tuple[int, int]] = (),
    fmt: str = "{:g}",
) -> Any:
    """Draw nodes and weighted edges; edges both ways between two nodes are bent apart.

    Parameters
    ----------
    weights : array-like of shape (m, m) or PreferenceGraph
        ``weights[i, j]`` is drawn on an arrow from i to j where it is positive.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    positions : array-like of shape (m, 2), optional
        Where the nodes are; a circle if not given.
    labels : sequence of str, optional
        Names of the nodes; 1, 2, ... if not given.
    highlight : iterable of (int, int)
        Edges drawn dashed in another colour, such as those that an order violates.
    fmt : str, default "{:g}"
        How a weight is written.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> ax = draw_graph([[0, 2], [0, 0]])
    >>> [text.get_text() for text in ax.texts]
    ['2', '1', '2']
    """
    import matplotlib.pyplot as plt

    a = check_edge_weights(weights, "weights")
    n = len(a)
    if ax is None:
        _, ax = plt.subplots(figsize=(3.2, 3.0))
    check_axes(ax)
    points = circle_layout(n) if positions is None else _check_positions(positions, n)
    names = [str(i + 1) for i in range(n)] if labels is None else check_list(labels, "labels", n)
    marked = {_edge(edge) for edge in check_list(highlight, "highlight")}
    if not isinstance(fmt, str):
        raise TypeError(f"fmt must be a format such as '{{:g}}', got {fmt!r}")
    for i, j in np.argwhere(a > 0).tolist():
        lost = (i, j) in marked
        colour, style = (COLOURS["vermillion"], "--") if lost else (COLOURS["blue"], "-")
        bend = _BEND if a[j, i] > 0 else 0.0
        _draw_edge(ax, points[i], points[j], fmt.format(float(a[i, j])), bend, colour, style)
    for point, name in zip(points, names, strict=True):
        ax.add_patch(plt.Circle(point, _NODE_RADIUS, facecolor="white", edgecolor=COLOURS["black"]))
        ax.text(*point, name, ha="center", va="center", fontsize=11, color=COLOURS["black"])
    low, high = points.min(axis=0) - 0.35, points.max(axis=0) + 0.35
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axis("off")
    return ax
