"""The axes of a result: what is no result is refused before a number is made of it, parts of results are results, and xarray
selects by the values of parameters."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import synthetic_sweep

import jaxbandit as jb
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


def test_without_regret():
    for name in ("compare", "final_table", "profiles", "improvement"):
        with pytest.raises(ValueError, match="ds: no variable 'regret'; accepted: the Dataset"):
            USERS[name](DS.drop_vars("regret"))
    with pytest.raises(ValueError, match="ds: no variable 'final_policy'; accepted"):
        jb.final_policy(DS[["regret"]], FIRST, "I1")


def test_parts_are_results():
    """A dimension that xarray has dropped is one with a single entry."""
    part, same = DS.sel(instance="I1"), DS.sel(instance=["I1"])
    assert whole(part).sizes == same.sizes
    assert jb.stats.compare(part).means == jb.stats.compare(same).means
    assert jb.stats.final_table(part) == jb.stats.final_table(same)
    assert list(jb.plot_final(part).data) == list(jb.plot_final(same).data)
    alone = DS.isel(learner=0)
    assert jb.stats.final_table(alone) == jb.stats.final_table(DS, learners=[FIRST])
    assert check_axes(DS) is DS


SCALES = [0.1, 0.3, 1.0]
MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)


@pytest.fixture(scope="module")
def swept():
    learners = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=SCALES),
        "uniform": jb.make_learner("uniform"),
    }
    return jb.sweep(learners, {"I1": MDP}, num_episodes=40, num_seeds=2, progress=False)


@pytest.mark.parametrize("index", [0, 2])
def test_sel_finds_the_value_as_it_was_written(swept, index):
    found = swept.sel(bonus_scale=SCALES[index])
    assert "parameter" not in found["regret"].dims
    assert found["bonus_scale"].item() == SCALES[index]
    assert found["regret"].identical(swept["regret"].isel(parameter=index))
    assert not found["regret"].isnull().any()  # uniform stays
    chosen = swept.sel(learner="UCB-VI", bonus_scale=SCALES[index])
    np.testing.assert_array_equal(
        chosen["regret"].values,
        swept["regret"].sel(learner="UCB-VI").isel(parameter=index).values,
    )
    assert list(jb.plot_regret(chosen).data) == ["UCB-VI"]
    assert list(jb.plot_regret(found).data) == ["UCB-VI", "uniform"]


def test_a_learner_that_varies_nothing_is_drawn_once(swept):
    labels = [f"UCB-VI, bonus_scale = {scale:g}" for scale in SCALES]
    assert list(jb.plot_regret(swept).data) == [*labels, "uniform"]
    assert list(jb.plot_regret(swept.sel(bonus_scale=[0.1, 1.0])).data) == [
        labels[0],
        labels[2],
        "uniform",
    ]
    assert list(jb.plot_regret(swept.sel(learner="uniform")).data) == ["uniform"]
    assert list(jb.plot_parameter(swept).data) == ["UCB-VI", "uniform"]


def test_other_habits(swept):
    assert swept.sel(bonus_scale=0.28, method="nearest")["bonus_scale"].item() == 0.3
    assert swept.sel(bonus_scale=slice(0.2, None)).sizes["parameter"] == 2
    with pytest.raises(KeyError):
        swept.sel(bonus_scale=0.2)
    gap = swept["regret"].sel(learner="UCB-VI") - swept["regret"].sel(learner="uniform")
    assert gap.sel(bonus_scale=0.1).sizes == {"instance": 1, "seed": 2, "episode": 40}
    renamed = swept.assign_coords(learner=["a", "b"])
    both = xr.concat([swept, renamed], dim="learner", data_vars="minimal")
    assert both.sel(bonus_scale=0.1).sizes["learner"] == 4


def test_indexes_come_back_from_a_file(swept, tmp_path):
    read = jb.load(jb.save(swept, tmp_path / "run.nc"))
    assert read.identical(swept)
    assert read.sel(bonus_scale=0.3).identical(swept.sel(bonus_scale=0.3))


def test_two_parameters_one_after_the_other():
    def act(state, key, constants):
        return jnp.full((3, 2), (constants["x"] + constants["y"]).astype(jnp.int32), jnp.int32)

    learner = jb.Learner(
        lambda *_: jnp.int32(0), act, lambda state, *_: state, params={"x": 0.0, "y": 0.0}
    )
    ds = jb.sweep(jb.grid(learner, x=[0, 1], y=[0, 1]), MDP, 40, num_seeds=1, progress=False)
    found = ds.sel(x=1.0).sel(y=0.0)
    assert found["regret"].identical(ds["regret"].isel(parameter=2))
    assert jb.select(ds, x=1, y=0)["parameter"].values.tolist() == [2]


def test_different_points_are_a_table_without_an_index():
    grids = {
        "A": (("scale",), {"scale": np.float32([0.1, 0.5])}),
        "B": (("scale",), {"scale": np.float32([0.1, 0.5, 1.0])}),
        "C": ((), {"scale": np.float32([0.5])}),
    }
    found = parameter_coordinates(grids)
    dims, table = found["scale"]
    assert dims == ("learner", "parameter")
    np.testing.assert_array_equal(table, [[0.1, 0.5, np.nan], [0.1, 0.5, 1.0], [np.nan] * 3])
    assert found["varied"][1].tolist() == [True, True, False]
    ds = xr.Dataset(coords={"learner": list(grids), **found})
    np.testing.assert_array_equal(parameter_table(ds, "scale"), table)


def test_readable():
    assert readable(np.float64([0.1])).tolist() == [0.1]
    assert readable(np.array([True, False])).tolist() == [1.0, 0.0]
    assert np.isnan(readable(np.float32([np.nan]))).all()


def test_learners_that_vary_different_parameters():
    """Two learners share a parameter and its values, a third has another one."""
    one = (("threshold",), {"threshold": np.array([0.1, 0.2])})
    other = (("learning_rate",), {"learning_rate": np.array([1.0, 4.0])})
    found = parameter_coordinates({"a": one, "b": one, "c": other})
    nan = np.nan
    np.testing.assert_array_equal(found["threshold"][1], [[0.1, 0.2], [0.1, 0.2], [nan, nan]])
    np.testing.assert_array_equal(found["learning_rate"][1], [[nan, nan], [nan, nan], [1, 4]])
