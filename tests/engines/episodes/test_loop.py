"""The loop over episodes: keys by episode, any cut into calls, and in any length."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import general, sizes_of, stack

import jaxbandit as jb
from jaxbandit.engines.episodes import loop
from jaxbandit.engines.episodes.environment import make_episode_world
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.xla.platforms import GPU, tracing_for
from jaxbandit.xla.threefry import key_words


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_episodes_have_keys_of_their_own_in_any_cut(platform):
    """Episode t draws its policy with fold_in(fold_in(key, 1), t), whatever call it is played in."""
    mdp, learner = general(), jb.make_learner("uniform")
    keys = jax.random.split(jax.random.key(2), 3)
    counts = jnp.asarray(learner.constants(jb.Problem(3, 2, 2, 40), {}))
    constants = jnp.broadcast_to(counts, (3, *counts.shape))
    lanes = loop.Lanes(make_episode_world(stack(mdp, mdp, mdp)), key_words(keys), constants)
    chunk = functools.partial(loop.run_chunk, learner.rules, sizes_of(mdp))

    def run(first, count):
        state, regrets, policy, following = program(lanes, (), jnp.uint32(first), jnp.int32(count))
        assert (state, regrets.dtype, policy.shape) == ((), jnp.float32, (3, 3, 3))
        return np.asarray(regrets)[:count], np.asarray(following)

    if platform == "gpu":
        with tracing_for(GPU):
            arguments = (lanes, (), jnp.uint32(0), jnp.int32(1))
            program = jax.jit(chunk).lower(*arguments).compile()
    else:
        program = jax.jit(chunk)
    whole, after = run(0, 77)
    cuts = [0, 20, 33, 76, 77]
    parts = [run(a, b - a)[0] for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    # The policy that would be played next is the one that is played next.
    np.testing.assert_array_equal(run(0, 20)[1], whole[20])

    @jax.jit
    def regret(key, t):
        episode_key = jax.random.fold_in(jax.random.fold_in(key, 1), t)
        return jb.planning.regret(mdp, learner.act((), episode_key, counts))

    times = jnp.arange(78, dtype=jnp.uint32)
    expected = jax.vmap(jax.vmap(regret, (0, None)), (None, 0))(keys, times)
    np.testing.assert_allclose(np.concatenate([whole, after[None]]), expected, atol=1e-6)


def test_words_of_an_episode_do_not_depend_on_the_stretch():
    key = key_words(jax.random.split(jax.random.key(0), 2))
    times = jnp.arange(5, dtype=jnp.uint32)
    whole = np.asarray(loop.episode_bits(key, times, 6))
    assert whole.shape == (5, 6, 2)
    assert np.unique(whole).size == whole.size
    np.testing.assert_array_equal(loop.episode_bits(key, times[3:], 6), whole[3:])
    np.testing.assert_array_equal(loop.episode_bits(key, times, 3), whole[:, :3])


def test_words_of_an_episode_do_not_depend_on_the_horizon():
    """Outcomes, actions and the coin have counters of their own, so that longer episodes only have more of them."""
    key = key_words(jax.random.split(jax.random.key(0), 2))
    times = jnp.arange(5, dtype=jnp.uint32)
    short, long = (np.asarray(loop.episode_bits(key, times, H, True, True)) for H in (3, 7))
    assert np.unique(long).size == long.size
    outcomes, actions, coin = np.split(long, [7, 14], axis=1)
    np.testing.assert_array_equal(np.split(short, [3, 6], axis=1)[0], outcomes[:, :3])
    np.testing.assert_array_equal(np.split(short, [3, 6], axis=1)[1], actions[:, :3])
    np.testing.assert_array_equal(np.split(short, [3, 6], axis=1)[2], coin)
    np.testing.assert_array_equal(loop.episode_bits(key, times, 7), outcomes)


def test_keys_of_learners_are_those_of_jax():
    keys = jax.random.split(jax.random.key(3), 4)
    found = loop.episode_keys(loop.learner_keys(key_words(keys)), jnp.uint32(9))
    for lane in range(4):
        expected = jax.random.fold_in(jax.random.fold_in(keys[lane], 1), 9)
        assert (jax.random.key_data(found[lane]) == jax.random.key_data(expected)).all()


def test_episodes_of_unequal_arrays_are_refused():
    path = jnp.zeros((3, 4), jnp.int32)
    with pytest.raises(AssertionError, match="shape"):
        observe("trajectory", Trajectory(path, path, jnp.zeros((3, 1)), path))
