"""Typical wrong answers to problem set 4: code that replaces an answer, and what it loses."""

LIKELIHOOD = """
def cloglog_likelihood(params, X, y, K):
    p = X.shape[1]
    ends = np.concatenate([[-np.inf], params[p:], [np.inf]])
    score = {score}
    u, l = ends[y + 1] - score, ends[y] - score
    a, c = np.exp(u), np.exp(l)
    chance = {chance}
    f_u, f_l = np.where(y == K - 1, 0, np.exp(np.minimum(u, 99) - a)), np.exp(l - c)
    r_u, r_l = f_u / chance, f_l / chance
    of_theta = np.bincount(y + 1, r_u, K + 1) - np.bincount(y, r_l, K + 1)
    return np.log(chance).sum(), np.append({of_b}, of_theta[1:K])
"""
PLAIN = {"score": "X @ params[:p]", "of_b": "X.T @ (r_l - r_u)"}
NAIVE = "(1 - np.exp(-a)) - (1 - np.exp(-c))"
RANKS = """
def rank_scores(y):
    n = np.bincount(y)
    return ({})[y]
"""
SCORE = """
def score_test(X, y):
    a = rank_scores(y)
    Z = X - X.mean(axis=0)
    return {}
"""
COLUMN = """
def separated_column(x, y):
    groups = [x[y == k] for k in range(y.max() + 1)]
    pairs = list(zip(groups[:-1], groups[1:]))
    rising = {rising}(a.max() {sign} b.min() for a, b in pairs)
    falling = {rising}(a.min() {turned} b.max() for a, b in pairs)
    return bool({answer})
"""
SEPARATED = """
def separated(X, y):
    {}
"""
PROGRAM = """K, p = y.max() + 1, X.shape[1]
    up, down = y < K - 1, y > 0
    A = np.vstack([np.hstack([-X[up], np.eye(K - 1)[y[up]]]),
                   np.hstack([X[down], -np.eye(K - 1)[y[down] - 1]])])
    return {}"""
EXAMPLE = """
def counterexample():
    theta = {}
    return theta, {}, np.array([[0, {}, {}], [0, 0, {}], [0, 0, 0]])
"""
HINGE = """
def hinge_risk(y, scores, weights, margin):
    s = {moved}
    up, down = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    up, down = up[np.argsort(s[up])], down[np.argsort(s[down])]
    w = {weights}
    w_up, w_down = (np.append(0.0, np.cumsum(w[part])) for part in (up, down))
    moment = np.append(0.0, np.cumsum(w[down] * s[down]))
    first = np.searchsorted(s[down], s[up] - margin, side="{first}")
    last = np.searchsorted(s[up], s[down] + margin, side="{last}")
    mass, total = w_down[-1] - w_down[first], {total}
    value = w[up] @ ((margin - s[up]) * mass + moment[-1] - moment[first])
    gradient = np.zeros(len(s))
    gradient[up], gradient[down] = -w[up] * mass, w[down] * w_up[last]
    return value / total, {gradient}
"""
GOOD = {
    "moved": "scores - scores[0]",
    "weights": "weights",
    "first": "right",
    "last": "left",
    "total": "w_up[-1] * w_down[-1]",
    "gradient": "gradient / total",
}
SUM = """
def exponential_sum(y, scores, costs):
    K = len(costs)
    f = {}
    down, up = np.bincount(y, np.exp(f), K), np.bincount(y, np.exp(-f), K)
    return {}, np.exp(f) * (costs @ up)[y] - {}
"""
CENTRED = "scores - scores.mean()"
UPPER = "np.exp(-f) * (down @ costs)[y]"
PRODUCT = """
def hessian_product(y, scores, costs, v):
    K = len(costs)
    f = {}
    low, high = np.exp(-f), np.exp(f)
    up, down = np.bincount(y, low, K), np.bincount(y, high, K)
    up_v, down_v = np.bincount(y, low * v, K), np.bincount(y, high * v, K)
    upper = low * (v * (down @ costs)[y] - {})
    lower = high * (v * (costs @ up)[y] - {})
    return {}
"""
OF_BELOW, OF_ABOVE = "(down_v @ costs)[y]", "(costs @ up_v)[y]"
FIT = """
def proportional_fit(table):
    x = np.arange(2)
    def loss(params):
        theta = np.cumsum(np.append(params[1], np.exp(params[2:])))
        below = expit(theta {sign} params[0] * x[:, None])
        chances = np.diff(below, axis=1, prepend=0, append=1)
        return -np.sum(table * np.log(np.maximum(chances, 1e-300))) / table.sum()

    theta = logit(np.cumsum(table.sum(axis=0))[:-1] / table.sum())
    start = np.concatenate([[0.0], theta[:1], np.log(np.diff(theta))])
    found = minimize(loss, start, method="BFGS", options={options})
    return {answer}
"""
ODDS = """
def proportional_fit(table):
    below = np.cumsum(table, axis=1)[:, :-1] / table.sum(axis=1, keepdims=True)
    first, second = logit(below)
    b = np.mean(first - second)
    theta = logit(np.cumsum(table.sum(axis=0))[:-1] / table.sum())
    chances = np.diff(expit(np.vstack([theta, theta - b])), axis=1, prepend=0, append=1)
    return b, np.sum(table * np.log(chances))
"""
RATIO = """
def likelihood_ratio(table):
    shares = {}
    with np.errstate(all="ignore"):
        return {} - proportional_fit(table)[1])
"""
ROWS = "table / table.sum(axis=1, keepdims=True)"
SURE = "np.sum(table * np.log(np.where(table > 0, shares, 1)))"

