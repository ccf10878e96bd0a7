"""Typical wrong answers to problem set 3: code that replaces an answer, and what it loses."""

WEIGHTS = """
def expected_weights(ballots, m):
    a = np.zeros((m, m))
    for ballot in ballots:
        for place, i in enumerate(ballot):
            a[i, {below}] += {penalty}
    return a / {number}
"""
BELOW = "[j for j in range(m) if j not in ballot[: place + 1]]"
SLACK = """
def least_slack(a):
    d = {d}
    m = len(a)
    return min(
        (
            {slack}
            for i in range(m)
            for j in range(m)
            for k in range(m)
            if {edges}
        ),
        default={default},
    )
"""
PATH = "d[i, j] > 1e-12 and d[j, k] > 1e-12"
PATH_SLACK = "d[i, k] - d[i, j] - d[j, k]"
GOOD_SLACK = {"d": "a - a.T", "slack": PATH_SLACK, "edges": PATH, "default": "np.inf"}
COUNTS = """
def vote_counts(theta):
    m = len(theta)
    n = np.ones((m, m), dtype=int) - np.eye(m, dtype=int)
    {}
    return n
"""
CYCLE = """
def cycle_weights(c):
    return {}
"""
DISAGREEMENT = """
def disagreement(d12, d13, d23):
    u, v, w = {}
    return np.array([[0, d12 + w, d13 + u], [w, 0, d23 + v], [u, v, 0]])
"""
BOUND = """
def entropy_bound(a, flow):
    balance = flow.sum(axis=1) - flow.sum(axis=0)
    if {refused}:
        return -np.inf
    q = flow[a > 0] / a[a > 0]
    return {weight} @ ({entropy})
"""
REFUSED = "np.abs(balance).max() > 1e-8 * a.sum() or (flow < 0).any() or (flow > a).any()"
ENTROPY = "-q * np.log(np.where(q > 0, q, 1)) - (1 - q) * np.log(np.where(q < 1, 1 - q, 1))"
GOOD_BOUND = {"refused": REFUSED, "weight": "a[a > 0]", "entropy": ENTROPY}
SCORES = """
def certified_scores(a):
    m = len(a)
    scores = np.zeros(m)
    for _ in range({rounds}):
        slope = 1 / (1 + np.exp(scores[:, None] - scores))
        flow = a * slope
        gradient = flow.sum(axis=0) - flow.sum(axis=1)
        curvature = flow * (1 - slope)
        curvature = curvature + curvature.T
        hessian = np.diag(curvature.sum(axis=1)) - curvature
        scores = scores - {step}
    return {answer}
"""
NEWTON = "np.linalg.pinv(hessian) @ gradient"
HALVED = """
def certified_scores(a):
    def risk(scores):
        return (a * np.logaddexp(0, scores - scores[:, None])).sum()

    scores = np.zeros(len(a))
    for _ in range(200):
        slope = 1 / (1 + np.exp(scores[:, None] - scores))
        flow = a * slope
        gradient = flow.sum(axis=0) - flow.sum(axis=1)
        curvature = flow * (1 - slope)
        curvature = curvature + curvature.T
        step = np.linalg.pinv(np.diag(curvature.sum(axis=1)) - curvature) @ gradient
        size = 1.0
        while risk(scores - size * step) > risk(scores) and size > 1e-3:
            size /= 2
        scores = scores - size * step
    return {}
"""
GAP = """
def hinge_gap(a):
    m = len(a)
    scores = np.array(list({scores}))
    difference = scores[:, :, None] - scores[:, None, :]
    risk = (a * np.maximum({loss}, 0)).sum(axis=(1, 2))
    wrong = ({wrong}).any(axis=(1, 2))
    return {answer}
"""
GOOD_GAP = {
    "scores": "product(range(m), repeat=m)",
    "loss": "1 - difference",
    "wrong": "(difference <= 0) & (a > a.T)",
    "answer": "risk[wrong].min() - risk.min()",
}
CONE = """
def cone_regret(balances, order, nu):
    best = {best}
    blocks = []
    for score in best:
        total, size = score, 1
        {pool} blocks and {violated}:
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size))
    pooled = np.concatenate([np.full(size, total / size) for total, size in blocks])
    return {factor} * ((pooled - best) ** 2).sum()
"""
GOOD_CONE = {
    "best": "balances[order] / (2 * nu)",
    "pool": "while",
    "violated": "blocks[-1][0] * size <= total * blocks[-1][1]",
    "factor": "nu",
}
CLIPPED = """
def cone_regret(balances, order, nu):
    best = balances[order] / (2 * nu)
    return nu * ((np.minimum.accumulate(best) - best) ** 2).sum()
"""
RATE = """
def exchange_rate(a, nu, epsilon):
    balances = {balances}
    orders = [np.array(order) for order in permutations(range(len(a)))]
    losses = [np.{side}(a[np.ix_(order, order)]).sum() for order in orders]
    bad = [order for order, loss in zip(orders, losses) if {bad}]
    return min((cone_regret(balances, order, nu) for order in bad), default={default})
"""
GOOD_RATE = {
    "balances": "(a - a.T).sum(axis=1)",
    "side": "tril",
    "bad": "loss - min(losses) >= epsilon",
    "default": "np.inf",
}
HALF_SPACES = """
def exchange_rate(a, nu, epsilon):
    d = a - a.T
    balances = d.sum(axis=1)
    lost = [(i, j) for i in range(len(a)) for j in range(len(a)) if d[i, j] >= epsilon]
    gaps = [max(balances[i] - balances[j], 0) ** 2 / (8 * nu) for i, j in lost]
    return min(gaps, default=np.inf)
"""
LISTS = """
def best_lists(ballots, m):
    votes = np.zeros((m, m))
    for ballot in ballots:
        for place, i in enumerate(ballot):
            votes[i, {below}] += 1
    {votes}
    best = {{0: (0, 1)}}
    for top in range(1, 2**m):
        members = [i for i in range(m) if top >> i & 1]
        options = []
        for last in members:
            least, ways = best[top - (1 << last)]
            options.append((least + votes[last, members].sum(), ways))
        least = min(options)[0]
        best[top] = least, {ways}
    return {answer}
"""
GOOD_LISTS = {
    "below": BELOW,
    "votes": "votes = votes.astype(int)",
    "ways": "sum(ways for value, ways in options if value == least)",
    "answer": "best[2**m - 1]",
}
BY_BALANCE = """
def best_lists(ballots, m):
    votes = np.zeros((m, m), dtype=int)
    for ballot in ballots:
        for place, i in enumerate(ballot):
            votes[i, [j for j in range(m) if j not in ballot[: place + 1]]] += 1
    order = np.argsort(votes.sum(axis=0) - votes.sum(axis=1), kind="stable")
    return np.tril(votes[np.ix_(order, order)]).sum(), 1
"""

