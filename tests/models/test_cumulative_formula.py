"""Formulas for cumulative link models."""

import sys

import numpy as np
import pandas as pd
import pytest

from rankbook.models import CumulativeLink, anova, design_matrix, fit_formula


@pytest.fixture
def data():
    pytest.importorskip("formulaic")
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "z": rng.normal(size=n),
            "group": rng.choice(["a", "b", "c"], n),
            "w": rng.integers(1, 3, n),
            "known": rng.normal(size=n) * 0.2,
        }
    )
    latent = frame["x"] + 0.5 * (frame["group"] == "c") + rng.logistic(size=n)
    names = np.array(["low", "mid", "high"])
    codes = np.digitize(latent, [-0.5, 1.0])
    return frame.assign(y=pd.Categorical(names[codes], categories=names, ordered=True))


def columns(data):
    dummies = pd.get_dummies(data["group"], drop_first=True, dtype=float)
    return pd.concat([data[["x"]], dummies], axis=1)


def test_formula_is_the_fit_of_its_columns(data):
    model = fit_formula("y ~ x + C(group)", data, link="probit", sample_weight="w", offset="known")
    peer = CumulativeLink("probit")
    peer.fit(columns(data), data["y"], sample_weight=data["w"], offset=data["known"])
    np.testing.assert_allclose(model.params_, peer.params_, rtol=1e-9)
    assert model.param_names_[:3] == ["x", "C(group)[T.b]", "C(group)[T.c]"]
    assert model.param_names_[3:] == ["low|mid", "mid|high"]
    assert model.terms_ == {"x": ["x"], "C(group)": ["C(group)[T.b]", "C(group)[T.c]"]}
    new = design_matrix(model, data.iloc[:3])
    np.testing.assert_allclose(model.predict_proba(new), peer.predict_proba(columns(data)[:3]))


def test_terms_in_their_roles(data):
    model = fit_formula("y ~ x + C(group)", data, nominal="~ C(group)", scale=["z"])
    peer = CumulativeLink(nominal=["b", "c"], scale=["z"])
    peer.fit(columns(data).assign(z=data["z"]), data["y"])
    assert model.log_likelihood_ == pytest.approx(peer.log_likelihood_, rel=1e-9)
    table = model.drop1()
    assert table.names == ("(none)", "x", "C(group)", "z", "scale: z")
    assert table.values[2, 4] == 4
    smaller = fit_formula("y ~ x + z", data, scale="z")
    assert table.values[2, 3] == pytest.approx(anova(smaller, model).values[1, 3], rel=1e-5)


def test_a_formula_without_terms(data):
    model = fit_formula("y ~ 1", data)
    assert model.param_names_ == ["low|mid", "mid|high"]
    assert design_matrix(model, data) is None


def test_a_dot_is_all_columns_but_the_label(data):
    """As in R, whose formulas also put names that are no identifiers in backticks."""
    model = fit_formula("y ~ .", data[["x", "y", "group"]])
    assert model.terms_ == {"x": ["x"], "group": ["group[T.b]", "group[T.c]"]}
    renamed = data[["x", "y", "group"]].rename(columns={"y": "how much"})
    same = fit_formula("`how much` ~ .", renamed)
    np.testing.assert_array_equal(same.params_, model.params_)
    assert fit_formula("y ~ .", data[["y"]]).param_names_ == ["low|mid", "mid|high"]


def test_bad_formulas_are_named(data):
    with pytest.raises(ValueError, match="use offset='column'"):
        fit_formula("y ~ x + offset(known)", data)
    for formula in ("x + z", "missing ~ x"):
        with pytest.raises(ValueError, match="formula must be 'label ~ terms'"):
            fit_formula(formula, data)
    with pytest.raises(ValueError, match="nominal must name terms"):
        fit_formula("y ~ x", data, nominal="~")
    with pytest.raises(ValueError, match="needs a model from fit_formula"):
        design_matrix(CumulativeLink().fit(None, [0, 1]), data)


def test_a_formula_keeps_its_intercept(data):
    for formula in ("y ~ 0 + x", "y ~ x - 1", "y ~ 0 + C(group)"):
        with pytest.raises(ValueError, match="formula must not take the intercept away"):
            fit_formula(formula, data)


@pytest.mark.filterwarnings("default")
def test_categories_that_the_fit_has_not_seen_are_refused(data):
    """formulaic alone warns, and takes them for the first category."""
    model = fit_formula("y ~ x + group", data)
    new = data.head(4)
    assert model.predict_proba(design_matrix(model, new)).shape == (4, 3)
    with pytest.raises(ValueError, match="cannot read these data with the model's formula"):
        design_matrix(model, new.assign(group=["a", "b", "unseen", "c"]))


def test_missing_formulaic_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"rankbook\[formula\]"):
        fit_formula("y ~ x", pd.DataFrame({"y": [0, 1], "x": [0.0, 1.0]}))


def test_what_cannot_be_read_is_named(data):
    with pytest.raises(ValueError, match="sample_weight must be an array or a column of data"):
        fit_formula("y ~ x", data, sample_weight="v")
    with pytest.raises(ValueError, match="formulaic cannot read"):
        fit_formula("y ~ x +* z", data)
    with pytest.raises(ValueError, match="must hold single terms"):
        fit_formula("y ~ x * z", data, nominal="x * z")
