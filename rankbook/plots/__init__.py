"""The book's figures: one style, and one function for each kind of picture.

Matplotlib is imported inside the functions, so that importing this module costs nothing.
"""

from rankbook.plots.graphs import circle_layout, draw_graph
from rankbook.plots.residuals import draw_residuals
from rankbook.plots.simplex import simplex_axes, simplex_contour, simplex_grid, to_plane
from rankbook.plots.style import COLOURS, LINESTYLES, line, use_style

__all__ = [
    "COLOURS",
    "LINESTYLES",
    "circle_layout",
    "draw_graph",
    "draw_residuals",
    "line",
    "simplex_axes",
    "simplex_contour",
    "simplex_grid",
    "to_plane",
    "use_style",
]
