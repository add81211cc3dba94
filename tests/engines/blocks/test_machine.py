"""The count machine: tables of an MDP and of a policy, exact sums at 10^12, exact moments, and the law of a plain reference.

Statistical tests have fixed keys and say their false-alarm rate.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import NUMBERS, SEEDS, arms, compose, general, moments, push, random_rows, totals
from scipy import stats

import jaxbandit as jb
from jaxbandit.engines.blocks import machine
from jaxbandit.engines.blocks.machine import MAX_STATES, block_sizes, merge_outcomes
from jaxbandit.engines.tables import normalised_prob
from jaxbandit.learner import Blocks
from jaxbandit.mdp import MDP
from jaxbandit.xla.compat import x64


def test_merged_outcomes():
    """Equal (reward, next level) pairs become one, whatever the action; impossible ones vanish; the
    likeliest is first."""
    prob = np.zeros((1, 2, 2, 3))
    prob[0, 0, :, 0] = 1
    prob[0, 1] = [[0.25, 0.25, 0.5], [0.0, 0.9, 0.1]]
    reward, next_level = np.zeros((1, 2, 2, 3)), np.zeros((1, 2, 2, 3), np.int32)
    reward[0, 1] = [[0.5, 1.0, 0.5], [0.75, 0.5, 0.5]]
    next_level[0, 1] = [[1, 0, 1], [1, 1, 0]]
    merged = merge_outcomes(jb.MDP(prob, reward, next_level, None, np.int32(1)))
    assert merged.prob.shape == (1, 2, 2, 3)
    assert merged.reward[0, 1].tolist() == [0.5, 1.0, 0.5]
    assert merged.next_level[0, 1].tolist() == [1, 0, 0]
    np.testing.assert_allclose(merged.prob[0, 1], [[0.75, 0.25, 0], [0.9, 0, 0.1]])
    assert merged.start == 1
    assert merged.kind.shape[-1] == 0
    assert not merged.pool.any()


def test_pooled_outcomes():
    """Moves from two levels that can pay the same rewards: where episodes go at the levels, what
    they are paid in pools."""
    mdp = jb.make_instance(
        "prophet", values=[[0.0, 1.0, 3.0]] * 2, probabilities=[[0.25, 0.25, 0.5]] * 2, capacity=2
    )
    merged = merge_outcomes(mdp)
    assert merged.prob.shape == (2, 5, 3, 2)  # nowhere, two pools, two levels
    assert merged.level[0].tolist() == [0, 1, 2, 1, 2]
    assert merged.kind[0, 0] == merged.kind[0, 1]
    rewards = sorted({float(x) for x in np.asarray(mdp.reward).ravel()} - {0.0})
    for level in (1, 2):
        assert merged.reward[0, level].tolist() == rewards
        taken = merged.pool[0, 2 + level].tolist().index(level)
        assert merged.next_level[0, 2 + level, taken] == level - 1
        assert merged.reward[0, 2 + level, taken] == 0
        np.testing.assert_allclose(merged.prob[0, 2 + level].sum(-1), 1)
        np.testing.assert_allclose(
            merged.prob[0, level].sum(-1), merged.prob[0, 2 + level, :, taken]
        )


def test_sizes_are_those_of_the_instance_alone():
    prophet = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    general = jb.make_instance(
        "random-general", key=jax.random.key(0), horizon=4, width=2, num_actions=3
    )
    assert block_sizes(prophet) == (2, 2)
    known = merge_outcomes(general)
    assert block_sizes(general) == (known.kind.shape[-1], known.reward.shape[-1])
    assert block_sizes(general) != block_sizes(prophet)
    assert merge_outcomes(prophet) is merge_outcomes(jax.tree.map(np.array, prophet))


def test_pools_stand_where_the_law_does():
    """Shared rows: stages 1 to 3 pay alike, but the arms' own is the second; the arm's row: only
    its second pool goes on."""
    values, chances = np.array([[0.0, 1.0, 3.0]] * 4), np.array([[0.25, 0.25, 0.5]] * 4)
    chances[3] = [0.5, 0.2, 0.3]
    mdp = jb.make_instance("prophet", values=values, probabilities=chances, capacity=2)
    policy = np.broadcast_to(np.eye(3)[0], (4, 3, 3)).copy()
    own = policy[1].copy()
    own[1] = np.eye(3)[1]
    with x64():
        merged = jax.tree.map(lambda x: jnp.asarray(x)[None], merge_outcomes(mdp))
        block = Blocks(policy, np.int32(1), own[None], np.ones(1))
        tables = machine.make_tables(merged, jax.tree.map(lambda x: jnp.asarray(x)[None], block))
        bits = np.asarray(machine.STANDING.read(tables.code)).reshape(5, -1)
    assert (bits == bits[:, :1]).all()
    assert bits[:, 0].tolist()[:3] == [
        0,
        3,
        0,
    ]  # before the arms' own: none; then both; then the law changes
    assert bits[4, 0] == 2


def test_splits():
    weights = np.array([[0.2, 0.3, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0], [0.1, 0.65, 0.0, 0.25]])
    with x64():
        chance, following, certain = machine.splits(jnp.asarray(weights))
    np.testing.assert_allclose(chance, [[0.2, 0.375, 0, 1], [0, 1, 0, 0], [0.1, 0.65 / 0.9, 0, 1]])
    assert (np.asarray(chance)[[0, 1, 2], [3, 1, 3]] == 1).all()  # exactly: nothing is left over
    assert np.asarray(following)[0, :3].tolist() == [1, 3, 3]
    assert np.asarray(following)[1, 0] == 1
    assert certain.tolist() == [
        [False, True, True, False],
        [True, False, False, False],
        [False, True, True, False],
    ]


def test_pools_of_one_law_are_one():
    chance = np.array([[0.5, 1.0], [0.5, 1.0], [0.25, 1.0], [0.5, 1.0]])
    with x64():
        first = machine.merge_pools(jnp.asarray(chance), jnp.asarray([0, 0, 0, 1], jnp.int32))
    assert first.tolist() == [1, 1, 3, 4]


@pytest.mark.parametrize("which", ["general", "prophet"])
def test_moments_of_the_tests_are_those_of_planning(which):
    mdp = general() if which == "general" else prophet()
    policy = random_rows((mdp.horizon, mdp.width + 1, mdp.num_actions), 2)
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(mdp.prob, jnp.float64), reward=jnp.asarray(mdp.reward, jnp.float64)
        )
        value = float(jb.evaluate(exact, jnp.asarray(policy)))
    assert moments(mdp, policy)[0] == pytest.approx(value, abs=1e-6)


def check_moments(mdp, policy, sums, n):
    """Two z-tests at 5 standard errors, the second with the measured one."""
    mean, variance = moments(mdp, policy)
    z = ((sums - n * mean) / np.sqrt(n * variance)).ravel()
    assert abs(z.mean()) < 5 / z.size**0.5
    assert abs(np.mean(z**2) - 1) < 5 * np.std(z**2) / z.size**0.5


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
    # 4 n x 3 arms x 2 z-tests at 5 standard errors: false-alarm rate 1.4e-5 in all.
    for b in range(3):
        check_moments(mdp, compose(block, b), sums[:, b], n)
    # The arms are independent of each other.
    assert np.abs(np.corrcoef(sums.T)[np.triu_indices(3, 1)]).max() < 5 / SEEDS**0.5


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
    # Two z-tests at 5 standard errors in each of 9 cases: false-alarm rate 1e-5 in all.
    check_moments(mdp, rows, sums, n)


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
        # Two z-tests at 5 standard errors in each of 144 cases: false-alarm rate 2e-4 in all.
        for b in range(3):
            check_moments(mdp, compose(block, b), sums[:, b], n)


def prophet():
    """Values of one distribution in all stages but the third: pools stand, merge and change."""
    values, chances = np.array([[0.0, 1.0, 3.0]] * 4), np.array([[0.25, 0.25, 0.5]] * 4)
    chances[2] = [0.5, 0.25, 0.25]
    return jb.make_instance("prophet", values=values, probabilities=chances, capacity=2)


def push_policy(mdp: MDP, policy: np.ndarray, episodes: int, random: np.random.Generator) -> float:
    """The sum of the total rewards of n episodes of a randomised policy float [H, k+1, A]: one binomial draw per split."""
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    next_level = np.asarray(mdp.next_level)
    here, total = np.zeros(mdp.width + 1, np.int64), 0.0
    here[int(mdp.start)] = episodes
    for i in range(mdp.horizon):
        there = np.zeros_like(here)
        for level in range(1, mdp.width + 1):
            weight = (policy[i, level, :, None] * prob[i, level]).ravel()
            rest = weight[::-1].cumsum()[::-1]  # of this outcome and all after it
            left = here[level]
            for j in np.flatnonzero(weight):
                # Of those that saw none of the outcomes before, so many see this one.
                count = random.binomial(left, min(weight[j] / rest[j], 1.0))
                total += count * reward[i, level].flat[j]
                there[next_level[i, level].flat[j]] += count
                left -= count
        here = there
    return float(total)


@pytest.mark.parametrize("n", [1, 7, 10**5])
@pytest.mark.parametrize("which", ["general", "prophet"])
def test_the_machine_has_the_law_of_the_reference(which, n):
    """Two-sample Kolmogorov-Smirnov tests at p = 1e-6 and z-tests of the reference's mean at 5 standard errors.

    3 n x 3 arms and 3 n x 1 arm: false-alarm rate 2e-5 in all.
    """
    if which == "general":
        mdp, block = general(), arms(3, 3, 2)
    else:
        mdp, rows = prophet(), random_rows((4, 1, 3), 5).repeat(3, 1)
        block = Blocks(rows, np.int32(1), rows[1][None].repeat(3, 0), np.ones(3))
    outcomes = 6 if which == "general" else 3
    ours = totals(mdp, block, n, seed=n % 71, num_outcomes=outcomes)
    random = np.random.default_rng(n)
    for b in range(3 if which == "general" else 1):
        policy = compose(block, b)
        plain = np.array([push_policy(mdp, policy, n, random) for _ in range(1000)])
        mean, variance = moments(mdp, policy)
        assert abs(plain.mean() - n * mean) < 5 * np.sqrt(n * variance / plain.size)
        sums = ours[:, b] if which == "general" else ours.ravel()
        # Rounded, because the same sums are added in another order.
        one, two = np.round(sums, 6), np.round(plain, 6)
        assert stats.ks_2samp(one, two, method="asymp").pvalue > 1e-6
