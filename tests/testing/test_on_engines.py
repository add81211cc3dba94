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
    for what in ("regret (episodes)", "one trace", "lanes = loop", "chunked = whole", "all places"):
        assert what in tried


def over_lanes(update, name):
    """A learner with code over lanes that always plays action 0."""

    def init(problem, constants, key):
        return jnp.zeros((1,), jnp.float32)

    def act(state, key, constants):
        return jnp.zeros((2, 2, *state.shape[1:]), jnp.int32)

    return jb.Learner(init, act, update, lanes_last=True, name=name)


def test_a_learner_that_counts_lanes_together_is_noticed():
    """``lanes_last`` promises element-wise code; this one adds its neighbours up."""
    mixing = over_lanes(
        lambda state, _, feedback, constants: state + jnp.sum(feedback.total), "mixing"
    )
    with pytest.raises(AssertionError, match=r"lanes = loop|no leak"):
        check_engine(Notes("mixing"), "episodes", mixing, mixing, MDP, **HOW)


def test_a_learner_whose_numbers_depend_on_the_place_in_a_tile_is_noticed():
    """In the last places alone, where none of the few runs that are compared one by one stands."""

    def update(state, policy, feedback, constants):
        return state + (jnp.arange(state.shape[-1]) > 13).astype(jnp.float32)[None]

    placed = over_lanes(update, "placed")
    with pytest.raises(AssertionError, match=r"all places of a tile: place 14 differs in"):
        check_engine(Notes("placed"), "episodes", placed, placed, MDP, **HOW)
