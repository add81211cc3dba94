"""Pushed counts: exact sums at 10^12, exact moments, and the law of the plain reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import NUMBERS, SEEDS, arms, compose, general, moments, push, random_rows, totals

import jaxbandit as jb
from jaxbandit.engines.blocks.machine import MAX_STATES
from jaxbandit.learner import Blocks
from jaxbandit.xla.compat import x64


def test_moments_of_the_test_are_those_of_planning():
    mdp, block = general(), arms(3, 3, 2)
    with x64():
        exact = mdp._replace(
            prob=mdp.prob.astype(jnp.float64), reward=mdp.reward.astype(jnp.float64)
        )
        for b in range(3):
            value = jb.evaluate(exact, jnp.asarray(compose(block, b)))
            assert abs(float(value) - moments(mdp, compose(block, b))[0]) < 1e-6


@pytest.mark.parametrize("n", [1, *NUMBERS])
def test_sums_are_exactly_n_when_every_episode_pays_one(n):
    """1 is paid exactly once whatever happens: at the first stage on some outcomes, else at the
    last."""
    mdp = general()
    pays = np.arange(mdp.num_outcomes) == 0
    reward, next_level = np.zeros(mdp.prob.shape), np.array(mdp.next_level)
    reward[0, 1:, :, pays] = 1
    # Level 1 has been paid, level 2 has not.
    next_level[0, 1:] = np.where(pays, 1, 2)
    next_level[1] = np.arange(3)[:, None, None]
    reward[2, 2] = 1
    mdp = mdp._replace(reward=reward, next_level=next_level)
    jb.validate(mdp)
    assert (totals(mdp, arms(3, 3, 2), n, seed=n % 97) == n).all()


@pytest.mark.parametrize("n", NUMBERS)
def test_mean_and_variance_are_exact(n):
    mdp, block = general(), arms(3, 3, 2)
    sums = totals(mdp, block, n, seed=n % 89)
    for b in range(3):
        mean, variance = moments(mdp, compose(block, b))
        z = (sums[:, b] - n * mean) / np.sqrt(n * variance)
        # 4 n x 3 arms x 2 z-tests at 5 standard errors (kurtosis 3 to within 1/n): false-alarm rate
        # 1.4e-5 in all.
        assert abs(z.mean()) < 5 / SEEDS**0.5
        assert abs(np.mean(z**2) - 1) < 5 * (2 / SEEDS) ** 0.5
    # The arms are independent of each other.
    assert np.abs(np.corrcoef(sums.T)[np.triu_indices(3, 1)]).max() < 5 / SEEDS**0.5


def test_one_episode_gives_one_of_the_possible_totals():
    mdp = jb.make_instance("hard-general", theta=[1, 0, 1], num_actions=2, gap=0.25)
    policy = np.broadcast_to(np.eye(2)[1], (3, 3, 2))
    block = Blocks(policy, np.int32(1), np.stack([policy[1]] * 3), np.ones(3))
    sums = totals(mdp, block, 1)
    assert set(np.unique(sums)) == {0.0, 1.0}
    mean = moments(mdp, policy)[0]
    # A z-test at 5 standard errors: false-alarm rate 6e-7.
    assert abs(sums.mean() - mean) < 5 * np.sqrt(mean * (1 - mean) / sums.size)


def test_many_levels_and_outcomes():
    """The largest width that the engine takes, and more outcomes than a byte can number."""

    def wide(levels):
        shape = (2, levels, 2, 150)
        level = np.arange(levels)[:, None, None]
        outcome = np.arange(150)
        next_level = np.broadcast_to(
            np.where(outcome % 2 == 0, np.maximum(level - 1, 0), level), shape
        )
        reward = np.zeros(shape)
        reward[:, 1:] = (outcome + 150 * np.arange(2)[:, None] + 1)[None] / 1200
        reward[1] += level / (2 * levels)
        reward[:, 0] = 0
        return jb.MDP(np.full(shape, 1 / 150), reward, next_level, None, np.int32(levels - 1))

    mdp = jb.validate(wide(MAX_STATES))
    policy = np.full((2, MAX_STATES, 2), 0.5)
    block = Blocks(policy, np.int32(0), policy[:1], np.ones(1))
    mean, variance = moments(mdp, policy)
    sums = totals(mdp, block, 10**6, seeds=16, num_outcomes=300)
    z = (sums[:, 0] - 1e6 * mean) / np.sqrt(1e6 * variance)
    # Two z-tests at 5 standard errors: false-alarm rate 1e-6.
    assert abs(z.mean()) < 5 / 4
    assert np.abs(z).max() < 6


def test_arms_without_episodes_pay_nothing_and_disturb_nothing():
    mdp, block = general(), arms(3, 3, 2)
    sums = push(mdp, block, np.broadcast_to([5.0, 0.0, 7.0], (SEEDS, 3)))
    assert (sums[:, 1] == 0).all()
    np.testing.assert_array_equal(sums[:, 0], totals(mdp, block, 5)[:, 0])
    np.testing.assert_array_equal(sums[:, 2], totals(mdp, block, 7)[:, 2])


@pytest.mark.parametrize("policy", ["same", "different", "certain"])
@pytest.mark.parametrize("n", [3, 10**4, 10**9])
def test_pools_keep_mean_and_variance(policy, n):
    """A prophet inequality, with the same law of rewards at all levels (one pool), different ones,
    and sure thresholds."""
    mdp = jb.make_instance(
        "prophet-random", key=jax.random.key(8), horizon=4, capacity=2, num_values=3
    )
    rows = random_rows((4, 3, 3), 6)
    if policy == "same":
        rows[:] = rows[:, 2:]
    elif policy == "certain":
        rows = np.eye(3)[np.random.default_rng(7).integers(0, 3, (4, 3))]
    block = Blocks(rows, np.int32(2), rows[2][None].repeat(3, 0), np.ones(3))
    sums = totals(mdp, block, n, seed=n % 83, num_outcomes=3)
    mean, variance = moments(mdp, rows)
    z = ((sums - n * mean) / np.sqrt(n * variance)).ravel()
    # Two z-tests at 5 standard errors in each of 9 cases, the second with the measured one:
    # false-alarm rate 1e-5 in all.
    assert abs(z.mean()) < 5 / z.size**0.5
    assert abs(np.mean(z**2) - 1) < 5 * np.std(z**2) / z.size**0.5


@pytest.mark.parametrize("policy", ["same", "thresholds", "mixed", "one level"])
@pytest.mark.parametrize("n", [1, 5, 10**4, 10**9])
def test_standing_pools_keep_mean_and_variance(policy, n):
    """Values of one distribution in all stages but the fourth: rewards wait for stages that pay by
    the same law.

    Arms: the policy itself, and two whose own stage breaks the law, for some levels or for all. An
    own stage at either end, and few episodes, so that many arms end early with rewards still to be
    drawn.
    """
    values, chances = np.array([[0.0, 1.0, 3.0]] * 6), np.array([[0.25, 0.25, 0.5]] * 6)
    values[3], chances[3] = [0.0, 2.0, 2.5], [0.5, 0.25, 0.25]
    mdp = jb.make_instance(
        "prophet", values=values, probabilities=chances, capacity=1 if policy == "one level" else 2
    )
    levels = mdp.width + 1
    rows = np.broadcast_to(random_rows((1, 1, 3), 3), (6, levels, 3)).copy()
    if policy == "thresholds":
        rows = np.eye(3)[np.minimum(np.arange(6)[:, None] // 2, np.arange(levels)[None])]
    elif policy == "mixed":
        rows[4:] = np.eye(3)[0]
    for stage in (0, 2, 5):
        own = np.stack(
            [
                rows[stage],
                np.where(np.arange(levels)[:, None] == 1, np.eye(3)[0], rows[stage]),
                np.eye(3)[[0] * levels],
            ]
        )
        block = Blocks(rows, np.int32(stage), own, np.ones(3))
        sums = totals(mdp, block, n, seed=n % 83 + stage, num_outcomes=3)
        for b in range(3):
            mean, variance = moments(mdp, compose(block, b))
            z = (sums[:, b] - n * mean) / np.sqrt(n * variance)
            # Two z-tests at 5 standard errors in each of 144 cases: false-alarm rate 2e-4 in all.
            assert abs(z.mean()) < 5 / z.size**0.5
            assert abs(np.mean(z**2) - 1) < 5 * np.std(z**2) / z.size**0.5
