"""Bandit learners on one bit an episode, on both engines, and learners of segments: conformance."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import Learner
from jaxbandit.learners.from_blocks import one_bit

SHORT = {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}


class Memory(NamedTuple):
    """All that was seen, added up."""

    seen: Any
    policy: Any


def _init(problem, constants, key):

    return Memory(jnp.float32(0), jnp.zeros((problem.horizon, problem.width + 1), jnp.int32))


def _act(state, key, constants):
    del key
    return state.policy


def _sum(state, policy, feedback, constants):
    del policy
    weight = jnp.arange(1, feedback.totals.size + 1, dtype=jnp.float32)
    return state._replace(
        seen=state.seen + jnp.sum(weight * feedback.totals) + jnp.sum(feedback.levels).astype(float)
    )


def _bits(state, policy, feedback, constants):
    del policy
    return state._replace(seen=state.seen + feedback.total)


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
def test_block_learners_run_on_one_bit(name):
    learner = one_bit(jb.make_learner(name, **SHORT))
    summary = str(jb.testing.check_learner(learner))
    assert "lanes = loop (blocks)" in summary
    assert "lanes = loop (episodes)" in summary


def test_a_trillion_episodes_of_one_bit_run_as_blocks():
    """Both learners find a policy within 10^-4 of the optimum in every one of 8 runs, and interrupted runs go on to the
    same bits. The theorems' constants drop actions late, but T is large."""
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    learners = {name: one_bit(jb.make_learner(name)) for name in ("expref", "ordered-expref")}
    long = {"num_episodes": 10**12, "num_seeds": 8, "progress": False, "record": jb.record.log(8)}
    dataset = jb.sweep(learners, {"I1": mdp}, **long)
    regret = dataset["regret"].values
    assert (regret[..., -1] < 1e-4 * 10**12).all()
    again = jb.sweep(learners, {"I1": mdp}, chunk_size=3, **long)
    np.testing.assert_array_equal(again["regret"].values, regret)


def test_other_bandit_learners_run_on_one_bit():
    jb.testing.check_learner(one_bit(jb.make_learner("policy-gradient")))


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_learners_of_segments_conform(segments):
    jb.testing.check_learner(Learner(_init, _act, _sum, f"segments:{segments}", name="sum"))


def test_more_segments_than_stages_are_refused():
    with pytest.raises(AssertionError, match=r"4 segments; accepted: 1\.\.3 at this horizon"):
        jb.testing.check_learner(Learner(_init, _act, _sum, "segments:4", name="sum"))


def test_the_engine_flips_a_coin_of_the_right_mean():
    """64 seeds x 512 episodes of a fixed policy: the mean bit is its exact value. False-alarm rate
    about 6e-7 (5 standard errors)."""
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    value = float(jb.evaluate(mdp, jnp.zeros((3, 2), jnp.int32)))
    learner = Learner(_init, _act, _bits, "one-bit", name="count")
    keys = jax.random.split(jax.random.key(3), (1, 64))
    _, state = jb.testing.run_lanes("episodes", [learner], [mdp], keys, 512)
    sums = np.asarray(state.seen)
    np.testing.assert_array_equal(sums, np.round(sums))
    error = np.sqrt(value * (1 - value) / (64 * 512))
    assert abs(sums.mean() / 512 - value) < 5 * error
