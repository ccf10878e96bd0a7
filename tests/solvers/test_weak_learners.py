"""Weak learners: inner products against values, values against formulas, centres and weights."""

import numpy as np
import pytest

from rankbook.solvers.weak_learners import FeatureBumps, JointBumps, Stumps, family

FAMILIES = (FeatureBumps, JointBumps, Stumps)


def build(weak, X, weight=None, max_centres=None):
    weight = np.ones(len(X)) if weight is None else weight
    return weak(X, weight, 0.7, max_centres, np.random.default_rng(0))


@pytest.mark.parametrize("weak", FAMILIES)
def test_products_values_rows_and_evaluation_agree(weak):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)).round(1)
    learners, vector = build(weak, X), rng.normal(size=40)
    values = np.column_stack([learners.values(k) for k in range(learners.size)])
    np.testing.assert_allclose(learners.products(vector), vector @ values, rtol=1e-10, atol=1e-12)
    rows = np.array([learners.row(k) for k in range(learners.size)])
    np.testing.assert_allclose(weak.evaluate(rows, X, 0.7), values, rtol=1e-13)
    np.testing.assert_allclose(learners.norms, np.linalg.norm(values, axis=0), rtol=1e-12)


@pytest.mark.parametrize(("p", "low"), [(1, True), (3, False)])
def test_many_joint_bumps_of_low_rank_are_factored(p, low):
    """One feature has a factor of few columns, three have not; repeated items either way."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, p))[np.r_[:300, :40]]
    learners, vector = build(JointBumps, X), rng.normal(size=340)
    assert learners.size == 300 and (learners._factor is not None) == low
    exact = vector @ JointBumps.evaluate(learners.centres, X, 0.7)
    error = np.abs(learners.products(vector) - exact).max()
    assert error < 1e-14 * np.abs(vector).sum()


def test_centres_that_leave_items_out_are_not_factored():
    X = np.random.default_rng(5).normal(size=(400, 1))
    learners, vector = build(JointBumps, X, max_centres=300), np.cos(X[:, 0])
    exact = vector @ JointBumps.evaluate(learners.centres, X, 0.7)
    np.testing.assert_allclose(learners.products(vector), exact, rtol=1e-12)


@pytest.mark.parametrize("weak", FAMILIES)
def test_norms_count_an_item_as_often_as_it_weighs(weak):
    rng = np.random.default_rng(3)
    X, times = rng.normal(size=(30, 2)).round(1), rng.integers(0, 4, 30)
    weighted, repeated = build(weak, X, times.astype(float)), build(weak, np.repeat(X, times, 0))
    np.testing.assert_allclose(weighted.norms, repeated.norms, rtol=1e-12)


def test_members_are_the_formulas():
    X = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    joint = build(JointBumps, X)
    np.testing.assert_allclose(joint.values(0), np.exp(-np.array([0.0, 1.0, 9.0]) / 1.4))
    single = build(FeatureBumps, X)
    assert single.size == 3 + 1
    np.testing.assert_allclose(single.values(1), np.exp(-np.array([1.0, 0.0, 4.0]) / 1.4))
    steps = build(Stumps, X)
    assert [steps.row(k).tolist() for k in range(steps.size)] == [[0.0, 0.5], [0.0, 2.0]]
    assert steps.values(1).tolist() == [-1.0, -1.0, 1.0]


@pytest.mark.parametrize("weak", FAMILIES)
def test_zero_weights_and_repetitions_give_no_centres(weak):
    X = np.array([[0.0], [0.0], [1.0], [4.0]])
    once = build(weak, X[1:3])
    assert build(weak, X, np.array([1.0, 1.0, 1.0, 0.0])).size == once.size


def test_neighbouring_floats_are_told_apart_by_a_step():
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2.0)]])
    steps = build(Stumps, X)
    assert steps.values(0).tolist() == [-1.0, 1.0]
    assert Stumps.evaluate(np.array([steps.row(0)]), X, 0.7).ravel().tolist() == [-1.0, 1.0]


def test_many_values_are_binned_and_the_choice_stays_close():
    X = np.random.default_rng(2).normal(size=(5000, 1))
    learners, vector = build(FeatureBumps, X), np.sin(3 * X[:, 0])
    assert learners.size == 256
    exact = vector @ FeatureBumps.evaluate(learners.rows, X, 0.7)
    assert np.abs(learners.products(vector) - exact).max() < 1e-3 * np.abs(exact).max()
    member = int(np.abs(exact).argmax())
    np.testing.assert_allclose(vector @ learners.values(member), exact[member], rtol=1e-12)


def test_centres_are_limited_and_the_memory_is_reckoned():
    X = np.random.default_rng(3).normal(size=(50, 2))
    learners = build(JointBumps, X, max_centres=7)
    assert learners.size == 7
    assert all((X == learners.row(k)).all(axis=1).any() for k in range(7))
    with pytest.raises(ValueError, match=r"max_centres .* 300000 items x 2000 centres x 8 bytes"):
        build(JointBumps, np.arange(300_000.0)[:, None])


def test_a_family_is_known_by_its_name():
    assert family("joint") is JointBumps
    with pytest.raises(ValueError, match="weak must be one of"):
        family("tree")
