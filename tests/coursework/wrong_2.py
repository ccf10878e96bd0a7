"""Typical wrong answers to problem set 2: code that replaces an answer, and what it loses."""

TABLE = """
def pair_table(y, scores, K):
    table = np.zeros((K, K))
    for j in range(K):
        for i in range(j + 1, K):
            t = scores[y == j][:, None] - scores[y == i]
            table[{}] = {}
    return table
"""
RISK = """
def cost_risk(y, scores, costs):
    K = len(costs)
    n = np.bincount(y, minlength=K)
    pairs = np.triu(np.outer(n, n), 1)
    table = pair_table(y, scores, K)
    return {}
"""
ORDER = """
def order_risk(posterior, marginal, costs, order):
    place = {}
    below = (np.sign(place[:, None] - place) + 1) / 2
    joint = marginal[:, None] * posterior
    shares = joint.sum(axis=0)
    z = np.triu(np.outer(shares, shares), 1).sum()
    return {}
"""
LEAST = """
def least_risk(posterior, marginal, costs):
    return order_risk(posterior, marginal, costs, np.argsort({}))
"""
EXAMPLE = """
def counterexample():
    return {}, {}
"""
PREFERENCE = """
def preference(posterior, costs):
    return {}
"""
CYCLE = """
def has_cycle(posterior, costs):
    better = preference(posterior, costs)
    n = range(len(better))
    return {}
"""
NDCG = """
def expected_ndcg(posterior, order):
    n, K = posterior.shape
    discount = {}
    total, norm = 0.0, 0.0
    for grades in product(range(K), repeat=n):
        gains = {}
        ideal = np.sort(gains)[::-1] @ discount
        chance = np.prod(posterior[np.arange(n), grades])
        norm += chance * ideal
        {}
    return {}
"""
BEST = """
def best_ndcg(posterior):
    gains = {}
    return expected_ndcg(posterior, np.argsort(-gains))
"""
ERROR = """
def least_absolute_error(scores, y, K):
    {}
"""
LOG2 = "1 / np.log2(np.arange(2, n + 2))"
EXPONENTIAL = "2.0 ** np.array(grades) - 1"
ADD = "total += chance * (gains[list(order)] @ discount) / ideal if ideal > 0 else 0"
SAFE = "np.array([[0, .7, .3], [.4, 0, .6]])"
ERRORS = "(below * (joint @ costs.T @ joint.T)).sum()"

WRONG = {
    "P2.1": [
        (TABLE.format("j, i", "np.mean(t >= 0)"), {"P2.1a", "P2.1b"}),
        (TABLE.format("j, i", "np.mean(t > 0)"), {"P2.1a", "P2.1b"}),
        (TABLE.format("j, i", "np.mean((1 - np.sign(t)) / 2)"), {"P2.1a", "P2.1b"}),
        (TABLE.format("i, j", "np.mean((1 + np.sign(t)) / 2)"), {"P2.1a", "P2.1b"}),
        (RISK.format("(costs * table).sum() / (K * (K - 1) / 2)"), {"P2.1b"}),
        (RISK.format("(pairs * costs * table).sum() / (pairs * costs).sum()"), {"P2.1b"}),
        (RISK.format("(pairs * costs * table).sum() / len(y) ** 2"), {"P2.1b"}),
    ],
    "P2.3": [
        (
            ORDER.format("np.array(order)", ERRORS + " / z"),
            {"P2.3a"},
        ),  # all orders are tried anyway
        (ORDER.format("np.argsort(order)", ERRORS), {"P2.3a", "P2.3b"}),
        (ORDER.format("np.argsort(order)", ERRORS + " / (2 * z)"), {"P2.3a", "P2.3b"}),
        (
            ORDER.format(
                "np.argsort(order)", "((below == 1) * (joint @ costs.T @ joint.T)).sum() / z"
            ),
            {"P2.3a", "P2.3b"},
        ),
        (LEAST.format("-posterior @ np.arange(posterior.shape[1])"), {"P2.3b"}),
        (LEAST.format("posterior[:, 0]"), {"P2.3b"}),
        (LEAST.format("-(posterior @ (costs.T - costs) @ posterior.T) @ marginal"), {"P2.3b"}),
    ],
    "P2.4": [
        (EXAMPLE.format(SAFE, "np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0]])"), {"P2.4a"}),
        (EXAMPLE.format(SAFE, "np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])"), {"P2.4a"}),
        (
            EXAMPLE.format(SAFE + "[::-1]", "np.array([[0, 1, 1.05], [0, 0, 1], [0, 0, 0]])"),
            {"P2.4a"},
        ),
        (
            EXAMPLE.format("2 * " + SAFE, "np.array([[0, 1, 1.05], [0, 0, 1], [0, 0, 0]])"),
            {"P2.4a"},
        ),
        (EXAMPLE.format(SAFE, "100 * np.array([[0, 1, 1.05], [0, 0, 1], [0, 0, 0]])"), {"P2.4a"}),
    ],
    "P2.5": [
        # the sign of all preferences turns, and with it the direction of every circle
        (PREFERENCE.format("posterior @ (costs - costs.T) @ posterior.T"), {"P2.5a"}),
        (PREFERENCE.format("posterior @ costs.T @ posterior.T"), {"P2.5a", "P2.5b"}),
        (PREFERENCE.format("2 * posterior @ (costs.T - costs) @ posterior.T"), {"P2.5a"}),
        (CYCLE.format("False"), {"P2.5b"}),
        (CYCLE.format("len(better) > 2 and posterior.shape[1] > 3"), {"P2.5b"}),
        (CYCLE.format("int(np.linalg.matrix_rank(better) > 2)"), {"P2.5b"}),
    ],
    "P2.7": [
        (
            NDCG.format(
                LOG2,
                EXPONENTIAL,
                "total += chance * (gains[list(order)] @ discount)",
                "total / norm if norm > 0 else 0.0",
            ),
            {"P2.7a", "P2.7b"},
        ),
        (
            NDCG.format("1 / np.log(np.arange(2, n + 2)) ** 2", EXPONENTIAL, ADD, "total"),
            {"P2.7a", "P2.7b"},
        ),
        (NDCG.format(LOG2, "1.0 * np.array(grades)", ADD, "total"), {"P2.7a", "P2.7b"}),
        (
            NDCG.format(LOG2, EXPONENTIAL, ADD.replace("else 0", "else chance"), "total"),
            {"P2.7a", "P2.7b"},
        ),
        (BEST.format("posterior @ (2.0 ** np.arange(posterior.shape[1]) - 1)"), {"P2.7b"}),
        (BEST.format("posterior @ -np.arange(posterior.shape[1])"), {"P2.7b"}),
        (BEST.format("-posterior[:, -1]"), {"P2.7b"}),
    ],
    "P2.9": [
        (ERROR.format("return np.abs(y - np.median(y)).sum()"), {"P2.9"}),
        (ERROR.format("return np.abs(y - np.clip(np.round(scores), 0, K - 1)).sum()"), {"P2.9"}),
        (
            ERROR.format("return np.abs(np.sort(y) - y[np.argsort(scores, kind='stable')]).sum()"),
            {"P2.9"},
        ),
        (
            ERROR.format(
                "best = np.zeros(K)\n    for label in y[np.argsort(scores)]:\n        "
                "best = np.minimum.accumulate(best) + abs(label - np.arange(K))\n    "
                "return best.min()"
            ),
            {"P2.9"},
        ),  # tied scores get different labels
    ],
}
