import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from rankbook import costs as rc
from rankbook.exceptions import CostConditionError
from rankbook.population import FinitePopulation, NormalMixture


def identity(x):
    return x[:, 0]


@pytest.mark.parametrize("means, sds", [([0, 1], [1, 2]), ([3, -1], [0.1, 5]), ([0, 0], [1, 1])])
def test_two_normals_have_a_closed_form(means, sds):
    mixture = NormalMixture(means, sds, [0.3, 0.7])
    risk = stats.norm.sf((means[1] - means[0]) / np.hypot(*sds))
    assert mixture.risk(identity) == pytest.approx(risk, abs=1e-10)
    assert mixture.risk(lambda x: -np.arctan(x[:, 0])) == pytest.approx(1 - risk, abs=1e-10)


def test_risk_is_the_cost_weighted_sum_of_closed_forms():
    means, sds, priors = np.array([0, 1, 1.5]), np.array([1, 0.5, 2]), np.array([0.2, 0.5, 0.3])
    costs = np.array([[0, 1, 4], [0, 0, 2], [0, 0, 0]])
    expected = pairs = 0.0
    for j, i in ((0, 1), (0, 2), (1, 2)):
        error = stats.norm.sf((means[i] - means[j]) / np.hypot(sds[i], sds[j]))
        expected += costs[j, i] * priors[i] * priors[j] * error
        pairs += priors[i] * priors[j]
    mixture = NormalMixture(means, sds, priors)
    assert mixture.risk(identity, costs) == pytest.approx(expected / pairs, abs=1e-10)


def test_scores_that_are_not_monotone():
    # |X_1| < |X_0| for centred normals: an arctangent.
    mixture = NormalMixture([0, 0], [1, 2])
    expected = 2 / np.pi * np.arctan(1 / 2)
    assert mixture.risk(lambda x: x[:, 0] ** 2) == pytest.approx(expected, abs=1e-10)
    assert mixture.bayes_risk() == pytest.approx(expected, abs=1e-10)

    mixture, centre = NormalMixture([0, 1.3], [1, 1.5]), 0.37

    def integrand(x):
        reach = abs(x - centre)
        inside = stats.norm.cdf(centre + reach) - stats.norm.cdf(centre - reach)
        return stats.norm.pdf(x, 1.3, 1.5) * (1 - inside)

    expected = sum(
        quad(integrand, *ends, epsabs=1e-13, limit=400)[0] for ends in ((-13, centre), (centre, 15))
    )
    assert mixture.risk(lambda x: (x[:, 0] - centre) ** 2) == pytest.approx(expected, abs=1e-9)
    assert mixture.risk(lambda x: np.abs(x[:, 0] - centre)) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("values", [[0.0, 1, 2, 3], [0.0, 2, -1, 1], [1.0, 1, 0, 1]])
@pytest.mark.parametrize("ties", [0.0, 0.5, 1.0])
def test_step_scores_are_a_finite_population(values, ties):
    mixture = NormalMixture([0, 1, 2.5], [1, 1.5, 1], [0.3, 0.3, 0.4])
    cuts = np.array([-0.3123, 0.4, 1.7771])
    cdf = np.vstack((np.zeros(3), stats.norm.cdf(cuts[:, None], mixture.means, mixture.sds)))
    joint = np.diff(np.vstack((cdf, np.ones(3))), axis=0) * mixture.priors
    finite = FinitePopulation(joint / joint.sum(1, keepdims=True), joint.sum(1))
    expected = finite.risk(values, "linear", ties)

    def steps(x):
        return np.array(values)[np.digitize(x[:, 0], cuts)]

    assert mixture.risk(steps, "linear", ties) == pytest.approx(expected, abs=1e-12)


