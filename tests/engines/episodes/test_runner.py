"""The runner of the episode engine: sums in order, lanes in tiles, and wrong learners that get no number."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import general, stack
from recording import mdps

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.errors import LearnerError
from jaxbandit.learner import Learner
from jaxbandit.testing import run_lanes


class Clock(NamedTuple):
    episode: Any
    mine: Any
    """1 in the lanes with an odd parameter: only they go wrong."""


def _init(problem, constants, key):
    return Clock(jnp.int32(0), constants["lane"].astype(jnp.int32))


def _update(state, policy, feedback, constants):
    return state._replace(episode=state.episode + 1)


WRONG = 41
"""The episode, from 1, in which learners go wrong: beyond the first stretch."""


def late(value):
    """Plays well until episode `WRONG`, and then ``value`` at stage 2, level 1."""

    def act(state, key, constants):
        policy = jnp.zeros((3, 3), jnp.int32)
        if isinstance(value, list):
            policy = jnp.full((3, 3, 2), 0.5, jnp.float32)
        due = (state.episode >= WRONG - 1) & (state.mine == 1)
        return jnp.where(due, policy.at[1, 1].set(jnp.asarray(value, policy.dtype)), policy)

    return Learner(_init, act, _update, params={"lane": np.float32(1)}, name="late")


BAD = {
    "action -1; accepted: 0..1": -1,
    "action 2; accepted: 0..1": 2,
    r"probabilities \[0.0, 0.0\]; accepted: 2 probabilities >= 0 that sum to 1": [0.0, 0.0],
    r"probabilities \[1.5, -0.5\]; accepted: 2 probabilities": [1.5, -0.5],
    r"probabilities \[2.5, 2.5\]; accepted: 2 probabilities": [2.5, 2.5],
    r"probabilities \[nan, 1.0\]; accepted: 2 probabilities": [float("nan"), 1.0],
}


@pytest.mark.parametrize("message", BAD)
def test_a_learner_that_goes_wrong_is_told_where(message):
    """One lane of two; whatever the chunks, the episode is found."""
    keys = jax.random.split(jax.random.key(0), (2, 1))
    pair = [late(BAD[message])._replace(params={"lane": np.float32(j)}) for j in (0, 1)]
    where = f"learner 'late', episode {WRONG}, stage 2, level 1: {message}"
    for chunk in (None, 7):
        with pytest.raises(LearnerError, match=where):
            run_lanes("episodes", pair, [general()] * 2, keys, 100, chunk_size=chunk)
    # Before that it has numbers, and the policy that would be played next is looked at, too.
    found, _ = run_lanes("episodes", pair, [general()] * 2, keys, WRONG - 2)
    assert np.isfinite(found["regret"]).all()
    with pytest.raises(LearnerError, match=where):
        run_lanes("episodes", pair, [general()] * 2, keys, WRONG - 1)


def test_a_wrong_first_policy_is_told_before_anything_runs():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    params = {"lane": np.ones(1, np.float32)}
    points = np.asarray([10])
    for act, message in [
        (
            lambda state, key, constants: jnp.full((3, 3), 2),
            "episode 1, stage 1, level 1: action 2",
        ),
        (
            lambda state, key, constants: jnp.zeros((3, 2), jnp.int32),
            r"act gives int32\[3, 2\]; accepted",
        ),
    ]:
        learner = late(0)._replace(act=act, params=params)
        runner = make_runner("episodes", learner, stack(general()), keys, 10, points)
        with pytest.raises(LearnerError, match=message):
            runner.start()


def test_curves_are_sums_in_order_whatever_is_recorded():
    learner = jb.make_learner("uniform")
    keys = jax.random.split(jax.random.key(2), (1, 3))

    def curve(points, chunk=None):
        found, _ = run_lanes("episodes", [learner], [general()], keys, 40, points, chunk_size=chunk)
        return found["regret"]

    whole = curve(np.arange(1, 41))
    assert whole.dtype == np.float64
    steps = np.diff(whole, prepend=0)
    exact = np.cumsum(steps.astype(np.float32).astype(np.float64), axis=-1)
    np.testing.assert_array_equal(whole, exact)
    for points in ([1, 7, 32, 33, 40], [40]):
        for chunk in (None, 1, 9, 33):
            np.testing.assert_array_equal(curve(points, chunk), whole[..., np.asarray(points) - 1])


def test_average_regret_of_ucbvi_falls_to_zero():
    """16 seeds on each of two MDPs: every window is cheaper than the one before, and in the end all
    play optimally."""
    T = 2**16
    points = np.asarray([T // 64, T // 8, T // 2, T])
    keys = jax.random.split(jax.random.key(0), (2, 16))
    final = {}
    for scale in (0.1, 0.25, 1.0):
        learner = jb.make_learner("ucbvi", bonus_scale=scale)
        results, _ = run_lanes("episodes", [learner] * 2, mdps(), keys, T, points)
        windows = np.diff(results["regret"], prepend=0, axis=-1).mean(1) / np.diff(
            points, prepend=0
        )
        assert (np.diff(windows, axis=-1) < 0).all()
        assert (windows[:, -1] < windows[:, 0] / 8).all()
        final[scale] = (windows[:, -1].max(), results["final_gap"].max())
    assert final[0.1][0] < 1e-4
    assert final[0.1][1] == final[0.25][1] == 0


def test_errors():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    fixed = jb.make_learner("fixed", policy=np.full((3, 3), 5))
    with pytest.raises(ValueError, match=r"learner 'fixed': policy: action 5; accepted: 0\.\.1"):
        run_lanes("episodes", [fixed], [general()], keys, 10)
    uniform, points = jb.make_learner("uniform"), np.asarray([10])
    for episodes in (0, 2**31):
        with pytest.raises(ValueError, match=f"num_episodes: {episodes}; accepted on the episode"):
            make_runner("episodes", uniform, stack(general()), keys, episodes, points)
    shape = (1, 2, 1, 257)
    prob = np.full(shape, 1 / 257, np.float32)
    wide = jb.MDP(prob, 0 * prob, np.zeros(shape, np.int32), None, np.int32(1))
    with pytest.raises(ValueError, match="MDP: 257 outcomes per state and action; accepted on the"):
        make_runner("episodes", uniform, stack(wide), keys, 10, points)
