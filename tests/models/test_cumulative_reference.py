"""Cumulative link models against R (ordinal, MASS, VGAM) and statsmodels, number by number."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel

from rankbook.models import CumulativeLink, anova
from tests.models.clm_samples import ALL_LINKS, DISTRIBUTIONS, direct_nll, standardised

R_SCRIPT = r"""
suppressMessages({library(ordinal); library(MASS); library(VGAM)})
folder <- commandArgs(TRUE)[1]
d <- read.csv(file.path(folder, "data.csv"))
d$y <- factor(d$y, ordered = TRUE)
rows <- list()
add <- function(package, link, what, value) {
  rows[[length(rows) + 1]] <<- data.frame(package = package, link = link, what = what,
                                          index = seq_along(value), value = as.numeric(value))
}
control <- clm.control(gradTol = 1e-12, maxIter = 200)
for (link in c("logit", "probit", "cloglog", "loglog", "cauchit")) {
  m <- clm(y ~ x0 + x1 + x2, data = d, weights = w, link = link, control = control)
  s <- sqrt(diag(vcov(m)))
  k <- length(m$alpha)
  add("clm", link, "coef", m$beta); add("clm", link, "thresholds", m$alpha)
  add("clm", link, "se", c(s[-(1:k)], s[1:k])); add("clm", link, "loglik", logLik(m))
  method <- ifelse(link == "logit", "logistic", link)
  r <- polr(y ~ x0 + x1 + x2, data = d, weights = w, method = method, Hess = TRUE,
            start = c(m$beta, m$alpha), control = list(reltol = 1e-15, maxit = 2000))
  add("polr", link, "coef", r$coefficients); add("polr", link, "thresholds", r$zeta)
  add("polr", link, "se", sqrt(diag(vcov(r)))); add("polr", link, "loglik", logLik(r))
  n <- clm(y ~ x1 + x2, nominal = ~ x0, data = d, weights = w, link = link, control = control)
  vn <- sqrt(diag(vcov(n)))
  add("nominal", link, "coef", n$beta); add("nominal", link, "alpha", n$alpha)
  add("nominal", link, "se", vn); add("nominal", link, "loglik", logLik(n))
  z <- clm(y ~ x0 + x1 + x2, scale = ~ x1, data = d, weights = w, link = link, control = control)
  add("scale", link, "params", c(z$beta, z$alpha, z$zeta)); add("scale", link, "loglik", logLik(z))
  vz <- sqrt(diag(vcov(z)))
  add("scale", link, "se", c(vz[k + 1:3], vz[1:k], vz[k + 4]))
  o <- clm(y ~ x0 + x1 + offset(o), data = d, weights = w, link = link, control = control)
  add("offset", link, "params", c(o$beta, o$alpha)); add("offset", link, "loglik", logLik(o))
  b <- clm(y ~ x1 + x2, nominal = ~ x0, scale = ~ x1, data = d, link = link, control = control)
  add("both", link, "coef", b$beta); add("both", link, "alpha", b$alpha)
  add("both", link, "zeta", b$zeta); add("both", link, "loglik", logLik(b))
}
m <- clm(y ~ x0 + x1 + x2, data = d, weights = w, control = control)
test <- nominal_test(clm(y ~ x0 + x1 + x2, data = d, weights = w))
add("clm", "logit", "nominal", test$LRT[-1]); add("clm", "logit", "nominal_df", test$Df[-1])
small <- clm(y ~ x0, data = d, weights = w, control = control)
middle <- clm(y ~ x0 + x1, data = d, weights = w, control = control)
large <- clm(y ~ x1 + x2, nominal = ~ x0, data = d, weights = w, control = control)
a <- anova(small, middle, m, large)
add("anova", "logit", "table", c(a$LR.stat[-1], a$df[-1], a[["Pr(>Chisq)"]][-1]))
q <- drop1(m, test = "Chisq")
add("drop1", "logit", "table", c(q$Df[-1], q$AIC, q$LRT[-1], q[["Pr(>Chi)"]][-1]))
add("profile", "logit", "ends", confint(m, level = 0.9))
excess <- function(v) {
  d$fixed <- v * d$x0
  at <- clm(y ~ x1 + x2 + offset(fixed), data = d, weights = w, control = control)
  as.numeric(2 * (logLik(m) - logLik(at))) - qchisq(0.9, 1)
}
ends <- confint(m, level = 0.9)["x0", ]
solved <- sapply(ends, function(v) uniroot(excess, v + c(-1, 1) * 1e-3, tol = 1e-9)$root)
add("profile", "logit", "solved", solved)
p <- predict(m, newdata = d[1:20, c("x0", "x1", "x2")], type = "prob", se.fit = TRUE)
add("predict", "logit", "fit", t(p$fit)); add("predict", "logit", "se", t(p$se.fit))
v <- vglm(y ~ x0 + x1 + x2, cumulative(parallel = FALSE ~ x0), data = d, weights = w,
          control = vglm.control(epsilon = 1e-13, maxit = 100))