def test_constant_scores_and_reversal():
    mixture = NormalMixture([0, 1, 2], [1, 2, 1])

    def constant(x):
        return np.zeros(len(x))

    assert mixture.risk(constant) == pytest.approx(0.5, abs=1e-12)
    assert mixture.risk(constant, ties=1.0) == pytest.approx(1.0, abs=1e-12)
    assert mixture.risk(constant, ties=0.0) == pytest.approx(0.0, abs=1e-12)
    wave = mixture.risk(lambda x: np.sin(x[:, 0]))
    assert wave + mixture.risk(lambda x: -np.sin(x[:, 0])) == pytest.approx(1, abs=1e-12)
    assert mixture.risk(lambda x: np.exp(np.sin(x[:, 0]))) == pytest.approx(wave, abs=1e-7)


def test_risk_against_simulation():
    rng = np.random.default_rng(0)
    mixture = NormalMixture([0, 1, 1.5], [1, 0.5, 2], [0.2, 0.5, 0.3])
    costs = np.array([[0, 1, 4], [0, 0, 2], [0, 0, 0]])

    def score(x):
        return np.cos(2 * x[:, 0]) + 0.5 * x[:, 0]

    (X, y), (X2, y2) = mixture.sample(400_000, rng), mixture.sample(400_000, rng)
    pair = y > y2
    loss = (costs[y2, y] * (score(X) < score(X2)))[pair]
    se = loss.std() / np.sqrt(loss.size)
    assert abs(mixture.risk(score, costs) - loss.mean()) < 4 * se


def test_posterior_and_density():
    mixture = NormalMixture([-2, 0, 2], 1.0)
    x = np.linspace(-6, 6, 25)
    parts = stats.norm.pdf(x[:, None], [-2, 0, 2]) / 3
    np.testing.assert_allclose(mixture.density(x), parts.sum(1), rtol=1e-12)
    expected = parts / parts.sum(1, keepdims=True)
    np.testing.assert_allclose(mixture.posterior(x[:, None]), expected, rtol=1e-10)
    # Section 6.1's ratio in closed form.
    p = mixture.posterior(x)
    ratio = (np.exp(2 * x) + np.exp(2)) / (np.exp(-2 * x) + np.exp(2))
    np.testing.assert_allclose((p[:, 1] + p[:, 2]) / (p[:, 0] + p[:, 1]), ratio, rtol=1e-10)
    assert np.isfinite(mixture.posterior([1e6, -1e6])).all()


@pytest.mark.parametrize("costs", ["constant", "linear", [[0, 1, 0], [0, 0, 2], [0, 0, 0]]])
def test_bayes_risk_is_the_limit_of_fine_discretisations(costs):
    mixture = NormalMixture([0, 1, 0.5], [1, 0.6, 2], [0.3, 0.3, 0.4])
    edges = np.concatenate(([-np.inf], np.linspace(-8, 8, 1201), [np.inf]))
    joint = np.diff(stats.norm.cdf(edges[:, None], mixture.means, mixture.sds), axis=0)
    joint *= mixture.priors
    finite = FinitePopulation(joint / joint.sum(1, keepdims=True), joint.sum(1) / joint.sum())
    # Merging points can only lose; cells of width 1/75 lose little.
    best = mixture.bayes_risk(costs)
    assert best <= finite.bayes_risk(costs) <= best + 5e-5


def test_bayes_risk_without_a_scale():
    # Equal spreads: every likelihood ratio increases, so x is best whatever the costs.
    mixture = NormalMixture([0, 1, 2, 4])
    assert mixture.bayes_risk() == mixture.risk(identity)
    falling = NormalMixture([4, 2, 1, 0])
    assert falling.bayes_risk() == pytest.approx(falling.risk(lambda x: -x[:, 0]))
    with pytest.raises(CostConditionError, match="FinitePopulation"):
        NormalMixture([0, 1, 2, 4], [1, 2, 1, 2]).bayes_risk(rc.constant(4))


