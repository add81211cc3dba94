"""The feedback ladder without its runs: made-up results go through choice, figures and tables."""

import itertools

import numpy as np
import pytest
import xarray as xr
from jaxbandit.experiments import ladder
from jaxbandit.experiments.ladder_contestants import CONTESTANTS, RUNGS, TINY, make
from synthetic_sweep import clipped_texts, texts

from jaxbandit.experiment import load_experiment
from jaxbandit.experiment.contract import Options
from jaxbandit.feedback import check_kind
from jaxbandit.sweeps.families import expand_instances
from jaxbandit.sweeps.parameters import expand_learners

LEVELS = {"uniform": 100.0, "oracle": 0.0}


def make_up(arguments, power=0.5):
    """Regret level * (1 + distance of the setting from the third) * t^power with 1 % noise."""
    grids, mdps = expand_learners(arguments["learners"]), expand_instances(arguments["instances"])
    episodes = np.linspace(0, arguments["num_episodes"], 21)[1:].astype(np.int64)
    shape = (len(grids), len(mdps), 5, arguments["num_seeds"], 20)
    regret = np.full(shape, np.nan)
    random = np.random.default_rng(0)
    for row, (label, grid) in enumerate(grids.items()):
        for point in range(grid.size):
            level = LEVELS.get(label, 1.0 + row) * (1 + abs(point - min(2, grid.size - 1)))
            noise = 1 + 0.01 * random.standard_normal((len(mdps), shape[3], 1))
            regret[row, :, point] = level * noise * episodes**power
    dims = ["learner", "instance", "parameter", "seed", "episode"]
    if all(grid.size == 1 for grid in grids.values()):
        regret = regret[:, :, 0]
        dims.remove("parameter")
    return xr.Dataset(
        {
            "regret": (dims, regret),
            "run_seconds": (("learner", "instance"), np.ones(shape[:2])),
        },
        {
            "learner": list(grids),
            "instance": list(mdps),
            "seed": np.arange(shape[3]),
            "episode": episodes,
            "family": ("instance", [name.split("/")[0] for name in mdps]),
        },
    )


def make_up_all(plans):
    """Results of all sweeps; those that depend on others are asked for their arguments."""
    found = {}
    for name, arguments in plans.items():
        found[name] = make_up(arguments(found) if callable(arguments) else arguments)
    return found


@pytest.fixture(scope="module")
def plans():
    return ladder.sweeps(Options(instances=4))


@pytest.fixture(scope="module")
def made(plans):
    return make_up_all(plans)


def test_every_rung_has_a_learner_of_its_feedback(plans):
    for label, contestant in CONTESTANTS.items():
        learner = make(label, TINY).learner
        check_kind(learner.feedback)
        assert contestant.rung.startswith(learner.feedback.replace("one-bit", "one bit"))
    assert {one.rung for one in CONTESTANTS.values()} == set(RUNGS)
    names = ("tiny", "tiny-prophets", "paper", "paper-prophets", "segments")
    assert list(plans) == [name + end for name in names for end in ("-training", "")]


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
    ds = make_up(plans["tiny-training"])
    episodes = ds["episode"].values
    ds["regret"].loc[{"learner": "PSRL", "parameter": 2}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice in (1, 3)
    ds["regret"].loc[{"learner": "PSRL"}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice == 0  # all are linear: the first of the best


def test_figures_and_tables(made):
    experiment = load_experiment("ladder")
    drawn = experiment.figures(made, Options())
    assert set(drawn) == {
        "ladder_tiny",
        "ladder_tiny_summary",
        "ladder_paper",
        "ladder_paper_summary",
        "ladder_segments",
    }
    for one in drawn.values():
        assert not clipped_texts(one.figure)
    shown = texts(drawn["ladder_tiny_summary"].figure)
    for label in ("prophet optimism", "UCB1 over policies", "ExpRef (theory)", "one bit"):
        assert label in shown
    assert "UCB1 over policies" not in texts(drawn["ladder_paper_summary"].figure)
    tables = experiment.tables(made, Options())
    assert "| below (" in tables["ladder.md"]
    assert "H = 15, k = 2, A = 5" in tables["ladder.md"]
    assert "3 segments" in tables["ladder_tuning.md"]
