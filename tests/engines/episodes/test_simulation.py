"""Simulated episodes have the law of the MDP's tables, whichever way the path is followed."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import copies, general, sizes_of, some_policy, stack
from scipy import stats

import jaxbandit as jb
from jaxbandit.engines.episodes import environment
from jaxbandit.engines.episodes.environment import MOST_LEVELS, Sizes, make_episode_world

LANES = 20_000


def play(sizes, world, policy, words):
    """An episode of actions int [H, k+1, W], or of probabilities float [H, k+1, A, W], which take another H words."""
    if not jnp.issubdtype(policy.dtype, jnp.integer):
        policy = environment.draw_actions(policy, words[sizes.horizon :])
    words = words[: sizes.horizon]
    return environment.simulate(sizes, world, environment.by_levels(policy), words)


def simulate(sizes, *args):
    return jax.tree.map(np.asarray, jax.jit(partial(play, sizes))(*args))


def on_all_lanes(policy):
    return jnp.asarray(np.repeat(policy[..., None], LANES, axis=-1))


@pytest.mark.parametrize("randomised", [False, True])
@pytest.mark.parametrize("width", [2, 17])
def test_frequencies_are_those_of_the_tables(width, randomised):
    """Levels, actions and outcomes of each stage by a chi-square test at 1e-6; 12 tests, false-alarm rate 1.2e-5.

    17 levels take the chain that is followed stage by stage, 2 the one that is cut.
    """
    assert (width < MOST_LEVELS) == (width == 2)
    mdp = general(width)
    policy = some_policy(mdp, randomised=randomised)
    words = jax.random.bits(jax.random.key(7), (6 if randomised else 3, LANES), jnp.uint32)
    episode = simulate(sizes_of(mdp), copies(mdp, LANES), on_all_lanes(policy), words)
    assert (episode.levels[0] == int(mdp.start)).all()
    np.testing.assert_array_equal(episode.levels[1:], episode.next_levels[:-1])
    visits = np.asarray(jb.visitation(mdp, jnp.asarray(policy)), np.float64)
    taken = np.asarray(jb.planning.action_probabilities(policy, 2), np.float64)
    prob, reward, target = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    for i in range(3):
        here = (i, episode.levels[i], episode.actions[i])
        # Rewards are all different, so they name the outcome.
        same = reward[here] == episode.rewards[i][:, None]
        outcome = np.argmax(same, -1)
        assert same.any(-1).all()
        np.testing.assert_array_equal(target[(*here, outcome)], episode.next_levels[i])
        seen = np.zeros(prob.shape[1:])
        np.add.at(seen, (*here[1:], outcome), 1)
        chances = visits[i][:, None, None] * taken[i][..., None] * prob[i].astype(np.float64)
        expected = LANES * chances
        assert (seen[expected == 0] == 0).all()
        # Rare cells are one, so that the statistic has its distribution.
        rare = expected < 10
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        cells = expected > 0
        statistic = np.sum((seen - expected)[cells] ** 2 / expected[cells])
        assert stats.chi2.sf(statistic, cells.sum() - 1) > 1e-6


def test_actions_of_probability_zero_are_never_drawn():
    """The largest and smallest words, against many rows with zeros in front, in the middle and at
    the end."""
    random = np.random.default_rng(2)
    rows = random.exponential(size=(4096, 5)) * (random.random((4096, 5)) < 0.5)
    rows[rows.sum(-1) == 0, 3] = 1
    rows = (rows / rows.sum(-1, keepdims=True)).astype(np.float32)
    shape = (1, 2, 5, 1)
    real = np.ones(shape, np.float32)
    mdp = jb.MDP(real, 0 * real, np.zeros(shape, np.int32), None, np.int32(1))
    policy = jnp.asarray(np.broadcast_to(rows.T[None, None], (1, 2, 5, 4096)))
    for word in (0, 2**31, 2**32 - 1):
        words = jnp.full((2, 4096), word, jnp.uint32)
        episode = simulate(Sizes(1, 1, 5, 1), copies(mdp, 4096), policy, words)
        assert (rows[np.arange(4096), episode.actions[0]] > 0).all()


def test_lanes_play_in_their_own_mdps():
    """Lane by lane the same as each MDP alone."""
    one, other = (
        jb.make_instance("random-general", key=jax.random.key(s), horizon=3, width=2, num_actions=2)
        for s in (1, 2)
    )
    which = [one, other, other, one, other]
    policy = some_policy(one, randomised=False)
    policy = jnp.asarray(np.repeat(policy[..., None], 5, axis=-1))
    words = jax.random.bits(jax.random.key(1), (3, 5), jnp.uint32)
    together = simulate(sizes_of(one), make_episode_world(stack(*which)), policy, words)
    for lane, mdp in enumerate(which):
        args = (policy[..., lane : lane + 1], words[:, lane : lane + 1])
        alone = simulate(sizes_of(one), make_episode_world(stack(mdp)), *args)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a[:, lane], b[:, 0])