WRONG = {
    "P3.1": [
        # unlisted results are forgotten
        (WEIGHTS.format(below="ballot[place + 1 :]", penalty=1, number="len(ballots)"), {"P3.1a"}),
        # empty ballots are not counted
        (
            WEIGHTS.format(below=BELOW, penalty=1, number="max(sum(map(bool, ballots)), 1)"),
            {"P3.1a"},
        ),
        (WEIGHTS.format(below=BELOW, penalty=1, number="1"), {"P3.1a"}),
        # neighbours of the ballot alone
        (
            WEIGHTS.format(below="ballot[place + 1 : place + 2]", penalty=1, number="len(ballots)"),
            {"P3.1a"},
        ),
        # each ballot has the weight 1
        (WEIGHTS.format(below=BELOW, penalty="1 / len(ballot)", number="len(ballots)"), {"P3.1a"}),
        # edges of the penalties instead of the differences
        (
            SLACK.format(**GOOD_SLACK | {"edges": "len({i, j, k}) == 3 and a[i, j] * a[j, k] > 0"}),
            {"P3.1b"},
        ),
        # only triples that have the direct edge as well
        (SLACK.format(**GOOD_SLACK | {"edges": f"{PATH} and d[i, k] > 1e-12"}), {"P3.1b"}),
        (SLACK.format(**GOOD_SLACK | {"d": "a"}), {"P3.1b"}),
        # a difference of 5e-17 is taken for an edge
        (
            SLACK.format(**GOOD_SLACK | {"edges": "d[i, j] > 0 and d[j, k] > 0"}),
            {"P3.1b"},
        ),
        (SLACK.format(**GOOD_SLACK | {"default": "0"}), {"P3.1b"}),
        (SLACK.format(**GOOD_SLACK | {"slack": "d[i, j] + d[j, k] - d[i, k]"}), {"P3.1b"}),
        # the numbering is taken for the order
        (SLACK.format(**GOOD_SLACK | {"edges": f"i < j < k and {PATH}"}), {"P3.1b"}),
    ],
    "P3.2": [
        (COUNTS.format("pass"), {"P3.2a"}),
        (COUNTS.format("n[0, m - 1] = n[m - 1, 0] = 1000"), {"P3.2a"}),  # the wrong result gains
        (COUNTS.format("n[1, m - 1] = 1000"), {"P3.2a"}),  # not symmetric
        (COUNTS.format("n[1, 2] = n[2, 1] = 100000"), {"P3.2a"}),
        (COUNTS.format("n[0, 1:] = n[1:, 0] = 0; n[1, 2] = n[2, 1] = 9"), {"P3.2a"}),
        (COUNTS.format("n[0, 1] = n[1, 0] = 1000"), {"P3.2a"}),
        (COUNTS.format("n[1, 2] = n[2, 1] = 3"), {"P3.2a"}),  # enough for some strengths
    ],
    "P3.3": [
        (CYCLE.format("c + 2, c + 1, c"), {"P3.3a"}),
        (CYCLE.format("10 * c, c, c"), {"P3.3a"}),  # two are equal
        (CYCLE.format("10 * c, 9 * c, c"), {"P3.3a"}),  # the lightest edge alone is lost
        (CYCLE.format("100 * c, c + 1, c"), {"P3.3a"}),
        (CYCLE.format("3 * c, 2 * c, c"), {"P3.3a"}),  # above the harmonic mean of the others
        (CYCLE.format("3 * c, 1.1 * c, c"), {"P3.3a"}),
        (CYCLE.format("10 * c - 1, c, c - 1"), {"P3.3a"}),
    ],
    "P3.4": [
        (DISAGREEMENT.format("0, 0, 0"), {"P3.4a"}),
        # the wrong pair disagrees
        (DISAGREEMENT.format("0, 5000, 0"), {"P3.4a"}),
        (DISAGREEMENT.format("0, 0, 5000"), {"P3.4a"}),
        (DISAGREEMENT.format("5000, 5000, 5000"), {"P3.4a"}),
        (DISAGREEMENT.format("d12 + d13 + d23, 0, 0"), {"P3.4a"}),  # too little if the steps agree
        (DISAGREEMENT.format("9990, 0, 0"), {"P3.4a"}),  # too large a penalty where d13 is large
        (
            """
def disagreement(d12, d13, d23):
    a = np.array([[0, d12, d13], [0, 0, d23], [0, 0, 0]])
    a[0, 2] += 5000  # the difference changes
    return a
""",
            {"P3.4a"},
        ),
    ],
    "P3.6": [
        # any flow is taken
        (BOUND.format(**GOOD_BOUND | {"refused": "False"}), {"P3.6a"}),
        (BOUND.format(**GOOD_BOUND | {"refused": REFUSED.split(" or ")[0]}), {"P3.6a"}),
        (BOUND.format(**GOOD_BOUND | {"refused": REFUSED.split(" or ", 1)[1]}), {"P3.6a"}),
        # an absolute tolerance, and NumPy's own
        (
            BOUND.format(**GOOD_BOUND | {"refused": REFUSED.replace("1e-8 * a.sum()", "1e-8")}),
            {"P3.6a"},
        ),
        (
            BOUND.format(
                **GOOD_BOUND
                | {
                    "refused": "not np.allclose(flow.sum(axis=1), flow.sum(axis=0)) or "
                    + REFUSED.split(" or ", 1)[1]
                }
            ),
            {"P3.6a"},
        ),
        # NaN where a flow is empty or full
        (
            BOUND.format(**GOOD_BOUND | {"entropy": "-q * np.log(q) - (1 - q) * np.log(1 - q)"}),
            {"P3.6a"},
        ),
        (BOUND.format(**GOOD_BOUND | {"entropy": "-q * np.log(np.where(q > 0, q, 1))"}), {"P3.6a"}),
        (BOUND.format(**GOOD_BOUND | {"entropy": "q"}), {"P3.6a"}),  # that of the hinge loss
        (BOUND.format(**GOOD_BOUND | {"weight": "np.ones(len(q))"}), {"P3.6a"}),
        # full steps overshoot
        (
            SCORES.format(rounds=100, step=NEWTON, answer="np.nan_to_num(scores), flow"),
            {"P3.6b"},
        ),
        (SCORES.format(rounds=100, step="gradient / a.sum()", answer="scores, flow"), {"P3.6b"}),
        # a singular system
        (
            SCORES.format(
                rounds=100, step="np.linalg.solve(hessian, gradient)", answer="scores, flow"
            ),
            {"P3.6b"},
        ),
        (HALVED.format("scores"), {"P3.6b"}),
        (HALVED.format("-scores, flow"), {"P3.6b"}),
        (HALVED.format("scores, flow.T"), {"P3.6b"}),
        (HALVED.format("scores, slope"), {"P3.6b"}),
    ],
    "P3.7": [
        # a tie is taken to be right
        (GAP.format(**GOOD_GAP | {"wrong": "(difference < 0) & (a > a.T)"}), {"P3.7b"}),
        # every penalty is taken for an edge
        (GAP.format(**GOOD_GAP | {"wrong": "(difference <= 0) & (a > 0)"}), {"P3.7b"}),
        # lists alone, without ties
        (GAP.format(**GOOD_GAP | {"scores": "permutations(range(m))"}), {"P3.7b"}),
        (GAP.format(**GOOD_GAP | {"scores": "product(range(2), repeat=m)"}), {"P3.7b"}),
        (GAP.format(**GOOD_GAP | {"loss": "-difference"}), {"P3.7b"}),  # no margin
        (GAP.format(**GOOD_GAP | {"answer": "risk[wrong].min() - risk[~wrong].min()"}), {"P3.7b"}),
        (GAP.format(**GOOD_GAP | {"answer": "int(risk[wrong].min() > risk.min())"}), {"P3.7b"}),
        # the penalties of the other direction
        (GAP.format(**GOOD_GAP | {"loss": "1 + difference"}), {"P3.7b"}),
    ],
    "P3.8": [
        (CLIPPED, {"P3.8a", "P3.8b"}),
        # pools with one block before it only
        (CONE.format(**GOOD_CONE | {"pool": "if"}), {"P3.8a", "P3.8b"}),
        (CONE.format(**GOOD_CONE | {"best": "balances / (2 * nu)"}), {"P3.8a", "P3.8b"}),
        (
            CONE.format(
                **GOOD_CONE | {"violated": "blocks[-1][0] * size >= total * blocks[-1][1]"}
            ),
            {"P3.8a", "P3.8b"},
        ),
        # sums are compared instead of means
        (CONE.format(**GOOD_CONE | {"violated": "blocks[-1][0] <= total"}), {"P3.8a", "P3.8b"}),
        (CONE.format(**GOOD_CONE | {"best": "balances[order] / nu"}), {"P3.8a", "P3.8b"}),
        (CONE.format(**GOOD_CONE | {"factor": "1"}), {"P3.8a", "P3.8b"}),
        (RATE.format(**GOOD_RATE | {"bad": "loss - min(losses) > epsilon"}), {"P3.8b"}),
        (RATE.format(**GOOD_RATE | {"bad": "loss >= epsilon"}), {"P3.8b"}),
        (RATE.format(**GOOD_RATE | {"side": "triu"}), {"P3.8b"}),
        (RATE.format(**GOOD_RATE | {"default": "0.0"}), {"P3.8b"}),
        (RATE.format(**GOOD_RATE | {"balances": "a.sum(axis=1)"}), {"P3.8b"}),
        # one edge at a time, as in the gap of the chapter
        (HALF_SPACES, {"P3.8b"}),
    ],
    "P3.9": [
        (BY_BALANCE, {"P3.9"}),
        # one way for each set
        (LISTS.format(**GOOD_LISTS | {"ways": "1"}), {"P3.9"}),
        (LISTS.format(**GOOD_LISTS | {"ways": "min(options)[1]"}), {"P3.9"}),
        # all ways, of whatever cost
        (LISTS.format(**GOOD_LISTS | {"ways": "sum(ways for _, ways in options)"}), {"P3.9"}),
        # what is not listed is forgotten
        (LISTS.format(**GOOD_LISTS | {"below": "ballot[place + 1 :]"}), {"P3.9"}),
        # netted votes: the lists are right, their cost is not
        (
            LISTS.format(**GOOD_LISTS | {"votes": "votes = np.maximum(votes - votes.T, 0)"}),
            {"P3.9"},
        ),
        # shares of the votes: rounding breaks ties
        (
            LISTS.format(
                **GOOD_LISTS
                | {
                    "votes": "votes = votes / len(ballots)",
                    "answer": "round(best[2**m - 1][0] * len(ballots)), best[2**m - 1][1]",
                }
            ),
            {"P3.9"},
        ),
        (LISTS.format(**GOOD_LISTS | {"answer": "best[2**m - 1][0]"}), {"P3.9"}),
    ],
}
