"""Typical wrong answers to problem set 5: code that replaces an answer, and what it loses."""

COST = """
def {}:
    below = [scores[y == j] for j in range(K - 1)]
    above = [scores[y == j + 1] for j in range(K - 1)]
    kinks = [np.r_[b + 1, a - 1] for b, a in zip(below, above)]

    def pay(j, t):
        return np.maximum(1 + below[j] - t, 0).sum() + np.maximum(1 - above[j] + t, 0).sum()

    {}
"""
ORDERED, SPACED = "ordered_cost(scores, y, K)", "spaced_cost(scores, y, K, gap)"
FREE = "return sum(min(pay(j, t) for t in kinks[j]) for j in range(K - 1))"
SORTED = """free = sorted(min(kinks[j], key=lambda t: pay(j, t)) for j in range(K - 1))
    return sum(pay(j, t) for j, t in enumerate(free))"""
GREEDY = """total, last = 0.0, -np.inf
    for j in range(K - 1):
        t = max(last, min(kinks[j], key=lambda t: pay(j, t)))
        total, last = total + pay(j, t), t{}
    return total"""
IMPLICIT = """total = 0.0
    for j in range(K - 1):
        v = np.sort(np.r_[scores[y <= j] + 1, scores[y > j] - 1])
        t = v[(y <= j).sum() - 1]
        total += np.maximum(1 + scores[y <= j] - t, 0).sum()
        total += np.maximum(1 - scores[y > j] + t, 0).sum()
    return total"""
UNSHIFTED = """grid = np.unique(np.concatenate(kinks))
    best = np.zeros(len(grid))
    for j in range(K - 1):
        before = np.minimum.accumulate(best)
        if j:
            place = np.searchsorted(grid, grid - gap + 1e-12, "right") - 1
            before = np.where(place >= 0, before[place], np.inf)
        best = before + np.array([pay(j, t) for t in grid])
    return best.min()"""
GRID = """places = np.linspace(scores.min() - 1, scores.max() + K, 4000)
    best = np.zeros(len(places))
    for j in range(K - 1):
        best = np.minimum.accumulate(best) + np.array([pay(j, t + j * {}) for t in places])
    return best.min()"""
DESIGN = """
def design_variance(loss, masses, pairs):
    g = loss @ masses
    rho = masses @ g
    zeta1, zeta2 = masses @ (g - rho) ** 2, masses @ (loss - rho) ** 2 @ masses
    M, d = len(pairs), np.bincount(np.ravel(pairs))
    return {}
"""
UNBIASED = """
def unbiased_variance(loss):
    n = len(loss)
    {}
    total, rows, squares = off.sum(), off.sum(axis=1), (off**2).sum()
    disjoint = total**2 - {}
    return (total / (n * (n - 1))) ** 2 - disjoint / (n * (n - 1) * (n - 2) * (n - 3))
"""
NO_DIAGONAL = "off = np.where(np.eye(n, dtype=bool), 0, loss)"
EDGE = """
def largest_edge(X, y, scores):
    D = {}
    D = D / {}
    push = D.sum(axis=1) - D.sum(axis=0)
    return max({}(push[x > c].sum()) for x in X.T for c in np.unique(x)[:-1])
"""
ALL_PAIRS = "(y[:, None] > y) * np.exp(scores - scores[:, None])"
BOOST = """
def boost(X, y, rounds):
    f, N = np.zeros(len(y)), (y[:, None] > y).sum()
    for _ in range(rounds):
        D = (y[:, None] > y) * np.exp({})
        D = D / {}
        push = D.sum(axis=1) - D.sum(axis=0)
        stumps = [1.0 * (x > c) for x in X.T for c in np.unique(x)[:-1]]
        h = max(stumps, key=lambda h: {})
        right, wrong = h @ D @ (1 - h), (1 - h) @ D @ h
        f = f + {} * h
    return f
"""
STEP = "np.log((right + 1 / N) / (wrong + 1 / N)) / 2"
COUNT = """
def counting_ratio(costs):
    worst = 0.0
    for y, row in enumerate(costs):
        w = np.abs(np.diff(row))
        for r in range(len(row)):
            side = {}
            if r != y:
                worst = max(worst, row[r] / side if side > 0 else {})
    return worst
"""
FIRST = """
def first_no_ratio(costs):
    worst = 0.0
    for y, row in enumerate(costs):
        w = np.abs(np.diff(row))
        for r in range(len(row)):
            if r != y:
                weight = {}
                worst = max(worst, row[r] / weight if weight > 0 else {})
    return worst
"""
SMALLEST = "np.sort(w[:y] if r < y else w[y:])[: abs(r - y)].sum()"
EXAMPLE = """
def counterexample():
    return {}
"""
CONSTANT = """
def constant_cut(X, y):
    best = (0, 0.0, -np.inf)
    for j, x in enumerate(X.T):
        for c in {}:
            s = x <= c
            if {} <= s.sum() <= len(y) - {}:
                gain = {}
                best = max(best, (j, c, gain), key=lambda b: b[2])
    return {}
"""
CUTS = "(np.unique(x)[:-1] + np.unique(x)[1:]) / 2"
GAIN = "y.std() - s.mean() * y[s].std() - (~s).mean() * y[~s].std()"
LINES = """
def line_cut(X, y):
    def squares(x, t):
        A = {}
        return np.sum((t - A @ np.linalg.lstsq(A, t, rcond=None)[0]) ** 2)

    best = np.inf
    for j, x in enumerate({}):
        for c in (np.unique(x)[:-1] + np.unique(x)[1:]) / 2:
            s = x <= c
            if {} <= s.sum() <= len(y) - {}:
                best = min(best, squares(x[s], y[s]) + squares(x[~s], y[~s]))
    return {}
"""
LINE = "np.column_stack([np.ones(len(x)), x])"

