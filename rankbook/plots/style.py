"""One look for every figure: colour-blind safe, legible on light and on dark pages."""

from importlib import resources
from types import MappingProxyType
from typing import Any

from rankbook._validation import check_choice, check_flag

__all__ = ["COLOURS", "LINESTYLES", "line", "use_style"]

# After Okabe and Ito's palette for the colour blind: its yellow is left out, and three of its
# colours are darkened, so that each has a contrast of 3 to 1 with white.
COLOURS = MappingProxyType(
    {
        "blue": "#0072B2",
        "vermillion": "#D55E00",
        "green": "#009E73",
        "purple": "#AA4499",
        "sky": "#3A9BD1",
        "orange": "#C98500",
        "grey": "#595959",
        "black": "#1A1A1A",
    }
)

LINESTYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), "-")

# One colour, line style and marker for each loss and each method, through the whole book.
_LINES = {
    "exponential": ("vermillion", "--", "s", "exponential"),
    "logistic": ("blue", "-", "o", "logistic"),
    "hinge": ("green", "-.", "^", "hinge"),
    "squared_hinge": ("purple", ":", "D", "squared hinge"),
    "squared": ("orange", (0, (5, 1, 1, 1, 1, 1)), "v", "least squares"),
    "linear": ("sky", (0, (8, 2)), "P", "linear"),
    "bayes": ("black", "-", "*", "best ranking"),
    "cumulative_link": ("sky", (0, (8, 2)), "X", "cumulative link"),
    "proportional_odds": ("sky", (0, (8, 2)), "X", "proportional odds"),
    "orboost": ("orange", (0, (5, 1, 1, 1, 1, 1)), "v", "ORBoost"),
    "regression": ("grey", (0, (1, 1)), "d", "regression"),
    "svor_implicit": ("green", "-.", "^", "SVOR, implicit"),
    "svor_explicit": ("purple", ":", "D", "SVOR, explicit"),
    "pairwise": ("vermillion", "--", "s", "pairwise"),
    "univariate": ("blue", "-", "o", "single items"),
    "value_regularized": ("sky", (0, (8, 2)), "P", "value-regularised"),
    "cost_absolute": ("blue", "-", "o", "absolute costs"),
    "cost_squared": ("green", "-.", "^", "squared costs"),
    "cost_oerr": ("vermillion", "--", "s", "optimistic ERR costs"),
}


def line(name: str, *, marker: bool = False, label: bool = True) -> dict[str, Any]:
    """Return how the curve of a loss or of a method is drawn, everywhere in the book.

    Parameters
    ----------
    name : str
        A loss ("exponential", "logistic", "hinge", "squared_hinge", "squared", "linear"), an
        ordinal cost ("cost_absolute", "cost_squared", "cost_oerr") or a method ("bayes",
        "cumulative_link", "proportional_odds", "orboost", "regression", "svor_implicit",
        "svor_explicit", "pairwise", "univariate", "value_regularized").
    marker : bool, default=False
        Whether the curve's points are marked.
    label : bool, default=True
        Whether the legend's name is given too.

    Returns
    -------
    dict
        Keyword arguments of Matplotlib's ``plot``.

    Examples
    --------
    >>> from rankbook.plots import line
    >>> line("hinge")
    {'color': '#009E73', 'linestyle': '-.', 'label': 'hinge'}
    """
    colour, style, mark, text = _LINES[check_choice(name, _LINES, "name")]
    look: dict[str, Any] = {"color": COLOURS[colour], "linestyle": style}
    if check_flag(marker, "marker"):
        look["marker"] = mark
    if check_flag(label, "label"):
        look["label"] = text
    return look


def use_style() -> None:
    """Give every later figure the book's look.

    The style file sits beside this module (``rankbook.mplstyle``). Its cycle joins a colour
    and a line style, so that no curve is told by colour alone. In a notebook the figures are
    drawn as SVG, which stays sharp at any zoom.

    Examples
    --------
    >>> import matplotlib
    >>> from rankbook.plots import COLOURS, use_style
    >>> with matplotlib.rc_context():
    ...     use_style()
    ...     matplotlib.rcParams["axes.prop_cycle"].by_key()["color"][0] == COLOURS["blue"]
    True
    """
    import matplotlib.pyplot as plt

    with resources.as_file(resources.files("rankbook.plots") / "rankbook.mplstyle") as path:
        plt.style.use(path)
    plt.rcParams["axes.prop_cycle"] = plt.cycler(
        color=list(COLOURS.values()), linestyle=list(LINESTYLES)
    )
    _draw_svg_in_notebooks()


def _draw_svg_in_notebooks() -> None:
    """Switch the inline backend to SVG where a kernel is running, and only there."""
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    shell = get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        set_matplotlib_formats("svg")
