"""Typical wrong answers to problem set 6: code that replaces an answer, and what it loses."""

NEIGHBOURS = """
def neighbour_auc(X, y):
    rows = []
    for k in range({}):
        lower, upper = X[y == {}], X[y == k + 1]
        t = upper[:, None, :] - lower[None, :, :]
        rows.append({})
    return np.array(rows)
"""
HALF = "((1 + np.sign(t)) / 2).mean(axis=(0, 1))"
STANDARDISE = """
def standardise(train, test):
    {}
    return (train - mean) / spread, (test - {}) / {}
"""
CAREFUL = """mean, spread = train.mean(axis=0), train.std(axis=0{})
    spread[train.max(axis=0) == train.min(axis=0)] = {}"""
DEALT = "fold[np.lexsort((rng.random(len(y)), y))] = np.arange(len(y)) % n_folds"
FOLDS = """
def balanced_folds(y, n_folds, seed):
    rng = np.random.default_rng(seed)
    fold = np.empty(len(y), dtype=int)
    {}
    return fold
"""
BASELINE = """
def baseline(X_train, y_train, X_test, y_test):
    {}
    best = int(np.argmax(np.abs(np.array(found) - {})))
    sign = {}
    return best, sign, {}
"""
ON_TRAIN = "found = [metrics.u_pairs(y_train, column) for column in X_train.T]"
SIGN = "1 if found[best] >= 0.5 else -1"
ON_TEST = "metrics.u_pairs(y_test, sign * X_test[:, best])"
RISKS = """
def cv_risks(name, alphas, X, y, fold):
    labels, n_folds = np.arange(y.max() + 1), fold.max() + 1
    gaps = np.triu(labels - labels[:, None])
    risks = np.empty((len(alphas), n_folds))
    for f in range(n_folds):
        held = fold == f
        {}
        for a, alpha in enumerate(alphas):
            ranker = make(name, alpha).fit(train, y[{}])
            risks[a, f] = {}
    return risks
"""
SPLIT = "train, test = standardise(X[~held], X[held])"
LINEAR = "metrics.pairwise_risk(y[held], ranker.decision_function(test), gaps, labels=labels)"
ONE = """
def one_standard_error(alphas, risks):
    alphas, means = np.asarray(alphas), risks.mean(axis=1)
    best = means.argmin()
    {}
"""
LARGEST = "alphas[means <= limit].max()"
PARTS = """
def difference_parts(y, a, b):
    side = np.sign(y[:, None] - y)
    differ = np.abs(side)
    gain = {}
    delta = gain.sum() / {}
    return delta, {}
"""
GAIN = "side * (np.sign(a[:, None] - a) - np.sign(b[:, None] - b)) / 2"
ERROR = """
def difference_error(y, a, b):
    n = len(y)
    share = np.sum(y[:, None] != y) / {}
    {}
    return {}
"""
BOTH = "_, parts = difference_parts(y, a, b)"
BOOTSTRAP = """
def bootstrap(y, a, b, draws):
    {}
    return {}, *np.quantile(found, {})
"""
GAPS = """
def calibration_gaps(probabilities, y, n_bins):
    n, K = probabilities.shape
    gaps = []
    for k in range(K - 1):
        above = {}
        bins = {}
        gaps.append({})
    return np.array(gaps)
"""
ABOVE = "probabilities[:, k + 1:].sum(axis=1)"
BINS = "np.array_split(np.argsort(above, kind='stable'), n_bins)"
SLOPES = """
def unequal_slopes(X, y, level):
    m, K = X.shape[1], len(np.unique(y))
    plain = CumulativeLink().fit(X, y).log_likelihood_
    free = np.array([{} for c in range(m)])
    p = stats.chi2.sf({} * (free - plain), {})
    {}
"""
NOMINAL = "CumulativeLink(nominal=[c]).fit(X, y).log_likelihood_"
HOLM = """order = np.argsort(p)
    passed = np.logical_and.accumulate(p[order] <= level / (m - np.arange(m)))
    return passed[np.argsort(order)]"""
