"""The block engine: exact sums at 10^12, exact moments, exact regrets of arms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import blocks, codes, outcomes
from jaxbandit.engines.compat import x64
from jaxbandit.engines.threefry import key_words

push_arms = jax.jit(blocks.push_arms)
NUMBERS = [10, 10**4, 10**9, 10**12]
SEEDS = 1000


def stack(*mdps):
    return jax.tree.map(lambda *x: np.stack([np.asarray(leaf) for leaf in x]), *mdps)


def general(seed=3):
    return jb.make_instance("random-general", key=jax.random.key(seed), horizon=3, width=2, num_actions=2)


def random_rows(shape, seed):
    rows = np.random.default_rng(seed).exponential(size=shape)
    return rows / rows.sum(-1, keepdims=True)


def arms(horizon, levels, num_actions, seed=0):
    """A policy and three arms: a random row, a deterministic one, and the policy's own. Some probabilities are 0 or 1."""
    policy = random_rows((horizon, levels, num_actions), seed)
    policy[0, 1] = np.eye(num_actions)[0]
    stage = horizon // 2
    sure = np.eye(num_actions)[np.arange(levels) % num_actions]
    rows = np.stack([random_rows((levels, num_actions), seed + 1), sure, policy[stage]])
    return blocks.Blocks(policy, np.int32(stage), rows, np.ones(3))


def compose(block, b):
    policy = np.array(block.policy)
    policy[int(block.stage)] = block.rows[b]
    return policy


def push(mdp, block, episodes, seed=0, num_outcomes=6):
    """Sums of the total rewards, [seeds, arms]; tables padded to ``num_outcomes`` outcomes to have one shape."""
    episodes = np.asarray(episodes, np.float64)[None]
    seeds = episodes.shape[1]
    merged = blocks.merge_outcomes(stack(mdp))
    missing = [(0, 0)] * 3 + [(0, num_outcomes - merged.reward.shape[-1])]
    merged = merged._replace(
        prob=np.pad(merged.prob, [(0, 0), *missing]),
        reward=np.pad(merged.reward, missing),
        next_level=np.pad(merged.next_level, missing),
        pool=np.pad(merged.pool, missing),
    )
    with x64():
        lanes = jax.tree.map(lambda x: np.broadcast_to(x, (1, seeds, *np.shape(x))), block)
        words = key_words(jax.random.split(jax.random.key(seed), (1, seeds)))
        return np.asarray(push_arms(merged, lanes, episodes, words))[0]


def totals(mdp, block, n, seeds=SEEDS, seed=0, num_outcomes=6):
    return push(mdp, block, np.full((seeds, block.episodes.size), n), seed, num_outcomes)


