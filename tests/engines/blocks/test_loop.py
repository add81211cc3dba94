"""The loop over blocks: exact regrets and beginnings of arms, and what a block learner returns is checked where it is used:
no wrong learner gets a number."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import arms, compose

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.blocks import loop
from jaxbandit.engines.blocks.loop import TOLERANCE, arm_regrets, sound
from jaxbandit.errors import LearnerError
from jaxbandit.learner import BlockForm, Blocks
from jaxbandit.learners import from_blocks
from jaxbandit.xla.compat import x64

H, K, A = 2, 2, 2


class Counting(NamedTuple):
    blocks: Any
    spoil: Any = np.int32(0)
    """Which of `SPOILED` happens."""


def right():
    real = jnp.result_type(float)
    policy = jnp.full((H, K + 1, A), 0.5, real)
    rows = jnp.full((2, K + 1, A), 0.5, real)
    return Blocks(policy, jnp.int32(1), rows, jnp.asarray([10.0, 0.0], real))


def init_spoiled(problem, constants, key):
    return Counting(jnp.int32(0), jnp.asarray(constants["spoil"], jnp.int32))


def spoiled_third(state, constants):
    """Arms of 10 and 0 episodes that are right until the third block. All ways to spoil that are in one program."""
    ways = jax.tree.map(lambda *each: jnp.stack(each), *[way(right()) for way in SPOILED.values()])
    return jax.tree.map(lambda x, y: jnp.where(state.blocks == 2, x[state.spoil], y), ways, right())


def next_one(state, episodes, totals, constants):
    return state._replace(blocks=state.blocks + 1)


SPOILING = BlockForm(init_spoiled, spoiled_third, next_one)


SPOILED = {
    "negative": lambda b: b._replace(policy=b.policy.at[0, 1].set(jnp.asarray([1.25, -0.25]))),
    "nan": lambda b: b._replace(policy=b.policy.at[1, 2, 0].set(jnp.nan)),
    "sum": lambda b: b._replace(rows=b.rows.at[0, 2, 1].set(0.5 + 2 * TOLERANCE)),
    "infinite": lambda b: b._replace(rows=b.rows.at[0, 1, 1].set(jnp.inf)),
    "stage": lambda b: b._replace(stage=b.stage + 1),
    "half": lambda b: b._replace(episodes=b.episodes + 0.5),
    "less than none": lambda b: b._replace(episodes=b.episodes - 1),
    "for ever": lambda b: b._replace(episodes=b.episodes + jnp.inf),
    "unknown": lambda b: b._replace(episodes=b.episodes + jnp.nan),
    "nothing": lambda b: b._replace(episodes=b.episodes * 0),
    # These may be played: an arm without episodes may have any row, and float32 rounds sums.
    "unplayed": lambda b: b._replace(rows=b.rows.at[1].set(jnp.nan)),
    "rounded": lambda b: b._replace(rows=b.rows.at[0].add(0.2 * TOLERANCE)),
}
MESSAGES = {
    "negative": r"has policy at stage 1, level 1: \[1.25, -0.25\] \(sum 1\); accepted: probabilities",
    "nan": r"has policy at stage 2, level 2: \[nan, 0.5\]",
    "sum": r"has rows of arm 0 \(stage 2\), level 2: .*sum 1.000002.*sum to 1 within 1e-06",
    "infinite": r"has rows of arm 0 \(stage 2\), level 1: \[0.5, inf\]",
    "stage": r"has stage: 2; accepted: 0..1",
    "half": r"has episodes\[0\]: 10.5; accepted: whole finite numbers",
    "less than none": r"has episodes\[1\]: -1.0",
    "for ever": r"has episodes\[0\]: inf",
    "unknown": r"has episodes\[0\]: nan",
    "nothing": r"gives no arm any episodes; accepted: at least one",
}


def mdp():
    return jb.make_instance(
        "random-general", key=jax.random.key(0), horizon=H, width=K, num_actions=A
    )


def run(form, num_episodes=100, **params):
    learner = from_blocks(form, name="stranger", params=params)
    keys = jax.random.split(jax.random.key(1), (1, 3))
    stacked = jax.tree.map(lambda x: np.asarray(x)[None], mdp())
    runner = make_runner("blocks", learner, stacked, keys, num_episodes, np.array([num_episodes]))
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner.result(carry)["regret"][0, :, 0]


@pytest.mark.parametrize("name", MESSAGES)
def test_a_wrong_block_is_an_error_that_says_what_and_when(name):
    begin = "learner 'stranger', after 20 episodes: block 3 of next_block "
    with pytest.raises(LearnerError, match=begin + MESSAGES[name]):
        run(SPOILING, spoil=np.array([list(SPOILED).index(name)], np.int32))


@pytest.mark.parametrize("name", ["unplayed", "rounded"])
def test_what_does_no_harm_is_played(name):
    assert np.isfinite(run(SPOILING, spoil=np.array([list(SPOILED).index(name)], np.int32))).all()


def test_soundness_is_what_the_message_says():
    """All spoiled blocks are found on the device, one by one."""
    with x64():
        assert bool(sound(right()))
        found = {name: bool(sound(spoil(right()))) for name, spoil in SPOILED.items()}
    assert {name for name, fine in found.items() if not fine} == set(MESSAGES)


def shaped(**wrong):
    def init(problem, constants, key):
        return Counting(jnp.int32(0))

    return BlockForm(init, lambda state, constants: right()._replace(**wrong), next_one)


SHAPES = [
    ({"policy": np.full((H, K, A), 0.5)}, r"policy: float64 \[2, 2, 2\]; accepted: float \[H, k\+1, A\] = \[2, 3, 2\]"),
    ({"stage": np.float32(0)}, r"stage: float32 \[\]; accepted: int \[\]"),
    ({"rows": np.full((3, K + 1, A), 0.5)}, r"rows: float64 \[3, 3, 2\]; .* = \[2, 3, 2\]"),
    ({"episodes": np.full(2, True)}, r"episodes: bool \[2\]; accepted: numbers \[B\]"),
    ({"episodes": np.float64(3)}, r"rows: float64 \[2, 3, 2\]; .* = \[1, 3, 2\]"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), SHAPES)
def test_wrong_shapes_are_named_before_anything_runs(wrong, message):
    with pytest.raises(LearnerError, match=f"'stranger': next_block gives {message}"):
        run(shaped(**wrong))


def test_other_results_are_named():
    good = shaped()
    with pytest.raises(LearnerError, match=r"next_block returns tuple; accepted: jb\.Blocks"):
        run(good._replace(next_block=lambda state, constants: (1, 2)))
    with pytest.raises(LearnerError, match=r"absorb returns .*float64.*; accepted: a state like"):
        run(good._replace(absorb=lambda state, episodes, totals, constants: Counting(totals)))


@pytest.mark.parametrize("ordered", [False, True])
def test_regrets_of_arms_are_those_of_the_composed_policies(ordered):
    name = "random-ordered" if ordered else "random-general"
    mdp = jb.make_instance(name, key=jax.random.key(4), horizon=3, width=2, num_actions=2)
    with x64():
        exact = mdp._replace(
            prob=mdp.prob.astype(jnp.float64), reward=mdp.reward.astype(jnp.float64)
        )
        world = jb.gaps(exact), jb.transition_kernel(exact), exact.start
        regrets, regret = jax.jit(arm_regrets), jax.jit(jb.regret)
        for stage in range(3):
            block = jax.tree.map(
                jnp.asarray, arms(3, 3, 2, seed=stage)._replace(stage=np.int32(stage))
            )
            ours = np.asarray(regrets(*world, block))
            theirs = [float(regret(exact, jnp.asarray(compose(block, b)))) for b in range(3)]
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_beginnings_are_exact_up_to_two_to_the_53():
    most = 2.0**53
    with x64():
        begin = loop._begin(
            jnp.asarray([most - 7]), jnp.asarray([[3.0, most, 5.0, most]]), jnp.float64(most)
        )
    assert begin.tolist() == [[most - 7, most - 4, most, most]]