WRONG = {
    "P4.1": [
        (LIKELIHOOD.format(**PLAIN, chance=NAIVE), {"P4.1b"}),
        (LIKELIHOOD.format(**PLAIN, chance="np.exp(-c) - np.exp(-a)"), {"P4.1b"}),
        (LIKELIHOOD.format(**PLAIN, chance=f"np.maximum({NAIVE}, 1e-300)"), {"P4.1b"}),
        (
            LIKELIHOOD.format(
                score="X @ params[:p]", of_b="X.T @ (r_u - r_l)", chance="np.exp(-c) - np.exp(-a)"
            ),
            {"P4.1a", "P4.1b"},
        ),
        (
            LIKELIHOOD.format(
                score="-X @ params[:p]", of_b="X.T @ (r_u - r_l)", chance="np.exp(-c) - np.exp(-a)"
            ),
            {"P4.1a", "P4.1b"},
        ),
        (  # the link in a mirror
            LIKELIHOOD.format(**PLAIN, chance="np.exp(-1 / a) - np.exp(-1 / c)"),
            {"P4.1a", "P4.1b"},
        ),
    ],
    "P4.3": [
        (RANKS.format("(np.cumsum(n) - n / 2) / len(y)"), {"P4.3a", "P4.3b"}),
        (RANKS.format("2 * np.cumsum(n) / len(y) - 1"), {"P4.3a", "P4.3b"}),
        (RANKS.format("1 - (2 * np.cumsum(n) - n) / len(y)"), {"P4.3a"}),  # a sign that is squared
        (RANKS.format("np.arange(len(n)) - np.mean(y)"), {"P4.3a", "P4.3b"}),
        # the thresholds taken as known
        (SCORE.format("a @ X @ np.linalg.solve(np.mean(a**2) * X.T @ X, X.T @ a)"), {"P4.3b"}),
        (SCORE.format("a @ Z @ np.linalg.solve(np.var(a, ddof=1) * Z.T @ Z, Z.T @ a)"), {"P4.3b"}),
        (
            SCORE.format("np.sum((Z.T @ a) ** 2 / (np.mean(a**2) * np.sum(Z**2, axis=0)))"),
            {"P4.3b"},
        ),
        (SCORE.format("a @ Z @ np.linalg.solve(Z.T @ Z / 3, Z.T @ a)"), {"P4.3b"}),  # without ties
    ],
    "P4.4": [
        (COLUMN.format(rising="all", sign="<=", turned=">=", answer="rising"), {"P4.4a"}),
        (COLUMN.format(rising="all", sign="<", turned=">", answer="rising or falling"), {"P4.4a"}),
        (
            COLUMN.format(rising="any", sign="<=", turned=">=", answer="rising or falling"),
            {"P4.4a"},
        ),
        (COLUMN.format(rising="all", sign="<=", turned=">=", answer="False"), {"P4.4a"}),
        (  # the order of the items decides between equal numbers
            "def separated_column(x, y):\n"
            "    orders = (np.argsort(z, kind='stable') for z in (x, -x))\n"
            "    return any(bool(np.all(np.diff(y[order]) >= 0)) for order in orders)",
            {"P4.4a"},
        ),
        (SEPARATED.format("return any(separated_column(x, y) for x in X.T)"), {"P4.4b"}),
        (
            SEPARATED.format(
                PROGRAM.format(
                    "linprog(0 * A[0], -A, -np.ones(len(A)), bounds=(None, None)).status == 0"
                )
            ),
            {"P4.4b"},
        ),  # strict inequalities
        (
            SEPARATED.format(
                PROGRAM.format(
                    "linprog(0 * A[0], -A, np.zeros(len(A)), bounds=(None, None)).status == 0"
                )
            ),
            {"P4.4b"},
        ),  # zero counts as a direction
        (
            SEPARATED.format(
                PROGRAM.format("bool(-linprog(-A.sum(0), -A, np.zeros(len(A))).fun > 1e-7)")
            ),
            {"P4.4b"},
        ),  # no bounds given: SciPy takes non-negative numbers, and the optimum may be infinite
    ],
    "P4.5": [
        # equal coefficients: one order serves all costs
        (EXAMPLE.format("np.array([-1.0, 1.0])", "np.ones(2)", 1, 0.05, 0.05), {"P4.5a"}),
        # costs of a scale
        (
            EXAMPLE.format(
                "logit(np.array([.3, .8]))", "theta - logit(np.array([.27, .29]))", 0.5, 1, 0.5
            ),
            {"P4.5a"},
        ),
        # a negative coefficient
        (
            EXAMPLE.format(
                "logit(np.array([.3, .8]))", "theta - logit(np.array([.35, .4]))", 1, 0.05, 0.05
            ),
            {"P4.5a"},
        ),
        # thresholds that cross
        (EXAMPLE.format("np.array([-1.0, 1.0])", "np.array([0.1, 3.0])", 1, 0.05, 0.05), {"P4.5a"}),
        # costs of zero
        (
            EXAMPLE.format(
                "logit(np.array([.3, .8]))", "theta - logit(np.array([.27, .29]))", 1, 0, 0
            ),
            {"P4.5a"},
        ),
    ],
    "P4.6": [
        (HINGE.format(**GOOD | {"first": "left"}), {"P4.6a"}),
        (HINGE.format(**GOOD | {"last": "right"}), {"P4.6a"}),
        (HINGE.format(**GOOD | {"moved": "scores"}), {"P4.6b"}),
        (HINGE.format(**GOOD | {"moved": "1 * scores", "first": "left"}), {"P4.6a", "P4.6b"}),
        (HINGE.format(**GOOD | {"weights": "np.ones(len(y))"}), {"P4.6a", "P4.6b"}),
        (HINGE.format(**GOOD | {"total": "len(up) * len(down)"}), {"P4.6a", "P4.6b"}),
        (HINGE.format(**GOOD | {"gradient": "-gradient / total"}), {"P4.6a", "P4.6b"}),
        (HINGE.format(**GOOD | {"gradient": "gradient"}), {"P4.6a", "P4.6b"}),
    ],
    "P4.7": [
        (SUM.format("scores", "down @ costs @ up", UPPER), {"P4.7a"}),
        (SUM.format(CENTRED, "up @ costs @ down", UPPER), {"P4.7a"}),
        (SUM.format(CENTRED, "down @ costs @ up", "np.exp(-f) * (costs @ down)[y]"), {"P4.7a"}),
        (SUM.format(CENTRED, "(down @ costs @ up) / len(y)", UPPER), {"P4.7a"}),
        (PRODUCT.format("scores", OF_BELOW, OF_ABOVE, "upper + lower"), {"P4.7b"}),
        (PRODUCT.format(CENTRED, "0", "0", "upper + lower"), {"P4.7b"}),  # the diagonal alone
        (PRODUCT.format(CENTRED, OF_BELOW, OF_ABOVE, "lower - upper"), {"P4.7b"}),
        (PRODUCT.format(CENTRED, OF_ABOVE, OF_BELOW, "upper + lower"), {"P4.7b"}),
    ],
    "P4.9": [
        (
            FIT.format(
                sign="+", options="{'gtol': 1e-7}", answer="found.x[0], -found.fun * table.sum()"
            ),
            {"P4.9a"},
        ),
        (FIT.format(sign="-", options="{'gtol': 1e-7}", answer="found.x[0]"), {"P4.9a", "P4.9b"}),
        (
            FIT.format(sign="-", options="{'gtol': 1e-7}", answer="found.x[0], -found.fun"),
            {"P4.9a", "P4.9b"},
        ),
        (
            FIT.format(
                sign="-", options="{'maxiter': 2}", answer="found.x[0], -found.fun * table.sum()"
            ),
            {"P4.9a", "P4.9b"},
        ),
        (ODDS, {"P4.9a", "P4.9b"}),
        (RATIO.format(ROWS, f"({SURE}"), {"P4.9b"}),
        (RATIO.format("table / table.sum(axis=0)", f"2 * ({SURE}"), {"P4.9b"}),
        (RATIO.format(ROWS, "2 * (np.sum(table * np.log(shares))"), {"P4.9b"}),  # empty cells
    ],
}
