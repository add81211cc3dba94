"""Parts of a result: figures take them, policies come as integers, instances come back bit for bit."""

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.mdp import digest
from jaxbandit.results.dataset import whole

SMALL = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
LARGE = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
GENERAL = LARGE._replace(rank=None)


@pytest.fixture(scope="module")
def ds():
    learners = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0]),
        "uniform": jb.make_learner("uniform"),
    }
    instances = {"small": SMALL, "large": jb.label(LARGE, unit="$"), "general": GENERAL}
    return jb.sweep(
        learners, instances, 60, num_seeds=3, record=jb.record.linear(4), progress=False
    )


def test_figures_take_what_xarray_selects(ds):
    one = ds.sel(instance="large")
    assert set(jb.plot_regret(one).data) == set(jb.plot_regret(ds, instance="large").data)
    part = jb.plot_regret(ds.sel(learner="UCB-VI", instance="large"))
    band = jb.plot_regret(ds, instance="large").data["UCB-VI, bonus_scale = 0.1"]
    np.testing.assert_array_equal(part.data["UCB-VI, bonus_scale = 0.1"].high, band.high)
    assert jb.plot_regret(ds.isel(seed=0), instance="large").data["uniform"].n == 1
    assert jb.plot_regret(ds["regret"].sel(instance="small")).data["uniform"].n == 3
    assert jb.plot_parameter(ds.sel(learner="UCB-VI", instance="small")).data
    policy_map = jb.plot_policy(ds.sel(instance="large"), learner="uniform", parameter=0)
    assert policy_map.data["learned"].shape == (
        2,
        3,
    )
    assert whole(ds).identical(ds)


def test_select_by_value(ds):
    chosen = jb.select(ds, bonus_scale=0.1)
    assert chosen["learner"].values.tolist() == ["UCB-VI", "uniform"]
    old = ds["regret"].sel(learner="UCB-VI").isel(parameter=0).values
    np.testing.assert_array_equal(chosen["regret"].sel(learner="UCB-VI").values[:, 0], old)
    other = jb.select(ds.sel(learner=["UCB-VI"]), bonus_scale=1)
    assert other["bonus_scale"].values.tolist() == [1.0]
    beside = jb.select(
        ds, bonus_scale=1
    )  # the other point of UCB-VI does not stay for uniform's sake
    assert beside["bonus_scale"].values.tolist() == [1.0]
    assert beside["learner"].values.tolist() == ["UCB-VI", "uniform"]
    with pytest.raises(ValueError, match=r"bonus_scale: 0\.7; accepted: 0\.1, 1"):
        jb.select(ds, bonus_scale=0.7)
    with pytest.raises(ValueError, match="scale: no such parameter; accepted: bonus_scale"):
        jb.select(ds, scale=1)


def test_select_shows_no_other_value(ds):
    """A point that one learner keeps (the only one of "uniform") is hidden where another has another value there."""
    chosen = jb.select(ds, bonus_scale=1.0)
    assert chosen["learner"].values.tolist() == ["UCB-VI", "uniform"]
    assert sorted(jb.plot_regret(chosen, instance="large").data) == [
        "UCB-VI, bonus_scale = 1",
        "uniform",
    ]
    kept = chosen["regret"].sel(learner="UCB-VI").dropna("parameter", how="all")
    np.testing.assert_array_equal(kept, ds["regret"].sel(learner="UCB-VI").isel(parameter=[1]))


def test_policies_are_integers_that_others_take(ds):
    policy = jb.final_policy(ds, "UCB-VI", "large", seed=2, parameter=1)
    assert policy.dtype == np.int32
    stored = ds["final_gap"].sel(learner="UCB-VI", instance="large", seed=2).isel(parameter=1)
    assert float(jb.regret(LARGE, policy)) == pytest.approx(float(stored), abs=1e-6)
    assert jb.final_policy(ds, "uniform", "small").shape == (2, 2)
    jb.make_learner("fixed", policy=policy)
    for given, told in (
        ({"learner": "UCB", "instance": "small"}, "learner: 'UCB'"),
        ({"learner": "uniform"}, "instance: not given"),
        ({"learner": "uniform", "instance": "small", "seed": 9}, "seed: 9; accepted: 0, 1, 2"),
    ):
        with pytest.raises(ValueError, match=told):
            jb.final_policy(ds, **given)


