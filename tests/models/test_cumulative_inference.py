"""Inference in cumulative link models: errors, intervals, tests and tables."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize as scipy_minimize

from rankbook.models import CumulativeLink, anova
from tests.models.clm_samples import (
    ALL_LINKS,
    CONCAVE_LINKS,
    direct_nll,
    general_nll,
    simulate,
    standardised,
)


def test_standard_errors_cover():
    inside = np.zeros(5)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 2))
        y = np.digitize(X @ [1.0, -0.5] + rng.logistic(size=200), [-1.0, 0.5, 2.0])
        low, high = CumulativeLink().fit(X, y).confint(0.9).T
        truth = np.array([1.0, -0.5, -1.0, 0.5, 2.0])
        inside += (low <= truth) & (truth <= high)
    # 0.9 within four binomial standard errors.
    assert np.all(np.abs(inside / 120 - 0.9) < 4 * np.sqrt(0.09 / 120))


def test_summary_table():
    X, y = simulate()
    frame = pd.DataFrame(X, columns=["age", "income", "rooms & <more>"])
    model = CumulativeLink().fit(frame, y)
    summary = model.summary(level=0.9)
    assert summary.names == ("age", "income", "rooms & <more>", "0|1", "1|2", "2|3", "3|4")
    np.testing.assert_array_equal(summary.values[:, 4:], model.confint(0.9))
    text = str(summary)
    for piece in ("Log-likelihood", "P>|z|", "[0.05", "0.95]", "income", "2|3", "AIC"):
        assert piece in text
    assert len({len(line) for line in text.splitlines() if set(line) <= {"=", "-"}}) == 1
    html = summary._repr_html_()
    assert "rooms &amp; &lt;more&gt;" in html
    assert html.count("<tr>") == 8
    assert ("AIC", f"{2 * 7 - 2 * model.log_likelihood_:.3f}") in summary.facts
    assert ("BIC", f"{np.log(400) * 7 - 2 * model.log_likelihood_:.3f}") in summary.facts
    table = summary.to_frame()
    assert table.loc["income", "coef"] == model.coef_[1]
    assert list(table.columns) == ["coef", "std err", "z", "P>|z|", "[0.05", "0.95]"]


def test_summary_tests_no_threshold_and_nothing_under_a_ridge():
    X, y = simulate()
    summary = CumulativeLink(scale=[0]).fit(X, y).summary()
    tested = ~np.isnan(summary.values[:, 3])
    np.testing.assert_array_equal(tested, [True] * 3 + [False] * 4 + [True])
    text = str(summary)
    assert "<0.001" in text and "0.000" not in text.split("P>|z|")[1].split("0|1")[0]
    line = next(line for line in text.splitlines() if line.startswith("1|2"))
    assert len(line.split()) == 5
    assert "nan" not in text
    ridge = CumulativeLink(alpha=0.1).fit(X, y).summary()
    assert np.isnan(ridge.values[:, 2:4]).all()
    assert ("Ridge", "0.1") in ridge.facts
    assert not {"AIC", "BIC"} & {name for name, _ in ridge.facts}


def test_summary_of_a_robust_fit_compares_no_likelihoods():
    """The likelihood that it maximises is not trusted: neither ratios of it nor AIC and BIC."""
    X, y = simulate()
    model = CumulativeLink(covariance="robust").fit(X, y)
    facts = dict(model.summary().facts)
    assert facts["Covariance"] == "robust" and model.n_clusters_ is None
    assert facts["Log pseudolik."] == f"{model.log_likelihood_:.3f}"
    assert not {"AIC", "BIC", "Log-likelihood"} & set(facts)
    model.fit(X, y, cluster=np.arange(400) // 10)
    assert dict(model.summary().facts)["Covariance"] == "40 clusters" and model.n_clusters_ == 40


@CONCAVE_LINKS
@pytest.mark.parametrize("row", [0, 3])
def test_profile_ends_lose_the_quantile(link, row):
    X, y = standardised(n=120, link=link, seed=2, cuts=(-1.0, 1.0))
    model = CumulativeLink(link, nominal=[2] if row else None).fit(X, y)
    for level in (0.5, 0.99):
        for end in model.confint(level, method="profile")[row]:
            free = np.delete(np.arange(len(model.params_)), row)

            def fixed(v, end=end, free=free):
                params = np.empty(len(model.params_))
                params[free], params[row] = v, end
                return general_nll(params, X, y, link, nominal=(2,) if row else ())

            peer = scipy_minimize(
                fixed, model.params_[free], method="Nelder-Mead",
                options={"xatol": 1e-8, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000,
                         "adaptive": True},
            )  # fmt: skip
            loss = peer.fun + model.log_likelihood_
            assert loss == pytest.approx(stats.chi2.ppf(level, 1) / 2, abs=1e-5)


def test_profile_intervals_of_large_samples_are_wald_intervals():
    X, y = standardised(n=20_000, seed=3)
    model = CumulativeLink(scale=[1]).fit(X, y)
    wald, profile = model.confint(), model.confint(method="profile")
    width = wald[:, 1] - wald[:, 0]
    assert np.abs((profile - wald) / width[:, None]).max() < 0.01
    assert np.abs((profile - wald) / width[:, None]).max() > 1e-6


def test_profile_refuses_a_ridge_and_bad_methods():
    X, y = simulate()
    with pytest.raises(ValueError, match="alpha=0"):
        CumulativeLink(alpha=1.0).fit(X, y).confint(method="profile")
    with pytest.raises(ValueError, match="method"):
        CumulativeLink().fit(X, y).confint(method="bootstrap")


def test_odds_ratios():
    X, y = standardised()
    model = CumulativeLink(nominal=[1]).fit(X, y)
    table = model.odds_ratios(0.9)
    np.testing.assert_allclose(table.values[:, 0], np.exp(model.params_[:6]))
    np.testing.assert_allclose(table.values[:, 1:], np.exp(model.confint(0.9)[:6]))
    prob = model.predict_cumulative(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    odds = (1 - prob) / prob
    np.testing.assert_allclose(odds[1] / odds[0], table.to_frame().loc["x0", "odds ratio"])
    with pytest.raises(TypeError, match="level must be"):
        CumulativeLink().fit(X, y).odds_ratios("high")
    for other in (CumulativeLink("probit"), CumulativeLink(scale=[0])):
        with pytest.raises(ValueError, match="logit link and no scale"):
            other.fit(X, y).odds_ratios()


def test_anova_refuses_what_is_not_nested():
    X, y = simulate()
    small, large = CumulativeLink().fit(X[:, :1], y), CumulativeLink().fit(X, y)
    table = anova(large, small)
    assert table.values[1, 4] == 2
    assert table.values[1, 3] == pytest.approx(2 * (large.log_likelihood_ - small.log_likelihood_))
    assert table.values[1, 5] == pytest.approx(stats.chi2.sf(table.values[1, 3], 2), rel=1e-9)
    assert "model 2: x0 + x1 + x2" in str(table)
    cases = [
        ((large,), "at least two"),
        ((large, CumulativeLink()), "fitted"),
        ((large, CumulativeLink(alpha=1.0).fit(X, y)), "alpha=0"),
        ((small, CumulativeLink().fit(X[:-1], y[:-1])), "same items"),
        ((small, CumulativeLink().fit(X, y[::-1])), "same y"),
        ((small, CumulativeLink("probit").fit(X, y)), "share a link"),
        ((small, CumulativeLink().fit(X[:, 1:2], y)), "differ in size"),
        ((CumulativeLink().fit(X[:, 2:], y), CumulativeLink().fit(X[::-1, :2], y)), "not nested"),
    ]
    for models, message in cases:
        with pytest.raises(ValueError, match=message):
            anova(*models)


def test_drop1_drops_columns_terms_and_scale_effects():
    X, y = standardised()
    model = CumulativeLink(nominal=[0], scale=[1]).fit(X, y)
    table = model.drop1()
    assert table.names == ("(none)", "x0", "x1", "x2", "scale: x1")
    np.testing.assert_array_equal(table.values[1:, 4], [4, 1, 1, 1])
    smaller = CumulativeLink(nominal=[0]).fit(X, y)
    assert table.values[4, 1] == pytest.approx(smaller.log_likelihood_, rel=1e-10)
    assert table.values[4, 3] == pytest.approx(anova(smaller, model).values[1, 3], rel=1e-6)
    without = CumulativeLink(nominal=[0], scale=[1]).fit(X[:, :2], y)
    assert table.values[3, 1] == pytest.approx(without.log_likelihood_, rel=1e-10)
    both = model.drop1({"both": [0, "x2"]})
    assert both.values[1, 4] == 5
    with pytest.raises(ValueError, match="alpha=0"):
        CumulativeLink(alpha=1.0).fit(X, y).drop1()
    for terms in (["x0"], "x0"):
        with pytest.raises(TypeError, match="terms must be a dict"):
            model.drop1(terms)


def test_a_model_without_columns_has_nothing_to_drop():
    y = simulate()[1]
    for covariance, rows in (("hessian", 1), ("robust", 0)):
        table = CumulativeLink(covariance=covariance).fit(None, y).drop1()
        assert len(table.names) == len(table.to_frame()) == rows
        assert "P>chi2" in str(table) and "P&gt;chi2" in table._repr_html_()


def brute_force_scores(model, X, y, link, step=1e-6):
    """Gradients of each item's log-probability by central differences."""
    columns = []
    for e in np.eye(len(model.params_)) * step:
        logs = []
        for sign in (1, -1):
            values = [
                -direct_nll(model.params_ + sign * e, X[i : i + 1], y[i : i + 1], link)
                for i in range(len(y))
            ]
            logs.append(np.array(values))
        columns.append((logs[0] - logs[1]) / (2 * step))
    return np.column_stack(columns)


