"""Typical wrong answers to problem set 1: code that replaces an answer, and what it loses."""

WEIGHTED = """
def weighted_auc(y, scores, weights):
    table = scores[y == 1][:, None] - scores[y == 0]
    w = weights[y == 1][:, None] * weights[y == 0]
    return {}
"""
PLACEMENTS = """
def placements(y, scores):
    t = scores[y == 1][:, None] - scores[y == 0]
    return {}
"""
VARIANCE = """
def auc_variance(y, scores):
    v, u = placements(y, scores)
    return {}
"""
RISK = """
def rank_risk(eta, marginal, scores):
    p, n = eta * marginal, (1 - eta) * marginal
    t = scores[:, None] - scores
    return {}
"""
REGRET = """
def rank_regret(eta, marginal, scores):
    return {}
"""
EXPONENTIAL = """
def exponential_risk(y, scores):
    up, down = (y == 1) * np.exp({0}scores), (y == 0) * np.exp(scores)
    pairs = {1}
    return up.sum() * down.sum() / pairs, {2}
"""
STABLE = """
def exponential_risk(y, scores):
    t = np.exp(scores[y == 0] - scores[y == 1][:, None])
    gradient = np.zeros(len(y))
    gradient[y == 1], gradient[y == 0] = {}
    return {}, gradient / t.size
"""
EXAMPLE = """
def counterexample():
    return {}
"""
MIXTURE = """
def best_mixture(X, y):
    def auc(w):
        s = w * X[:, 0] + (1 - w) * X[:, 1]
        return np.mean(np.sign(s[y == 1][:, None] - s[y == 0]) / 2 + 0.5)
    return {}
"""
GRADIENT = "(down * up.sum() - up * down.sum()) / pairs"
NUMBER = "(y == 1).sum() * (y == 0).sum()"

WRONG = {
    "P1.1": [
        (WEIGHTED.format("(w * (table > 0)).sum() / w.sum()"), {"P1.1b"}),
        (WEIGHTED.format("(w * (table >= 0)).sum() / w.sum()"), {"P1.1b"}),
        (WEIGHTED.format("(np.sign(table) / 2 + 0.5).mean()"), {"P1.1b"}),
        (WEIGHTED.format("(table < 0).mean()"), {"P1.1a", "P1.1b"}),
        (
            WEIGHTED.format("1 - (w * (np.sign(table) / 2 + 0.5)).sum() / w.sum()"),
            {"P1.1a", "P1.1b"},
        ),
        (WEIGHTED.format("(w * (np.sign(table) / 2 + 0.5)).sum()"), {"P1.1a", "P1.1b"}),
    ],
    "P1.3": [
        (PLACEMENTS.format("(t > 0).mean(axis=1), (t > 0).mean(axis=0)"), {"P1.3a", "P1.3b"}),
        # positives below a negative instead of above it: the variance does not notice
        (
            PLACEMENTS.format(
                "(np.sign(t) / 2 + .5).mean(axis=1), (.5 - np.sign(t) / 2).mean(axis=0)"
            ),
            {"P1.3a"},
        ),
        # exchanged: the variance does not notice this either
        (
            PLACEMENTS.format(
                "(np.sign(t) / 2 + .5).mean(axis=0), (np.sign(t) / 2 + .5).mean(axis=1)"
            ),
            {"P1.3a"},
        ),
        (VARIANCE.format("v.var() / len(v) + u.var() / len(u)"), {"P1.3b"}),
        (VARIANCE.format("v.var(ddof=1) + u.var(ddof=1)"), {"P1.3b"}),
        (VARIANCE.format("v.mean() * (1 - v.mean()) / (len(v) * len(u))"), {"P1.3b"}),
        (
            VARIANCE.format("np.sqrt(v.var(ddof=1) / len(v) + u.var(ddof=1) / len(u))"),
            {"P1.3b"},
        ),
    ],
    "P1.5": [
        (RISK.format("p @ (t <= 0) @ n / (p.sum() * n.sum())"), {"P1.5a", "P1.5b"}),
        (RISK.format("p @ ((1 - np.sign(t)) / 2) @ n"), {"P1.5a", "P1.5b"}),
        (
            RISK.format("eta @ ((1 - np.sign(t)) / 2) @ (1 - eta) / (eta.sum() * (1 - eta).sum())"),
            {"P1.5a", "P1.5b"},
        ),
        (REGRET.format("rank_risk(eta, marginal, scores)"), {"P1.5b"}),
        (
            REGRET.format("rank_risk(eta, marginal, scores) - rank_risk(eta, marginal, -eta)"),
            {"P1.5b"},
        ),
        (
            REGRET.format(
                "rank_risk(eta, marginal, scores) - rank_risk(eta, marginal, eta * marginal)"
            ),
            {"P1.5b"},
        ),
    ],
    "P1.6": [
        (EXAMPLE.format("[0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]"), {"P1.6a"}),
        (EXAMPLE.format("[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]"), {"P1.6a"}),
        (EXAMPLE.format("[0, 1, 0, 1], [0, 0, 1, 1], [0, 1], [1, 0]"), {"P1.6a"}),
        (EXAMPLE.format("None"), {"P1.6a"}),
        (EXAMPLE.format("[0, 1] * 60, [0, 0, 1, 1] * 30, [0, 1] * 60, [0, 0] * 60"), {"P1.6a"}),
    ],
    "P1.7": [
        (EXPONENTIAL.format("-", NUMBER, GRADIENT), {"P1.7b"}),  # overflows
        (EXPONENTIAL.format("-", "1", GRADIENT), {"P1.7a", "P1.7b"}),
        (STABLE.format("t.sum(axis=1), -t.sum(axis=0)", "t.mean()"), {"P1.7a", "P1.7b"}),
        (STABLE.format("-t.sum(axis=1), t.sum(axis=0)", "t.sum()"), {"P1.7a", "P1.7b"}),
        (STABLE.format("-t.sum(axis=1) / 2, t.sum(axis=0) / 2", "t.mean()"), {"P1.7a", "P1.7b"}),
    ],
    "P1.9": [
        (MIXTURE.format("max(auc(w) for w in np.linspace(0, 1, 101))"), {"P1.9"}),
        (MIXTURE.format("max(auc(0), auc(1))"), {"P1.9"}),
        (MIXTURE.format("auc(0.5)"), {"P1.9"}),
        (
            MIXTURE.format("max(auc(w) for w in np.linspace(0.0005, 0.9995, 1000))"),
            {"P1.9"},
        ),  # no ends
    ],
}
