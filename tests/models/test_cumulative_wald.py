"""Wald tests under a robust covariance, against derivatives by differences and nested models."""

import pickle

import numpy as np
import pytest
from scipy import stats

from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.models import CumulativeLink, anova
from tests.models.clm_samples import general_terms, simulate, standardised


def sandwich(model, X, y, groups, **roles):
    """The covariance by differences of each item's log-probability, a step a parameter."""
    size = len(model.params_)

    def terms(change):
        return general_terms(model.params_ + change, X, y, model.link, **roles)

    steps = 1e-4 * np.eye(size)
    scores = np.column_stack([(terms(e) - terms(-e)) / 2e-4 for e in steps])
    hessian = np.array(
        [
            [
                terms(d + e).sum() - terms(d - e).sum() - terms(e - d).sum() + terms(-d - e).sum()
                for e in steps
            ]
            for d in steps
        ]
    )
    bread = np.linalg.inv(hessian / 4e-8)
    count = groups.max() + 1
    sums = np.zeros((count, size))
    np.add.at(sums, groups, scores)
    factor = count / (count - 1) if count < len(y) else 1.0
    return factor * bread @ sums.T @ sums @ bread


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("nominal,scale", [([], []), ([0], []), ([0], [1])])
def test_drop1_of_a_robust_fit_is_a_wald_test(nominal, scale, clustered):
    X, y = standardised(n=300, seed=2, cuts=(-1.0, 1.0))
    groups = np.arange(300) % 40 if clustered else np.arange(300)
    model = CumulativeLink(nominal=nominal, scale=scale, covariance="robust")
    model.fit(X, y, cluster=groups if clustered else None)
    V = sandwich(model, X, y, groups, nominal=nominal, scale=scale)
    table = model.drop1({"x0": ["x0"], "both": ["x0", 2]})
    names = model.param_names_
    for i, columns in enumerate([("x0",), ("x0", "x2")]):
        rows = [j for j, name in enumerate(names) if name.split(":")[0] in columns]
        b = model.params_[rows]
        statistic = b @ np.linalg.solve(V[np.ix_(rows, rows)], b)
        p_value = stats.chi2.sf(statistic, len(rows))
        assert table.values[i, 0] == pytest.approx(statistic, rel=2e-5)
        assert table.values[i, 1] == len(rows)
        assert table.values[i, 2] == pytest.approx(p_value, rel=1e-3)
    assert table.names == ("x0", "both", *(["scale: x1"] if scale else []))
    assert table.headings == ("Wald", "df", "P>chi2")
    if scale:
        z = model.scale_coef_[0] / np.sqrt(V[-1, -1])
        assert table.values[2, 0] == pytest.approx(z * z, rel=2e-5)
    assert "robust covariance" in str(table)
    assert list(table.to_frame().index) == list(table.names)


def test_copies_of_items_are_no_evidence_in_their_clusters():
    """Each item twice: the likelihood ratio doubles, the Wald test by clusters does not."""
    X, y = standardised(n=150)
    once = CumulativeLink(covariance="robust").fit(X, y).drop1().values
    twice = CumulativeLink(covariance="robust")
    twice.fit(np.tile(X, (2, 1)), np.tile(y, 2), cluster=np.tile(np.arange(150), 2))
    np.testing.assert_allclose(twice.drop1().values[:, 0], once[:, 0] * 149 / 150, rtol=1e-7)
    # The squares of z in the summary are the tests of single columns.
    z = twice.summary().values[:3, 2]
    np.testing.assert_allclose(twice.drop1().values[:, 0], z**2, rtol=1e-10)
    kept = pickle.loads(pickle.dumps(twice))
    np.testing.assert_array_equal(kept.drop1().values, twice.drop1().values)


def test_collinear_columns_are_tested_for_what_the_data_identify():
    X, y = simulate(p=2)
    full = np.column_stack([X, 1.0 + X[:, 0] - 20.0 * X[:, 1]])
    with pytest.warns(CollinearityWarning):
        model = CumulativeLink(covariance="robust").fit(full, y)
        plain = CumulativeLink().fit(full, y)
    table, ratios = model.drop1(), plain.drop1()
    # Any one column may go without loss, as the degrees of freedom of the ratios say too.
    np.testing.assert_array_equal(table.values[:, :2], np.zeros((3, 2)))
    np.testing.assert_array_equal(ratios.values[1:, 4], np.zeros(3))
    np.testing.assert_allclose(ratios.values[1:, 3], 0.0, atol=1e-8)
    # Without the first two, the third alone is left: their effects would be as 1 to -20.
    two = CumulativeLink(covariance="robust").fit(X, y)
    contrast = np.array([20.0, 1.0])
    V = two.covariance_[:2, :2]
    expected = (contrast @ two.coef_) ** 2 / (contrast @ V @ contrast)
    pair = model.drop1({"pair": [0, 1]}).values[0]
    assert pair[:2] == pytest.approx([expected, 1], rel=1e-7)


def test_what_is_not_identified_is_not_tested():
    X, y = simulate(p=2)
    apart = np.column_stack([X, y == 4])
    with pytest.warns(SeparationWarning):
        table = CumulativeLink(covariance="robust").fit(apart, y).drop1()
    assert np.isnan(table.values[2, [0, 2]]).all() and not np.isnan(table.values[:2]).any()
    # Two clusters' sums give a covariance of rank one: no test of two coefficients.
    model = CumulativeLink(covariance="robust").fit(X, y, cluster=np.arange(len(y)) % 2)
    together = model.drop1({"all": [0, 1]}).values[0]
    assert np.isnan(together[[0, 2]]).all() and together[1] == 2
    assert not np.isnan(model.drop1().values).any()


def test_anova_refuses_a_robust_covariance():
    X, y = simulate()
    small = CumulativeLink().fit(X[:, :2], y)
    large = CumulativeLink(covariance="robust").fit(X, y, cluster=np.arange(len(y)) % 50)
    for models in ((small, large), (large, small)):
        with pytest.raises(
            ValueError, match="compares likelihoods.*got covariance='robust'; drop1"
        ):
            anova(*models)