add("vglm", "logit", "coef", coef(v)); add("vglm", "logit", "se", sqrt(diag(vcov(v))))
add("vglm", "logit", "loglik", logLik.vlm(v))
write.csv(do.call(rbind, rows), file.path(folder, "result.csv"), row.names = FALSE)
"""


@pytest.fixture(scope="module")
def r_data():
    """A large enough sample that score and likelihood-ratio statistics are close."""
    Z, y = standardised(n=3000, seed=5)
    # The first column's effect fades with the threshold, mildly.
    rng = np.random.default_rng(7)
    y = np.where((Z[:, 0] > 0.5) & (y == 4) & (rng.random(3000) < 0.15), 3, y)
    return Z, y, rng.integers(1, 4, size=3000), rng.normal(size=3000)


@pytest.fixture(scope="module")
def r_results(tmp_path_factory, r_data):
    """Every R fit of this file, in one process."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed")
    folder = tmp_path_factory.mktemp("r")
    X, y, weights, offset = r_data
    table = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(y=y, w=weights, o=offset)
    table.to_csv(folder / "data.csv", index=False, float_format="%.17g")
    (folder / "script.R").write_text(R_SCRIPT)
    command = ["Rscript", "--vanilla", str(folder / "script.R"), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    if "there is no package called" in run.stderr:
        pytest.skip(f"an R package is missing: {run.stderr.strip()[-200:]}")
    assert run.returncode == 0, run.stderr
    results = {}
    for key, rows in pd.read_csv(folder / "result.csv").groupby(["package", "link", "what"]):
        results.setdefault(key[:2], {})[key[2]] = rows["value"].to_numpy()
    return results


# clm puts 1e5 in place of an infinite threshold. Only the Cauchy distribution has mass beyond it,
# 3e-6, so that R's estimates are that much off; polr puts 100.
R_CAUCHIT = 5e-5


def tolerance(link):
    return R_CAUCHIT if link == "cauchit" else 1e-6


def relative(link):
    return 1e-5 if link == "cauchit" else 1e-9


def close(ours, theirs, what="", atol=1e-6):
    np.testing.assert_allclose(ours, np.asarray(theirs, dtype=float), atol=atol, err_msg=what)


def nominal_parts(model, results, atol):
    """R's alpha has the thresholds, then minus the column's coefficients at each."""
    close(model.coef_[1:], results["coef"], "coef", atol)
    close(model.thresholds_, results["alpha"][:4], "thresholds", atol)
    close(-model.nominal_coef_[0], results["alpha"][4:], "nominal", atol)


PAIRS = [(package, link) for package in ("clm", "polr") for link in DISTRIBUTIONS]
PAIRS.remove(("polr", "cauchit"))


@pytest.mark.parametrize("package,link", PAIRS)
def test_agrees_with_r(package, link, r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink(link).fit(X, y, sample_weight=weights)
    atol = tolerance(link)
    theirs = r_results[package, link]
    close(model.coef_, theirs["coef"], "coef", atol)
    close(model.thresholds_, theirs["thresholds"], "thresholds", atol)
    close(model.standard_errors_, theirs["se"], "se", atol)
    assert model.log_likelihood_ == pytest.approx(theirs["loglik"][0], rel=relative(link))
    # By the exact likelihood ours is the better.
    params = np.concatenate([theirs["coef"], theirs["thresholds"]])
    assert -model.log_likelihood_ <= direct_nll(params, X, y, link, weights) + 1e-9


@ALL_LINKS
def test_nominal_effects_agree_with_r(link, r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink(link, nominal=[0]).fit(X, y, sample_weight=weights)
    theirs = r_results["nominal", link]
    nominal_parts(model, theirs, tolerance(link))
    # R's order: thresholds, the nominal column, coefficients.
    order = [6, 7, 8, 9, 2, 3, 4, 5, 0, 1]
    close(model.standard_errors_[order], theirs["se"], "se", tolerance(link))
    assert model.log_likelihood_ == pytest.approx(theirs["loglik"][0], rel=relative(link))
    assert np.isnan(model.coef_[0])


@ALL_LINKS
def test_scale_effects_agree_with_r(link, r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink(link, scale=[1]).fit(X, y, sample_weight=weights)
    theirs = r_results["scale", link]
    close(model.params_, theirs["params"], "params", tolerance(link))
    close(model.standard_errors_, theirs["se"], "se", tolerance(link))
    assert model.log_likelihood_ == pytest.approx(theirs["loglik"][0], rel=relative(link))
    close(model.scale_coef_, model.params_[-1:])


# With "cloglog" R's thresholds cross at one item, which ours may not.
@pytest.mark.parametrize("link", ["logit", "probit", "loglog", "cauchit"])
def test_nominal_and_scale_effects_agree_with_r(link, r_results, r_data):
    X, y, _, _ = r_data
    model = CumulativeLink(link, nominal=[0], scale=[1]).fit(X, y)
    theirs = r_results["both", link]
    nominal_parts(model, theirs, tolerance(link))
    close(model.scale_coef_, theirs["zeta"], "scale", tolerance(link))
    assert model.log_likelihood_ == pytest.approx(theirs["loglik"][0], rel=relative(link))


@ALL_LINKS
def test_offsets_agree_with_r(link, r_results, r_data):
    X, y, weights, offset = r_data
    model = CumulativeLink(link).fit(X[:, :2], y, sample_weight=weights, offset=offset)
    theirs = r_results["offset", link]
    close(model.params_, theirs["params"], "params", tolerance(link))
    assert model.log_likelihood_ == pytest.approx(theirs["loglik"][0], rel=relative(link))


def test_one_coefficient_a_threshold_agrees_with_vgam(r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink(nominal=[0]).fit(X, y, sample_weight=weights)
    theirs = r_results["vglm", "logit"]
    values, errors = theirs["coef"], theirs["se"]
    close(model.thresholds_, values[:4])
    close(-model.nominal_coef_[0], values[4:8])
    close(-model.coef_[1:], values[8:])
    # VGAM's information is the expected one, ours the observed.
    order = [6, 7, 8, 9, 2, 3, 4, 5, 0, 1]
    np.testing.assert_allclose(model.standard_errors_[order], errors, rtol=0.02)


def test_anova_agrees_with_r(r_results, r_data):
    X, y, weights, _ = r_data
    fits = [CumulativeLink().fit(X[:, :p], y, sample_weight=weights) for p in (1, 2, 3)]
    fits.append(CumulativeLink(nominal=[0]).fit(X, y, sample_weight=weights))
    table = anova(*reversed(fits))
    theirs = r_results["anova", "logit"]["table"].reshape(3, 3)
    close(table.values[1:, 3:].T, theirs, atol=1e-5)
    assert np.isnan(table.values[0, 3:]).all()


def test_drop1_agrees_with_r(r_results, r_data):
    X, y, weights, _ = r_data
    table = CumulativeLink().fit(X, y, sample_weight=weights).drop1()
    theirs = r_results["drop1", "logit"]["table"]
    close(table.values[1:, 4], theirs[:3])
    np.testing.assert_allclose(table.values[:, 2], theirs[3:7], rtol=1e-9)
    np.testing.assert_allclose(table.values[1:, 3], theirs[7:10], rtol=1e-6)
    close(table.values[1:, 5], theirs[10:])


def test_profile_intervals_agree_with_r(r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink().fit(X, y, sample_weight=weights)
    ours = model.confint(0.9, method="profile")
    theirs = r_results["profile", "logit"]
    # Solved for by repeated fits of clm, and as its confint interpolates them.
    close(ours[0], theirs["solved"], atol=1e-9)
    close(ours[:3], theirs["ends"].reshape(2, 3).T)


def test_predicted_probabilities_agree_with_r(r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink().fit(X, y, sample_weight=weights)
    prob, errors = model.predict_proba(X[:20], return_std=True)
    theirs = r_results["predict", "logit"]
    close(prob.ravel(), theirs["fit"])
    close(errors.ravel(), theirs["se"])


def test_column_tests_are_close_to_r_nominal_test(r_results, r_data):
    X, y, weights, _ = r_data
    model = CumulativeLink().fit(X, y, sample_weight=weights)
    test = model.score_test_proportionality()
    ratios = r_results["clm", "logit"]["nominal"]
    np.testing.assert_array_equal(r_results["clm", "logit"]["nominal_df"], test.column_df)
    assert ratios[0] > 10
    np.testing.assert_allclose(test.column_statistics, ratios, rtol=0.15, atol=0.5)


def increments_to_thresholds(params, p):
    """statsmodels' thresholds are the first one and log-increments; and their Jacobian."""
    raw = params[p:]
    steps = np.concatenate([[raw[0]], np.exp(raw[1:])])
    jacobian = np.eye(len(params))
    jacobian[p:, p:] = np.tril(np.ones((len(raw), len(raw)))) * np.r_[1.0, np.exp(raw[1:])]
    return np.cumsum(steps), jacobian


# Asked for a gradient of 1e-9, BFGS says that it runs into rounding.
@pytest.mark.filterwarnings("ignore:Maximum Likelihood optimization failed")
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "loglog"])
def test_agrees_with_statsmodels(link):
    Z, y = standardised(n=600, link=link, seed=4)
    model = CumulativeLink(link).fit(Z, y)
    distributions = {"cloglog": stats.gumbel_l, "loglog": stats.gumbel_r}
    peer = OrderedModel(y, Z, distr=distributions.get(link, link)).fit(
        method="bfgs", disp=False, maxiter=2000, gtol=1e-9
    )
    thresholds, jacobian = increments_to_thresholds(np.asarray(peer.params), 3)
    close(model.coef_, np.asarray(peer.params)[:3])
    close(model.thresholds_, thresholds)
    covariance = jacobian @ np.asarray(peer.cov_params()) @ jacobian.T
    close(model.standard_errors_, np.sqrt(np.diag(covariance)))
    assert model.log_likelihood_ == pytest.approx(peer.llf, rel=1e-10)
    close(model.predict_proba(Z), peer.predict())
    close(model.confint()[:3], peer.conf_int()[:3], atol=1e-5)
    values = model.summary().values
    np.testing.assert_allclose(values[:3, 2], np.asarray(peer.tvalues)[:3], rtol=1e-4)
    close(values[:3, 3], np.asarray(peer.pvalues)[:3], atol=1e-5)