def test_sample_moments_and_seeds():
    mixture = NormalMixture([-1, 3], [1, 2], [0.25, 0.75])
    X, y = mixture.sample(100_000, 3)
    assert X.shape == (100_000, 1)
    assert abs(y.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 1e5)
    assert abs(X[y == 1].mean() - 3) < 4 * 2 / np.sqrt(7.5e4)
    np.testing.assert_array_equal(X, mixture.sample(100_000, 3)[0])


def test_bad_input():
    with pytest.raises(ValueError, match="means must have at least two"):
        NormalMixture([0.0])
    with pytest.raises(ValueError, match="sds must be positive"):
        NormalMixture([0, 1], [1, 0])
    with pytest.raises(ValueError, match="sds and means must have the same length"):
        NormalMixture([0, 1], [1, 1, 1])
    with pytest.raises(ValueError, match="means must be finite"):
        NormalMixture([0, np.nan])
    with pytest.raises(ValueError, match="priors must sum to one"):
        NormalMixture([0, 1], 1.0, [0.2, 0.2])
    with pytest.raises(ValueError, match="at least two classes"):
        NormalMixture([0, 1], 1.0, [1.0, 0.0])
    mixture = NormalMixture([0, 1])
    with pytest.raises(TypeError, match="score_function must be callable"):
        mixture.risk([1, 2])
    with pytest.raises(ValueError, match=r"score_function\(x\) must be one-dimensional"):
        mixture.risk(lambda x: x)
    with pytest.raises(ValueError, match=r"score_function\(x\) must be finite"):
        mixture.risk(lambda x: x[:, 0] * np.nan)
    with pytest.raises(ValueError, match="same length"):
        mixture.risk(lambda x: x[1:, 0])
    with pytest.raises(ValueError, match="x must be one-dimensional"):
        mixture.posterior(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="costs must have shape"):
        mixture.bayes_risk(np.zeros((3, 3)))


def test_posteriors_are_right_however_far():
    x = [1e160, -1e160, 1e308, -1e308]
    np.testing.assert_array_equal(NormalMixture([-1, 1]).posterior(x)[:, 1], [1, 0, 1, 0])
    np.testing.assert_array_equal(NormalMixture([-1, 1], [1, 2]).posterior(x)[:, 1], [1, 1, 1, 1])
    np.testing.assert_array_equal(NormalMixture([0, 0]).posterior(x), np.full((4, 2), 0.5))
    # Where all distances are the same to rounding.
    for sd in (0.01, 0.5, 1, 100):
        many = NormalMixture([0, 1, 3, 2], sd).posterior(x)
        np.testing.assert_array_equal(many[:, 2], [1, 0, 1, 0])
        np.testing.assert_array_equal(many[:, 0], [0, 1, 0, 1])
    # A class that never occurs does not, however near.
    none = NormalMixture([0, 1, 2], 1.0, [0.5, 0.5, 0.0]).posterior(x)
    np.testing.assert_array_equal(none[:, 2], np.zeros(4))
    there = NormalMixture([-1, 0, 1e200], 1.0, [0.5, 0.5, 0.0]).posterior([1e200])
    np.testing.assert_array_equal(there, [[0, 1, 0]])
    assert NormalMixture([-1, 1]).density([1e200]).tolist() == [0.0]


def test_posteriors_agree_with_bayes_rule():
    mixture = NormalMixture([-1, 1, 3], [1, 2, 0.5], [0.2, 0.5, 0.3])
    x = np.linspace(-6, 8, 40)
    joint = mixture.priors * stats.norm.pdf(x[:, None], mixture.means, mixture.sds)
    np.testing.assert_allclose(mixture.posterior(x), joint / joint.sum(axis=1, keepdims=True))


def test_a_score_that_turns_too_often_is_refused_at_once():
    with pytest.raises(ValueError, match="goes up and down too often to be resolved"):
        NormalMixture([-1, 1]).risk(lambda x: np.sin(1e4 * x[:, 0]))


