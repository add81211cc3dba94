"""The axis of parameters: xarray selects by the values."""

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.results.axes import parameter_coordinates, parameter_table, readable

SCALES = [0.1, 0.3, 1.0]


@pytest.fixture(scope="module")
def swept():
    learners = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=SCALES),
        "uniform": jb.make_learner("uniform"),
    }
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    return jb.sweep(learners, {"I1": mdp}, num_episodes=40, num_seeds=2, progress=False)


@pytest.mark.parametrize("index", range(3))
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
    learner = jb.grid(jb.make_learner("expref"), threshold=[0.1, 0.2], episodes_scale=[0.01, 0.02])
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    ds = jb.sweep({"E": learner}, {"I1": mdp}, num_episodes=40, num_seeds=1, progress=False)
    found = ds.sel(threshold=0.2).sel(episodes_scale=0.01)
    assert found["regret"].identical(ds["regret"].isel(parameter=2))
    assert jb.select(ds, threshold=0.2, episodes_scale=0.01)["parameter"].values.tolist() == [2]


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
