"""The policy gradient: its estimate is unbiased, its draws have the right law, and it learns; softmax alone and with lanes."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learners import Problem
from jaxbandit.learners.policy_gradient import (
    drawn_policy,
    policy_gradient,
    score_gradient,
    softmax,
)

PROBLEM = Problem(2, 1, 3, 100.0)


def fed(learner, state, policy, total):
    feedback = BanditFeedback(jnp.float32(total))
    return learner.update(state, jnp.asarray(policy, jnp.int32), feedback, learner.params)


def test_one_step_by_hand():
    """From uniform probabilities and a baseline of 0: rate * total * (one-hot - 1/3)."""
    learner = policy_gradient(learning_rate=0.6, baseline_decay=0.5)
    state = fed(learner, learner.init(PROBLEM, None, None), [[0, 2], [0, 0]], 0.5)
    expected = 0.3 * (np.array([[[0, 0, 1]], [[1, 0, 0]]]) - 1 / 3)
    np.testing.assert_allclose(state.logits, expected, rtol=1e-6)
    assert float(state.baseline) == 0.5
    second = fed(learner, state, [[0, 1], [0, 1]], 0.5)  # as good as the baseline: no step
    chex.assert_trees_all_equal(second.logits, state.logits)
    third = fed(learner, second, [[0, 1], [0, 1]], 1.0)
    assert float(third.baseline) == pytest.approx(0.75)  # weight max(1 - decay, 1/3)


def test_baseline_starts_as_a_plain_mean():
    learner = policy_gradient(learning_rate=0.1, baseline_decay=0.9)
    state = learner.init(PROBLEM, None, None)
    totals = [0.2, 0.8, 0.5, 0.1]
    for total in totals:
        state = fed(learner, state, [[0, 0], [0, 0]], total)
    assert float(state.baseline) == pytest.approx(np.mean(totals), rel=1e-6)


def test_estimate_is_the_gradient_of_the_value():
    """The mean step over all policies is the gradient of the expected value, whatever the
    baseline."""
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
    learner = policy_gradient(learning_rate=1.0)
    logits = jax.random.normal(jax.random.key(0), (2, 1, 3))
    state = learner.init(PROBLEM, None, None)._replace(logits=logits, baseline=jnp.float32(0.3))

    def value(logits):
        at_zero = jnp.full((2, 1, 3), 1 / 3)
        return jb.evaluate(mdp, jnp.concatenate([at_zero, jax.nn.softmax(logits)], axis=1))

    policies = jnp.asarray(
        [[[0, a], [0, b]] for a, b in itertools.product(range(3), repeat=2)], jnp.int32
    )
    chances = jax.nn.softmax(logits)
    weights = jnp.asarray([chances[0, 0, p[0, 1]] * chances[1, 0, p[1, 1]] for p in policies])
    totals = jax.vmap(lambda p: jb.evaluate(mdp, p))(policies)
    after = jax.vmap(lambda p, x: fed(learner, state, p, x).logits)(policies, totals)
    mean_step = jnp.sum(weights[:, None, None, None] * (after - logits[None]), axis=0)
    np.testing.assert_allclose(mean_step, jax.grad(value)(logits), atol=1e-6)


def test_draws_follow_the_softmax():
    """20,000 draws at each of two states. False-alarm rate per count about 1e-6 (5 standard
    errors)."""
    learner = policy_gradient()
    chances = np.array([[[0.2, 0.5, 0.3]], [[0.7, 0.0, 0.3]]])
    logits = jnp.asarray(np.log(chances + 1e-30), jnp.float32)
    state = learner.init(PROBLEM, None, None)._replace(logits=logits)
    draws = 20_000
    policies = jax.jit(jax.vmap(lambda state, key: learner.act(state, key, ()), (None, 0)))(
        state, jax.random.split(jax.random.key(1), draws)
    )
    assert policies.shape == (draws, 2, 2)
    assert policies.dtype == jnp.int32
    assert not np.any(policies[:, :, 0])
    seen = np.stack(
        [np.mean(np.asarray(policies[:, :, 1:]) == a, axis=0) for a in range(3)], axis=-1
    )
    assert np.all(np.abs(seen - chances) <= 5 * np.sqrt(chances * (1 - chances) / draws))
    both = np.mean((policies[:, 0, 1] == 1) & (policies[:, 1, 1] == 0))  # independent across states
    assert abs(both - 0.35) <= 5 * np.sqrt(0.35 * 0.65 / draws)


@pytest.mark.parametrize(
    "parameters",
    [
        {"learning_rate": 0.5},
        {"learning_rate": optax.exponential_decay(1.0, 500, 0.5)},
        {"optimizer": optax.adam(optax.linear_schedule(0.1, 0.01, 2000))},
    ],
    ids=["number", "schedule", "optimizer"],
)
def test_it_learns(parameters):
    """Deterministic rewards, one good action of three at each of two states; 8 seeds under vmap."""
    learner = policy_gradient(**parameters)

    def episode(state, key):
        policy = learner.act(state, key, None)
        total = 0.5 * jnp.sum((policy[:, 1] == 1).astype(jnp.float32))
        return fed(learner, state, policy, total), total

    def run(key):
        return jax.lax.scan(episode, learner.init(PROBLEM, None, None), jax.random.split(key, 2000))

    state, totals = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(2), 8))
    assert float(jnp.mean(totals[:, :5])) < 0.6  # a third at first
    assert float(jnp.mean(totals[:, -200:])) > 0.95
    chex.assert_trees_all_equal_dtypes(state, learner.init(PROBLEM, None, None))
    np.testing.assert_array_equal(state.episodes, 2000)


def test_schedule_is_read_at_the_episode():
    learner = policy_gradient(learning_rate=lambda episode: jnp.where(episode == 0, 0.0, 1.0))
    first = fed(learner, learner.init(PROBLEM, None, None), [[0, 1], [0, 1]], 0.5)
    assert not np.any(first.logits)
    assert np.any(fed(learner, first, [[0, 1], [0, 1]], 1.0).logits)


LANES = 4
LOGITS = np.random.default_rng(0).normal(0, 3, (3, 2, 5, LANES)).astype(np.float32)


def test_probabilities_are_those_of_jax_however_large_the_logits():
    for scale in (1.0, 1000.0):
        found = softmax(scale * LOGITS)
        np.testing.assert_allclose(found, jax.nn.softmax(scale * LOGITS, axis=2), atol=1e-6)


def test_the_gradient_is_that_of_the_log_probability():
    """gain * d/d theta of log Pr(policy), by jax's differentiation, lane by lane."""
    keys = jax.random.split(jax.random.key(1), LANES)
    policy = drawn_policy(LOGITS, keys)
    gain = jax.random.normal(jax.random.key(2), (3, 2, LANES))
    found = score_gradient(LOGITS, policy, gain)

    def chance(logits, policy, gain):
        logs = jax.nn.log_softmax(logits, axis=-1)
        picked = jnp.take_along_axis(logs, policy[:, 1:, None], axis=-1)[:, :, 0]
        return jnp.sum(gain * picked)

    exact = jax.vmap(jax.grad(chance), -1, -1)(LOGITS, policy, gain)
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_a_lane_draws_what_it_draws_alone_and_in_a_larger_table():
    keys = jax.random.split(jax.random.key(3), LANES)
    together = np.asarray(drawn_policy(LOGITS, keys))
    assert together.shape == (3, 3, LANES)
    assert not together[:, 0].any()
    larger = jnp.pad(LOGITS, ((0, 2), (0, 1), (0, 0), (0, 0)))
    np.testing.assert_array_equal(drawn_policy(larger, keys)[:3, :3], together)
    for lane in range(LANES):
        alone = drawn_policy(LOGITS[..., lane], keys[lane])
        np.testing.assert_array_equal(alone, together[..., lane])


def test_actions_without_a_chance_are_never_drawn():
    """Also at the ends, and where a word falls between two others."""
    logits = jnp.asarray([[[-200.0, 0, -200, 0, -200]]])
    keys = jax.random.split(jax.random.key(4), 5000)
    drawn = jax.vmap(drawn_policy, (None, 0))(logits, keys)[:, 0, 1]
    counts = np.bincount(np.asarray(drawn), minlength=5)
    assert counts[[0, 2, 4]].sum() == 0
    assert abs(counts[1] - 2500) <= 5 * np.sqrt(1250)  # false alarms: 6e-7
