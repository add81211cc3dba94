"""Results on disk: the same Dataset comes back, files appear whole or not at all, nothing is
overwritten."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

import jaxbandit as jb
from jaxbandit.results import io as results_io

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Files that are damaged many thousand times need no disk."""


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
    with h5py.File(path) as file:
        assert file["regret"].compression == "gzip"
    again = jb.save(loaded, tmp_path / "again.nc")
    xarray.testing.assert_identical(jb.load(again), dataset)


def test_never_overwrites_unless_told(tmp_path):
    path = jb.save(make(), tmp_path / "run.nc")
    refused = r"run\.nc exists; give another name, or overwrite=True to replace it"
    with pytest.raises(FileExistsError, match=refused):
        jb.save(make(1.0), path)
    xarray.testing.assert_identical(jb.load(path), make())
    jb.save(make(1.0), path, overwrite=True)
    xarray.testing.assert_identical(jb.load(path), make(1.0))


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    with open(tmp_path / "sparse.nc", "wb") as file:
        file.truncate(2**43)
    for name, reason in (("pipe", "not a regular file"), ("sparse", "at most")):
        with pytest.raises(
            ValueError, match=rf"path: .*{name}\.nc: .*{reason}.*; accepted: a file"
        ):
            jb.load(tmp_path / f"{name}.nc")


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
    missing = r"none\.nc does not exist; accepted: a file written by jaxbandit\.save"
    with pytest.raises(FileNotFoundError, match=missing):
        jb.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not a netCDF file")
    with pytest.raises(ValueError, match=r"text\.nc is not readable .*accepted: a file written by"):
        jb.load(tmp_path / "text.nc")


def small():
    return xarray.Dataset(
        {"regret": (("learner", "episode"), np.linspace(0, 1, 8).reshape(2, 4))},
        coords={"learner": ["ExpRef", "UCB-VI"], "episode": np.array([1, 10, 100, 10**12])},
        attrs={"config": "{}"},
    )


