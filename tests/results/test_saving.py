"""Results on disk: the same Dataset comes back, files appear whole or not at all, nothing is
overwritten."""

import json
import warnings

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
        FileNotFoundError,
        match=r"none\.nc does not exist; accepted: a file written by jaxbandit\.save",
    ):
        jb.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not a netCDF file")
    with pytest.raises(
        ValueError, match=r"text\.nc is not readable as netCDF .*accepted: a file written by"
    ):
        jb.load(tmp_path / "text.nc")


def small():
    return xarray.Dataset(
        {"regret": (("learner", "episode"), np.linspace(0, 1, 8).reshape(2, 4))},
        coords={"learner": ["ExpRef", "UCB-VI"], "episode": np.array([1, 10, 100, 10**12])},
        attrs={"config": "{}"},
    )


def damage_is_seen(folder, places):
    """Flips one bit at each place; what loads without an error must be what was saved."""
    content = jb.save(small(), folder / "run.nc").read_bytes()
    damaged = folder / "damaged.nc"
    refused = 0
    for place in places(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        damaged.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                loaded = jb.load(damaged)
        except (ValueError, UserWarning):
            refused += 1
        else:
            xarray.testing.assert_identical(loaded, small())
    return refused


def test_damaged_files_are_refused_or_whole(tmp_path):
    assert damage_is_seen(tmp_path, lambda size: range(3, size, 211)) > 0


@pytest.mark.slow
def test_every_byte_of_a_file(tmp_path):
    assert damage_is_seen(tmp_path, range) > 1000


def test_truncated_files_are_refused(tmp_path):
    path = jb.save(small(), tmp_path / "run.nc")
    content = path.read_bytes()
    for length in (0, 1, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"run\.nc is not readable as netCDF"):
            jb.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file["regret"].__setitem__((0, 0), 5.0),
        lambda file: file["episode"].__setitem__(0, 2),
        lambda file: file["learner"].__setitem__(0, "UCB"),
        lambda file: file.attrs.__setitem__("config", "{ }"),
        lambda file: file["regret"].attrs.__setitem__("scale_factor", 2.0),
        lambda file: file["regret"].attrs.__setitem__("_FillValue", 1.0),
        lambda file: file.move("regret", "Regret"),
    ],
)
def test_what_was_changed_after_it_was_written_is_refused(tmp_path, change):
    path = jb.save(small(), tmp_path / "run.nc")
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(
        ValueError, match=r"run\.nc is damaged, or was changed after it was written"
    ):
        jb.load(path)


def test_files_of_other_programs_load_with_a_warning(tmp_path):
    small().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.warns(UserWarning, match=r"other\.nc has no checksum"):
        loaded = jb.load(tmp_path / "other.nc")
    xarray.testing.assert_identical(loaded, small())


SECRET = np.arange(8.0)


def external_storage(file, folder):
    (folder / "secret").write_bytes(SECRET.tobytes())
    file.create_dataset("regret", (8,), "f8", external=[(str(folder / "secret"), 0, 64)])


def external_link(file, folder):
    with h5py.File(folder / "secret", "w") as other:
        other["regret"] = SECRET
    file["regret"] = h5py.ExternalLink(str(folder / "secret"), "/regret")


def virtual(file, folder):
    with h5py.File(folder / "secret", "w") as other:
        other["regret"] = SECRET
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource(folder / "secret", "regret", (8,))
    file.create_virtual_dataset("regret", layout)


def soft_link(file, folder):
    file["hidden"] = SECRET
    file["regret"] = h5py.SoftLink("/hidden")


def too_large(file, folder):
    file.create_dataset("regret", (2**40,), "f8", chunks=(1024,), compression="gzip")


def too_large_in_a_group(file, folder):
    file.create_dataset("deep/regret", (2**40,), "f8", chunks=(1024,))


def large_chunk(file, folder):
    file.create_dataset("regret", (8,), "f8", chunks=(2**28,), maxshape=(None,))


def other_filter(file, folder):
    file.create_dataset("regret", data=SECRET, chunks=(8,), compression="lzf")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (external_storage, "'regret' keeps its data in another file"),
        (external_link, "'regret' is a link to another place"),
        (virtual, "'regret' keeps its data in another file"),
        (soft_link, "'regret' is a link to another place"),
        (too_large, r"'regret' declares 8,796,093,022,208 bytes, more than the file can hold"),
        (too_large_in_a_group, "'regret' declares .* more than the file can hold"),
        (large_chunk, "'regret' declares .* more than the file can hold"),
        (other_filter, "'regret' is compressed in an unknown way"),
    ],
)
def test_hostile_files_read_nothing_else(tmp_path, build, message):
    path = tmp_path / "hostile.nc"
    with h5py.File(path, "w") as file:
        build(file, tmp_path)
    with pytest.raises(ValueError, match=rf"hostile\.nc is not readable as netCDF \({message}\)"):
        jb.load(path)


@pytest.mark.parametrize("name", ["x.csv", "x", "x.nc.gz", "x.NC", "x.npz"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"path: .*; accepted: a name that ends in \.nc"):
        jb.save(small(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [None, 3, "", "a\0b.nc", b"run.nc"])
def test_paths_that_are_none(path):
    for call in (lambda: jb.save(small(), path), lambda: jb.load(path)):
        with pytest.raises(ValueError, match=r"path: .*; accepted: the name of a file"):
            call()


def test_what_is_no_dataset(tmp_path):
    with pytest.raises(TypeError, match="dataset: dict; accepted: the Dataset of a sweep"):
        jb.save({}, tmp_path / "run.nc")
    with pytest.raises(ValueError, match="dataset: cannot be written as netCDF"):
        jb.save(small().assign_attrs(strange=object()), tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())
