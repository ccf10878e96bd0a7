"""Surrogate residuals of a cumulative link model, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._links import LINKS
from rankbook._validation import check_choice, check_same_length, check_scalar, check_scores
from rankbook.plots._checks import check_axes, check_list
from rankbook.plots.style import COLOURS

__all__ = ["draw_residuals"]


def draw_residuals(
    residuals: Any, x: Any, *, link: str = "logit", n_bins: int = 12, axes: Any = None
) -> Any:
    """Draw surrogate residuals against their distribution and against a column.

    Left, their quantiles against those of the link's error, centred: on the diagonal if the model
    holds. Right, residuals against `x`, with the mean of each of some bins of equally many items,
    and two standard errors: a trend says that the column's effect is not linear or not the same
    for all classes, a funnel that the spread depends on it.

    Parameters
    ----------
    residuals : array-like of shape (n,)
        From `CumulativeLink.surrogate_residuals`.
    x : array-like of shape (n,)
        A column, or the scores.
    link : str, default="logit"
        The model's link.
    n_bins : int, default=12
        Bins of the right panel.
    axes : pair of matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    pair of matplotlib Axes
        The two panels.

    References
    ----------
    D. Liu, H. Zhang (2018), Residuals and diagnostics for ordinal regression models: a surrogate
    approach, J. Amer. Statist. Assoc. 113, 845-854.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from rankbook.plots import draw_residuals
    >>> rng = np.random.default_rng(0)
    >>> left, right = draw_residuals(rng.logistic(size=200), rng.normal(size=200))
    >>> left.get_ylabel()
    'surrogate residual'
    """
    import matplotlib.pyplot as plt

    residuals, x = check_scores(residuals, "residuals"), check_scores(x, "x")
    check_same_length(residuals.size, x.size, "residuals", "x")
    check_scalar(n_bins, "n_bins", low=1, high=residuals.size, integer=True)
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(7.2, 3.2), layout="constrained")[1]
    left, right = (check_axes(ax, "axes") for ax in check_list(axes, "axes", 2))
    dots = {
        "s": 6,
        "alpha": 0.4,
        "color": COLOURS["grey"],
        "edgecolors": "none",
        "rasterized": True,
    }
    law = LINKS[check_choice(link, LINKS, "link")]
    places = (np.arange(residuals.size) + 0.5) / residuals.size
    theory = law.quantile(places) - law.mean
    left.plot(theory[[0, -1]], theory[[0, -1]], color=COLOURS["vermillion"], linestyle="--")
    left.scatter(theory, np.sort(residuals), **dots)
    left.set(xlabel=f"quantile of the {link} error", ylabel="surrogate residual")
    right.scatter(x, residuals, **dots)
    bins = np.array_split(np.argsort(x, kind="stable"), n_bins)
    middle = [x[i].mean() for i in bins]
    mean = [residuals[i].mean() for i in bins]
    error = [2 * residuals[i].std() / np.sqrt(len(i)) for i in bins]
    right.axhline(0.0, color=COLOURS["vermillion"], linestyle="--")
    right.errorbar(middle, mean, error, color=COLOURS["blue"], marker="o", linestyle="-", ms=4)
    right.set(ylabel="surrogate residual")
    return left, right