def outcome(content, path):
    """What becomes of a file with this content: "refused", "warned" or "whole"; anything else is an error."""
    path.write_bytes(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            loaded = jb.load(path)
        except ValueError:
            return "refused"
    if loaded.identical(small()):
        return "whole"
    assert said, "changed, and no word"
    return "warned"


def flipped(content, bits):
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        yield bytes(changed)


def truncated(content, lengths):
    return (content[:length] for length in lengths)


def count_outcomes(damage, places, sealed=True):
    """How often which outcome, for one kind of damage at each of the places."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        content = jb.save(small(), Path(folder) / "run.nc").read_bytes()
        content = content if sealed else content[: content.rindex(results_io.SEAL)]
        damaged = damage(content, places(len(content)))
        return Counter(outcome(each, Path(folder) / "damaged.nc") for each in damaged)


def test_damaged_files_are_refused_or_whole():
    counts = count_outcomes(flipped, lambda size: range(5, 8 * size, 211))
    assert counts["refused"] > 500
    assert set(counts) == {"refused", "whole"}
    assert set(count_outcomes(truncated, lambda size: range(0, size, 97))) == {"refused"}


def test_without_the_seal_the_content_is_checked():
    counts = count_outcomes(flipped, lambda size: range(5, 8 * size, 1999), sealed=False)
    assert counts["refused"] > 0
    assert set(counts) <= {"refused", "whole"}


def test_a_lost_seal_loses_nothing():
    """A part of the seal is refused; without any of it (24 letters) the other checksum is there."""
    counts = count_outcomes(truncated, lambda size: range(size - 89, size))
    assert counts == {"refused": 65, "whole": 24}


IN_A_PROCESS = """
import sys; sys.path[:0] = sys.argv[1:3]
import test_io as t
damage, first, last, sealed = sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6] == "sealed"
print(dict(t.count_outcomes(getattr(t, damage), lambda size: range(first, last), sealed)))
"""


def count_in_processes(damage, places, sealed):
    """The same in batches, each in a process of its own, so that HDF5 may end it and is found out."""
    counts = Counter()
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    for first in range(0, places, 20_000):
        span = [str(first), str(min(first + 20_000, places))]
        arguments = [*paths, damage, *span, "sealed" if sealed else "open"]
        done = subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (span, done.returncode, done.stderr[-2000:])
        counts.update(ast.literal_eval(done.stdout))
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [True, False])
def test_every_bit_of_a_file_and_every_length(tmp_path, sealed):
    """Without the seal HDF5 reads all that was changed: an hour or so."""
    size = jb.save(small(), tmp_path / "run.nc").stat().st_size - (0 if sealed else 89)
    bits = count_in_processes("flipped", 8 * size, sealed)
    lengths = count_in_processes("truncated", size, sealed)
    print(f"{size} bytes; bits {dict(bits)}; lengths {dict(lengths)}")
    assert (bits.total(), lengths.total()) == (8 * size, size)
    if sealed:
        assert bits["refused"] >= 8 * (size - 89)
        assert lengths["refused"] == size - 24


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file["regret"].__setitem__((0, 0), 5.0),
        lambda file: file["episode"].__setitem__(0, 2),
        lambda file: file["learner"].__setitem__(0, "UCB"),
        lambda file: file.attrs.__setitem__("config", "{ }"),
        lambda file: file["regret"].attrs.__setitem__("scale_factor", 2.0),
        lambda file: file["regret"].attrs.__setitem__("units", "cents"),
        lambda file: file["regret"].attrs.__setitem__("_FillValue", 1.0),
        lambda file: file.move("regret", "Regret"),
    ],
)
def test_what_was_changed_after_it_was_written_is_refused(tmp_path, change):
    path = jb.save(small(), tmp_path / "run.nc")
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(ValueError, match=r"run\.nc is damaged, or was changed after it was writ"):
        jb.load(path)


def test_files_of_other_programs_load_with_a_warning(tmp_path):
    small().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.warns(UserWarning, match=r"other\.nc has no checksum"):
        loaded = jb.load(tmp_path / "other.nc")
    xarray.testing.assert_identical(loaded, small())


SECRET = np.arange(8.0)


def external_storage(file, folder):
    (folder / "raw").write_bytes(SECRET.tobytes())
    file.create_dataset("regret", (8,), "f8", external=[(str(folder / "raw"), 0, 64)])


def virtual(file, folder):
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource(folder / "secret", "regret", (8,))
    file.create_virtual_dataset("regret", layout)


def linked(to):
    return lambda file, folder: file.__setitem__("regret", to(folder))


def declared(name="regret", shape=(8,), **how):
    return lambda file, folder: file.create_dataset(name, shape, "f8", **how)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (external_storage, "'regret' keeps its data in another file"),
        (virtual, "'regret' keeps its data in another file"),
        (linked(lambda folder: h5py.ExternalLink(str(folder / "secret"), "/regret")), "'regret' is a link to another place"),
        (linked(lambda _: h5py.SoftLink("/hidden")), "'regret' is a link to another place"),
        (declared(shape=(2**40,), chunks=(1024,), compression="gzip"), r"'regret' declares 8,796,093,022,208 bytes, more than the file can hold"),
        (declared("deep/regret", (2**40,), chunks=(1024,)), "'regret' declares .* more than the file can hold"),
        (declared(chunks=(2**28,), maxshape=(None,)), "'regret' declares .* more than the file can hold"),
        (declared(chunks=(8,), compression="lzf"), "'regret' is compressed in an unknown way"),
    ],
)  # fmt: skip
def test_hostile_files_read_nothing_else(tmp_path, build, message):
    path = tmp_path / "hostile.nc"
    with h5py.File(tmp_path / "secret", "w") as other, h5py.File(path, "w") as file:
        other["regret"] = file["hidden"] = SECRET
        build(file, tmp_path)
    with pytest.raises(ValueError, match=rf"hostile\.nc is not readable as netCDF \({message}\)"):
        jb.load(path)


def test_a_maze_of_links_is_walked_once(tmp_path):
    """Every group is in the next one under many names: 40^7 ways to the last."""
    with h5py.File(tmp_path / "maze.nc", "w") as file:
        inner = file.create_group("g0")
        for depth in range(1, 8):
            outer = file.create_group(f"g{depth}")
            for way in range(40):
                outer[f"way{way}"] = inner
            inner = outer
    with pytest.warns(UserWarning, match="has no checksum"):
        assert not jb.load(tmp_path / "maze.nc").sizes


HARM = "\x1b]0;x\x07"


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.assign_coords(learner=[HARM, "UCB-VI"]),
        lambda ds: ds.assign_coords(learner=["a\u202eb", "UCB-VI"]),
        lambda ds: ds.assign_coords(learner=["a\x9b31m", "UCB-VI"]),
        lambda ds: ds.assign_coords(learner=["\r", "UCB-VI"]),
        lambda ds: ds.assign_attrs(created=HARM),
        lambda ds: ds.assign_attrs({HARM: "x"}),
        lambda ds: ds.assign({HARM: ds["regret"]}),
        lambda ds: ds.rename(episode=HARM),
        lambda ds: ds.assign(regret=ds["regret"].assign_attrs(units=HARM)),
    ],
)
def test_texts_that_would_do_something_are_neither_written_nor_read(tmp_path, change):
    """A stranger can make the checksums right."""
    harmful = change(small())
    with pytest.raises(ValueError, match=r"dataset: .*; accepted: "):
        jb.save(harmful, tmp_path / "new" / "run.nc")
    assert not list(tmp_path.iterdir())
    harmful.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"run\.nc is not readable as netCDF .*; accepted: "):
        jb.load(tmp_path / "run.nc")


def test_notes_may_have_lines(tmp_path):
    noted = small().assign_attrs(note="one\n\n\ttwo", empty="", list=["a", ""], number=3)
    loaded = jb.load(jb.save(noted, tmp_path / "run.nc"))
    assert loaded.attrs["note"] == "one\n\n\ttwo"


@pytest.mark.parametrize("name", ["x.csv", "x", "x.nc.gz", "x.NC", "x.npz"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"path: .*; accepted: a name that ends in \.nc"):
        jb.save(small(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [None, 3, "", "a\0b.nc", b"run.nc", "\ud800"])
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
