"""Checks of a learner on an engine: what a sound learner passes, and what a leak looks like."""

import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit.testing.on_engines import check_engine
from jaxbandit.testing.summary import Notes

MDP = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
HOW = {"num_episodes": 6, "num_seeds": 2, "seed": 0}


def test_a_sound_learner_passes_and_the_notes_say_what_was_tried():
    notes = Notes("uniform")
    learner = jb.make_learner("uniform")
    check_engine(notes, "episodes", learner, learner, MDP, **HOW)
    tried = " ".join(str(note) for note in notes.properties)
    for what in ("regret (episodes)", "one trace", "lanes = loop", "chunked = whole"):
        assert what in tried


def test_a_learner_that_counts_lanes_together_is_noticed():
    """``lanes_last`` promises element-wise code; this one adds its neighbours up."""

    def init(problem, params):
        return jnp.zeros((1,), jnp.float32)

    def act(state, key):
        return jnp.zeros((2, 2, *state.shape[1:]), jnp.int32)

    def update(state, policy, feedback):
        return state + jnp.sum(feedback.total)

    mixing = jb.Learner(init, act, update, lanes_last=True, name="mixing")
    with pytest.raises(AssertionError, match=r"lanes = loop|no leak"):
        check_engine(Notes("mixing"), "episodes", mixing, mixing, MDP, **HOW)