@ALL_LINKS
def test_robust_and_cluster_covariance_against_brute_force(link):
    X, y = standardised(n=90, link=link, seed=4, cuts=(-1.0, 1.0))
    plain = CumulativeLink(link).fit(X, y)
    scores = brute_force_scores(plain, X, y, link)
    bread = plain.covariance_
    robust = CumulativeLink(link, covariance="robust").fit(X, y)
    np.testing.assert_allclose(robust.covariance_, bread @ scores.T @ scores @ bread, rtol=1e-5)
    np.testing.assert_array_equal(robust.params_, plain.params_)
    groups = np.arange(90) % 17
    sums = np.array([scores[groups == g].sum(axis=0) for g in range(17)])
    expected = bread @ sums.T @ sums @ bread * 17 / 16
    clustered = CumulativeLink(link, covariance="robust")
    names = np.array([f"group {g}" for g in groups])
    clustered.fit(X, y, cluster=names)
    np.testing.assert_allclose(clustered.covariance_, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="two groups"):
        clustered.fit(X, y, cluster=np.zeros(90))


def test_robust_covariance_of_weights_and_of_copies():
    X, y = standardised(n=150)
    counts = np.random.default_rng(0).integers(0, 4, size=150)
    weighted = CumulativeLink(covariance="robust").fit(X, y, sample_weight=counts)
    repeated = CumulativeLink(covariance="robust")
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-7)
    # In clusters too, where items of weight zero bring theirs and are no part of the fit.
    groups = np.arange(150) % 20
    weighted.fit(X, y, sample_weight=counts, cluster=groups)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts), cluster=groups.repeat(counts))
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-7)
    # Each item once more in its own cluster: the clustered errors do not shrink, others do.
    twice = CumulativeLink(covariance="robust")
    twice.fit(np.tile(X, (2, 1)), np.tile(y, 2), cluster=np.tile(np.arange(150), 2))
    once = CumulativeLink(covariance="robust").fit(X, y)
    np.testing.assert_allclose(
        twice.standard_errors_, once.standard_errors_ * np.sqrt(150 / 149), rtol=1e-7
    )
