"""How the practical constants are chosen."""

import numpy as np
import pytest
from jaxbandit.experiments import prophet, tuning
from made_up_results import draw_everything, make_up, make_up_all

from jaxbandit.experiment.contract import Options


def test_tuning_instances_are_not_the_reported_ones_and_budgets_are_equal():
    roots = {prophet.INSTANCE_KEY, tuning.TRAINING_KEY, tuning.CHECKING_KEY}
    assert len(roots) == 3
    values = [np.asarray(prophet.random_instances(15, 2, 2, root).reward) for root in sorted(roots)]
    assert not any(np.array_equal(a, b) for a in values for b in values if a is not b)
    training = tuning.sweeps(Options())["training"]
    assert {grid.size for grid in training["learners"].values()} == {27}
    for name in tuning.LEARNERS:
        preset = tuning.make(name).params
        for parameter, tried in tuning.settings(name).items():
            assert any(np.isclose(float(preset[parameter]), value, rtol=1e-6) for value in tried)


def test_tuning_chooses_the_lowest_mean():
    options = Options(seeds=4)
    datasets = make_up_all(tuning.EXPERIMENT, options)
    # The made-up regret is lowest in the middle of each grid.
    assert tuning.chosen(datasets, "ExpRef", options) == pytest.approx(
        {"first_epsilon": 0.213, "threshold": 0.064, "num_phases": 4}
    )
    table = tuning.tables(datasets, options)["tuning.md"]
    assert "27 settings x 8 runs x 100,000" in table


def test_tuning_runs_again_what_is_not_clearly_worse():
    options = Options(seeds=4)
    plans = tuning.EXPERIMENT.sweeps(options)
    datasets = {"training": make_up(plans["training"])}
    # Three settings around the middle are made equal, up to noise that seeds do not share.
    regret = datasets["training"]["regret"]
    noise = np.random.default_rng(0).uniform(0.9, 1.1, (regret.sizes["instance"], 3, 2, 1))
    regret[0, :, 12:15] = regret[0, :, 13:14].values * noise
    second = plans["second"](datasets)
    assert second["seed"] != options.seed
    left = [j for j, c in enumerate(tuning.race(datasets, "ExpRef", options).candidates) if c.dropped is None]  # fmt: skip
    assert {12, 13, 14} <= set(left)
    assert len(left) < 27
    again, tried = (
        plan["learners"]["ExpRef"].learner.params for plan in (second, plans["training"])
    )
    for name, values in tried.items():
        np.testing.assert_array_equal(again[name], values[left])
    tuner = tuning.race({**datasets, "second": make_up(second)}, "ExpRef", options)
    assert all(found.regret.n in (8, 16) for found in tuner.candidates)


def test_figures_and_tables_of_made_up_results():
    draw_everything("tuning")
