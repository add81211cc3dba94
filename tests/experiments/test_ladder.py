"""The feedback ladder without its runs: made-up results go through choice, figures and tables."""

import itertools

import numpy as np
from jaxbandit.experiments import ladder
from jaxbandit.experiments.ladder_contestants import CONTESTANTS
from made_up_ladder import make_up_ladder

from jaxbandit.sweeps.arguments import expand_instances


def test_budgets_are_equal_and_training_is_apart(plans, made):
    assert {len(one.values) for one in CONTESTANTS.values()} == {5}
    training = expand_instances(plans["tiny-training"]["instances"])
    others = expand_instances(plans["tiny"](made)["instances"])
    assert (len(training), len(others)) == (6, 12)
    for one, other in itertools.product(training.values(), others.values()):
        assert not np.array_equal(one.prob, other.prob)


def test_the_best_setting_is_chosen_and_reported(plans, made):
    for label in ("ExpRef", "PSRL"):
        assert ladder.judged(made["tiny-training"], label).choice == 2
    picked = plans["tiny"](made)["learners"]
    assert float(picked["PSRL"].params["concentration"]) == 3.0
    assert float(picked["ExpRef"].params["threshold"]) == CONTESTANTS["ExpRef"].values[2]
    shown = plans["segments"](made)["learners"]["2 segments"]
    assert shown.feedback == "segments:2"


def test_a_linear_setting_is_refused(plans):
    ds = make_up_ladder(plans["tiny-training"])
    episodes = ds["episode"].values
    ds["regret"].loc[{"learner": "PSRL", "parameter": 2}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice in (1, 3)
    ds["regret"].loc[{"learner": "PSRL"}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice == 0  # all are linear: the first of the best
