"""The look of the figures: contrast, a cycle that is not colour alone, an opaque background."""

import sys
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgb

from rankbook.plots import COLOURS, LINESTYLES, line, use_style


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        use_style()
        yield


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", COLOURS)
def test_contrast_with_the_background(name):
    background = luminance(plt.rcParams["axes.facecolor"])
    assert (background + 0.05) / (luminance(COLOURS[name]) + 0.05) >= 3.0


def test_no_two_curves_differ_by_colour_alone():
    cycle = list(plt.rcParams["axes.prop_cycle"])
    assert [entry["color"] for entry in cycle] == list(COLOURS.values())
    styles = [str(entry["linestyle"]) for entry in cycle]
    assert styles == [str(style) for style in LINESTYLES]
    assert len(set(styles[:7])) == 7


def test_background_is_opaque_and_light():
    for key in ("figure.facecolor", "axes.facecolor", "savefig.facecolor"):
        assert luminance(plt.rcParams[key]) > 0.9
    assert not plt.rcParams["savefig.transparent"]


def test_a_figure_can_be_drawn(tmp_path):
    fig, ax = plt.subplots()
    lines = [ax.plot([0, 1], [0, k])[0] for k in range(3)]
    fig.savefig(tmp_path / "figure.svg")
    plt.close(fig)
    assert len({line.get_linestyle() for line in lines}) == 3
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_colours_cannot_be_changed():
    with pytest.raises(TypeError):
        COLOURS["blue"] = "red"


def test_a_line_has_the_parts_that_are_asked_for():
    assert set(line("hinge")) == {"color", "linestyle", "label"}
    assert set(line("hinge", marker=True, label=False)) == {"color", "linestyle", "marker"}


def test_a_notebook_draws_vectors_and_nothing_else_does(monkeypatch):
    asked = []
    monkeypatch.setattr("matplotlib_inline.backend_inline.set_matplotlib_formats", asked.append)
    for shell, wanted in (
        (None, []),
        (SimpleNamespace(), []),
        (SimpleNamespace(kernel=1), ["svg"]),
    ):
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        use_style()
        assert asked == wanted
    # Without IPython there is no notebook.
    monkeypatch.setitem(sys.modules, "IPython", None)
    use_style()
    assert asked == ["svg"]