def moments(mdp, policy):
    """Mean and variance of an episode's total reward, by backward induction on the first two moments, in float64."""
    prob, reward = np.asarray(mdp.prob, np.float64), np.asarray(mdp.reward, np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    first = second = np.zeros(mdp.width + 1)
    for i in reversed(range(mdp.horizon)):
        tail, square = first[mdp.next_level[i]], second[mdp.next_level[i]]
        weight = policy[i][..., None] * prob[i]
        second = np.sum(weight * (reward[i] ** 2 + 2 * reward[i] * tail + square), axis=(1, 2))
        first = np.sum(weight * (reward[i] + tail), axis=(1, 2))
    mean = first[int(mdp.start)]
    return mean, second[int(mdp.start)] - mean**2


def test_moments_of_the_test_are_those_of_planning():
    mdp, block = general(), arms(3, 3, 2)
    with x64():
        exact = mdp._replace(prob=mdp.prob.astype(jnp.float64), reward=mdp.reward.astype(jnp.float64))
        for b in range(3):
            value = jb.evaluate(exact, jnp.asarray(compose(block, b)))
            assert abs(float(value) - moments(mdp, compose(block, b))[0]) < 1e-6


@pytest.mark.parametrize("n", [1, *NUMBERS])
def test_sums_are_exactly_n_when_every_episode_pays_one(n):
    """1 is paid exactly once whatever happens: at the first stage on some outcomes, else at the last."""
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
        # 4 n x 3 arms x 2 z-tests at 5 standard errors (kurtosis 3 to within 1/n): false-alarm rate 1.4e-5 in all.
        assert abs(z.mean()) < 5 / SEEDS**0.5
        assert abs(np.mean(z**2) - 1) < 5 * (2 / SEEDS) ** 0.5
    # The arms are independent of each other.
    assert np.abs(np.corrcoef(sums.T)[np.triu_indices(3, 1)]).max() < 5 / SEEDS**0.5


def test_one_episode_gives_one_of_the_possible_totals():
    mdp = jb.make_instance("hard-general", theta=[1, 0, 1], num_actions=2, gap=0.25)
    policy = np.broadcast_to(np.eye(2)[1], (3, 3, 2))
    block = blocks.Blocks(policy, np.int32(1), np.stack([policy[1]] * 3), np.ones(3))
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
        next_level = np.broadcast_to(np.where(outcome % 2 == 0, np.maximum(level - 1, 0), level), shape)
        reward = np.zeros(shape)
        reward[:, 1:] = (outcome + 150 * np.arange(2)[:, None] + 1)[None] / 1200
        reward[1] += level / (2 * levels)
        reward[:, 0] = 0
        return jb.MDP(np.full(shape, 1 / 150), reward, next_level, None, np.int32(levels - 1))

    mdp = jb.validate(wide(outcomes.MAX_STATES))
    policy = np.full((2, outcomes.MAX_STATES, 2), 0.5)
    block = blocks.Blocks(policy, np.int32(0), policy[:1], np.ones(1))
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


def test_merged_outcomes():
    """Equal (reward, next level) pairs become one, whatever the action; impossible ones vanish; the likeliest is first."""
    prob = np.zeros((1, 2, 2, 3))
    prob[0, 0, :, 0] = 1
    prob[0, 1] = [[0.25, 0.25, 0.5], [0.0, 0.9, 0.1]]
    reward, next_level = np.zeros((1, 2, 2, 3)), np.zeros((1, 2, 2, 3), np.int32)
    reward[0, 1] = [[0.5, 1.0, 0.5], [0.75, 0.5, 0.5]]
    next_level[0, 1] = [[1, 0, 1], [1, 1, 0]]
    merged = blocks.merge_outcomes(stack(jb.MDP(prob, reward, next_level, None, np.int32(1))))
    assert merged.prob.shape == (1, 1, 2, 2, 3)
    assert merged.reward[0, 0, 1].tolist() == [0.5, 1.0, 0.5]
    assert merged.next_level[0, 0, 1].tolist() == [1, 0, 0]
    np.testing.assert_allclose(merged.prob[0, 0, 1], [[0.75, 0.25, 0], [0.9, 0, 0.1]])
    assert merged.start.tolist() == [1]
    assert merged.kind.shape[-1] == 0
    assert not merged.pool.any()


def test_pooled_outcomes():
    """Moves from two levels that can pay the same rewards: where episodes go at the levels, what they are paid in pools."""
    mdp = jb.make_instance("prophet", values=[[0.0, 1.0, 3.0]] * 2, probabilities=[[0.25, 0.25, 0.5]] * 2, capacity=2)
    merged = blocks.merge_outcomes(stack(mdp))
    assert merged.prob.shape == (1, 2, 5, 3, 2)  # nowhere, two pools, two levels
    assert merged.level[0, 0].tolist() == [0, 1, 2, 1, 2]
    assert merged.kind[0, 0, 0] == merged.kind[0, 0, 1]
    rewards = sorted({float(x) for x in np.asarray(mdp.reward).ravel()} - {0.0})
    for level in (1, 2):
        assert merged.reward[0, 0, level].tolist() == rewards
        taken = merged.pool[0, 0, 2 + level].tolist().index(level)
        assert merged.next_level[0, 0, 2 + level, taken] == level - 1
        assert merged.reward[0, 0, 2 + level, taken] == 0
        np.testing.assert_allclose(merged.prob[0, 0, 2 + level].sum(-1), 1)
        np.testing.assert_allclose(merged.prob[0, 0, level].sum(-1), merged.prob[0, 0, 2 + level, :, taken])


@pytest.mark.parametrize("policy", ["same", "different", "certain"])
@pytest.mark.parametrize("n", [3, 10**4, 10**9])
def test_pools_keep_mean_and_variance(policy, n):
    """A prophet inequality, with the same law of rewards at all levels (one pool), different ones, and sure thresholds."""
    mdp = jb.make_instance("prophet-random", key=jax.random.key(8), horizon=4, capacity=2, num_values=3)
    rows = random_rows((4, 3, 3), 6)
    if policy == "same":
        rows[:] = rows[:, 2:]
    elif policy == "certain":
        rows = np.eye(3)[np.random.default_rng(7).integers(0, 3, (4, 3))]
    block = blocks.Blocks(rows, np.int32(2), rows[2][None].repeat(3, 0), np.ones(3))
    sums = totals(mdp, block, n, seed=n % 83, num_outcomes=3)
    mean, variance = moments(mdp, rows)
    z = ((sums - n * mean) / np.sqrt(n * variance)).ravel()
    # Two z-tests at 5 standard errors in each of 9 cases, the second with the measured one: false-alarm rate 1e-5 in all.
    assert abs(z.mean()) < 5 / z.size**0.5
    assert abs(np.mean(z**2) - 1) < 5 * np.std(z**2) / z.size**0.5


@pytest.mark.parametrize("policy", ["same", "thresholds", "mixed", "one level"])
@pytest.mark.parametrize("n", [1, 5, 10**4, 10**9])
def test_standing_pools_keep_mean_and_variance(policy, n):
    """Values of one distribution in all stages but the fourth: rewards wait for stages that pay by the same law.

    Arms: the policy itself, and two whose own stage breaks the law, for some levels or for all. An own stage at
    either end, and few episodes, so that many arms end early with rewards still to be drawn.
    """
    values, chances = np.array([[0.0, 1.0, 3.0]] * 6), np.array([[0.25, 0.25, 0.5]] * 6)
    values[3], chances[3] = [0.0, 2.0, 2.5], [0.5, 0.25, 0.25]
    mdp = jb.make_instance("prophet", values=values, probabilities=chances, capacity=1 if policy == "one level" else 2)
    levels = mdp.width + 1
    rows = np.broadcast_to(random_rows((1, 1, 3), 3), (6, levels, 3)).copy()
    if policy == "thresholds":
        rows = np.eye(3)[np.minimum(np.arange(6)[:, None] // 2, np.arange(levels)[None])]
    elif policy == "mixed":
        rows[4:] = np.eye(3)[0]
    for stage in (0, 2, 5):
        own = np.stack(
            [rows[stage], np.where(np.arange(levels)[:, None] == 1, np.eye(3)[0], rows[stage]), np.eye(3)[[0] * levels]]
        )
        block = blocks.Blocks(rows, np.int32(stage), own, np.ones(3))
        sums = totals(mdp, block, n, seed=n % 83 + stage, num_outcomes=3)
        for b in range(3):
            mean, variance = moments(mdp, compose(block, b))
            z = (sums[:, b] - n * mean) / np.sqrt(n * variance)
            # Two z-tests at 5 standard errors in each of 144 cases: false-alarm rate 2e-4 in all.
            assert abs(z.mean()) < 5 / z.size**0.5
            assert abs(np.mean(z**2) - 1) < 5 * np.std(z**2) / z.size**0.5


def test_pools_stand_where_the_law_does():
    """Shared rows: stages 1 to 3 pay alike, but the arms' own is the second; the arm's row: only its second pool goes on."""
    values, chances = np.array([[0.0, 1.0, 3.0]] * 4), np.array([[0.25, 0.25, 0.5]] * 4)
    chances[3] = [0.5, 0.2, 0.3]
    mdp = jb.make_instance("prophet", values=values, probabilities=chances, capacity=2)
    policy = np.broadcast_to(np.eye(3)[0], (4, 3, 3)).copy()
    own = policy[1].copy()
    own[1] = np.eye(3)[1]
    with x64():
        merged = jax.tree.map(jnp.asarray, blocks.merge_outcomes(stack(mdp)))
        block = blocks.Blocks(policy, np.int32(1), own[None], np.ones(1))
        tables = codes.make_tables(merged, jax.tree.map(lambda x: jnp.asarray(x)[None, None], block))
        bits = np.asarray(codes.standing(tables.code)).reshape(5, -1)
    assert (bits == bits[:, :1]).all()
    assert bits[:, 0].tolist()[:3] == [0, 3, 0]  # before the arms' own: none; then both; then the law changes
    assert bits[4, 0] == 2


def test_splits():
    weights = np.array([[0.2, 0.3, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0], [0.1, 0.65, 0.0, 0.25]])
    with x64():
        chance, following, certain = blocks.splits(jnp.asarray(weights))
    np.testing.assert_allclose(chance, [[0.2, 0.375, 0, 1], [0, 1, 0, 0], [0.1, 0.65 / 0.9, 0, 1]])
    assert (np.asarray(chance)[[0, 1, 2], [3, 1, 3]] == 1).all()  # exactly: nothing is left over
    assert np.asarray(following)[0, :3].tolist() == [1, 3, 3]
    assert np.asarray(following)[1, 0] == 1
    assert certain.tolist() == [[False, True, True, False], [True, False, False, False], [False, True, True, False]]


def test_pools_of_one_law_are_one():
    chance = np.array([[0.5, 1.0], [0.5, 1.0], [0.25, 1.0], [0.5, 1.0]])
    with x64():
        first = outcomes.merge_pools(jnp.asarray(chance), jnp.asarray([0, 0, 0, 1], jnp.int32))
    assert first.tolist() == [1, 1, 3, 4]


@pytest.mark.parametrize("ordered", [False, True])
def test_regrets_of_arms_are_those_of_the_composed_policies(ordered):
    name = "random-ordered" if ordered else "random-general"
    mdp = jb.make_instance(name, key=jax.random.key(4), horizon=3, width=2, num_actions=2)
    with x64():
        exact = mdp._replace(prob=mdp.prob.astype(jnp.float64), reward=mdp.reward.astype(jnp.float64))
        world = jb.gaps(exact), jb.transition_kernel(exact), exact.start
        regrets, regret = jax.jit(blocks.arm_regrets), jax.jit(jb.regret)
        for stage in range(3):
            block = jax.tree.map(jnp.asarray, arms(3, 3, 2, seed=stage)._replace(stage=np.int32(stage)))
            ours = np.asarray(regrets(*world, block))
            theirs = [float(regret(exact, jnp.asarray(compose(block, b)))) for b in range(3)]
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
