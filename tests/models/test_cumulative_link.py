"""Cumulative link models against closed forms, statsmodels, R, scipy and brute force."""

import pickle
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import minimize as scipy_minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from statsmodels.miscmodels.ordinal_model import OrderedModel

from rankbook.exceptions import CollinearityError, SeparationError
from rankbook.models import CumulativeLink
from rankbook.models._cumulative_likelihood import Design, Likelihood
from rankbook.models._links import LINKS

DISTRIBUTIONS = {"logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l}
ALL_LINKS = pytest.mark.parametrize("link", list(LINKS))


def simulate(n=400, p=3, link="logit", seed=0, cuts=(-1.5, 0.0, 0.7, 2.0)):
    """Columns on different scales and an ordinal response of the given link."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1.0, 20.0, 0.1])[:p] + np.array([0.0, 50.0, 3.0])[:p]
    b = np.array([0.8, -0.05, 4.0])[:p]
    latent = (X - X.mean(axis=0)) @ b + DISTRIBUTIONS[link].rvs(size=n, random_state=rng)
    return X, np.digitize(latent, cuts)


def direct_nll(params, X, y, link, weights=None, alpha=0.0):
    """The objective as the formula reads, without any care."""
    p = X.shape[1]
    cdf = DISTRIBUTIONS[link].cdf
    ends = np.concatenate([[-np.inf], params[p:], [np.inf]])
    eta = X @ params[:p]
    prob = cdf(ends[y + 1] - eta) - cdf(ends[y] - eta)
    w = np.ones(len(y)) if weights is None else weights
    return -w @ np.log(prob) + alpha / 2 * params[:p] @ params[:p]


# ------------------------------------------------------------- links and likelihood


@ALL_LINKS
def test_links_are_the_distributions_they_say(link):
    z = np.linspace(-5, 3, 41)
    ours, peer = LINKS[link], DISTRIBUTIONS[link]
    np.testing.assert_allclose(ours.cdf(z), peer.cdf(z), rtol=1e-12)
    np.testing.assert_allclose(ours.quantile(peer.cdf(z)), z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.log_cdf(z), peer.logcdf(z), rtol=1e-10)
    np.testing.assert_allclose(ours.log_sf(z), peer.logsf(z), rtol=1e-10)
    np.testing.assert_allclose(ours.log_pdf(z), peer.logpdf(z), rtol=1e-10)
    step = 1e-6
    slope = (peer.logpdf(z + step) - peer.logpdf(z - step)) / (2 * step)
    np.testing.assert_allclose(ours.slope(z), slope, atol=1e-7, rtol=1e-6)


def interval_by_quadrature(link, lower, gap):
    """The logarithm of the integral of the density, scaled by its largest value on the interval."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0.0, gap, 101)
    z = lower + edges[:-1, None] + gap / 100 * (nodes + 1) / 2
    log_f = DISTRIBUTIONS[link].logpdf(z)
    return log_f.max() + np.log((weights * np.exp(log_f - log_f.max())).sum() * gap / 200)


@ALL_LINKS
@pytest.mark.parametrize(
    "lower,gap", [(-30.0, 1.0), (-6.0, 1e-5), (0.0, 1.0), (-0.5, 1.0), (3.0, 0.5), (9.0, 1.0)]
)
def test_log_interval_does_not_cancel(link, lower, gap):
    if link == "cloglog":
        lower = min(lower, 4.0)  # beyond, the density falls by e^1000 over the interval
    got = LINKS[link].log_interval(np.array([lower + gap]), np.array([lower]), gap)
    assert got[0] == pytest.approx(interval_by_quadrature(link, lower, gap), rel=1e-9)


@ALL_LINKS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_objective_gradient_and_hessian(link, weighted, sparse):
    X, y = simulate(n=60, link=link, seed=2)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, size=60) if weighted else None
    design = Design.build(sp.csr_array(X) if sparse else X, y, 5, weights)
    likelihood = Likelihood(design, LINKS[link], alpha=0.3)
    params = np.concatenate([rng.normal(size=3) * 0.3, [-1.0, 0.2, 0.6, 1.4]])
    if sparse:
        params[3:] += (X.mean(axis=0) / design.scale) @ params[:3]
    value, gradient, hessian = likelihood.value_gradient_hessian(params)
    assert value == pytest.approx(likelihood.value(params), rel=1e-12)
    original = design.jacobian() @ params
    assert value == pytest.approx(direct_nll(original, X, y, link, weights, 0.3), rel=1e-9)
    step = 1e-5
    for j, e in enumerate(np.eye(7) * step):
        up, down = (likelihood.value_gradient_hessian(params + s * e) for s in (1, -1))
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(
            hessian[j], (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-5 * np.abs(hessian).max()
        )


@ALL_LINKS
def test_the_hessian_is_positive_definite_everywhere(link):
    X, y = simulate(n=100, link=link)
    likelihood = Likelihood(Design.build(X, y, 5, None), LINKS[link], 0.0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        params = np.concatenate([rng.normal(size=3), np.sort(rng.normal(size=4))])
        assert np.linalg.eigvalsh(likelihood.value_gradient_hessian(params)[2])[0] > 0


def test_disordered_thresholds_have_infinite_objective():
    X, y = simulate()
    likelihood = Likelihood(Design.build(X, y, 5, None), LINKS["logit"], 0.0)
    for theta in ([0, 1, 1, 2], [0, 2, 1, 3]):
        params = np.array([0, 0, 0, *theta], dtype=float)
        assert likelihood.value(params) == np.inf
        assert likelihood.value_gradient_hessian(params)[0] == np.inf


# ------------------------------------------------------------------------ the fit


@ALL_LINKS
def test_no_predictors_in_closed_form(link):
    y = np.repeat([1, 2, 3, 4], [10, 25, 40, 25])
    model = CumulativeLink(link).fit(None, y)
    shares = np.array([0.10, 0.25, 0.40, 0.25])
    np.testing.assert_allclose(model.thresholds_, LINKS[link].quantile(np.cumsum(shares)[:-1]))
    assert model.log_likelihood_ == pytest.approx(100 * shares @ np.log(shares))
    assert model.coef_.shape == (0,)
    np.testing.assert_allclose(model.predict_proba(np.empty((2, 0))), [shares, shares])
    np.testing.assert_array_equal(model.predict(None), [3])
    if link == "logit":
        # Delta method for a binomial share: var(logit) = 1 / (n P (1 - P)).
        P = np.cumsum(shares)[:-1]
        np.testing.assert_allclose(model.standard_errors_, 1 / np.sqrt(100 * P * (1 - P)))
    assert "1|2" in str(model.summary())


def test_two_classes_are_logistic_regression():
    X, y = simulate(cuts=(0.0,))
    model = CumulativeLink().fit(X, y)
    peer = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10000, solver="newton-cholesky")
    peer.fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, -peer.intercept_, rtol=1e-5)
    ridge = CumulativeLink(alpha=3.0).fit(X, y)
    peer = LogisticRegression(C=1 / 3, tol=1e-12, max_iter=10000, solver="newton-cholesky")
    np.testing.assert_allclose(ridge.coef_, peer.fit(X, y).coef_[0], rtol=1e-5)


