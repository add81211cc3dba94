"""The empirical model and planning in it, against loops and exact values."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem
from jaxbandit.learners import model
from jaxbandit.testing import play_episode

MDP = jb.make_instance("random-ordered", key=jax.random.key(2), horizon=4, width=3, num_actions=2)


def test_counts_are_those_of_a_loop():
    random = np.random.default_rng(0)
    found = model.empty(Problem(4, 3, 2, 100.0))
    visits, moves, paid = np.zeros((4, 4, 2)), np.zeros((4, 4, 2, 4)), np.zeros((4, 4, 2))
    for _ in range(60):
        policy = random.integers(0, 2, (4, 4))
        episode = play_episode(MDP, policy, random)
        found = model.add_episode(found, observe("semi-bandit", episode))
        rows = zip(*(np.asarray(x) for x in episode), strict=True)
        for i, (level, a, reward, following) in enumerate(rows):
            visits[i, level, a] += 1
            moves[i, level, a, following] += 1
            paid[i, level, a] += reward
    np.testing.assert_array_equal(found.visits, visits[:, 1:])
    np.testing.assert_array_equal(found.moves, moves[:, 1:, :, 1:])
    np.testing.assert_allclose(found.reward, paid[:, 1:], rtol=1e-6)
    np.testing.assert_allclose(found.inverse, 1 / np.maximum(visits[:, 1:], 1), rtol=1e-6)


def test_planning_in_the_true_model_is_optimal():
    reward = jb.mean_reward(MDP)[:, 1:]
    transition = jb.transition_kernel(MDP)[:, 1:, :, 1:]
    q = model.plan(reward, transition, len(reward))
    value, policy = jb.optimal(MDP)
    np.testing.assert_allclose(jnp.max(q[0, int(MDP.start) - 1]), value, rtol=1e-6)
    np.testing.assert_allclose(jb.evaluate(MDP, model.greedy(q)), value, rtol=1e-6)
    assert policy.shape == model.greedy(q).shape
