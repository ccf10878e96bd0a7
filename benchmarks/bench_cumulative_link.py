"""Cumulative link models against statsmodels, skordinal and R, to the same likelihood.

Bars: at least 3 times as fast as skordinal and 50 times as fast as clm, with nominal effects too.
Measured last, in CPU seconds, least of 7 (R: of 1), in three runs: 14 to 17 times skordinal's
newton-cg, 3.2 to 3.8 times its lbfgs with tol=1e-10 (whose likelihood is 3e-7 lower); 77 to 93
times clm, and 61 to 71 with two nominal columns.
"""

from __future__ import annotations

from benchmarks.harness import measure, peak_memory, peer, table  # first: it fixes the threads

# isort: split
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np

from rankbook.models import CumulativeLink

N_FEATURES, CUTS = 10, (-2.0, -0.5, 0.5, 2.0)
NOMINAL = [0, 1]

R_SCRIPT = r"""
suppressMessages(library(ordinal))
path <- commandArgs(TRUE)[1]
d <- as.data.frame(matrix(readBin(path, "double", n = 11 * N), ncol = 11))
d$y <- factor(d$V11, ordered = TRUE)
report <- function(time, m) {
  cat(time[["user.self"]] + time[["sys.self"]], sprintf("%.10f", logLik(m)), "\n")
}
time <- system.time(m <- clm(y ~ V1 + V2 + V3 + V4 + V5 + V6 + V7 + V8 + V9 + V10, data = d))
report(time, m)
time <- system.time(
  m <- clm(y ~ V3 + V4 + V5 + V6 + V7 + V8 + V9 + V10, nominal = ~ V1 + V2, data = d)
)
report(time, m)
"""


def make_sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return ten normal columns and a response of five ordered classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    latent = X @ rng.normal(scale=0.5, size=N_FEATURES) + rng.logistic(size=n)
    return X, np.digitize(latent, CUTS)


def _skordinal_rows(X: np.ndarray, y: np.ndarray) -> list[tuple[str, float, float]]:
    if peer("skordinal") is None:
        return []
    from skordinal.classifiers import POM

    rows = []
    for solver, tol in (("lbfgs", 1e-5), ("lbfgs", 1e-10), ("newton-cg", 1e-6)):
        model = POM(solver=solver, tol=tol)
        seconds = measure(lambda m=model: m.fit(X, y))
        codes = np.searchsorted(model.classes_, y)
        likelihood = np.log(model.predict_proba(X)[np.arange(len(y)), codes]).sum()
        rows.append((f"skordinal POM, {solver}, tol={tol:g}", seconds, float(likelihood)))
    return rows


def _statsmodels_rows(X: np.ndarray, y: np.ndarray) -> list[tuple[str, float, float]]:
    if peer("statsmodels") is None:
        return []
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    fits = []

    def fit() -> None:
        fits.append(OrderedModel(y, X, distr="logit").fit(method="bfgs", disp=False))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = measure(fit, repeat=1)
    return [("statsmodels OrderedModel, bfgs", seconds, float(fits[0].llf))]


def _r_rows(X: np.ndarray, y: np.ndarray) -> list[tuple[str, float, float]]:
    """Return R's rows: the usual model, then two columns with nominal effects."""
    if shutil.which("Rscript") is None:
        print("  (Rscript is not installed: its row is left out)")
        return []
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder, "data.bin"), Path(folder, "fit.R")
        np.column_stack([X, y.astype(float)]).T.tofile(data)
        script.write_text(R_SCRIPT.replace("N)", f"{len(y)})"))
        command = ["Rscript", "--vanilla", str(script), str(data)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        print(f"  (R's ordinal package did not run: {run.stderr.strip()[-80:]})")
        return []
    numbers = [float(word) for word in run.stdout.split()]
    return [
        ("R ordinal::clm", numbers[0], numbers[1]),
        ("R ordinal::clm, two nominal columns", numbers[2], numbers[3]),
    ]


def run() -> None:
    """Print times and likelihoods at 1e5 items, then time and memory at 1e6."""
    X, y = make_sample(1_000_000)
    model = CumulativeLink()
    large = measure(lambda: model.fit(X, y))
    memory = peak_memory()
    X, y = make_sample(100_000)
    rows = [("rankbook CumulativeLink", measure(lambda: model.fit(X, y), repeat=7))]
    best = model.log_likelihood_
    rows_by_link = [
        (f"rankbook, {link}", measure(lambda k=link: CumulativeLink(k).fit(X, y)))
        for link in ("logit", "probit", "cloglog", "loglog", "cauchit")
    ]
    partial = CumulativeLink(nominal=NOMINAL)
    nominal = [("rankbook, two nominal columns", measure(lambda: partial.fit(X, y)))]
    from_r = _r_rows(X, y)
    peers = _skordinal_rows(X, y) + from_r[:1] + _statsmodels_rows(X, y)
    rows += [(name, seconds) for name, seconds, _ in peers]
    table("Proportional odds, 100,000 items, 10 columns, 5 classes", rows)
    print("  log-likelihood below rankbook's by")
    for name, _, likelihood in peers:
        print(f"    {name}: {best - likelihood:.2e}")
    table("Nominal effects, the same size", nominal + [row[:2] for row in from_r[1:]])
    for name, _, likelihood in from_r[1:]:
        print(f"  {name}: log-likelihood below rankbook's by", end=" ")
        print(f"{partial.log_likelihood_ - likelihood:.2e}")
    table("Five links, the same size", rows_by_link)
    table("Size", [rows[0], ("rankbook, 1,000,000 items", large)])
    print(f"  most memory held with the data, 1,000,000 items: {memory:.2f} GB")