@ALL_LINKS
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_agrees_with_a_direct_minimisation(link, alpha):
    X, y = simulate(link=link, seed=3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.random.default_rng(0).uniform(0.2, 3, size=len(y))
    model = CumulativeLink(link, alpha=alpha).fit(Z, y, sample_weight=weights)
    found = np.concatenate([model.coef_, model.thresholds_])
    peer = scipy_minimize(
        direct_nll, found + 0.05, args=(Z, y, link, weights, alpha), method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000, "adaptive": True},
    )  # fmt: skip
    ours = direct_nll(found, Z, y, link, weights, alpha)
    assert ours <= peer.fun + 1e-9
    np.testing.assert_allclose(found, peer.x, atol=1e-4)
    penalty = alpha / 2 * model.coef_ @ model.coef_
    assert model.log_likelihood_ == pytest.approx(-(ours - penalty), rel=1e-11)


def increments_to_thresholds(params, p):
    """statsmodels' thresholds are the first one and log-increments; and their Jacobian."""
    raw = params[p:]
    steps = np.concatenate([[raw[0]], np.exp(raw[1:])])
    jacobian = np.eye(len(params))
    jacobian[p:, p:] = np.tril(np.ones((len(raw), len(raw)))) * np.r_[1.0, np.exp(raw[1:])]
    return np.cumsum(steps), jacobian