def test_means_that_decrease_reverse_the_best_score():
    costs = [[0, 1, 2, 9], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    up, down = NormalMixture([0, 1, 2, 3]), NormalMixture([3, 2, 1, 0])
    assert down.bayes_risk(costs) == pytest.approx(up.bayes_risk(costs), rel=1e-8)
    # Means that go up and down have no monotone ratio, and such costs no closed form.
    with pytest.raises(CostConditionError):
        NormalMixture([0, 2, 1, 3]).bayes_risk(costs)


def test_ties_count_only_where_the_score_is_flat():
    mixture = NormalMixture([-1, 1])
    for ties in (0.0, 1.0):
        rising = mixture.risk(lambda x: x[:, 0], ties=ties)
        assert rising == pytest.approx(stats.norm.cdf(-np.sqrt(2)), abs=1e-8)
    free, paid = (mixture.risk(lambda x: np.sign(x[:, 0]), ties=t) for t in (0.0, 1.0))
    wrong, right = stats.norm.cdf(-1), stats.norm.cdf(1)
    assert free == pytest.approx(wrong**2, abs=1e-8)
    assert paid - free == pytest.approx(2 * wrong * right, abs=1e-8)


def test_the_best_score_without_outer_costs_keeps_its_order_where_classes_are_rare():
    # c_13 = 0: the score is (c_23 p_3 - c_12 p_1) / p_2, compared on a grid with its own ordering.
    mixture = NormalMixture([0, 1, 0.5], [1, 2, 0.7], [0.3, 0.3, 0.4])
    c = np.array([[0, 1.0, 0], [0, 0, 2.0], [0, 0, 0]])

    def score(x):
        p = mixture.posterior(x)
        ratio = (2 * p[:, 2] - p[:, 0]) / p[:, 1]
        return np.sign(ratio) * np.log1p(np.abs(ratio))

    assert mixture.bayes_risk(c) == pytest.approx(mixture.risk(score, c), abs=1e-8)


@pytest.mark.parametrize("ties", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("ends", [(-np.inf, 0.123456), (0.7654, np.inf), (-0.4321, 0.5678)])
def test_flat_pieces_that_begin_between_grid_points(ends, ties):
    """A score that is cut off on one side or both, against integrals over its increasing piece."""
    low, high = ends
    mixture = NormalMixture([0, 1])

    def beaten(x):
        return stats.norm.pdf(x) * stats.norm.cdf(x - 1)

    if np.isinf(low):  # everything up to `high` is tied
        tied = stats.norm.cdf(high) * stats.norm.cdf(high - 1)
        wrong = quad(beaten, high, 12)[0]
        risk = mixture.risk(lambda x: np.maximum(x[:, 0], high), ties=ties)
    elif np.isinf(high):
        tied = stats.norm.sf(low) * stats.norm.sf(low - 1)
        wrong = quad(beaten, -12, low)[0] + stats.norm.sf(low) * stats.norm.cdf(low - 1)
        risk = mixture.risk(lambda x: np.minimum(x[:, 0], low), ties=ties)
    else:
        inside = stats.norm(0).cdf(ends), stats.norm(1).cdf(ends)
        tied = np.prod([np.diff(part)[0] for part in inside])
        wrong = quad(beaten, -12, low)[0] + quad(beaten, high, 12)[0]
        wrong += np.diff(inside[0])[0] * inside[1][0]
        flat = lambda x: x - np.clip(x, low, high)  # noqa: E731
        risk = mixture.risk(lambda x: flat(x[:, 0]), ties=ties)
    assert risk == pytest.approx(wrong + ties * tied, abs=3e-8)


def test_a_mixture_says_what_it_is():
    mixture = NormalMixture([0, 1], [1, 2], [0.25, 0.75])
    assert repr(mixture) == "NormalMixture([0.0, 1.0], [1.0, 2.0], [0.25, 0.75])"
    np.testing.assert_allclose(eval(repr(mixture)).posterior([0.3]), mixture.posterior([0.3]))