CLAIM = """
def counterexample():
    rng = np.random.default_rng(0)
    y = np.arange({}) % {}
    b = y + {} * rng.normal(size=len(y))
    return y, {}, b
"""

WRONG = {
    "P6.1": [
        (NEIGHBOURS.format("y.max()", "k", "(t > 0).mean(axis=(0, 1))"), {"P6.1a"}),
        (NEIGHBOURS.format("y.max()", "k", "(t >= 0).mean(axis=(0, 1))"), {"P6.1a"}),
        (NEIGHBOURS.format("y.max()", "k", "1 - " + HALF), {"P6.1a"}),
        # everybody below against the next label, or a row too many
        (NEIGHBOURS.format("y.max()", "k", HALF).replace("X[y == k]", "X[y <= k]"), {"P6.1a"}),
        (NEIGHBOURS.format("y.max() + 1", "max(k, 0)", HALF), {"P6.1a"}),
    ],
    "P6.2": [
        (
            STANDARDISE.format(
                CAREFUL.format("", "np.inf"), "test.mean(axis=0)", "test.std(axis=0)"
            ),
            {"P6.2a"},
        ),
        (
            STANDARDISE.format(
                CAREFUL.format("", "np.inf").replace("train", "np.r_[train, test]"),
                "mean",
                "spread",
            ),
            {"P6.2a"},
        ),
        (STANDARDISE.format(CAREFUL.format(", ddof=1", "np.inf"), "mean", "spread"), {"P6.2a"}),
        (STANDARDISE.format(CAREFUL.format("", "1"), "mean", "spread"), {"P6.2a"}),
        (STANDARDISE.format(CAREFUL.format("", "0"), "mean", "spread"), {"P6.2a"}),
        (
            # the standard deviation of a constant column need not be 0
            STANDARDISE.format(
                "mean, spread = train.mean(axis=0), train.std(axis=0)\n"
                "    spread[spread == 0] = np.inf",
                "mean",
                "spread",
            ),
            {"P6.2a"},
        ),
        # a seed that does not decide: none, or always the same
        *(
            (FOLDS.format(DEALT).replace("default_rng(seed)", f"default_rng({seed})"), {"P6.2b"})
            for seed in ("", "0")
        ),
        (FOLDS.format("fold[:] = rng.integers(0, n_folds, len(y))"), {"P6.2b"}),
        (FOLDS.format("fold[:] = rng.permutation(np.arange(len(y)) % n_folds)"), {"P6.2b"}),
        (
            # every label starts anew: the first folds get too many
            FOLDS.format(
                "for k in np.unique(y):\n        n = np.sum(y == k)\n"
                "        fold[y == k] = rng.permutation(np.arange(n) % n_folds)"
            ),
            {"P6.2b"},
        ),
        (
            FOLDS.format("fold[np.argsort(y, kind='stable')] = np.arange(len(y)) % n_folds"),
            {"P6.2b"},
        ),
        (
            # the numbers of the folds are mixed, the items are not
            FOLDS.format(
                "dealt = rng.permutation(n_folds)[np.arange(len(y)) % n_folds]\n"
                "    fold[np.argsort(y, kind='stable')] = dealt"
            ),
            {"P6.2b"},
        ),
        (
            # dealt to and fro
            FOLDS.format(
                "seats = np.append(np.arange(n_folds), np.arange(n_folds)[::-1])\n"
                "    dealt = np.resize(seats, len(y))\n"
                "    fold[np.argsort(y, kind='stable')] = dealt"
            ),
            {"P6.2b"},
        ),
        (
            FOLDS.format(
                "mixed = rng.permutation(len(y))\n    order = mixed[np.argsort(y[mixed])]\n"
                "    fold[order] = 1 + np.arange(len(y)) % n_folds"
            ),
            {"P6.2b"},
        ),
    ],
    "P6.3": [
        (BASELINE.format(ON_TRAIN.replace("train", "test"), "0.5", SIGN, ON_TEST), {"P6.3"}),
        (BASELINE.format(ON_TRAIN, "0", "1", ON_TEST), {"P6.3"}),
        (BASELINE.format(ON_TRAIN, "0.5", "1", ON_TEST), {"P6.3"}),
        (BASELINE.format(ON_TRAIN, "0.5", SIGN, ON_TEST.replace("test", "train")), {"P6.3"}),
        (BASELINE.format(ON_TRAIN, "0.5", SIGN, ON_TEST[:-1] + ", ties=1)"), {"P6.3"}),
        (
            BASELINE.format(
                "found = [0.5 + np.cov(y_train, c)[0, 1] / (c.std() + 1e-9) for c in X_train.T]",
                "0.5",
                SIGN,
                ON_TEST,
            ),
            {"P6.3"},
        ),
        # another measure: the sign of a covariance, correlations of ranks, linear costs
        (
            BASELINE.format(
                ON_TRAIN,
                "0.5",
                "1 if np.cov(y_train, X_train[:, best])[0, 1] >= 0 else -1",
                ON_TEST,
            ),
            {"P6.3"},
        ),
        *(
            (
                BASELINE.format(
                    f"found = np.nan_to_num([stats.{name}(y_train, c)[0] for c in X_train.T])",
                    "0",
                    "1 if found[best] >= 0 else -1",
                    ON_TEST,
                ),
                {"P6.3"},
            )
            for name in ("spearmanr", "kendalltau")
        ),
        (
            BASELINE.format(
                "risk = lambda c: metrics.pairwise_risk(y_train, c, 'linear')\n"
                "    found = [risk(c) - risk(0 * c) for c in X_train.T]",
                "0",
                "1 if found[best] <= 0 else -1",
                ON_TEST,
            ),
            {"P6.3"},
        ),
    ],
    "P6.5": [
        (
            RISKS.format(
                "Z = standardise(X, X)[0]; train, test = Z[~held], Z[held]", "~held", LINEAR
            ),
            {"P6.5a"},
        ),
        (
            RISKS.format("train, test = X[~held], X[held]", "~held", LINEAR),
            {"P6.5a"},
        ),
        (RISKS.format(SPLIT, "~held", LINEAR.replace("gaps, labels=labels", "None")), {"P6.5a"}),
        (
            # the labels that occur are numbered anew
            RISKS.format(
                "train, test = standardise(X[~held], X[held])\n"
                "        J = np.arange(len(np.unique(y[held])))",
                "~held",
                LINEAR.replace("gaps, labels=labels", "np.triu(J - J[:, None])"),
            ),
            {"P6.5a"},
        ),
        (
            # fitted on the held-out fold, judged on the others
            RISKS.format(SPLIT.replace("~held", "HELD"), "held", LINEAR)
            .replace("[held])", "[~held])")
            .replace("HELD", "held")
            .replace("y[~held])\n", "y[held])\n")
            .replace("y[held], ranker", "y[~held], ranker"),
            {"P6.5a"},
        ),
        (ONE.format("return alphas[best]"), {"P6.5b"}),
        (
            ONE.format(
                "limit = means[best] + risks[best].std(ddof=1)\n"
                "    return alphas[means <= limit].max()"
            ),
            {"P6.5b"},
        ),
        (
            ONE.format(
                "limit = means[best] + risks[best].std(ddof=1) / np.sqrt(risks.shape[1])\n"
                "    return alphas[means <= limit].min()"
            ),
            {"P6.5b"},
        ),
        (
            ONE.format(
                "limit = means[best] + risks[best].std(ddof=1) / np.sqrt(risks.shape[1])\n"
                "    return alphas[np.flatnonzero(means <= limit)[-1]]"
            ),
            {"P6.5b"},
        ),
        *(
            # divisor F; each row's own standard error; their mean; alphas counted, not folds
            (ONE.format(f"limit = means[best] + {error}\n    return {LARGEST}"), {"P6.5b"})
            for error in (
                "risks[best].std() / np.sqrt(risks.shape[1])",
                "risks.std(axis=1, ddof=1) / np.sqrt(risks.shape[1])",
                "risks.std(axis=1, ddof=1).mean() / np.sqrt(risks.shape[1])",
                "risks[best].std(ddof=1) / np.sqrt(len(risks))",
            )
        ),
        (
            ONE.format(
                "limit = means[best] + risks[best].std(ddof=1) / np.sqrt(risks.shape[1])\n"
                f"    return {LARGEST}"
            ).replace("risks.mean(axis=1)", "np.median(risks, axis=1)"),
            {"P6.5b"},
        ),
        (
            # upwards from the best, to the first that is not within the limit
            ONE.format(
                "limit = means[best] + risks[best].std(ddof=1) / np.sqrt(risks.shape[1])\n"
                "    too_far = alphas[(means > limit) & (alphas > alphas[best])]\n"
                "    return alphas[alphas < min(too_far, default=np.inf)].max()"
            ),
            {"P6.5b"},
        ),
    ],
    "P6.6": [
        (
            PARTS.format(GAIN, "differ.sum()", "(gain - delta).sum(axis=1) / (len(y) - 1)"),
            {"P6.6a", "P6.6b"},
        ),
        (
            PARTS.format(GAIN, "differ.sum()", "(gain - delta * differ).mean(axis=1)"),
            {"P6.6a", "P6.6b"},
        ),
        (
            PARTS.format(GAIN, "differ.sum()", "gain.sum(axis=1) / (len(y) - 1)"),
            {"P6.6a", "P6.6b"},
        ),
        (
            PARTS.format(
                "side * (np.sign(b[:, None] - b) - np.sign(a[:, None] - a)) / 2",
                "differ.sum()",
                "(gain - delta * differ).sum(axis=1) / (len(y) - 1)",
            ),
            {"P6.6a"},
        ),  # the squares of the parts stay as they are
        (
            ERROR.format(
                "(n * (n - 1))",
                "_, p = difference_parts(y, a, 0 * a)\n    _, q = difference_parts(y, b, 0 * b)",
                "2 / share * np.sqrt((np.sum(p**2) + np.sum(q**2)) / (n * (n - 1)))",
            ),
            {"P6.6b"},
        ),  # as if the rankers were judged by different people
        (ERROR.format("(n * (n - 1))", BOTH, "np.std(parts, ddof=1) / np.sqrt(n)"), {"P6.6b"}),
        (
            ERROR.format("n**2", BOTH, "2 / share * np.sqrt(np.sum(parts**2) / (n * (n - 1)))"),
            {"P6.6b"},
        ),
        (
            ERROR.format("(n * (n - 1))", BOTH, "2 / share * np.sqrt(np.sum(parts**2) / n**2)"),
            {"P6.6b"},
        ),
        (
            BOOTSTRAP.format(
                "found = [metrics.u_pairs(y, a[r]) - metrics.u_pairs(y, b[r]) for r in draws]",
                "np.std(found, ddof=1)",
                "[0.025, 0.975]",
            ),
            {"P6.6c"},
        ),
        (
            BOOTSTRAP.format(
                "found = [metrics.u_pairs(y[r], a[r]) - metrics.u_pairs(y[s], b[s])\n"
                "             for r, s in zip(draws, draws[::-1])]",
                "np.std(found, ddof=1)",
                "[0.025, 0.975]",
            ),
            {"P6.6c"},
        ),
        (
            BOOTSTRAP.format(
                "found = [difference_parts(y[r], a[r], b[r])[0] for r in draws]",
                "np.std(found, ddof=1) / np.sqrt(len(draws))",
                "[0.025, 0.975]",
            ),
            {"P6.6c"},
        ),
        (
            BOOTSTRAP.format(
                "found = [difference_parts(y[r], a[r], b[r])[0] for r in draws]",
                "np.std(found, ddof=1)",
                "[0.05, 0.95]",
            ),
            {"P6.6c"},
        ),
        (
            BOOTSTRAP.format(
                "found = [difference_parts(*(v[np.unique(r)] for v in (y, a, b)))[0]\n"
                "             for r in draws]",
                "np.std(found, ddof=1)",
                "[0.025, 0.975]",
            ),
            {"P6.6c"},
        ),
    ],
    "P6.7": [
        (GAPS.format(ABOVE, BINS, "np.mean(np.abs(above - (y > k)))"), {"P6.7a"}),
        (
            GAPS.format(
                ABOVE, BINS, "np.mean([abs(np.mean(above[b] - (y[b] > k))) for b in bins])"
            ),
            {"P6.7a"},
        ),  # all bins weigh the same
        (
            GAPS.format(
                ABOVE.replace("k + 1", "k"),
                BINS,
                "sum(abs(np.sum(above[b] - (y[b] > k))) for b in bins) / n",
            ),
            {"P6.7a"},
        ),
        (
            GAPS.format(
                "probabilities[:, k]",
                BINS,
                "sum(abs(np.sum(above[b] - (y[b] == k))) for b in bins) / n",
            ),
            {"P6.7a"},
        ),
        (
            GAPS.format(
                ABOVE,
                "np.array_split(np.arange(n), n_bins)",
                "sum(abs(np.sum(above[b] - (y[b] > k))) for b in bins) / n",
            ),
            {"P6.7a"},
        ),
        *(
            # one order for all cuts; equal predictions in the reverse order of the file
            (
                GAPS.format(
                    ABOVE,
                    BINS.replace("np.argsort(above, kind='stable')", order),
                    "sum(abs(np.sum(above[b] - (y[b] > k))) for b in bins) / n",
                ),
                {"P6.7a"},
            )
            for order in (
                "np.argsort(probabilities @ np.arange(K), kind='stable')",
                "np.argsort(-above, kind='stable')[::-1]",
                "np.argsort(above)",
            )
        ),
        (SLOPES.format(NOMINAL, 2, "K - 2", "return p <= level"), {"P6.7b"}),
        (SLOPES.format(NOMINAL, 2, "K - 2", "return p <= level / m"), {"P6.7b"}),
        (SLOPES.format(NOMINAL, 2, "K - 1", HOLM), {"P6.7b"}),
        (SLOPES.format(NOMINAL, 1, "K - 2", HOLM), {"P6.7b"}),
        (SLOPES.format(NOMINAL, 2, "K - 2", HOLM.replace("np.argsort(order)", "order")), {"P6.7b"}),
        # without a stop, and from the largest downwards (Hochberg)
        (
            SLOPES.format(
                NOMINAL, 2, "K - 2", HOLM.replace("np.logical_and.accumulate", "np.asarray")
            ),
            {"P6.7b"},
        ),
        (
            SLOPES.format(
                NOMINAL,
                2,
                "K - 2",
                HOLM.replace("np.logical_and.accumulate", "np.asarray").replace(
                    "return passed",
                    "passed = np.logical_or.accumulate(passed[::-1])[::-1]\n    return passed",
                ),
            ),
            {"P6.7b"},
        ),
    ],
    "P6.8": [
        (CLAIM.format(100, 5, 2, "b + 3 * y"), {"P6.8a"}),  # the intervals do not overlap
        (CLAIM.format(100, 5, 2, "y + 2 * rng.normal(size=len(y))"), {"P6.8a"}),
        (CLAIM.format(100, 2, 2, "b + 0.3 * y"), {"P6.8a"}),
        (CLAIM.format(200, 5, 2, "b + 0.3 * y"), {"P6.8a"}),
        (CLAIM.format(100, 5, 2, "2 * b"), {"P6.8a"}),  # no difference at all
    ],
}