# Asked for a gradient of 1e-9, BFGS says that it runs into rounding.
@pytest.mark.filterwarnings("ignore:Maximum Likelihood optimization failed")
@ALL_LINKS
def test_agrees_with_statsmodels(link):
    X, y = simulate(n=600, link=link, seed=4)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = CumulativeLink(link).fit(Z, y)
    distribution = {"logit": "logit", "probit": "probit", "cloglog": stats.gumbel_l}[link]
    peer = OrderedModel(y, Z, distr=distribution).fit(
        method="bfgs", disp=False, maxiter=2000, gtol=1e-9
    )
    thresholds, jacobian = increments_to_thresholds(np.asarray(peer.params), 3)
    np.testing.assert_allclose(model.coef_, np.asarray(peer.params)[:3], atol=1e-6)
    np.testing.assert_allclose(model.thresholds_, thresholds, atol=1e-6)
    covariance = jacobian @ np.asarray(peer.cov_params()) @ jacobian.T
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diag(covariance)), atol=1e-6)
    assert model.log_likelihood_ == pytest.approx(peer.llf, rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(Z), peer.predict(), atol=1e-6)
    np.testing.assert_allclose(model.conf_int()[:3], peer.conf_int()[:3], atol=1e-5)
    values = model.summary().values
    np.testing.assert_allclose(values[:3, 2], np.asarray(peer.tvalues)[:3], rtol=1e-4)
    np.testing.assert_allclose(values[:3, 3], np.asarray(peer.pvalues)[:3], atol=1e-5)


R_SCRIPT = r"""
suppressMessages({library(ordinal); library(MASS)})
folder <- commandArgs(TRUE)[1]
d <- read.csv(file.path(folder, "data.csv"))
d$y <- factor(d$y, ordered = TRUE)
rows <- list()
add <- function(package, link, what, value) {
  rows[[length(rows) + 1]] <<- data.frame(package = package, link = link, what = what,
                                          index = seq_along(value), value = value)
}
control <- clm.control(gradTol = 1e-12, maxIter = 200)
for (link in c("logit", "probit", "cloglog")) {
  m <- clm(y ~ x0 + x1 + x2, data = d, weights = w, link = link, control = control)
  s <- sqrt(diag(vcov(m)))
  add("clm", link, "coef", m$beta); add("clm", link, "thresholds", m$alpha)
  add("clm", link, "se", c(s[-(1:length(m$alpha))], s[1:length(m$alpha)]))
  add("clm", link, "loglik", as.numeric(logLik(m)))
  method <- ifelse(link == "logit", "logistic", link)
  r <- polr(y ~ x0 + x1 + x2, data = d, weights = w, method = method, Hess = TRUE,
            control = list(reltol = 1e-15, maxit = 2000))
  add("polr", link, "coef", r$coefficients); add("polr", link, "thresholds", r$zeta)
  add("polr", link, "se", sqrt(diag(vcov(r)))); add("polr", link, "loglik", as.numeric(logLik(r)))
}
m <- clm(y ~ x0 + x1 + x2, data = d, weights = w)
test <- nominal_test(m)
add("clm", "logit", "nominal", test$LRT[-1])
add("clm", "logit", "nominal_df", test$Df[-1])
write.csv(do.call(rbind, rows), file.path(folder, "result.csv"), row.names = FALSE)
"""


