"""Functions that do not fit together are refused with the learner's name, before anything runs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.errors import LearnerError
from jaxbandit.learner.fitting import (
    check_absorbed,
    check_blocks,
    check_first_state,
    check_steps,
    is_policy,
    wrong_policy,
)

SIZES = (3, 1, 2)


def init(problem, constants, key):
    return jnp.int32(0)


def act(state, key, constants):
    return jnp.zeros((3, 2), jnp.int32)


def update(state, policy, feedback, constants):
    return state + 1


def steps(**functions):
    given = {"init": init, "act": act, "update": update, **functions}
    rules = jb.Learner(**given, name="mine").rules
    check_steps(rules, SIZES, (), jnp.int32(0))


def test_what_fits_is_let_through():
    steps()
    steps(act=lambda state, key, constants: jnp.full((3, 2, 2), 0.5))
    check_first_state({"a": 1, "b": np.zeros(3), "key": jax.random.PRNGKey(0)})


def test_a_key_is_no_array():
    with pytest.raises(
        LearnerError, match=r"init gives \['k'\]: a key; accepted: .*key_data\(key\)"
    ):
        check_first_state({"k": jax.random.key(0)})


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        (None, "NoneType"),
        ((jnp.zeros((3, 2), jnp.int32),), "tuple"),
        ([[0, 0]] * 3, "list"),
        ("left", "str"),
        (0, r"int32\[\]"),
        (jnp.zeros((3, 2)), r"float32\[3, 2\]"),
    ],
)
def test_what_is_no_policy(policy, seen):
    with pytest.raises(
        LearnerError, match=f"learner 'mine': act gives {seen}; accepted: actions, integers"
    ):
        steps(act=lambda state, key, constants: policy)


@pytest.mark.parametrize(
    ("after", "seen"),
    [(None, "None"), (0.5, r"float32 \[\]"), (np.zeros(2, np.int32), r"int32 \[2\]"), ("x", "str")],
)
def test_another_state(after, seen):
    with pytest.raises(
        LearnerError, match=rf"learner 'mine': update gives .*{seen}.*accepted: a state like that"
    ):
        steps(update=lambda *_: after)


def test_errors_of_the_users_own_say_where_they_were():
    with pytest.raises(KeyError) as error:
        steps(act=lambda state, key, constants: {}["x"])
    assert "in act of learner 'mine'" in error.value.__notes__


def blocks(**fields):
    given = {
        "policy": jnp.full((3, 2, 2), 0.5),
        "stage": jnp.int32(0),
        "rows": jnp.full((1, 2, 2), 0.5),
        "episodes": jnp.full(1, 10.0),
    }
    return jb.Blocks(**(given | fields))


@pytest.mark.parametrize("sizes", [None, SIZES])
@pytest.mark.parametrize(
    ("given", "saying"),
    [
        (None, "next_block returns NoneType; accepted: jb.Blocks"),
        (blocks(policy=jnp.zeros((3, 2), jnp.int32)), r"policy: int32 \[3, 2\]; accepted: float"),
        (blocks(policy="x"), "policy: str; accepted: float"),
        (blocks(stage=1.5), r"stage: float32 \[\]; accepted: int"),
        (blocks(episodes=jnp.ones(1, bool)), r"episodes: bool \[1\]; accepted: numbers"),
        (blocks(rows=jnp.zeros((2, 2, 2))), r"rows: float32 \[2, 2, 2\]; accepted: float"),
        (
            blocks(rows=jnp.zeros((0, 2, 2)), episodes=jnp.zeros(0)),
            r"rows: .*; accepted: .* = \[1, 2, 2\]",
        ),
    ],
)
def test_what_are_no_blocks(given, saying, sizes):
    check_blocks(blocks(), sizes)
    with pytest.raises(LearnerError, match=saying):
        check_blocks(given, sizes)


def test_absorbing_gives_the_same_kind_of_state():
    check_absorbed(jnp.int32(0), jnp.int32(1))
    with pytest.raises(
        LearnerError, match=r"absorb returns .*float32 \[\]; accepted: a state like"
    ):
        check_absorbed(jnp.int32(0), jnp.float32(1))


def test_where_a_policy_is_none():
    table = np.zeros((3, 2), np.int32)
    table[0, 0], table[2, 1] = 9, 2
    assert np.argwhere(~np.asarray(is_policy(jnp.asarray(table), 2))).tolist() == [[2, 1]]
    error = wrong_policy("mine", table, 2, 7)
    assert str(error) == "learner 'mine', episode 7, stage 3, level 1: action 2; accepted: 0..1"
    sums = partial(np.full, (3, 2, 3))
    assert is_policy(jnp.asarray(sums(1 / 3)), 3).all()
    for wrong in (sums(0.5), sums(np.nan), sums(0.0), sums(1 / 3).astype(np.float16)):
        assert not is_policy(jnp.asarray(wrong), 3)[:, 1].any()
