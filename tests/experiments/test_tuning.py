"""How the practical constants are chosen."""

import numpy as np
import pytest
from jaxbandit.experiments import prophet, tuning
from made_up_results import draw_everything, make_up_all

import jaxbandit as jb
from jaxbandit.experiment import Options


def test_tuning_instances_are_not_the_reported_ones_and_presets_were_tried():
    assert prophet.INSTANCE_KEY != tuning.INSTANCE_KEY
    one, two = (
        np.asarray(prophet.random_instances(15, 2, 2, root).reward)
        for root in (prophet.INSTANCE_KEY, tuning.INSTANCE_KEY)
    )
    assert not np.array_equal(one, two)
    assert all(tuning.preset_of(name) is not None for name in tuning.LEARNERS)
    plans = tuning.sweeps(Options(full=True))
    assert [plan["num_episodes"] for plan in plans.values()] == [20_000, 200_000, 2_000_000] * 3
    for name, plan in plans.items():
        assert ("prophet bandit" in plan["learners"]) == name.endswith("-single")
        # What runs in blocks costs little, and has more seeds.
        episodes = set(plan["learners"]) == set(tuning.EPISODE_BY_EPISODE)
        assert plan["num_seeds"] == (1 if episodes else 4)
    assert set().union(*(plan["learners"] for plan in plans.values())) == set(tuning.LEARNERS)


def test_tuning_chooses_the_smallest_worst_ratio_and_says_how_far_it_is_elsewhere():
    options = Options(instances=2)
    datasets = make_up_all(tuning.EXPERIMENT, options)
    # The made-up regret is lowest in the middle of each grid.
    settings = len(tuning.grid_settings(tuning.SETTINGS["ExpRef"]))
    found = tuning.judged(datasets, "ExpRef")
    assert found.ratios.shape == (settings, 9)
    assert found.choice == settings // 2
    assert np.isnan(found.growths[:, :6]).all()  # growth counts at the longest T alone
    np.testing.assert_allclose(found.growths[:, 6:], 2**0.5, rtol=0.05)
    # A setting that is best on one family and poor on another is not chosen.
    ds = datasets["T100000"]
    names = {name: list(members) for name, members in jb.stats.families(ds).items()}
    ds["regret"].loc[{"learner": "UCB-VI", "parameter": 5, "instance": names["I2 H=6 k=3"]}] /= 100
    assert tuning.judged(datasets, "UCB-VI").worst[5] > 2
    # What a learner was devised on is no check of it.
    shared = tuning.cells(datasets, "shared ExpRef"), tuning.cells(datasets, "shared ExpRef", True)
    assert [len(names) for names in shared] == [12, 6]
    assert all("k=1," in name for name in tuning.cells(datasets, "prophet bandit"))
    table = tuning.tables(datasets, options)["tuning.md"]
    assert "9 cells of training and 9 of the check" in table
    assert "knapsack, 15 items, budget 3, T = 100,000" in table


def test_one_run_of_one_instance_is_refused_before_anything_runs():
    with pytest.raises(ValueError, match="instances: 1 with 1 seed; accepted"):
        tuning.sweeps(Options(instances=1))


def test_figures_and_tables_of_made_up_results():
    draw_everything("tuning")