@pytest.fixture(scope="module")
def r_data():
    """A large enough sample that score and likelihood-ratio statistics are close."""
    X, y = simulate(n=3000, seed=5)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    # The first column's effect fades with the threshold, mildly.
    rng = np.random.default_rng(7)
    y = np.where((Z[:, 0] > 0.5) & (y == 4) & (rng.random(3000) < 0.15), 3, y)
    return Z, y, rng.integers(1, 4, size=3000)


@pytest.fixture(scope="module")
def r_results(tmp_path_factory, r_data):
    """Every R fit of this file, in one process."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed")
    folder = tmp_path_factory.mktemp("r")
    X, y, weights = r_data
    table = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    table.assign(y=y, w=weights).to_csv(folder / "data.csv", index=False, float_format="%.17g")
    (folder / "script.R").write_text(R_SCRIPT)
    run = subprocess.run(
        ["Rscript", "--vanilla", str(folder / "script.R"), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "there is no package called" in run.stderr:
        pytest.skip(f"an R package is missing: {run.stderr.strip()[-200:]}")
    assert run.returncode == 0, run.stderr
    return pd.read_csv(folder / "result.csv").set_index(["package", "link", "what"])["value"]


@ALL_LINKS
@pytest.mark.parametrize("package", ["clm", "polr"])
def test_agrees_with_r(package, link, r_results, r_data):
    X, y, weights = r_data
    model = CumulativeLink(link).fit(X, y, sample_weight=weights)
    # polr's optimiser stops by the change in value, so its estimates are good to about 1e-6.
    atol = 1e-6 if package == "clm" else 5e-6
    for what, ours in [
        ("coef", model.coef_),
        ("thresholds", model.thresholds_),
        ("se", model.standard_errors_),
    ]:
        theirs = r_results.loc[package, link, what].to_numpy()
        np.testing.assert_allclose(ours, theirs, atol=atol, err_msg=what)
    theirs = float(r_results.loc[package, link, "loglik"])
    assert model.log_likelihood_ == pytest.approx(theirs, rel=1e-9)


# --------------------------------------------------------------------- invariances


@ALL_LINKS
def test_weights_are_frequencies(link):
    X, y = simulate(n=200, link=link, seed=6)
    counts = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = CumulativeLink(link).fit(X, y, sample_weight=counts)
    repeated = CumulativeLink(link).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for name in ("coef_", "thresholds_", "standard_errors_", "log_likelihood_", "n_obs_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_reversing_the_labels_reverses_the_model(link):
    X, y = simulate(link=link)
    model, mirror = CumulativeLink(link).fit(X, y), CumulativeLink(link).fit(X, 4 - y)
    np.testing.assert_allclose(mirror.coef_, -model.coef_, rtol=1e-8)
    np.testing.assert_allclose(mirror.thresholds_, -model.thresholds_[::-1], rtol=1e-8)


def test_cloglog_is_not_symmetric():
    X, y = simulate(link="cloglog", n=2000)
    forward, backward = (CumulativeLink("cloglog").fit(X, c).log_likelihood_ for c in (y, 4 - y))
    assert forward > backward + 1


@ALL_LINKS
def test_linear_change_of_columns(link):
    X, y = simulate(link=link)
    change = np.array([[2.0, 1.0, 0.0], [0.0, 1e-3, 1.0], [0.0, 0.0, 1e3]])
    shift = np.array([1e4, -3.0, 5.0])
    model, moved = CumulativeLink(link).fit(X, y), CumulativeLink(link).fit(X @ change + shift, y)
    np.testing.assert_allclose(change @ moved.coef_, model.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.thresholds_ - shift @ moved.coef_, model.thresholds_, rtol=1e-5
    )
    assert moved.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)


@ALL_LINKS
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_sparse_is_dense(link, alpha):
    X, y = simulate(link=link)
    X = np.where(np.abs(X - X.mean(axis=0)) < X.std(axis=0), 0.0, X)
    dense = CumulativeLink(link, alpha=alpha).fit(X, y)
    for kind in (sp.csr_matrix, sp.csc_array):
        sparse = CumulativeLink(link, alpha=alpha).fit(kind(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
        np.testing.assert_allclose(sparse.standard_errors_, dense.standard_errors_, rtol=1e-6)
        np.testing.assert_allclose(sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-8)


def test_the_start_on_a_thinned_sample_changes_nothing():
    X, y = simulate(n=30_000, seed=8)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = CumulativeLink().fit(Z, y)
    likelihood = Likelihood(Design.build(Z, y, 5, None), LINKS["logit"], 0.0)
    scaled = np.concatenate([model.coef_, model.thresholds_])
    _, gradient, hessian = likelihood.value_gradient_hessian(scaled)
    assert gradient @ np.linalg.solve(hessian, gradient) < 1e-12
    assert model.n_iter_ <= 4


# ---------------------------------------------------------------------- prediction


@ALL_LINKS
def test_probabilities_and_rules(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link).fit(X, y)
    prob = model.predict_proba(X)
    np.testing.assert_allclose(prob.sum(axis=1), 1.0, rtol=1e-12)
    cumulative = DISTRIBUTIONS[link].cdf(model.thresholds_ - model.decision_function(X)[:, None])
    np.testing.assert_allclose(np.cumsum(prob, axis=1)[:, :-1], cumulative, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), prob.argmax(axis=1))
    median = clone(model).set_params(rule="median").fit(X, y)
    expected = (np.cumsum(prob, axis=1) < 0.5).sum(axis=1)
    np.testing.assert_array_equal(median.predict(X), expected)
    assert not np.array_equal(median.predict(X), model.predict(X))


@ALL_LINKS
def test_median_rule_is_the_threshold_rule(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link, rule="median").fit(X, y)
    shift = np.log(np.log(2)) if link == "cloglog" else 0.0
    above = model.decision_function(X)[:, None] > model.thresholds_ - shift
    np.testing.assert_array_equal(model.predict(X), above.sum(axis=1))


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_extreme_scores_stay_finite(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link).fit(X, y)
    far = np.vstack(
        [X.mean(axis=0) + s * 500 * X.std(axis=0) * np.sign(model.coef_) for s in (-1, 1)]
    )
    log_prob = model.predict_log_proba(far)
    assert np.all(np.isfinite(log_prob))
    np.testing.assert_array_equal(model.predict(far), [0, 4])
    # In a tail, each class away costs more.
    assert np.all(np.diff(log_prob[0]) < 0)
    assert np.all(np.diff(log_prob[1]) > 0)


def test_labels_of_any_sortable_kind():
    X, y = simulate()
    names = np.array(["a poor", "b fair", "c good", "d great", "e best"])
    plain, named = CumulativeLink().fit(X, y), CumulativeLink().fit(X, names[y])
    np.testing.assert_array_equal(named.classes_, names)
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    gaps = CumulativeLink().fit(X, np.array([1, 3, 4, 10, 11])[y])
    np.testing.assert_array_equal(gaps.coef_, plain.coef_)


# ----------------------------------------------------------------------- inference


def test_standard_errors_cover():
    inside = np.zeros(5)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 2))
        y = np.digitize(X @ [1.0, -0.5] + rng.logistic(size=200), [-1.0, 0.5, 2.0])
        low, high = CumulativeLink().fit(X, y).conf_int(0.9).T
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
    np.testing.assert_array_equal(summary.values[:, 4:], model.conf_int(0.9))
    text = str(summary)
    for piece in ("Log-likelihood", "P>|z|", "[0.05", "0.95]", "income", "2|3", "AIC"):
        assert piece in text
    assert len({len(line) for line in text.splitlines() if set(line) <= {"=", "-"}}) == 1
    html = summary._repr_html_()
    assert "rooms &amp; &lt;more&gt;" in html
    assert html.count("<tr>") == 8
    assert ("Ridge", "1") in CumulativeLink(alpha=1.0).fit(frame, y).summary().facts
    assert ("AIC", f"{2 * 7 - 2 * model.log_likelihood_:.3f}") in summary.facts
    assert ("BIC", f"{np.log(400) * 7 - 2 * model.log_likelihood_:.3f}") in summary.facts


# ------------------------------------------------------------ proportionality test


def brute_force_score_test(model, X, y, weights, link, tied):
    """U' I^-1 U with numerical derivatives and an explicit sum over outcomes.

    `tied` are the columns with one coefficient; the others have one at each threshold.
    """
    cdf, sf, pdf = (getattr(DISTRIBUTIONS[link], name) for name in ("cdf", "sf", "pdf"))
    m, (n, p) = len(model.thresholds_), X.shape
    free = [j for j in range(p) if j not in tied]
    size = m + len(tied) + m * len(free)
    score, information = np.zeros(size), np.zeros((size, size))
    for i in range(n):
        rows = np.zeros((m, size))
        for k in range(m):
            rows[k, k] = 1.0
            rows[k, m : m + len(tied)] = -X[i, tied]
            start = m + len(tied) + k * len(free)
            rows[k, start : start + len(free)] = -X[i, free]
        z = model.thresholds_ - X[i] @ model.coef_
        lower, upper = np.append(-np.inf, z), np.append(z, np.inf)
        prob = np.where(lower > 0, sf(lower) - sf(upper), cdf(upper) - cdf(lower))
        slopes = np.vstack([np.zeros(size), pdf(z)[:, None] * rows, np.zeros(size)])
        d_prob = np.diff(slopes, axis=0)
        score += weights[i] * d_prob[y[i]] / prob[y[i]]
        information += weights[i] * (d_prob.T / np.maximum(prob, 1e-300)) @ d_prob
    return score @ np.linalg.solve(information, score)


@ALL_LINKS
def test_score_test_against_brute_force(link):
    X, y = simulate(n=150, link=link, seed=9)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=150)
    model = CumulativeLink(link).fit(Z, y, sample_weight=weights)
    test = model.score_test_proportionality(Z, y, sample_weight=weights)
    expected = brute_force_score_test(model, Z, y, weights, link, tied=[])
    assert test.statistic == pytest.approx(expected, rel=1e-6)
    for j in range(3):
        tied = [i for i in range(3) if i != j]
        expected = brute_force_score_test(model, Z, y, weights, link, tied)
        assert test.column_statistics[j] == pytest.approx(expected, rel=1e-6)
    assert (test.df, test.column_df) == (9, 3)
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 9))
    np.testing.assert_allclose(test.column_p_values, stats.chi2.sf(test.column_statistics, 3))
    sparse = model.score_test_proportionality(sp.csr_array(Z), y, sample_weight=weights)
    assert sparse.statistic == pytest.approx(test.statistic, rel=1e-6)
    shown = str(test)
    assert "all columns" in shown
    assert len(shown.splitlines()) == 5


def non_proportional_nll(params, X, y):
    """Own coefficients at each threshold, as the formula reads."""
    n, p = X.shape
    free = params.reshape(-1, p + 1)
    cdf = stats.logistic.cdf(free[:, 0] - X @ free[:, 1:].T)
    cdf = np.hstack([np.zeros((n, 1)), cdf, np.ones((n, 1))])
    prob = np.diff(cdf, axis=1)[np.arange(n), y]
    return np.inf if np.any(prob <= 0) else -np.log(prob).sum()


def test_score_test_is_close_to_the_likelihood_ratio():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(4000, 2))
    y = np.digitize(X @ [0.7, -0.4] + rng.logistic(size=4000), [-1.0, 1.0])
    y = np.where((X[:, 0] > 1) & (y == 2) & (rng.random(4000) < 0.3), 1, y)
    model = CumulativeLink().fit(X, y)
    start = np.column_stack([model.thresholds_, np.tile(model.coef_, (2, 1))]).ravel()
    full = scipy_minimize(
        non_proportional_nll, start, args=(X, y), method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-7, "maxiter": 10000, "maxfev": 10000, "adaptive": True},
    )  # fmt: skip
    ratio = 2 * (-model.log_likelihood_ - full.fun)
    test = model.score_test_proportionality(X, y)
    assert test.df == 2
    assert ratio > 5
    assert test.statistic == pytest.approx(ratio, rel=0.08)


def test_column_tests_are_close_to_r_nominal_test(r_results, r_data):
    X, y, weights = r_data
    model = CumulativeLink().fit(X, y, sample_weight=weights)
    test = model.score_test_proportionality(X, y, sample_weight=weights)
    ratios = r_results.loc["clm", "logit", "nominal"].to_numpy()
    np.testing.assert_array_equal(r_results.loc["clm", "logit", "nominal_df"], test.column_df)
    assert ratios[0] > 10
    np.testing.assert_allclose(test.column_statistics, ratios, rtol=0.15, atol=0.5)


def test_score_test_has_its_level_and_finds_what_is_wrong():
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 2))
        y = np.digitize(X @ [1.0, 0.0] + rng.logistic(size=300), [-1.0, 0.5])
        p_values.append(CumulativeLink().fit(X, y).score_test_proportionality(X, y).p_value)
    rejected = np.mean(np.array(p_values) < 0.05)
    assert abs(rejected - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 150)
    # Errors whose scale depends on x break proportionality.
    y = np.digitize(X[:, 0] + np.exp(X[:, 1]) * rng.logistic(size=300), [-1.0, 0.5])
    test = CumulativeLink().fit(X, y).score_test_proportionality(X, y)
    assert test.p_value < 1e-4
    assert test.column_p_values[1] < 1e-4


def test_score_test_refuses_what_it_cannot_test():
    X, y = simulate()
    model = CumulativeLink().fit(X, y)
    with pytest.raises(ValueError, match="data that the model was fitted on"):
        model.score_test_proportionality(X[:300], y[:300])
    with pytest.raises(ValueError, match="classes"):
        model.score_test_proportionality(X, np.minimum(y, 3))
    with pytest.raises(ValueError, match="alpha=0"):
        CumulativeLink(alpha=1.0).fit(X, y).score_test_proportionality(X, y)
    with pytest.raises(ValueError, match="three classes"):
        CumulativeLink().fit(X, y > 2).score_test_proportionality(X, y > 2)


# ------------------------------------------------------- separation and collinearity


@ALL_LINKS
def test_complete_separation_is_named(link):
    X = np.column_stack([np.arange(12.0), np.random.default_rng(0).normal(size=12)])
    with pytest.raises(SeparationError, match=r"separated completely by.*x0.*alpha > 0"):
        CumulativeLink(link).fit(X, np.repeat([0, 1, 2], 4))
    ridge = CumulativeLink(link, alpha=0.1).fit(X, np.repeat([0, 1, 2], 4))
    assert np.all(np.isfinite(ridge.standard_errors_))


@ALL_LINKS
@pytest.mark.parametrize("n", [200, 9_000])
def test_quasi_separation_is_named(link, n):
    X, y = simulate(n=n, link=link, seed=12)
    flag = np.zeros(n)
    flag[np.flatnonzero(y == 4)[:15]] = 1.0
    frame = pd.DataFrame(np.column_stack([X, flag]), columns=["a", "b", "c", "only the best"])
    with pytest.raises(SeparationError, match=r"in part by a linear combination of only the best,"):
        CumulativeLink(link).fit(frame, y)
    # One exception is enough for a maximum.
    flag[np.flatnonzero(y == 0)[:2]] = 1.0
    CumulativeLink(link).fit(frame.assign(**{"only the best": flag}), y)


def test_separation_in_sparse_columns_is_named():
    X, y = simulate(n=300)
    flag = (y == 0) & (np.arange(300) % 2 == 0)
    with pytest.raises(SeparationError, match="x3"):
        CumulativeLink().fit(sp.csr_array(np.column_stack([X, flag])), y)


@pytest.mark.parametrize("sparse", [False, True])
def test_collinearity_is_named(sparse):
    X, y = simulate()
    kind = sp.csr_array if sparse else np.asarray
    both = np.column_stack([X, 2 * X[:, 0] - X[:, 2] + 7])
    with pytest.raises(CollinearityError, match=r"x3 is a combination of x0, x2\. Drop"):
        CumulativeLink().fit(kind(both), y)
    constant = np.column_stack([X[:, :1], np.full(len(y), 0.1), X[:, 1:]])
    with pytest.raises(CollinearityError, match="x1 is constant"):
        CumulativeLink().fit(kind(constant), y)
    ridge = CumulativeLink(alpha=1.0).fit(kind(both), y)
    assert np.all(np.isfinite(ridge.coef_))
    # Minimum norm: the redundant column shares the others' coefficients in the same ratio.
    assert CumulativeLink(alpha=1.0).fit(kind(constant), y).coef_[1] == pytest.approx(0, abs=1e-6)


def test_collinearity_uses_column_names():
    X, y = simulate()
    frame = pd.DataFrame(X, columns=["age", "income", "rooms"])
    with pytest.raises(CollinearityError, match="years is a combination of age"):
        CumulativeLink().fit(frame.assign(years=frame["age"] * 12), y)


def test_nearly_collinear_is_fitted():
    X, y = simulate(n=500)
    near = X[:, 0] + 1e-4 * np.random.default_rng(0).normal(size=500)
    model = CumulativeLink().fit(np.column_stack([X, near]), y)
    assert model.standard_errors_[3] > 100 * model.standard_errors_[1]


def test_one_rare_class_is_no_separation():
    X, y = simulate(n=5000, seed=13)
    y = np.where(y == 4, 3, y)
    y[np.flatnonzero(y == 3)[0]] = 4
    # One item can always be cut off unless others score higher.
    model = CumulativeLink().fit(X[:, :1], y)
    assert np.all(np.diff(model.thresholds_) > 0)


# ------------------------------------------------------------ scikit-learn and input


def test_check_estimator():
    check_estimator(CumulativeLink(alpha=1.0), on_skip=None)


def test_check_estimator_without_ridge():
    """Some of the checks fit separable or collinear data, and are told so; all others pass."""
    results = check_estimator(CumulativeLink(), on_skip=None, on_fail=None)
    failed = [r["exception"] for r in results if r["status"] == "failed"]
    causes = [e if isinstance(e, ValueError) else e.__cause__ or e.__context__ for e in failed]
    assert all(isinstance(e, (SeparationError, CollinearityError)) for e in causes), failed
    assert sum(r["status"] == "passed" for r in results) > 25


def test_pipeline_grid_search_pickle():
    X, y = simulate()
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), CumulativeLink()),
        {"cumulativelink__alpha": [0.0, 1.0, 100.0]},
        cv=StratifiedKFold(3),
    )
    grid.fit(X, y)
    assert grid.best_score_ > 0.6
    model = grid.best_estimator_
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_ridge_shrinks():
    X, y = simulate()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    norms = [np.linalg.norm(CumulativeLink(alpha=a).fit(Z, y).coef_) for a in (0, 1, 10, 1e3, 1e8)]
    assert np.all(np.diff(norms) < 0)
    null = CumulativeLink().fit(None, y)
    heavy = CumulativeLink(alpha=1e10).fit(Z, y)
    np.testing.assert_allclose(heavy.thresholds_, null.thresholds_, atol=1e-6)


def test_progress_bar(capsys):
    X, y = simulate()
    CumulativeLink(verbose=1).fit(X, y)
    assert "Newton" in capsys.readouterr().err
    CumulativeLink().fit(X, y)
    assert capsys.readouterr().err == ""


def test_too_few_steps_warn():
    X, y = simulate()
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        CumulativeLink(max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    "parameters,message",
    [
        ({"link": "cauchit"}, "link"),
        ({"rule": "mean"}, "rule"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": "none"}, "alpha"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1e-3}, "tol"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = simulate()
    with pytest.raises((ValueError, TypeError), match=message):
        CumulativeLink(**parameters).fit(X, y)


def test_bad_data_is_named():
    X, y = simulate()
    model = CumulativeLink()
    with pytest.raises(ValueError, match="y"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match="y must be given"):
        model.fit(None, None)
    model.fit(X, y)
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="level"):
            model.conf_int(level)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
