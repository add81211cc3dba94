"""Optimism in the prophet problem: counts by hand, planning and optimism against exact values."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import begin

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Problem
from jaxbandit.learners.prophet_optimism import action_values, prophet_optimism, raised_law

VALUES = np.asarray([[0.1, 0.4, 0.9], [0.0, 0.5, 1.0], [0.2, 0.3, 0.8]])
LAW = np.asarray([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1]])
MDP = jb.make_instance("prophet", values=VALUES, probabilities=LAW, capacity=2)
PROBLEM = Problem(3, 2, 3, 1000)


def test_counts_by_hand():
    """Stage 1: threshold 0 shows X = 0.9, so N and D of 0.9 grow, and nothing is known of 0.4 (0.9
    exceeds it). Stage 2: threshold 1 shows X <= 0.5, a trial for 1.0 that failed. Stage 3: threshold
    0 shows X = 0.3, found, and a trial for 0.8 that failed."""
    learner = prophet_optimism(VALUES)
    state, given = begin(learner, PROBLEM)
    shown = SemiBanditFeedback(
        jnp.asarray([2, 1, 1], jnp.int32),
        jnp.asarray([0, 1, 0], jnp.int32),
        jnp.asarray([0.45, 0.0, 0.15], jnp.float32),
        jnp.asarray([1, 1, 0], jnp.int32),
    )
    state = learner.update(state, None, shown, given)
    assert state.trials.tolist() == [[0, 0, 1], [0, 0, 1], [0, 1, 1]]
    assert state.found.tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    dead = shown._replace(levels=jnp.zeros(3, jnp.int32), next_levels=jnp.zeros(3, jnp.int32))
    again = learner.update(state, None, dead, given)
    assert again.trials.tolist() == state.trials.tolist()


def test_planning_with_the_true_law_is_optimal():
    q = action_values(jnp.asarray(LAW, jnp.float32), jnp.asarray(VALUES / 2, jnp.float32), 2)
    value, _ = jb.optimal(MDP)
    np.testing.assert_allclose(q[0, 2].max(), value, rtol=1e-6)
    policy = jnp.argmax(q, axis=-1).astype(jnp.int32)
    np.testing.assert_allclose(jb.evaluate(MDP, policy), value, rtol=1e-6)


def test_raised_laws_are_better_in_the_stochastic_order():
    """Every tail Pr(X >= v_j) of the raised law is at least that of the empirical one, which is a
    distribution; without a bonus and with exact shares it is the law itself."""
    state, given = begin(prophet_optimism(VALUES, bonus_scale=0), PROBLEM)
    below = np.cumsum(LAW, axis=1)
    many = 10**6
    exact = state._replace(
        trials=jnp.full((3, 3), many, jnp.int32),
        found=jnp.asarray(np.round(many * LAW / below), jnp.int32),
    )
    np.testing.assert_allclose(raised_law(exact, given.bonus), LAW, atol=1e-5)
    for bonus in (0.01, 10.0, 300.0):
        law = np.asarray(raised_law(exact, jnp.float32(bonus)), float)
        np.testing.assert_allclose(law.sum(1), 1, atol=1e-6)
        assert (np.cumsum(law[:, ::-1], 1) >= np.cumsum(LAW[:, ::-1], 1) - 1e-5).all()


def test_shares_are_unbiased_whatever_is_played():
    """Over all outcomes of a stage: E[D_j] = h_j E[N_j] for every threshold."""
    learner = prophet_optimism(VALUES[:1])
    mean = {a: np.zeros((2, 3)) for a in range(3)}
    for a, j in itertools.product(range(3), range(3)):
        state, given = begin(learner, Problem(1, 2, 3, 10))
        taken = VALUES[0, j] > VALUES[0, a]
        shown = SemiBanditFeedback(
            jnp.full(1, 2, jnp.int32),
            jnp.full(1, a, jnp.int32),
            jnp.full(1, VALUES[0, j] / 2 if taken else 0, jnp.float32),
            jnp.full(1, 1 if taken else 2, jnp.int32),
        )
        state = learner.update(state, None, shown, given)
        mean[a] += LAW[0, j] * np.stack([state.trials[0], state.found[0]])
    share = LAW[0] / np.cumsum(LAW[0])
    for a in range(3):
        np.testing.assert_allclose(mean[a][1][a + 1 :], (mean[a][0] * share)[a + 1 :])
        assert (mean[a][0][: a + 1] == 0).all()


def test_values_of_another_mdp_are_refused():
    with pytest.raises(ValueError, match=r"values: \[3, 3\]; accepted: \[4, 3\] in this MDP"):
        begin(prophet_optimism(VALUES), Problem(4, 2, 3, 10))
