"""Surrogate residuals, drawn: quantiles against the link's, means of bins against a column."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from rankbook.plots import draw_residuals


def test_quantiles_and_means_of_bins():
    rng = np.random.default_rng(0)
    residuals, x = rng.logistic(size=240), rng.normal(size=240)
    left, right = draw_residuals(residuals, x, n_bins=6)
    points = left.collections[0].get_offsets()
    np.testing.assert_allclose(points[:, 1], np.sort(residuals))
    np.testing.assert_allclose(points[:, 0], stats.logistic.ppf((np.arange(240) + 0.5) / 240))
    line = right.containers[0].lines[0]
    order = np.argsort(x)[:40]
    assert line.get_xdata()[0] == pytest.approx(x[order].mean())
    assert line.get_ydata()[0] == pytest.approx(residuals[order].mean())
    plt.close("all")
    with pytest.raises(ValueError, match="same length"):
        draw_residuals(residuals, x[:-1])


@pytest.mark.parametrize("link", ["probit", "loglog", "cloglog"])
def test_the_diagonal_is_of_the_centred_error(link):
    law = {"probit": stats.norm, "loglog": stats.gumbel_r, "cloglog": stats.gumbel_l}[link]
    residuals = np.random.default_rng(1).normal(size=50)
    axes = plt.subplots(1, 2)[1]
    left, right = draw_residuals(residuals, np.arange(50.0), link=link, axes=axes)
    assert (left, right) == tuple(axes)
    expected = law.ppf((np.arange(50) + 0.5) / 50) - law.mean()
    np.testing.assert_allclose(left.collections[0].get_offsets()[:, 0], expected, atol=1e-10)
    (line,) = left.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), line.get_ydata())
    assert link in left.get_xlabel()
    plt.close("all")
