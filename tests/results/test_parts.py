"""What is no result is refused before a number is made of it; parts of results are results, for xarray and for us: by the values
of parameters, as policies, and as instances bit for bit."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import synthetic_sweep

import jaxbandit as jb
from jaxbandit.mdp import digest
from jaxbandit.results.axes import (
    check_axes,
    parameter_coordinates,
    parameter_table,
    readable,
    whole,
)

DS = synthetic_sweep(instances=("I1", "I2/0"), num_seeds=4, num_points=4)
FIRST = str(DS["learner"].values[0])
USERS = {
    "compare": jb.stats.compare,
    "final_table": jb.stats.final_table,
    "profiles": lambda ds: jb.stats.performance_profiles(ds, num_resamples=20),
    "improvement": lambda ds: jb.stats.probability_of_improvement(ds, num_resamples=20),
    "band": lambda ds: jb.stats.regret_band(ds, FIRST, "I1"),
    "families": jb.stats.families,
    "plot_panels": jb.plot_panels,
    "plot_final": jb.plot_final,
}


def names(ds, **coords):
    return ds.assign_coords({name: list(values) for name, values in coords.items()})


WRONG = {
    "seed 0 twice": lambda ds: ds.isel(seed=[0, 1, 2, 3, 0, 1, 2, 3]),
    "learner 'a' twice": lambda ds: names(ds, learner="aab"),
    "instance 'a' twice": lambda ds: names(ds, instance="aa"),
    "learner 1; accepted: names": lambda ds: names(ds, learner=[1, 2, 3]),
    "learners without names": lambda ds: ds.drop_vars("learner"),
    "no seed; accepted: at least": lambda ds: ds.isel(seed=[]),
    "no episode; accepted: at least": lambda ds: ds.isel(episode=[]),
    "episode .* after .*; accepted: numbers above 0": lambda ds: ds.isel(episode=[3, 2, 1, 0]),
    "episode nan after 1": lambda ds: names(ds, episode=[1, np.nan, 3, 4]),
    "episode 0 after 0": lambda ds: names(ds, episode=[0, 1, 2, 3]),
    "regret of dtype <U": lambda ds: ds.assign(regret=ds["regret"].astype(str)),
    "regret of dtype complex128": lambda ds: ds.assign(regret=ds["regret"].astype(complex)),
    "regret along 'T'; accepted: learner": lambda ds: ds.expand_dims(T=2),
    "regret along 'algorithm'": lambda ds: ds.rename(learner="algorithm"),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_result_gets_no_number(message):
    wrong = WRONG[message](DS)
    for use in USERS.values():
        with pytest.raises(ValueError, match=f"ds: {message}"):
            use(wrong)


def test_without_the_variable():
    for name in ("compare", "final_table", "profiles", "improvement"):
        with pytest.raises(ValueError, match="ds: no variable 'regret'; accepted: the Dataset"):
            USERS[name](DS.drop_vars("regret"))
    for variable, use in {
        "final_policy": lambda ds: jb.final_policy(ds, FIRST, "I1"),
        "mdp_prob": lambda ds: jb.instance_of(ds, "I1"),
        "reward_scale": jb.in_units,
    }.items():
        with pytest.raises(ValueError, match=f"ds: no variable '{variable}'; accepted"):
            use(DS[["regret"]])


SMALL = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
LARGE = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
GENERAL = LARGE._replace(rank=None)
SCALES = [0.1, 0.3, 1.0]


@pytest.fixture(scope="module")
def ds():
    learners = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=SCALES),
        "uniform": jb.make_learner("uniform"),
    }
    instances = {"small": SMALL, "large": jb.label(LARGE, unit="$"), "general": GENERAL}
    how = {"num_seeds": 3, "record": jb.record.linear(4), "progress": False}
    return jb.sweep(learners, instances, 60, **how)


@pytest.fixture(scope="module")
def large(ds):
    return ds.sel(instance="large")


def test_parts_are_results(ds, large):
    """A dimension that xarray has dropped is one with a single entry."""
    part, same = DS.sel(instance="I1"), DS.sel(instance=["I1"])
    assert whole(part).sizes == same.sizes
    assert jb.stats.compare(part).means == jb.stats.compare(same).means
    assert jb.stats.final_table(part) == jb.stats.final_table(same)
    assert list(jb.plot_final(part).data) == list(jb.plot_final(same).data)
    alone = DS.isel(learner=0)
    assert jb.stats.final_table(alone) == jb.stats.final_table(DS, learners=[FIRST])
    assert check_axes(DS) is DS
    assert whole(ds).identical(ds)
    band = jb.plot_regret(ds, instance="large").data["UCB-VI, bonus_scale = 0.1"]
    drawn = jb.plot_regret(large.sel(learner="UCB-VI")).data["UCB-VI, bonus_scale = 0.1"]
    np.testing.assert_array_equal(drawn.high, band.high)
    assert jb.plot_regret(large.isel(seed=0)).data["uniform"].n == 1
    assert jb.plot_regret(large["regret"]).data["uniform"].n == 3
    policy_map = jb.plot_policy(large, learner="uniform", parameter=0)
    assert policy_map.data["learned"].shape == (2, 3)


@pytest.mark.parametrize("index", [0, 2])
def test_sel_finds_the_value_as_it_was_written(large, index):
    found = large.sel(bonus_scale=SCALES[index])
    assert "parameter" not in found["regret"].dims
    assert found["bonus_scale"].item() == SCALES[index]
    assert found["regret"].identical(large["regret"].isel(parameter=index))
    assert not found["regret"].isnull().any()  # uniform stays
    assert list(jb.plot_regret(found.sel(learner="UCB-VI")).data) == ["UCB-VI"]
    assert list(jb.plot_regret(found).data) == ["UCB-VI", "uniform"]


def test_a_learner_that_varies_nothing_is_drawn_once(large):
    labels = [f"UCB-VI, bonus_scale = {scale:g}" for scale in SCALES]
    assert list(jb.plot_regret(large).data) == [*labels, "uniform"]
    two = large.sel(bonus_scale=[0.1, 1.0])
    assert list(jb.plot_regret(two).data) == [labels[0], labels[2], "uniform"]
    assert list(jb.plot_regret(large.sel(learner="uniform")).data) == ["uniform"]
    assert list(jb.plot_parameter(large).data) == ["UCB-VI", "uniform"]


def test_other_habits(ds, large):
    assert ds.sel(bonus_scale=0.28, method="nearest")["bonus_scale"].item() == 0.3
    assert ds.sel(bonus_scale=slice(0.2, None)).sizes["parameter"] == 2
    with pytest.raises(KeyError):
        ds.sel(bonus_scale=0.2)
    gap = large["regret"].sel(learner="UCB-VI") - large["regret"].sel(learner="uniform")
    assert gap.sel(bonus_scale=0.1).sizes == {"seed": 3, "episode": 4}
    both = xr.concat([ds, names(ds, learner="ab")], dim="learner", data_vars="minimal")
    assert both.sel(bonus_scale=0.1).sizes["learner"] == 4


def test_two_parameters_one_after_the_other():
    def act(state, key, constants):
        return jnp.full((3, 3), (constants["x"] + constants["y"]).astype(jnp.int32), jnp.int32)

    learner = jb.Learner(
        lambda *_: jnp.int32(0), act, lambda state, *_: state, params={"x": 0.0, "y": 0.0}
    )
    ds = jb.sweep(jb.grid(learner, x=[0, 1], y=[0, 1]), LARGE, 40, num_seeds=1, progress=False)
    found = ds.sel(x=1.0).sel(y=0.0)
    assert found["regret"].identical(ds["regret"].isel(parameter=2))
    assert jb.select(ds, x=1, y=0)["parameter"].values.tolist() == [2]


def test_different_points_are_a_table_without_an_index():
    grids = {
        "A": (("scale",), {"scale": np.float32([0.1, 0.5])}),
        "B": (("scale", "rate"), {"scale": np.float32([0.1, 0.5, 1.0]), "rate": np.ones(3)}),
        "C": ((), {"scale": np.float32([0.5])}),
    }
    found, nan = parameter_coordinates(grids), np.nan
    dims, table = found["scale"]
    assert dims == ("learner", "parameter")
    np.testing.assert_array_equal(table, [[0.1, 0.5, nan], [0.1, 0.5, 1.0], [nan] * 3])
    np.testing.assert_array_equal(found["rate"][1], [[nan] * 3, [1.0] * 3, [nan] * 3])
    assert found["varied"][1].tolist() == [True, True, False]
    of = xr.Dataset(coords={"learner": list(grids), **found})
    np.testing.assert_array_equal(parameter_table(of, "scale"), table)


def test_readable():
    assert readable(np.float64([0.1])).tolist() == [0.1]
    assert readable(np.array([True, False])).tolist() == [1.0, 0.0]
    assert np.isnan(readable(np.float32([np.nan]))).all()


def test_select_by_value(ds):
    """A point that one learner keeps (the only one of "uniform") is hidden where another has another value there."""
    for index in (0, 2):
        chosen = jb.select(ds, bonus_scale=SCALES[index])
        assert chosen["bonus_scale"].values.tolist() == [SCALES[index]]
        assert chosen["learner"].values.tolist() == ["UCB-VI", "uniform"]
        kept = chosen["regret"].sel(learner="UCB-VI")
        np.testing.assert_array_equal(kept, ds["regret"].sel(learner="UCB-VI", parameter=[index]))
        label = f"UCB-VI, bonus_scale = {SCALES[index]:g}"
        assert sorted(jb.plot_regret(chosen, instance="large").data) == [label, "uniform"]
    alone = jb.select(ds.sel(learner=["UCB-VI"]), bonus_scale=1)
    assert alone["bonus_scale"].values.tolist() == [1.0]
    with pytest.raises(ValueError, match=r"bonus_scale: 0\.7; accepted: 0\.1, 0\.3, 1"):
        jb.select(ds, bonus_scale=0.7)
    with pytest.raises(ValueError, match="scale: no such parameter; accepted: bonus_scale"):
        jb.select(ds, scale=1)


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


def test_random_policies_are_refused(ds):
    """Also one that is random at some stages: it is no policy of fewer stages."""
    part = ds.assign(final_policy=ds["final_policy"].where(ds["stage"] > 1))
    for random in (part, ds.assign(final_policy=ds["final_policy"] * np.nan)):
        with pytest.raises(ValueError, match="no policy of plain actions"):
            jb.final_policy(random, "uniform", "small")


@pytest.mark.parametrize("on_disk", [False, True])
def test_instances_and_indexes_come_back_bit_for_bit(ds, on_disk, tmp_path):
    read = jb.load(jb.save(ds, tmp_path / "x.nc")) if on_disk else ds
    assert read.sel(bonus_scale=0.3).identical(ds.sel(bonus_scale=0.3))
    for name, mdp in {"small": SMALL, "large": LARGE, "general": GENERAL}.items():
        found = jb.instance_of(read, name)
        assert digest(found) == digest(mdp)
        assert jb.labels_of(found).actions == jb.labels_of(mdp).actions
    labels = jb.labels_of(jb.instance_of(read, "large"))
    assert (labels.unit, labels.scale, labels.level) == ("$", 2.0, "capacity left")


def test_every_variable_says_what_it_is(ds):
    assert all(each.attrs["long_name"] and each.attrs["units"] for each in ds.variables.values())


def test_to_pandas_and_csv_and_back(ds, tmp_path):
    pandas = pytest.importorskip("pandas")
    regret = ds["regret"].sel(instance="small").isel(parameter=0, drop=True)
    frame = regret.drop_vars(["instance", "family", "varied"]).to_dataframe().reset_index()
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = pandas.read_csv(tmp_path / "x.csv").set_index(["learner", "seed", "episode"])
    back = xr.Dataset.from_dataframe(table)
    of = {"learner": "UCB-VI"}
    np.testing.assert_allclose(back["regret"].sel(of).values, regret.sel(of).values)
    theirs = names(back.sel(learner=["uniform"]) * 2, learner=["theirs"])
    both = xr.concat([back, theirs], dim="learner")
    assert jb.plot_regret(both).data["theirs"].center[-1] > 0


def test_regret_in_its_own_unit(ds, large):
    dollars = jb.in_units(large)
    np.testing.assert_allclose(dollars["regret"].values, 2.0 * large["regret"].values)
    assert dollars["regret"].attrs == {"long_name": "cumulative regret", "units": "$"}
    assert jb.plot_regret(dollars).axes.get_ylabel() == r"cumulative regret (\$)"
    assert jb.plot_regret(large).axes.get_ylabel() == "cumulative regret"
    assert jb.in_units(dollars)["regret"].equals(dollars["regret"])  # it is done once
    with pytest.raises(ValueError, match="units '', '\\$'; accepted: instances with one unit"):
        jb.in_units(ds)
