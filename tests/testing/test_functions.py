"""Checks of a learner's functions by themselves: the sound one passes, each broken one is named."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import Learner
from jaxbandit.testing.functions import check_declarations, check_functions
from jaxbandit.testing.summary import Notes

MDP = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)


def init(problem, constants, key):
    return jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)


def act(state, key, constants):
    return state


def update(state, policy, feedback, constants):
    return state


SOUND = Learner(init, act, update, name="sound")


def told(check, *arguments, **more):
    notes = Notes("sound")
    try:
        check(notes, *arguments, **more)
    except AssertionError as error:
        return str(error)
    return ""


def test_a_sound_learner_is_told_nothing():
    assert told(check_functions, SOUND, MDP, 4, 0) == ""
    assert told(check_declarations, SOUND, SOUND) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"act": lambda state, key, constants: state[0]},
        {"update": lambda state, policy, feedback, constants: state.astype(jnp.float32)},
        {"act": lambda state, key, constants: state + 2},
    ],
    ids=["shape", "dtype", "action"],
)
def test_a_broken_one_is_told_what_is_broken(change):
    broken = SOUND._replace(**change)
    assert told(check_functions, broken, MDP, 4, 0)


def test_programs_that_change_with_a_parameter_are_noticed():
    one = SOUND._replace(params={"scale": np.float32(1)})
    other = one._replace(act=lambda state, key, constants: state, params={"scale": np.float32(2)})
    assert told(check_declarations, one, other)
