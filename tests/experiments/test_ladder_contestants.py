"""Contestants of the ladder: every rung has one, of its feedback."""

import pytest
from jaxbandit.experiments import ladder
from jaxbandit.experiments.ladder_contestants import CONTESTANTS, RUNGS, TINY, make

from jaxbandit.experiment import Options
from jaxbandit.feedback import check_kind


@pytest.fixture(scope="module")
def plans():
    return ladder.sweeps(Options(instances=4))


def test_every_rung_has_a_learner_of_its_feedback(plans):
    for label, contestant in CONTESTANTS.items():
        learner = make(label, TINY).learner
        check_kind(learner.feedback)
        assert contestant.rung.startswith(learner.feedback.replace("one-bit", "one bit"))
    assert {one.rung for one in CONTESTANTS.values()} == set(RUNGS)
    names = ("tiny", "tiny-prophets", "paper", "paper-prophets", "segments")
    assert list(plans) == [name + end for name in names for end in ("-training", "")]
