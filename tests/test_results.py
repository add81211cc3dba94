"""Results on disk: the same Dataset comes back, files appear whole or not at all, nothing is overwritten."""

import json

import h5py
import numpy as np
import pytest
import xarray

import jaxbandit as jb


def make(value=0.0):
    regret = np.linspace(0, 1, 24).reshape(2, 3, 4) + value
    regret[0, 1, 2] = np.nan
    return xarray.Dataset(
        {
            "regret": (("learner", "seed", "episode"), regret),
            "final_policy": (("learner", "seed"), np.array([[0, 1, np.nan]] * 2, np.float32)),
            "count": ("seed", np.arange(3)),
            "optimal_value": ((), 0.25),
        },
        coords={
            "learner": ["ExpRef", "UCB-VI, c = 0.25 · α̂"],
            "seed": np.arange(3),
            "episode": np.array([1, 10, 100, 10**12]),
            "family": ("learner", ["a", ""]),
        },
        attrs={
            "config": json.dumps({"seed": 0, "params": [0.1, None]}),
            "created": "2026-01-01T00:00:00+00:00",
        },
    )


def test_round_trip_is_identical(tmp_path):
    dataset = make()
    path = jb.save(dataset, tmp_path / "deep" / "run.nc")
    loaded = jb.load(path)
    xarray.testing.assert_identical(loaded, dataset)
    assert loaded["regret"].dtype == np.float64
    assert loaded["final_policy"].dtype == np.float32
    assert loaded["episode"].dtype == np.int64
    assert loaded["regret"].values.tobytes() == dataset["regret"].values.tobytes()
    assert [p.name for p in path.parent.iterdir()] == ["run.nc"]


def test_a_loaded_dataset_saves_again(tmp_path):
    dataset = make()
    again = jb.save(jb.load(jb.save(dataset, tmp_path / "a.nc")), tmp_path / "b.nc")
    xarray.testing.assert_identical(jb.load(again), dataset)


def test_numbers_are_compressed(tmp_path):
    path = jb.save(make(), tmp_path / "run.nc")
    with h5py.File(path) as file:
        assert file["regret"].compression == "gzip"
        assert file["regret"].shuffle


def test_never_overwrites_unless_told(tmp_path):
    path = jb.save(make(), tmp_path / "run.nc")
    with pytest.raises(
        FileExistsError, match=r"run\.nc exists; give another name, or overwrite=True to replace it"
    ):
        jb.save(make(1.0), path)
    xarray.testing.assert_identical(jb.load(path), make())
    jb.save(make(1.0), path, overwrite=True)
    xarray.testing.assert_identical(jb.load(path), make(1.0))


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = jb.save(make(), tmp_path / "run.nc")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match=r"cannot write the results to .*run\.nc: .*No space left"):
        jb.save(make(1.0), path, overwrite=True)
    monkeypatch.undo()
    xarray.testing.assert_identical(jb.load(path), make())
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_load_errors(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"none\.nc does not exist; accepted: a file written by jaxbandit\.save"
    ):
        jb.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not a netCDF file")
    with pytest.raises(ValueError, match=r"text\.nc is not readable as netCDF .*accepted: a file written by"):
        jb.load(tmp_path / "text.nc")
