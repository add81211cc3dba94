"""The episode engine: outcomes by their tables, exact regrets, keys by episode, lanes that do not meet."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recording import mdps
from scipy import stats

import jaxbandit as jb
from jaxbandit.engines import episodes, make_runner
from jaxbandit.engines.threefry import key_words
from jaxbandit.engines.world import first_alike, make_world
from jaxbandit.testing import run_lanes

simulate = jax.jit(episodes.simulate, static_argnames="sizes")
LANES = 20_000


def stack(*mdps):
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(leaf) for leaf in x]), *mdps)


def sizes_of(mdp):
    return episodes.Sizes(mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes)


@functools.cache
def general():
    return jb.make_instance("random-general", key=jax.random.key(3), horizon=3, width=2, num_actions=2)


def random_policy(seed=0):
    weights = np.random.default_rng(seed).exponential(size=(3, 3, 2))
    weights[0, 1] = [1, 0]
    weights[1, 2] = [0, 1]
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("randomised", [False, True])
def test_frequencies_are_those_of_the_tables(randomised):
    mdp = general()
    chances = random_policy()
    policy = chances if randomised else chances.argmax(-1).astype(np.int32)
    lanes = jnp.asarray(np.broadcast_to(policy[..., None, None], (*policy.shape, 1, LANES)))
    words = jax.random.bits(jax.random.key(7), (6, 1, LANES), jnp.uint32)
    episode = simulate(sizes_of(mdp), make_world(stack(mdp)), lanes, words if randomised else words[:3])
    episode = jax.tree.map(lambda x: np.asarray(x)[:, 0], episode)
    assert (episode.levels[0] == int(mdp.start)).all()
    np.testing.assert_array_equal(episode.levels[1:], episode.next_levels[:-1])
    visits = np.asarray(jb.visitation(mdp, jnp.asarray(policy)), np.float64)
    taken = np.asarray(jb.planning.action_probabilities(policy, 2), np.float64)
    for i in range(3):
        # Rewards are all different, so they name the outcome.
        outcome = np.argmax(
            np.asarray(mdp.reward)[i, episode.levels[i], episode.actions[i]] == episode.rewards[i][:, None], -1
        )
        np.testing.assert_array_equal(
            np.asarray(mdp.next_level)[i, episode.levels[i], episode.actions[i], outcome], episode.next_levels[i]
        )
        seen = np.zeros(mdp.prob.shape[1:])
        np.add.at(seen, (episode.levels[i], episode.actions[i], outcome), 1)
        expected = LANES * visits[i][:, None, None] * taken[i][..., None] * np.asarray(mdp.prob[i], np.float64)
        assert (seen[expected == 0] == 0).all()
        cells = expected > 0
        # 6 chi-square tests at 1e-6: false-alarm rate 6e-6 (and the key is fixed).
        statistic = np.sum((seen - expected)[cells] ** 2 / expected[cells])
        assert stats.chi2.sf(statistic, cells.sum() - 1) > 1e-6


def test_stratified_words_give_every_outcome_its_share_and_impossible_ones_none():
    """64 distributions over 5 outcomes, some of probability 0 and some sure; 4,096 words spread evenly, and extreme ones."""
    random = np.random.default_rng(1)
    prob = random.exponential(size=(64, 5)) * (random.random((64, 5)) < 0.6)
    prob[prob.sum(-1) == 0, 2] = 1
    prob[:5] = np.eye(5)
    prob[5:7] = [[0.5, 0.5, 0, 0, 0], [1e-9, 1, 0, 0, 0]]
    prob /= prob.sum(-1, keepdims=True)
    shape = (64, 1, 2, 1, 5)
    tables = np.zeros(shape)
    tables[:, 0, 0, 0, 0] = 1
    tables[:, 0, 1, 0] = prob
    reward = np.broadcast_to(np.arange(5, dtype=np.float32) / 8, shape)
    mdps = jb.MDP(tables.astype(np.float32), reward, np.zeros(shape, np.int32), None, np.ones(64, np.int32))
    even = np.arange(4096, dtype=np.uint64) * 2**20 + random.integers(0, 2**20, 4096).astype(np.uint64)
    borders = (np.arange(1, 6) * 2.0**32 / 5).astype(np.int64)[:, None] + np.arange(-512, 512, 16)
    words = np.concatenate([even, np.clip(borders.ravel(), 0, 2**32 - 1).astype(np.uint64)]).astype(np.uint32)
    policy = jnp.zeros((1, 2, 64, words.size), jnp.int32)
    lanes = jnp.asarray(np.broadcast_to(words, (1, 64, words.size)))
    episode = simulate(episodes.Sizes(1, 1, 1, 5), make_world(mdps), policy, lanes)
    outcome = np.round(np.asarray(episode.rewards[0]) * 8).astype(int)
    for g in range(64):
        counts = np.bincount(outcome[g], minlength=5)
        assert (counts[prob[g] == 0] == 0).all()
        share = np.bincount(outcome[g, :4096], minlength=5) / 4096
        assert np.abs(share - prob[g]).max() < 10 / 4096  # two borders per column can fall within a stratum


def test_actions_of_probability_zero_are_never_drawn():
    """The largest and smallest words, against many rows with zeros in front, in the middle and at the end."""
    random = np.random.default_rng(2)
    rows = random.exponential(size=(4096, 5)) * (random.random((4096, 5)) < 0.5)
    rows[rows.sum(-1) == 0, 3] = 1
    rows = (rows / rows.sum(-1, keepdims=True)).astype(np.float32)
    shape = (1, 1, 2, 5, 1)
    mdps = jb.MDP(
        np.ones(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.int32), None, np.ones(1, np.int32)
    )
    policy = jnp.asarray(np.broadcast_to(rows.T[None, None, :, None], (1, 2, 5, 1, 4096)))
    for word in (0, 2**31, 2**32 - 1):
        words = jnp.full((2, 1, 4096), word, jnp.uint32)
        episode = simulate(episodes.Sizes(1, 1, 5, 1), make_world(mdps), policy, words)
        assert (rows[np.arange(4096), np.asarray(episode.actions)[0, 0]] > 0).all()


def test_regrets_are_those_of_planning():
    random = np.random.default_rng(0)
    ordered = jb.make_instance("random-ordered", key=jax.random.key(5), horizon=3, width=2, num_actions=2)
    both = [general()._replace(rank=None), ordered._replace(rank=None)]
    world = make_world(stack(*both))
    choices = random.integers(0, 2, (16, 3, 3, 2, 4)).astype(np.int32)
    ours = jax.jit(episodes.deterministic_regret)(world, jnp.asarray(choices))
    mixed = random.exponential(size=(3, 3, 2, 2, 4)).astype(np.float32)
    mixed /= mixed.sum(2, keepdims=True)
    randomised = jax.jit(episodes.randomised_regret)(world, jnp.asarray(mixed))
    regret = jax.jit(jax.vmap(jb.regret, (None, 0)))
    for g, mdp in enumerate(both):
        flat = np.moveaxis(choices[:, :, :, g], -1, 1).reshape(-1, 3, 3)
        np.testing.assert_allclose(np.asarray(ours)[:, g].ravel(), regret(mdp, jnp.asarray(flat)), atol=1e-6)
        rows = jnp.asarray(np.moveaxis(mixed[:, :, :, g], -1, 0))
        np.testing.assert_allclose(np.asarray(randomised)[g], regret(mdp, rows), atol=1e-6)
        best = np.broadcast_to(np.asarray(jb.optimal(mdp)[1])[..., None, None], (16, 3, 3, 2, 4))
        assert (np.asarray(episodes.deterministic_regret(world, jnp.asarray(best)))[:, g] == 0).all()


def test_keys_chunks_and_curves():
    """Episode t draws its policy with fold_in(fold_in(key, 1), t), in any chunk; curves are the sums in order."""
    mdp, learner = general(), jb.make_learner("uniform")
    keys = jax.random.split(jax.random.key(2), (1, 3))
    problem = jb.Problem(3, 2, 2, 40.0)
    state = jax.tree.map(lambda x: jnp.broadcast_to(x, (1, 3, *x.shape)), learner.init(problem, {}))
    world = make_world(stack(mdp))
    run = functools.partial(episodes.run_chunk, learner.rules, sizes_of(mdp), world, keys)
    middle, first = run(state, jnp.uint32(0), 20)
    _, second = run(middle, jnp.uint32(20), 20)
    regrets = np.concatenate([first, second])
    assert regrets.dtype == np.float32

    @jax.jit
    def regret(key, t):
        policy = learner.act(learner.init(problem, {}), jax.random.fold_in(jax.random.fold_in(key, 1), t))
        return jb.regret(mdp, policy)

    expected = jax.vmap(jax.vmap(regret, (0, None)), (None, 0))(keys[0], jnp.arange(40, dtype=jnp.uint32))
    np.testing.assert_allclose(regrets[:, 0], expected, atol=1e-6)
    # The runner plays all 40 at once.
    sums = np.cumsum(regrets.astype(np.float64), axis=0)
    for points in (np.arange(1, 41), np.asarray([1, 7, 32, 33, 40])):
        curve = run_lanes("episodes", [learner], [mdp], keys, 40, points)[0]["regret"]
        assert curve.dtype == np.float64
        np.testing.assert_array_equal(np.moveaxis(curve, -1, 0), sums[points - 1])


def test_words_of_an_episode_do_not_depend_on_the_stretch():
    key = key_words(jax.random.split(jax.random.key(0), (1, 2)))
    times = jnp.arange(5, dtype=jnp.uint32)
    whole = np.asarray(episodes.episode_words(key, times, 6))
    assert whole.shape == (5, 6, 1, 2)
    assert np.unique(whole).size == whole.size
    np.testing.assert_array_equal(episodes.episode_words(key, times[3:], 6), whole[3:])
    np.testing.assert_array_equal(episodes.episode_words(key, times, 3), whole[:, :3])


@pytest.mark.parametrize("name", ["ucbvi", "expref"])
def test_lanes_last_code_equals_the_vmapped_code(name):
    parameters = {"expref": {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}}.get(name, {})
    learner = jb.make_learner(name, **parameters)
    assert learner.lanes_last
    keys = jax.random.split(jax.random.key(4), (1, 3))
    points = np.arange(1, 65)
    fast, slow = (
        run_lanes("episodes", [learner._replace(lanes_last=last)], [general()], keys, 64, points)[0]
        for last in (True, False)
    )
    assert fast.keys() == slow.keys()
    for key, value in fast.items():
        np.testing.assert_allclose(value, slow[key], rtol=1e-5, atol=1e-6)


def test_average_regret_of_ucbvi_falls_to_zero():
    """16 seeds on each of two MDPs: every window is cheaper than the one before, and in the end all play optimally."""
    T = 2**16
    points = np.asarray([T // 64, T // 8, T // 2, T])
    keys = jax.random.split(jax.random.key(0), (2, 16))
    final = {}
    for scale in (0.1, 0.25, 1.0):
        learner = jb.make_learner("ucbvi", bonus_scale=scale)
        results, _ = run_lanes("episodes", [learner] * 2, mdps(), keys, T, points)
        windows = np.diff(results["regret"], prepend=0, axis=-1).mean(1) / np.diff(points, prepend=0)
        assert (np.diff(windows, axis=-1) < 0).all()
        assert (windows[:, -1] < windows[:, 0] / 8).all()
        final[scale] = (windows[:, -1].max(), results["final_gap"].max())
    assert final[0.1][0] < 1e-4
    assert final[0.1][1] == final[0.25][1] == 0


def test_errors():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    points = np.asarray([10])
    fixed = jb.make_learner("fixed", policy=np.full((3, 3), 5))
    with pytest.raises(ValueError, match=r"actions 5\.\.5; accepted: 0\.\.1"):
        run_lanes("episodes", [fixed], [general()], keys, 10)
    with pytest.raises(ValueError, match="num_episodes: 2147483648; accepted on the episode engine"):
        make_runner("episodes", jb.make_learner("uniform"), stack(general()), keys, 2**31, points)
    with pytest.raises(ValueError, match="keys: 1 seeds; accepted: a multiple of the 2 devices"):
        make_runner("episodes", jb.make_learner("uniform"), stack(general()), keys, 10, points, devices=[None, None])


def test_equal_mdps_share_tables():
    one, other = (
        jb.make_instance("prophet-random", key=jax.random.key(seed), horizon=2, capacity=1, num_values=3) for seed in (1, 2)
    )
    stacked = stack(one, other, one, other)
    assert first_alike(stacked).tolist() == [0, 1, 0, 1]
    world = make_world(stacked)
    size = one.prob.size
    assert world.base.tolist() == [[0], [size], [0], [size]]
    assert world.next_level[world.origin].tolist() == [[1]] * 4
