"""How the practical constants are chosen: the rule, on tables that are checked by hand, and the sweep."""

import numpy as np
import pytest
from jaxbandit.experiments import prophet, tuning
from jaxbandit.experiments.tuning import LINEAR, Cell, cell_of, judge
from made_up_results import make_up, make_up_all

import jaxbandit as jb
from jaxbandit.experiment import Options


def judged(final, half=None):
    """From tables of means [S, C], two equal instances a cell."""
    copies = [None if table is None else np.stack([table] * 2, -1)[..., None] for table in (final, half)]  # fmt: skip
    cells = [
        Cell(copies[0][:, c], None if half is None else copies[1][:, c])
        for c in range(final.shape[1])
    ]
    return judge([{"x": float(j)} for j in range(len(final))], cells)


def test_the_worst_ratio_counts():
    final = np.array([[1.0, 40.0], [2.0, 15.0], [4.0, 10.0]])
    found = judged(final, final / 1.5)
    np.testing.assert_allclose(found.ratios, [[1, 4], [2, 1.5], [4, 1]])
    assert found.worst.tolist() == [4, 2, 4]
    assert found.choice == 1


def test_linear_settings_are_refused_unless_all_are():
    final = np.array([[1.0, 1.0], [2.0, 2.0]])
    half = np.array([[0.9, 1 / (LINEAR + 0.01)], [1.5, 1.5]])
    assert judged(final, half).linear.tolist() == [True, False]
    assert judged(final, half).choice == 1
    assert judged(final, half).worst.tolist() == [1, 2]  # still to the best of all
    assert judged(final, final / 2).choice == 0  # both are
    assert judged(final).choice == 0  # growth is not looked at


def test_a_setting_is_not_dropped_for_being_worse_than_a_refused_one():
    # Without noise the second is clearly worse than the first, which is refused, and is chosen all the same.
    final = np.array([[1.0], [2.0], [2.5]])
    half = final / np.array([[2.0], [1.5], [1.5]])
    found = judged(final, half)
    assert (found.choice, found.tied) == (1, 1)
    assert [found.is_tied(index) for index in range(3)] == [False, True, False]


def test_a_regret_of_zero_is_the_best():
    found = judged(np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]]))
    assert found.choice == 0
    assert found.worst[0] == 1


@pytest.mark.parametrize("grows", [True, False])
def test_cells_are_the_ends_and_middles_of_a_familys_curves(grows):
    grid = jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0, 2.0])
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    ds = make_up({"learners": {"UCB-VI": grid}, "instances": {"I": [mdp] * 4}, "num_episodes": 1200, "num_seeds": 2})  # fmt: skip
    names = [str(name) for name in ds["instance"].values]
    cell = cell_of(ds, "UCB-VI", names, 2, grows=grows)
    curves = ds["regret"].values[0].transpose(1, 0, 2, 3)[:2]
    np.testing.assert_array_equal(cell.final, curves[..., -1])
    assert (cell.half is None) == (not grows)
    if grows:
        assert int(ds["episode"].values[5]) == 600
        np.testing.assert_array_equal(cell.half, curves[..., 5])


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
