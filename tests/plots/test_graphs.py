"""Drawings of graphs hold what they should: nodes, arrows, weights."""

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import Circle, FancyArrowPatch

from rankbook.plots import COLOURS, circle_layout, draw_graph


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_every_edge_has_an_arrow_and_every_node_a_circle():
    a = np.array([[0, 1, 5], [0, 0, 2], [2, 0, 0]])
    ax = draw_graph(a)
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    circles = [patch for patch in ax.patches if isinstance(patch, Circle)]
    assert len(arrows) == 4
    assert len(circles) == 3
    assert sorted(text.get_text() for text in ax.texts) == sorted("1522" + "123")


def test_highlighted_edges_differ_in_line_style_and_colour():
    ax = draw_graph([[0, 1], [2, 0]], highlight=[(1, 0)], labels=["a", "b"], fmt="{:.1f}")
    first, second = (p for p in ax.patches if isinstance(p, FancyArrowPatch))
    assert first.get_linestyle() != second.get_linestyle()
    assert matplotlib.colors.to_hex(second.get_edgecolor()) == COLOURS["vermillion"].lower()
    assert [text.get_text() for text in ax.texts] == ["1.0", "2.0", "a", "b"]


def test_positions_are_used_and_the_view_holds_them():
    points = np.array([[0.0, 0.0], [5.0, 1.0]])
    _, ax = plt.subplots()
    assert draw_graph([[0, 1], [0, 0]], ax=ax, positions=points) is ax
    assert ax.get_xlim()[0] < 0 < 5 < ax.get_xlim()[1]
    np.testing.assert_allclose(np.linalg.norm(circle_layout(7), axis=1), 1)


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match="weights must be a square matrix"):
        draw_graph([[0, 1, 2]])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"positions": [[0, 0], [0, 0]]}, ValueError, "positions must be distinct points"),
        ({"positions": [[0, 0]]}, ValueError, r"positions must have shape \(2, 2\)"),
        ({"highlight": [3]}, TypeError, "highlight must hold pairs of nodes, got 3"),
        ({"highlight": 3}, TypeError, "highlight must be a sequence, got 3"),
        ({"fmt": 3}, TypeError, "fmt must be a format"),
    ],
)
def test_bad_options(options, error, message):
    axes = plt.subplots()[1]
    with pytest.raises(error, match=message):
        draw_graph([[0, 1], [0, 0]], ax=axes, **options)
    plt.close("all")
