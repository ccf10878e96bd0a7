"""Bounds on random populations, at their extreme cases, and where the printed ones fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import binom

from rankbook import bounds, costs, losses
from rankbook.bounds import multipartite_regret_bound
from rankbook.exceptions import CostConditionError
from rankbook.population import FinitePopulation

LOSSES = ["exponential", "logistic"]


def rank_risk(scores, eta, marginal):
    """P(positive below negative) + half the ties, by the double sum."""
    positive, negative = marginal * eta, marginal * (1 - eta)
    wrong = (scores[:, None] < scores) + 0.5 * (scores[:, None] == scores)
    return positive @ wrong @ negative / (positive.sum() * negative.sum())


def weights(eta, marginal, balanced):
    p = marginal @ eta
    return (0.5 / p, 0.5 / (1 - p)) if balanced else (1.0, 1.0)


def margin_risk(loss, scores, eta, marginal, balanced):
    up, down = weights(eta, marginal, balanced)
    loss = losses.get(loss)
    return marginal @ (up * eta * loss(scores) + down * (1 - eta) * loss(-scores))


def margin_regret(loss, scores, eta, marginal, balanced):
    up, down = weights(eta, marginal, balanced)
    best = np.log(up * eta / (down * (1 - eta))) / (2 if loss == "exponential" else 1)
    gap = margin_risk(loss, scores, eta, marginal, balanced)
    return gap - margin_risk(loss, best, eta, marginal, balanced)


def random_population(rng):
    """Atoms of random probability, scored by noise, by a distorted truth, or in reverse."""
    n = rng.integers(2, 9)
    marginal = rng.dirichlet(np.full(n, rng.choice([0.3, 1, 5])))
    eta = np.clip(rng.beta(*rng.choice([0.2, 1, 4], 2), n), 1e-6, 1 - 1e-6)
    truth = np.log(eta / (1 - eta))
    kind = rng.integers(4)
    if kind == 0:
        scores = rng.normal(size=n) * rng.choice([0.01, 1, 4])
    elif kind == 1:
        scores = truth + rng.normal(size=n)
    elif kind == 2:
        scores = -truth * rng.choice([1e-3, 0.1, 1])
    else:
        scores = np.round(truth / 2)
    return scores, eta, marginal


def test_every_bound_holds_on_random_populations():
    rng = np.random.default_rng(0)
    slack = dict.fromkeys(["lemma", "theorem", "balanced", "margin", "regret"], np.inf)
    for _ in range(3000):
        scores, eta, marginal = random_population(rng)
        risk = rank_risk(scores, eta, marginal)
        regret = risk - rank_risk(eta, eta, marginal)
        p = marginal @ eta
        miss = marginal @ (eta * (scores <= 0))
        alarm = marginal @ ((1 - eta) * (scores >= 0))
        found = {
            "lemma": bounds.rank_risk_bound_from_errors(miss, alarm, p) - risk,
            "theorem": bounds.rank_risk_bound_zero_one(min(miss + alarm, 1), p) - risk,
            "balanced": bounds.rank_risk_bound_balanced(miss / p / 2 + alarm / (1 - p) / 2) - risk,
        }
        for balanced in (True, False):
            for loss in [*LOSSES, "hinge", "squared_hinge"]:
                value = margin_risk(loss, scores, eta, marginal, balanced)
                limit = bounds.margin_loss_rank_risk_bound(loss, value, p, balanced=balanced)
                found["margin"] = min(found.get("margin", np.inf), limit - risk)
            for loss in LOSSES:
                value = max(margin_regret(loss, scores, eta, marginal, balanced), 0.0)
                limit = bounds.rank_regret_bound(loss, value, p, balanced=balanced)
                found["regret"] = min(found.get("regret", np.inf), limit - regret)
        slack = {name: min(slack[name], found[name]) for name in slack}
    assert min(slack.values()) > -1e-7, slack


@pytest.mark.parametrize("loss", LOSSES)
def test_regret_constant_is_approached(loss):
    """Probabilities uniform on a small interval, scores reversed and as good as zero."""
    ratios = []
    for half_width, atoms in [(0.5, 20), (0.1, 200), (0.01, 1000)]:
        delta = np.linspace(-half_width, half_width, atoms)
        eta, marginal = (1 + delta) / 2, np.full(atoms, 1 / atoms)
        scores = -1e-9 * delta
        regret = rank_risk(scores, eta, marginal) - rank_risk(eta, eta, marginal)
        ratios.append(regret / np.sqrt(margin_regret(loss, scores, eta, marginal, True)))
    sharp = bounds.rank_regret_constant(loss)
    assert ratios[0] < ratios[1] < ratios[2] < sharp
    assert ratios[2] == pytest.approx(sharp, rel=2e-3)
    assert sharp == pytest.approx(np.sqrt(8 / 3))
    assert sharp < bounds.rank_regret_constant(loss, "printed")


def test_unbalanced_exponential_constant_is_approached():
    """Shifting the balanced example's probabilities and scores to another prior."""
    delta = np.linspace(-0.01, 0.01, 1000)
    marginal = np.full(1000, 1e-3)
    p = 0.9
    # Class densities stay, the prior changes.
    up, down = p * marginal * (1 + delta), (1 - p) * marginal * (1 - delta)
    eta, new = up / (up + down), up + down
    scores = 0.5 * np.log(p / (1 - p)) - 1e-9 * delta
    regret = rank_risk(scores, eta, new) - rank_risk(eta, eta, new)
    value = margin_regret("exponential", scores, eta, new, False)
    limit = bounds.rank_regret_bound("exponential", value, p, balanced=False)
    assert regret < limit
    assert regret == pytest.approx(limit, rel=3e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_pointwise_regret_is_at_least_half_a_square(loss):
    """Step 1 of the proof, against a numerical minimum."""
    function = losses.get(loss)
    for eta in (0.02, 0.3, 0.5, 0.77):
        best = minimize_scalar(
            lambda c, e=eta: float(e * function(c) + (1 - e) * function(-c)),
            bounds=(-20, 20),
            method="bounded",
            options={"xatol": 1e-10},
        ).fun
        c = np.linspace(-4, 4, 801)
        regret = eta * function(c) + (1 - eta) * function(-c) - best
        t = np.tanh(c if loss == "exponential" else c / 2)
        assert (regret - (2 * eta - 1 - t) ** 2 / 2).min() > -1e-9


def test_ginis_mean_difference():
    """Step 3: at most 2 / sqrt(3) standard deviations, equal for the uniform."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        e = rng.standard_t(3, 30) if rng.random() < 0.5 else rng.beta(0.3, 0.3, 30)
        gini = np.abs(e[:, None] - e).mean()
        assert gini <= 2 / np.sqrt(3) * e.std() * (1 + 1e-12)
    e = np.linspace(0, 1, 2001)
    assert np.abs(e[:, None] - e).mean() / e.std() == pytest.approx(2 / np.sqrt(3), rel=1e-3)


def test_risk_bounds_are_attained():
    # Lemma 3.1: misclassified items of each class lie beyond all of the other.
    scores = np.array([-2.0, 1.0, -1.0, 2.0])
    eta = np.array([1.0, 1.0, 0.0, 0.0])
    marginal = np.array([0.1, 0.4, 0.3, 0.2])
    p, miss, alarm = 0.5, 0.1, 0.2
    limit = bounds.rank_risk_bound_from_errors(miss, alarm, p)
    assert rank_risk(scores, eta, marginal) == pytest.approx(limit)
    # The margin bound: reversed and close to zero.
    for loss in [*LOSSES, "hinge", "squared_hinge"]:
        scores, eta, marginal = np.array([-1e-9, 1e-9]), np.array([1.0, 0.0]), np.array([0.2, 0.8])
        value = margin_risk(loss, scores, eta, marginal, True)
        assert bounds.margin_loss_rank_risk_bound(loss, value) == pytest.approx(1.0, rel=1e-6)
        assert rank_risk(scores, eta, marginal) == 1.0


def test_majority_classifier_has_no_information():
    assert bounds.rank_risk_bound_zero_one(0.25, 0.75) == 1.0
    eta = np.full(3, 0.75)
    assert rank_risk(np.ones(3), eta, np.full(3, 1 / 3)) == pytest.approx(0.5)


def test_unbalanced_margin_loss_needs_its_factor():
    """Equation (11) without balancing is false: a constant scorer at an extreme prior."""
    p = 0.99
    eta, marginal, scores = np.full(2, p), np.full(2, 0.5), np.full(2, np.log(p / (1 - p)))
    value = margin_risk("logistic", scores, eta, marginal, False)
    assert rank_risk(scores, eta, marginal) == pytest.approx(0.5)
    assert bounds.margin_loss_rank_risk_bound("logistic", value, constant="printed") < 0.5
    assert bounds.margin_loss_rank_risk_bound("logistic", value, p, balanced=False) > 0.5


@pytest.mark.parametrize(("p", "n", "epsilon"), [(0.5, 100, 0.1), (0.1, 500, 0.3), (0.9, 50, 0.05)])
def test_class_weight_error(p, n, epsilon):
    count = np.arange(1, n + 1)
    far = np.abs(n * p / count - 1) >= epsilon
    exact = binom.pmf(count[far], n, p).sum() + binom.pmf(0, n, p)
    assert exact <= bounds.class_weight_error_bound(p, n, epsilon)
    assert exact > bounds.class_weight_error_bound(p, n, epsilon, "printed")


def test_arrays_and_values():
    regrets = np.array([0.0, 0.01, 0.04])
    np.testing.assert_allclose(
        bounds.rank_regret_bound("logistic", regrets, constant="printed"), [0, 0.2, 0.4]
    )
    assert isinstance(bounds.rank_regret_bound("logistic", 0.01), float)
    np.testing.assert_allclose(bounds.rank_risk_bound_balanced([0, 0.5]), [0, 1])
    assert bounds.margin_loss_rank_risk_bound("logistic", np.log(2)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: bounds.rank_risk_bound_from_errors(0.6, 0.1, 0.5),
            ValueError,
            "false_negative mu",
        ),
        (
            lambda: bounds.rank_risk_bound_from_errors(0.1, 0.6, 0.5),
            ValueError,
            "false_positive mu",
        ),
        (lambda: bounds.rank_risk_bound_from_errors(0.0, 0.0, 0.0), ValueError, "p must be"),
        (lambda: bounds.rank_risk_bound_zero_one(0.1, 1.0), ValueError, "p must be less than 1"),
        (lambda: bounds.rank_risk_bound_zero_one(1.5, 0.5), ValueError, "risk must be at least 0"),
        (lambda: bounds.rank_risk_bound_balanced(-0.1), ValueError, "risk must be at least 0"),
        (lambda: bounds.rank_risk_bound_balanced("a"), TypeError, "risk must be real numbers"),
        (lambda: bounds.rank_risk_bound_balanced(np.nan), ValueError, "risk must be"),
        (lambda: bounds.margin_loss_rank_risk_bound("log", 0.1), ValueError, "loss must be"),
        (
            lambda: bounds.margin_loss_rank_risk_bound("logistic", 0.1, balanced=False),
            ValueError,
            "p must be given with balanced=False",
        ),
        (lambda: bounds.rank_regret_bound("hinge", 0.1), ValueError, "loss must be 'exponential'"),
        (lambda: bounds.rank_regret_bound("logistic", -1), ValueError, "regret must be"),
        (
            lambda: bounds.rank_regret_bound("logistic", 1, constant="best"),
            ValueError,
            "constant must be one of",
        ),
        (
            lambda: bounds.rank_regret_bound("logistic", 1, 0.5, "printed", balanced=False),
            ValueError,
            "constant='printed' is for balanced=True",
        ),
        (lambda: bounds.class_weight_error_bound(0.5, 0, 0.1), ValueError, "n must be"),
        (lambda: bounds.class_weight_error_bound(0.5, 10, 1.0), ValueError, "epsilon must be"),
        (lambda: bounds.class_weight_error_bound(0.5, 10, 0.1, "x"), ValueError, "version must be"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Multipartite regret


def least_surrogate(population, loss, costs):
    """Return the infimum of the consistent surrogate risk, pair by pair in closed form."""
    W = population.pair_weights(costs, consistent=True)
    if loss == "exponential":
        return float(np.sqrt(W * W.T).sum())
    return float((xlogy(W, W + W.T) - xlogy(W, W)).sum())


def random_problem(rng):
    """Return a population and costs from a scale, often close to degenerate."""
    K, m = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    posterior = rng.dirichlet(np.full(K, rng.choice([0.02, 0.2, 1.0, 20.0, 500.0])), m)
    posterior = (posterior + 1e-9) / (1 + K * 1e-9)
    marginal = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0, 5.0])))
    weights = rng.random(K) * (rng.random(K) < 0.8)
    weights[[0, -1]] += 0.1
    scale = np.sort(rng.random(K))
    return FinitePopulation(posterior, marginal), costs.from_scale(scale, weights)


def random_scores(rng, population, c):
    """Return scores of every kind: noise, nearly tied in the wrong order, tied, nearly right."""
    p = population.posterior
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(p @ c[0]) - np.log(p @ c[:, -1]), -600, 600)
    noise = rng.normal(size=len(p))
    return [5 * noise, -1e-6 * odds, 0 * noise, odds / 2 + 0.3 * noise][rng.integers(4)]


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_multipartite_regret_bound_holds_on_random_populations(loss):
    rng = np.random.default_rng(0)
    closest = {"exact": 0.0, "root": 0.0}
    for _ in range(1500):
        population, c = random_problem(rng)
        scores = random_scores(rng, population, c)
        least = least_surrogate(population, loss, c)
        risk = population.surrogate_risk(scores, loss, c, consistent=True)
        assert risk >= least * (1 - 1e-12)
        regret = population.risk(scores, c) - population.bayes_risk(c)
        for form in closest:
            # The excess is a difference, so it carries the rounding of the two risks.
            excess = max(risk - least, 0.0) + 1e-13 * risk
            bound = multipartite_regret_bound(loss, excess, population.priors, c, form)
            assert regret <= bound * (1 + 1e-12)
            if regret > 1e-6:
                closest[form] = max(closest[form], regret / bound)
    # The exact form is attained; the root is not far off.
    assert closest["exact"] == pytest.approx(1.0, abs=1e-6)
    assert closest["root"] > 0.7


def test_multipartite_bound_agrees_with_bruteforce_over_two_atoms():
    # One posterior: the regret of the reversed order near a tie is known in closed form.
    population = FinitePopulation([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    scores = [1e-12, 0.0]
    for loss in ("exponential", "logistic"):
        excess = population.surrogate_risk(scores, loss, "linear", True)
        excess -= least_surrogate(population, loss, "linear")
        pairs = population.priors[1:] @ np.cumsum(population.priors)[:-1]
        u, low = np.array([0.4, 1.6]), np.array([1.6, 0.4])
        kappa = u.mean() * low.mean() / (2 * pairs)
        assert population.surrogate_risk([0, 0], "hinge", "linear", True) == pytest.approx(kappa)
        root = multipartite_regret_bound(loss, excess, population.priors, "linear", "root")
        assert root == pytest.approx(np.sqrt(2 * kappa * excess), rel=1e-12)


def test_multipartite_bound_inverts_its_psi():
    d = np.array([0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9])
    psi = {
        "exponential": 1 - np.sqrt(1 - d**2),
        "logistic": (xlogy(1 + d, 1 + d) + xlogy(1 - d, 1 - d)) / 2,
    }
    for loss, values in psi.items():
        # Two classes at constant costs have kappa = 1.
        np.testing.assert_allclose(
            multipartite_regret_bound(loss, values, [0.3, 0.7]), d, rtol=1e-4, atol=1e-12
        )
        assert multipartite_regret_bound(loss, 5.0, [0.3, 0.7]) == 1.0
        assert multipartite_regret_bound(loss, 1e-20, [0.3, 0.7]) == pytest.approx(
            np.sqrt(2e-20), rel=1e-9
        )


def test_multipartite_bound_scales_with_costs():
    priors, c = [0.2, 0.3, 0.5], costs.linear(3)
    for form in ("exact", "root"):
        one = multipartite_regret_bound("logistic", 0.1, priors, c, form)
        assert multipartite_regret_bound("logistic", 0.3, priors, 3 * c, form) == pytest.approx(
            3 * one
        )


def test_multipartite_bound_where_nothing_costs():
    # The two classes that occur cost nothing against each other.
    c = costs.from_scale([0.0, 0.0, 1.0])
    assert multipartite_regret_bound("logistic", 0.1, [0.5, 0.5, 0.0], c) == 0.0


def test_multipartite_bound_bad_input():
    with pytest.raises(ValueError, match="loss must be 'exponential' or 'logistic'"):
        multipartite_regret_bound("squared_hinge", 0.1, [0.5, 0.5])
    with pytest.raises(CostConditionError):
        multipartite_regret_bound("logistic", 0.1, [0.25] * 4, "constant")
    with pytest.raises(ValueError, match="at least two classes a positive probability"):
        multipartite_regret_bound("logistic", 0.1, [1.0, 0.0])
    with pytest.raises(ValueError, match="regret must be at least 0"):
        multipartite_regret_bound("logistic", -0.1, [0.5, 0.5])
    with pytest.raises(ValueError, match="priors must have at least two"):
        multipartite_regret_bound("logistic", 0.1, [1.0])
    with pytest.raises(ValueError, match="form must be one of"):
        multipartite_regret_bound("logistic", 0.1, [0.5, 0.5], form="tight")


def test_unbalanced_margin_bound_has_the_largest_balancing_weight():
    for p in (0.2, 0.8):
        bound = bounds.margin_loss_rank_risk_bound("exponential", 0.1, p=p, balanced=False)
        assert bound == pytest.approx(0.1 / (2 * 0.2))
    even = bounds.margin_loss_rank_risk_bound("logistic", 0.1, p=0.5, balanced=False)
    assert even == pytest.approx(bounds.margin_loss_rank_risk_bound("logistic", 0.1))
