"""Thompson sampling on regressed totals: which regression is right, moments by a loop, draws by law."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import as_trajectory, begin, every_episode

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem
from jaxbandit.learners.trajectory_ts import (
    features,
    posterior,
    solve,
    trajectory_ts,
)
from jaxbandit.testing import play_episode

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


def regress(mdp, policies, feature_of):
    """Least squares of totals on features, from the exact law of episodes of several policies."""
    size = 3 * 2 * 3 * 3
    gram, target = np.zeros((size, size)), np.zeros(size)
    for policy in policies:
        for chance, rows in every_episode(mdp, policy):
            x = feature_of(rows, size)
            gram += chance * np.outer(x, x)
            target += chance * x * sum(row[2] for row in rows)
    return np.linalg.pinv(gram, rcond=1e-10) @ target


def predicted(mdp, policy, theta, feature_of):
    """The value of a policy by the regression, with exact transitions."""
    return sum(
        chance * feature_of(rows, theta.size) @ theta for chance, rows in every_episode(mdp, policy)
    )


def with_next_level(rows, size):
    episode = as_trajectory(rows)
    place = np.asarray(features(episode.levels, episode.actions, 2, 3))
    x = np.zeros(size)
    x[place[place < size]] = 1
    return x


def without_next_level(rows, size):
    x = np.zeros(size)
    for i, (level, a, _, _) in enumerate(rows):
        if level > 0:
            x[(i * 2 + level - 1) * 3 + a] = 1
    return x


def test_the_next_level_must_be_among_the_features():
    """Data of two policies that change over, and a third one to be predicted: with the next level
    the regression is exact; without it, it is off by more than 0.02 however much data there is."""
    thresholds = itertools.product(range(3), repeat=3)
    tables = [np.eye(3)[np.tile(np.asarray(t)[:, None], (1, 3))] for t in thresholds]
    data = [0.5 * tables[0] + 0.5 / 3, 0.5 * tables[-1] + 0.5 / 3, tables[13]]
    errors = {}
    for feature_of in (with_next_level, without_next_level):
        theta = regress(MDP, data, feature_of)
        errors[feature_of] = max(
            abs(
                predicted(MDP, policy, theta, feature_of)
                - float(jb.evaluate(MDP, jnp.asarray(policy, jnp.float32)))
            )
            for policy in tables
        )
    assert errors[with_next_level] < 1e-6
    assert errors[without_next_level] > 0.02


@pytest.mark.parametrize("segments", [None, 1, 2, 3])
def test_moments_are_those_of_a_loop(segments):
    learner = trajectory_ts(segments=segments)
    state, given = begin(learner, Problem(3, 2, 3, 100))
    size = 54
    gram, target = np.eye(size) * (1 + 1e-6 * 3 * 50), np.zeros(size)
    cut = {None: [0, 3], 1: [0, 3], 2: [0, 1, 3], 3: [0, 1, 2, 3]}[segments]
    random = np.random.default_rng(0)
    update = jax.jit(learner.update)
    for _ in range(50):
        policy = random.integers(0, 3, (3, 3)).astype(np.int32)
        episode = play_episode(MDP, policy, random)
        state = update(state, policy, observe(learner.feedback, episode), given)
        rows = list(zip(*(np.asarray(x).tolist() for x in episode), strict=True))
        rows[-1] = (*rows[-1][:3], 0)
        for first, end in itertools.pairwise(cut):
            x = np.zeros(size)
            for i in range(first, end):
                level, a, _, following = rows[i]
                if level > 0:
                    x[((i * 2 + level - 1) * 3 + a) * 3 + following] = 1
            gram += np.outer(x, x)
            target += x * sum(row[2] for row in rows[first:end])
    factor, theta = posterior(state)
    np.testing.assert_allclose(np.asarray(factor) @ np.asarray(factor).T, gram, atol=1e-4)
    np.testing.assert_allclose(theta, np.linalg.solve(gram, target), atol=1e-4)
    noise = random.standard_normal(size).astype(np.float32)
    spread = np.asarray(solve(factor, jnp.asarray(noise), transposed=True))
    np.testing.assert_allclose(np.asarray(factor).T @ spread, noise, atol=1e-4)
    np.testing.assert_array_equal(state.policy, policy)


def test_draws_come_on_a_geometric_grid():
    """At once, after 1 episode, and then whenever the number of episodes has grown by a quarter."""
    learner = trajectory_ts()
    state, given = begin(learner, Problem(3, 2, 3, 100))
    random = np.random.default_rng(0)
    act, update = jax.jit(learner.act), jax.jit(learner.update)
    drawn = []
    for t in range(60):
        if int(state.episodes) >= int(state.due):
            drawn.append(t)  # after a draw at t the next is at t + 1 + floor((t + 1) / 4)
        policy = act(state, jax.random.key(t), given)
        if t not in drawn:
            np.testing.assert_array_equal(policy, state.policy)
        episode = play_episode(MDP, np.asarray(policy), random)
        state = update(state, policy, observe("trajectory", episode), given)
    assert drawn == [0, 1, 2, 3, 5, 7, 10, 13, 17, 22, 28, 36, 46, 58]


def test_tables_too_large_to_regress_are_refused():
    with pytest.raises(ValueError, match=r"trajectory-ts: 10000 features .*at most 4096"):
        trajectory_ts().init(Problem(25, 4, 20, 10.0), None, None)