def test_random_policies_are_refused():
    policy = np.full((2, 2, 2), 0.5, np.float32)
    fixed = {"fixed": jb.make_learner("fixed", policy=policy)}
    ds = jb.sweep(fixed, {"I1": SMALL}, 10, num_seeds=1, progress=False)
    with pytest.raises(ValueError, match="no policy of plain actions"):
        jb.final_policy(ds, "fixed")


def test_a_policy_that_is_random_at_some_stages_is_no_smaller_one(ds):
    """As of ExpRef in the middle of a phase: plain actions at its last stages only."""
    part = ds.assign(final_policy=ds["final_policy"].where(ds["stage"] > 1))
    with pytest.raises(ValueError, match="no policy of plain actions"):
        jb.final_policy(part, "uniform", "small")


@pytest.mark.parametrize("on_disk", [False, True])
def test_instances_come_back_bit_for_bit(ds, on_disk, tmp_path):
    ds = jb.load(jb.save(ds, tmp_path / "x.nc")) if on_disk else ds
    for name, mdp in {"small": SMALL, "large": LARGE, "general": GENERAL}.items():
        found = jb.instance_of(ds, name)
        assert digest(found) == digest(mdp)
        assert jb.labels_of(found).actions == jb.labels_of(mdp).actions
    assert jb.labels_of(jb.instance_of(ds, "large")).unit == "$"
    assert jb.labels_of(jb.instance_of(ds, "large")).scale == 2.0
    assert jb.labels_of(jb.instance_of(ds, "large")).level == "capacity left"
    with pytest.raises(ValueError, match="no variable 'mdp_prob'"):
        jb.instance_of(ds[["regret"]], "small")


def test_every_variable_says_what_it_is(ds):
    for name, variable in ds.variables.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name


def test_to_pandas_and_csv_and_back(ds, tmp_path):
    pandas = pytest.importorskip("pandas")
    regret = ds["regret"].sel(instance="small").isel(parameter=0, drop=True)
    frame = regret.drop_vars(["instance", "family", "varied"]).to_dataframe().reset_index()
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = pandas.read_csv(tmp_path / "x.csv").set_index(["learner", "seed", "episode"])
    back = xr.Dataset.from_dataframe(table)
    np.testing.assert_allclose(
        back["regret"].sel(learner="UCB-VI").values, regret.sel(learner="UCB-VI").values
    )
    theirs = (back.sel(learner=["uniform"]) * 2).assign_coords(learner=["theirs"])
    both = xr.concat([back, theirs], dim="learner")
    assert jb.plot_regret(both).data["theirs"].center[-1] > 0


def test_regret_in_its_own_unit(ds):
    large = ds.sel(instance="large")
    dollars = jb.in_units(large)
    np.testing.assert_allclose(dollars["regret"].values, 2.0 * large["regret"].values)
    assert dollars["regret"].attrs == {"long_name": "cumulative regret", "units": "$"}
    assert jb.plot_regret(dollars).axes.get_ylabel() == r"cumulative regret (\$)"
    assert jb.plot_regret(large).axes.get_ylabel() == "cumulative regret"
    assert jb.in_units(dollars)["regret"].equals(dollars["regret"])  # it is done once
    with pytest.raises(ValueError, match="units '', '\\$'; accepted: instances with one unit"):
        jb.in_units(ds)
    with pytest.raises(ValueError, match="no variable 'reward_scale'"):
        jb.in_units(ds[["regret"]])
