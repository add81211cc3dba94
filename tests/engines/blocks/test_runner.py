"""Whole runs on the block engine: curves cut by grid points and by T, chunks, sizes it does not
take."""

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.blocks.machine import block_sizes
from jaxbandit.learner import BlockForm, Blocks
from jaxbandit.learners import from_blocks
from jaxbandit.testing import run_lanes
from jaxbandit.xla import platforms
from jaxbandit.xla.compat import x64
from jaxbandit.xla.programs import PROGRAMS


def stack(mdp):
    return jax.tree.map(lambda x: np.asarray(x)[None], mdp)


class Turns(NamedTuple):
    lengths: Any
    count: Any
    sums: Any


@functools.cache
def turns_form():
    """Plays action 0 everywhere, then action 1 everywhere, in blocks of given lengths, for ever;
    remembers the sums."""

    def init(problem, constants, key):
        real = jnp.result_type(float)
        return Turns(jnp.asarray(constants["lengths"], real), jnp.int32(0), jnp.zeros(2, real))

    def next_block(state, constants):
        real = state.lengths.dtype
        rows = jnp.broadcast_to(jnp.eye(2, dtype=real)[:, None, :], (2, 3, 2))
        policy = jnp.full((2, 3, 2), 0.5, real)
        return Blocks(policy, jnp.int32(1), rows, state.lengths)

    def absorb(state, episodes, totals, constants):
        return Turns(state.lengths, state.count + 1, state.sums + totals)

    return BlockForm(init, next_block, absorb)


def turns(first, second):
    params = {"lengths": np.array([first, second], np.float64)}
    return from_blocks(turns_form(), name="turns", params=params)


def two_arms():
    """Level 2 throughout; the second stage pays 3/4 for action 0 and 1/4 for action 1: regret 0 and
    1/2 an episode."""
    prob = np.ones((2, 3, 2, 1), np.float32)
    reward = np.zeros_like(prob)
    reward[1, 1:, :, 0] = [0.75, 0.25]
    next_level = np.broadcast_to(np.arange(3, dtype=np.int32)[:, None, None], prob.shape)
    return jb.MDP(prob, reward, next_level, None, np.int32(2))


def one_lane(learner, num_episodes, points, chunk_size=None):
    keys = jax.random.split(jax.random.key(0), (1, 1))
    results, state = run_lanes(
        "blocks", [learner], [two_arms()], keys, num_episodes, points, chunk_size=chunk_size
    )
    return results["regret"][0, 0], state


def test_curve_is_exact_inside_blocks_and_at_their_ends():
    # 3 episodes free, 5 at 1/2, and so on; T = 21 cuts the third block in its second arm.
    points = [1, 3, 4, 8, 9, 15, 21]
    curve, state = one_lane(turns(3, 5), 21, points)
    assert curve.tolist() == [0, 0, 0.5, 2.5, 2.5, 4.5, 6.0]
    assert state.count.ravel().tolist() == [2]  # the block that T cut is not absorbed
    assert state.sums.ravel().tolist() == [4.5, 2.5]


def test_a_block_that_ends_with_the_run_is_absorbed():
    curve, state = one_lane(turns(3, 5), 16, [2, 5, 6, 7, 8, 12, 16])
    assert curve.tolist() == [0, 1, 1.5, 2, 2.5, 3, 5]
    assert state.count.ravel().tolist() == [2]


def test_curve_is_exact_at_a_trillion():
    first, second = 10**11 + 1, 3 * 10**11
    T = 10**12 + 7
    points = [
        10**11,
        first + 1,
        first + 10**9,
        first + second,
        2 * first + second,
        2 * first + second + 5,
        T,
    ]
    curve, state = one_lane(turns(first, second), T, points)
    at_end = second / 2
    # After two blocks of 4e11 + 1 the third has first free episodes and (T - 3 first - 2 second) at
    # 1/2.
    last = 2 * at_end + (T - 3 * first - 2 * second) / 2
    assert curve.tolist() == [0, 0.5, 10**9 / 2, at_end, at_end, at_end + 2.5, last]
    assert state.sums.ravel().tolist() == [2 * first * 0.75, 2 * second * 0.25]


def test_any_chunk_size_gives_the_same_bits():
    keys = jax.random.split(jax.random.key(1), (1, 1))
    points = np.asarray([10, 500, 900, 1000, 1001, 5000, 10**5])
    runs = {}
    for chunk in (1, 3, 100, None):
        results, state = run_lanes(
            "blocks", [turns(70, 30)], [coin(0.9)], keys, 10**5, points, chunk_size=chunk
        )
        runs[chunk] = (results["regret"], state.sums)
    for other in (1, 3, 100):
        np.testing.assert_array_equal(runs[other][0], runs[None][0])
        np.testing.assert_array_equal(runs[other][1], runs[None][1])
    assert runs[None][1].min() > 0


def test_errors_of_the_runner():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    stacked = stack(two_arms())
    ready = (stacked, keys, 10, np.asarray([10]))
    with pytest.raises(
        ValueError, match="'uniform' has no block form and runs on the 'episodes' engine"
    ):
        make_runner("blocks", jb.make_learner("uniform"), *ready)
    with pytest.raises(ValueError, match="engine: 'quick'; accepted: episodes, blocks"):
        make_runner("quick", jb.make_learner("uniform"), *ready)
    with pytest.raises(
        ValueError, match=r"num_episodes: 18014398509481984; accepted on the block engine: 1..2\^53"
    ):
        make_runner("blocks", turns(1, 1), stacked, keys, 2**54, np.asarray([2**54]))