WRONG = {
    "P5.2": [
        (COST.format(ORDERED, FREE), {"P5.2a"}),
        (COST.format(ORDERED, SORTED), {"P5.2a"}),
        (COST.format(ORDERED, GREEDY.format("")), {"P5.2a"}),
        (COST.format(ORDERED, IMPLICIT), {"P5.2a"}),
        (COST.format(ORDERED, GRID.format("0")), {"P5.2a"}),
        (COST.format(SPACED, GRID.format("gap")), {"P5.2a", "P5.2b"}),
        (COST.format(SPACED, "return ordered_cost(scores, y, K)"), {"P5.2a", "P5.2b"}),
        (COST.format(SPACED, GREEDY.format(" + gap")), {"P5.2a", "P5.2b"}),
        (COST.format(SPACED, UNSHIFTED), {"P5.2b"}),  # kinks of one threshold only, not shifted
    ],
    "P5.4": [
        (DESIGN.format("zeta2 / M"), {"P5.4a"}),
        (DESIGN.format("(M * zeta2 + zeta1 * (d * (d - 1)).sum() / 2) / M**2"), {"P5.4a"}),
        (DESIGN.format("4 * zeta1 / len(d) + (zeta2 - 2 * zeta1) / M"), {"P5.4a"}),
        (DESIGN.format("(M * zeta2 + zeta1 * (d**2).sum()) / M**2"), {"P5.4a"}),
        (UNBIASED.format("off = 1.0 * loss", "4 * (rows @ rows) + 2 * squares"), {"P5.4b"}),
        (UNBIASED.format(NO_DIAGONAL, "4 * (rows @ rows) - 2 * squares"), {"P5.4b"}),
        (UNBIASED.format(NO_DIAGONAL, "4 * (rows @ rows)"), {"P5.4b"}),
        (UNBIASED.format(NO_DIAGONAL, "2 * (rows @ rows) + squares"), {"P5.4b"}),
    ],
    "P5.6": [
        (EDGE.format(ALL_PAIRS, "D.sum()", ""), {"P5.6a"}),  # the sign is kept
        (EDGE.format(ALL_PAIRS, "1", "abs"), {"P5.6a"}),
        (EDGE.format(ALL_PAIRS.replace("scores -", "0 * scores -"), "D.sum()", "abs"), {"P5.6a"}),
        (
            EDGE.format(
                "np.outer(y * np.exp(-scores), (y == 0) * np.exp(scores))", "D.sum()", "abs"
            ),
            {"P5.6a"},
        ),
        (BOOST.format("f - f[:, None]", "D.sum()", "push @ h", STEP), {"P5.6b"}),
        (BOOST.format("f[:, None] - f", "D.sum()", "abs(push @ h)", STEP), {"P5.6b"}),
        (BOOST.format("f - f[:, None]", "N", "abs(push @ h)", STEP), {"P5.6b"}),
        (
            BOOST.format("f - f[:, None]", "D.sum()", "abs(push @ h)", STEP.replace("/ 2", "/ 4")),
            {"P5.6b"},
        ),
        (
            BOOST.format(
                "f - f[:, None]",
                "D.sum()",
                "abs(push @ h)",
                "np.log((1 + right - wrong) / (1 - right + wrong)) / 2",
            ),
            {"P5.6b"},
        ),  # the step of the bound, as if every pair were separated
    ],
    "P5.7": [
        (COUNT.format("w[r:y].sum() if r < y else w[y:r].sum()", "np.inf"), {"P5.7a"}),
        (COUNT.format("np.sort(w)[: abs(r - y)].sum()", "np.inf"), {"P5.7a"}),
        (COUNT.format("min(w[:y] if r < y else w[y:], default=1)", "np.inf"), {"P5.7a"}),
        (COUNT.format(SMALLEST, "0"), {"P5.7a"}),
        (FIRST.format("w[r:y].sum() if r < y else w[y:r].sum()", "np.inf"), {"P5.7b"}),
        (FIRST.format("w[r] if r < y else w[r - 1]", "np.inf"), {"P5.7b"}),
        (FIRST.format("w[r] if r < y else row[r]", "0"), {"P5.7b"}),
        (FIRST.format("w[y - 1] if r < y else row[r]", "np.inf"), {"P5.7b"}),
    ],
    "P5.8": [
        (EXAMPLE.format("[4, 3], [0.3, 0.0], [0.68, 0.69]"), {"P5.8a"}),  # A and B exchanged
        (EXAMPLE.format("[4, 3], [0.68, 0.68], [0.3, 0.0]"), {"P5.8a"}),  # tied
        (EXAMPLE.format("[4, 3], [10.5, 11.0], [5.0, 0.0]"), {"P5.8a"}),  # gains, not chances
        (EXAMPLE.format("[1, 0], [0.03, 0.04], [1.0, 0.9]"), {"P5.8a"}),  # too small a loss
        (EXAMPLE.format("[4, 3], [0.68, 0.69], [0.80, 0.30]"), {"P5.8a"}),  # B's error is smaller
    ],
    "P5.9": [
        (CONSTANT.format(CUTS, 1, 1, GAIN, "best"), {"P5.9a"}),
        (
            CONSTANT.format(
                CUTS, 2, 2, "y.var() - s.mean() * y[s].var() - (~s).mean() * y[~s].var()", "best"
            ),
            {"P5.9a"},
        ),
        (
            CONSTANT.format(CUTS, 2, 2, "y.std() - (y[s].std() + y[~s].std()) / 2", "best"),
            {"P5.9a"},
        ),
        (
            CONSTANT.format(CUTS, 2, 2, GAIN.replace("std()", "std(ddof=1)"), "best"),
            {"P5.9a"},
        ),
        (CONSTANT.format(CUTS, 2, 2, GAIN, "best[2]"), {"P5.9a"}),
        (CONSTANT.format(CUTS, 2, 2, GAIN, "best").replace("X.T", "X.T[:1]"), {"P5.9a"}),
        (LINES.format(LINE, "X.T", 3, 3, "best / len(y)"), {"P5.9b"}),
        (LINES.format("np.ones((len(x), 1))", "X.T", 3, 3, "best"), {"P5.9b"}),
        (LINES.format("x[:, None]", "X.T", 3, 3, "best"), {"P5.9b"}),
        (LINES.format(LINE, "X.T", 2, 2, "best"), {"P5.9b"}),
        (LINES.format(LINE, "X.T[:1]", 3, 3, "best"), {"P5.9b"}),
    ],
}
