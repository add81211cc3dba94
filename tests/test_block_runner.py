"""Whole runs on the block engine: curves cut by grid points and by T, chunks, sizes it does not take."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import blocks, make_runner
from jaxbandit.learners import BlockForm, from_blocks
from jaxbandit.testing import run_lanes


def stack(mdp):
    return jax.tree.map(lambda x: np.asarray(x)[None], mdp)


class Turns(NamedTuple):
    lengths: Any
    count: Any
    sums: Any


@functools.cache
def turns_form():
    """Plays action 0 everywhere, then action 1 everywhere, in blocks of given lengths, for ever; remembers the sums."""

    def init(problem, params):
        real = jnp.result_type(float)
        return Turns(jnp.asarray(params["lengths"], real), jnp.int32(0), jnp.zeros(2, real))

    def next_block(state):
        real = state.lengths.dtype
        rows = jnp.broadcast_to(jnp.eye(2, dtype=real)[:, None, :], (2, 3, 2))
        policy = jnp.full((2, 3, 2), 0.5, real)
        return blocks.Blocks(policy, jnp.int32(1), rows, state.lengths)

    def absorb(state, episodes, totals):
        return Turns(state.lengths, state.count + 1, state.sums + totals)

    return BlockForm(init, next_block, absorb)


def turns(first, second):
    params = {"lengths": np.array([first, second], np.float64)}
    return from_blocks(turns_form(), name="turns", params=params)


def two_arms():
    """Level 2 throughout; the second stage pays 3/4 for action 0 and 1/4 for action 1: regret 0 and 1/2 an episode."""
    prob = np.ones((2, 3, 2, 1), np.float32)
    reward = np.zeros_like(prob)
    reward[1, 1:, :, 0] = [0.75, 0.25]
    next_level = np.broadcast_to(np.arange(3, dtype=np.int32)[:, None, None], prob.shape)
    return jb.MDP(prob, reward, next_level, None, np.int32(2))


def one_lane(learner, num_episodes, points, engine="blocks", chunk_size=None):
    keys = jax.random.split(jax.random.key(0), (1, 1))
    results, state = run_lanes(engine, [learner], [two_arms()], keys, num_episodes, points, chunk_size)
    return results["regret"][0, 0], state


@pytest.mark.parametrize("engine", ["blocks", "episodes"])
def test_curve_is_exact_inside_blocks_and_at_their_ends(engine):
    # 3 episodes free, 5 at 1/2, and so on; T = 21 cuts the third block in its second arm.
    points = [1, 3, 4, 8, 9, 15, 21]
    curve, state = one_lane(turns(3, 5), 21, points, engine)
    assert curve.tolist() == [0, 0, 0.5, 2.5, 2.5, 4.5, 6.0]
    counted = state if engine == "blocks" else state.inner
    assert counted.count.ravel().tolist() == [2]  # the block that T cut is not absorbed
    assert counted.sums.ravel().tolist() == [4.5, 2.5]


def test_a_block_that_ends_with_the_run_is_absorbed():
    curve, state = one_lane(turns(3, 5), 16, [2, 5, 6, 7, 8, 12, 16])
    assert curve.tolist() == [0, 1, 1.5, 2, 2.5, 3, 5]
    assert state.count.ravel().tolist() == [2]


def test_curve_is_exact_at_a_trillion():
    first, second = 10**11 + 1, 3 * 10**11
    T = 10**12 + 7
    points = [10**11, first + 1, first + 10**9, first + second, 2 * first + second, 2 * first + second + 5, T]
    curve, state = one_lane(turns(first, second), T, points)
    at_end = second / 2
    # After two blocks of 4e11 + 1 the third has first free episodes and (T - 3 first - 2 second) at 1/2.
    last = 2 * at_end + (T - 3 * first - 2 * second) / 2
    assert curve.tolist() == [0, 0.5, 10**9 / 2, at_end, at_end, at_end + 2.5, last]
    assert state.sums.ravel().tolist() == [2 * first * 0.75, 2 * second * 0.25]


def test_any_chunk_size_gives_the_same_bits():
    mdp = two_arms()
    # The same rewards by lot: 3/4 with probability 0.9 or 0.2.
    prob = np.broadcast_to(np.float32([[0.9, 0.1], [0.2, 0.8]]), (2, 3, 2, 2))
    reward = np.broadcast_to(np.swapaxes(mdp.reward, 2, 3), prob.shape)
    coin = jb.MDP(prob, reward, np.repeat(mdp.next_level, 2, -1), None, mdp.start)
    keys = jax.random.split(jax.random.key(1), (1, 1))
    points = np.asarray([10, 500, 900, 1000, 1001, 5000, 10**5])
    runs = {}
    for chunk in (1, 3, None):
        results, state = run_lanes("blocks", [turns(70, 30)], [coin], keys, 10**5, points, chunk)
        runs[chunk] = (results["regret"], state.sums)
    for other in (1, 3):
        np.testing.assert_array_equal(runs[other][0], runs[None][0])
        np.testing.assert_array_equal(runs[other][1], runs[None][1])
    assert runs[None][1].min() > 0


def test_errors_of_the_runner():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    stacked = stack(two_arms())
    ready = (stacked, keys, 10, np.asarray([10]))
    with pytest.raises(ValueError, match="'uniform' has no block form and runs on the 'episodes' engine"):
        make_runner("blocks", jb.make_learner("uniform"), *ready)
    with pytest.raises(ValueError, match="engine: 'quick'; accepted: episodes, blocks"):
        make_runner("quick", jb.make_learner("uniform"), *ready)
    with pytest.raises(ValueError, match=r"num_episodes: 18014398509481984; accepted on the block engine: 1..2\^53"):
        make_runner("blocks", turns(1, 1), stacked, keys, 2**54, np.asarray([2**54]))


def test_a_block_without_episodes_is_an_error():
    mdp = jb.make_instance("random-general", key=jax.random.key(0), horizon=2, width=2, num_actions=2)
    keys = jax.random.split(jax.random.key(1), (1, 2))
    with pytest.raises(ValueError, match="learner 'turns': next_block gives no arm any episodes"):
        run_lanes("blocks", [turns(0, 0)], [mdp], keys, 100)


def test_a_level_too_many_is_an_error():
    shape = (2, 64, 2, 1)
    next_level = np.broadcast_to(np.arange(64, dtype=np.int32)[:, None, None], shape)
    wide = jb.MDP(np.ones(shape), np.zeros(shape), next_level, None, np.int32(63))
    keys = jax.random.split(jax.random.key(0), (1, 1))
    with pytest.raises(ValueError, match="MDP: 64 levels with 1 different outcomes; accepted on the block engine"):
        make_runner("blocks", turns(1, 1), stack(wide), keys, 10, np.asarray([10]))


def test_x64_stays_off_outside():
    one_lane(turns(3, 5), 21, [1, 3, 4, 8, 9, 15, 21])
    assert jnp.asarray(1.0).dtype == jnp.float32