def test_a_level_too_many_is_an_error():
    shape = (2, 64, 2, 1)
    next_level = np.broadcast_to(np.arange(64, dtype=np.int32)[:, None, None], shape)
    wide = jb.MDP(np.ones(shape), np.zeros(shape), next_level, None, np.int32(63))
    keys = jax.random.split(jax.random.key(0), (1, 1))
    with pytest.raises(
        ValueError, match="MDP: 64 levels with 1 different outcomes; accepted on the block engine"
    ):
        make_runner("blocks", turns(1, 1), stack(wide), keys, 10, np.asarray([10]))


def coin(chance):
    """Like `two_arms`, with the rewards by lot, and a level that is left sometimes."""
    prob = np.broadcast_to(np.float32([[chance, 1 - chance], [0.2, 0.8]]), (2, 3, 2, 2))
    reward = (
        np.broadcast_to(np.float32([0.25, 0.125]), prob.shape) * (np.arange(3) > 0)[:, None, None]
    )
    level = np.arange(3, dtype=np.int32)[:, None, None]
    following = np.broadcast_to(np.maximum(level - np.int32([1, 0]), 0), prob.shape)
    return jb.MDP(prob, np.float32(reward), following, None, np.int32(2))


def test_episodes_and_recorded_points_are_data():
    """Another T and another grid compile nothing, and what they share is the same."""
    keys = jax.random.split(jax.random.key(1), (1, 1))
    first, longer = [400, 1000], [100, 400, 1000, 20_000]
    runs, counts = [], []
    for points in (first, longer):
        run = run_lanes("blocks", [turns(70, 30)], [coin(0.9)], keys, points[-1], points)
        runs.append(run[0]["regret"][0, 0])
        counts.append(PROGRAMS.count)
    assert counts[0] == counts[1]
    assert (runs[1][[1, 2]] == runs[0]).all()


def test_instances_of_other_sizes_run_in_tiles_of_their_own():
    """Lanes keep their places though tiles hold one size of tables each; each has the bits that it has alone."""
    other = coin(0.9)
    other = other._replace(prob=np.broadcast_to(np.float32([1, 0]), other.prob.shape))
    mdps = [coin(0.9), other, coin(0.5), other]
    assert len({block_sizes(mdp) for mdp in mdps}) == 2
    keys = jax.random.split(jax.random.key(3), (4, 2))
    found, _ = run_lanes("blocks", [turns(70, 30)] * 4, mdps, keys, 1000, [400, 1000])
    for g, mdp in enumerate(mdps):
        alone, _ = run_lanes("blocks", [turns(70, 30)], [mdp], keys[g : g + 1], 1000, [400, 1000])
        assert (alone["regret"][0] == found["regret"][g]).all()
        assert (alone["final_gap"][0] == found["final_gap"][g]).all()


@pytest.fixture
def small_gpu(monkeypatch):
    """The choices of a GPU in tiles that a test can afford."""
    monkeypatch.setitem(
        platforms.KNOWN, "gpu", replace(platforms.GPU, block_lanes=8, workers=64, steps=16)
    )


def test_the_choices_of_a_gpu_give_the_same_numbers(small_gpu):
    """Means above and below 10, so that both hats are used. Counts are equal, regrets to 1e-6."""
    mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    learner = jb.make_learner("expref", preset="practical")
    keys = jax.random.split(jax.random.key(5), (1, 10))
    runs = {
        name: run_lanes("blocks", [learner], [mdp], keys, 10**5, [10**4, 10**5], platform=name)
        for name in ("cpu", "gpu")
    }
    np.testing.assert_allclose(runs["gpu"][0]["regret"], runs["cpu"][0]["regret"], rtol=1e-6)
    one, two = (jax.tree.leaves(runs[name][1]) for name in ("cpu", "gpu"))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(
            a, b
        ) if a.dtype != np.float64 else np.testing.assert_allclose(a, b)
    assert np.unique(runs["cpu"][0]["regret"][..., -1]).size > 1


def test_a_gpu_program_has_no_branch(small_gpu):
    """Lowered for CUDA, which needs no card: loops are there, over blocks, rounds and steps, conditions are not."""
    mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    learner = jb.make_learner("expref")
    learner = learner._replace(params={n: np.asarray(v)[None] for n, v in learner.params.items()})
    keys = jax.random.split(jax.random.key(5), (1, 1))
    texts = {}
    for name in ("cpu", "gpu"):
        runner = make_runner(
            "blocks", learner, stack(mdp), keys, 1000, np.array([1000]), platform=name
        )
        carry = runner.start()["tiles"][0]
        function, args = runner.program(runner.tiles[0], carry, 1)
        with x64(), platforms.tracing_for(runner.platform):
            traced = jax.jit(function).trace(*args)
            texts[name] = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.case" in texts["cpu"]
    assert "stablehlo.case" not in texts["gpu"]
    assert "stablehlo.if" not in texts["gpu"]
    assert 'inlineable = "false"' not in texts["gpu"]
    assert texts["gpu"].count("stablehlo.while") == 3
