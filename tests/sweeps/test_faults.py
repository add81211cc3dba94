"""What machines do to sweeps: full disks, vanished directories, other sweeps, lost processes. Nothing that was saved is lost,
nothing is half-written, and what goes on ends with the same bits."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest
from sweep_program import assert_same_bits, configuration, start, wait_for

import jaxbandit as jb

SWEEP = {"only": "UCB-VI", "num_episodes": 60_000, "chunk_size": 100}
BOUND = 120
"""Seconds within which the processes of a run must end when one of them is lost; a heartbeat is 30."""


def uninterrupted():
    return jb.sweep(**configuration(**SWEEP))


def test_a_second_sweep_on_the_same_directory_is_refused_and_the_first_is_right(tmp_path):
    folder = tmp_path / "run"
    saving = {"checkpoint": str(folder), "checkpoint_seconds": 0}
    first = start(result=str(tmp_path / "first.nc"), sweep=SWEEP | saving)
    wait_for(first, folder, "carry-*.jbk")
    with pytest.raises(jb.CheckpointError, match="another sweep is using this directory now; wait"):
        jb.sweep(**configuration(**SWEEP | saving))
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors
    alone = uninterrupted()
    assert_same_bits(jb.load(tmp_path / "first.nc"), alone)
    # now that it is free, everything is found there
    assert_same_bits(jb.sweep(**configuration(**SWEEP | saving)), alone)


def test_a_directory_that_vanishes_is_named(tmp_path):
    folder = tmp_path / "run"
    taken = []

    def take_away(progress):
        if not taken and list(folder.glob("carry-*.jbk")):
            taken.append(progress.episodes)
            os.rename(folder, tmp_path / "elsewhere")

    how = {"checkpoint": folder, "checkpoint_seconds": 0, "on_chunk": take_away, "devices": 1}
    with pytest.raises(
        jb.CheckpointError, match=r"cannot write .*carry-.*No such file or directory"
    ):
        jb.sweep(**configuration(**SWEEP | how | {"num_episodes": 10**6}))
    assert taken


FULL = """
import json, resource, signal, sys
import numpy as np, xarray
import jaxbandit as jb
folder = sys.argv[1]
noise = np.random.default_rng(0).random((2, 1, 40, 400))
axes = ("learner", "instance", "seed", "episode")
names = {"learner": ["A", "B"], "instance": ["I"], "seed": np.arange(40), "episode": np.arange(1, 401)}
large = xarray.Dataset({"regret": (axes, noise.cumsum(-1))}, names)
small = large.isel(seed=slice(2), episode=slice(0, 400, 100))
jb.save(small, f"{folder}/run.nc")
jb.plot_regret(small).save(f"{folder}/run.png")
before = open(f"{folder}/run.png", "rb").read()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, resource.RLIM_INFINITY))
told = []
for write in (lambda: jb.save(large, f"{folder}/run.nc", overwrite=True),
              lambda: jb.save(large, f"{folder}/other.nc"),
              lambda: jb.plot_regret(large).save(f"{folder}/run.png"),
              lambda: jb.plot_regret(large).save(f"{folder}/other.png")):
    try:
        write()
    except OSError as error:
        told.append(str(error))
assert jb.load(f"{folder}/run.nc").identical(small)
assert open(f"{folder}/run.png", "rb").read() == before
print(json.dumps(told))
"""


def test_a_write_that_the_system_refuses_leaves_the_old_result_and_figure(tmp_path, printed):
    """Files of the other process may not pass 8 kB, which the new ones would."""
    told = json.loads(printed(FULL, tmp_path))
    assert len(told) == 4
    assert all("cannot write" in text and str(tmp_path) in text for text in told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.nc", "run.png"]


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of that size; where this user may not mount one, the test ends here."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path):
    """A checkpoint meets it in the middle of a sweep, then there is room again."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        filler, run = disk / "filler", disk / "run"
        sweep = SWEEP | {"checkpoint": str(run), "checkpoint_seconds": 0}
        process = start(result=str(tmp_path / "run.nc"), sweep=sweep)
        wait_for(process, run, "carry-*.jbk")
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "CheckpointError: checkpoint: cannot write" in errors
        assert "No space left on device" in errors
        assert not list(run.glob("*.unfinished"))
        with pytest.raises(OSError, match=r"cannot write the results to .*run\.nc.*No space left"):
            jb.save(uninterrupted(), disk / "run.nc")
        with pytest.raises(OSError, match="No space left on device"):
            jb.plot_regret(uninterrupted(), instance="I1").save(disk / "run.png")
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "run"]
        filler.unlink()
        again = start(result=str(tmp_path / "run.nc"), sweep=sweep)
        _, errors = again.communicate(timeout=120)
        assert again.returncode == 0, errors
        assert_same_bits(jb.load(tmp_path / "run.nc"), uninterrupted())


def two_processes(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    sweep = SWEEP | {"checkpoint": str(tmp_path / "run"), "checkpoint_seconds": 0, "num_seeds": 40}
    return [
        start(result=str(tmp_path / f"{rank}.nc"), processes=[coordinator, 2, rank], sweep=sweep)
        for rank in (0, 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_process_ends_the_run_in_bounded_time_and_all_of_it_goes_on(tmp_path, lost):
    """Without process 0, which coordinates, jax itself ends the other at once; else the error is ours."""
    processes = two_processes(tmp_path)
    wait_for(processes[lost], tmp_path / "run", "carry-*.jbk")
    processes[lost].kill()
    began = time.monotonic()
    _, errors = processes[1 - lost].communicate(timeout=BOUND)
    processes[lost].communicate()
    assert processes[1 - lost].returncode != 0
    assert time.monotonic() - began < BOUND
    assert ("LostProcessError: another process of this run is lost" in errors) or (
        "JAX distributed service detected fatal errors" in errors
    )
    again = two_processes(tmp_path)
    for process in again:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    alone = jb.sweep(**configuration(**SWEEP | {"num_seeds": 40}))
    for rank in (0, 1):
        assert_same_bits(jb.load(tmp_path / f"{rank}.nc"), alone)


def test_an_error_of_on_chunk_ends_all_workers(tmp_path):
    """Else they would go on unseen, and write to a directory that is no longer theirs."""

    def fail(progress):
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        jb.sweep(**configuration(**SWEEP | {"num_episodes": 10**7, "on_chunk": fail}))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]


def test_the_state_of_other_runs_is_not_taken_for_a_tiles_own(tmp_path):
    """Two whole files under each other's names, as a clumsy copy leaves them."""
    folder = tmp_path / "run"
    sweep = SWEEP | {"num_seeds": 32, "num_episodes": 40_000, "devices": 2}

    class Enough(Exception):  # noqa: N818
        pass

    def stop(progress):
        if len({path.name.split(".")[0] for path in folder.glob("carry-*")}) > 1:
            raise Enough

    saving = {"checkpoint": folder, "checkpoint_seconds": 0}
    with pytest.raises(Enough):
        jb.sweep(**configuration(**sweep | saving | {"on_chunk": stop}))
    states = {path.name.split(".")[0]: path.read_bytes() for path in folder.glob("carry-*")}
    for path in folder.glob("carry-*"):
        path.unlink()
    names = sorted(states)
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        (folder / f"{name}.0.jbk").write_bytes(states[other])
    with pytest.warns(UserWarning, match="is not its own, or does not fit this engine"):
        again = jb.sweep(**configuration(**sweep | {"checkpoint": folder}))
    assert_same_bits(again, jb.sweep(**configuration(**sweep)))
