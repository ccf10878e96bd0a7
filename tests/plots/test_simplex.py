"""The triangle of posteriors: where points land, what contours pass through."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from numpy.testing import assert_allclose  # noqa: E402

from rankbook.plots import simplex_axes, simplex_contour, simplex_grid, to_plane  # noqa: E402


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_corners_are_at_distance_one_and_mixtures_between():
    corners = to_plane(np.eye(3))
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert_allclose(np.linalg.norm(corners[a] - corners[b]), 1)
    assert_allclose(to_plane([1 / 3, 1 / 3, 1 / 3]), corners.mean(axis=0))


def test_grid_is_inside_and_complete():
    grid = simplex_grid(12)
    assert grid.shape == (11 * 10 // 2, 3)
    assert (grid > 0).all()
    assert_allclose(grid.sum(axis=1), 1)
    assert len(np.unique(grid, axis=0)) == len(grid)


def test_contour_lies_on_its_level(ax):
    simplex_axes(ax)
    drawn = simplex_contour(ax, lambda p: p[:, 2] - p[:, 0], [0.25])
    points = np.vstack([path.vertices for path in drawn.get_paths() if len(path.vertices)])
    # The level p3 - p1 = 1/4 is a straight line: x = 1/2 + (p3 - p1)/2.
    assert_allclose(points[:, 0], 0.625, atol=1e-12)
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3"]
    assert not ax.axison
    assert simplex_contour(ax, lambda p: p[:, 0], [0, 0.5, 1], filled=True).filled


def test_bad_input():
    with pytest.raises(ValueError, match="posterior must have three classes, got 4"):
        to_plane([0.25] * 4)
    with pytest.raises(ValueError, match="n must be at least 3"):
        simplex_grid(2)
    with pytest.raises(TypeError, match="function must be callable, got 0.5"):
        simplex_contour(plt.figure().gca(), 0.5, [0.5])
