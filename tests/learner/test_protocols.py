"""The signatures of the contract: every function of a learner has one, and each documents its arguments."""

import inspect
from typing import Protocol

import jax
import jax.numpy as jnp

import jaxbandit as jb
from jaxbandit.learner import forms

ALL = {
    name: value
    for name, value in vars(forms).items()
    if inspect.isclass(value) and Protocol in value.__bases__
}


def test_every_signature_is_documented():
    assert {"Init", "Act", "Update", "Constants", "NextBlock", "Absorb", "Report"} <= set(ALL)
    for name, protocol in ALL.items():
        assert protocol.__doc__, name
        assert protocol.__call__.__doc__, name
        assert inspect.signature(protocol.__call__).return_annotation, name


def test_functions_of_learners_take_what_the_signatures_say():
    learner = jb.make_learner("ucbvi")
    for function, protocol in (
        (learner.init, forms.Init),
        (learner.act, forms.Act),
        (learner.update, forms.Update),
        (learner.constants, forms.Constants),
    ):
        wanted = len(inspect.signature(protocol.__call__).parameters) - 1
        assert len(inspect.signature(function).parameters) == wanted


def test_sizes_of_a_problem_are_static_and_the_rest_is_data():
    problem = jb.Problem(horizon=3, width=2, num_actions=4, num_episodes=jnp.float32(10))
    seen = jax.jit(lambda p: jnp.zeros((p.horizon, p.width, p.num_actions)) + p.num_episodes)(
        problem
    )
    assert seen.shape == (3, 2, 4)
    assert len(jax.tree.leaves(problem)) == 1
