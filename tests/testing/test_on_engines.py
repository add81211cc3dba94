"""Checks of a learner on an engine: what a sound learner passes, and what a leak looks like."""

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
