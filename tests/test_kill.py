"""A real sweep, killed with SIGKILL at random moments and resumed each time, ends as an uninterrupted one."""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sweep_program import assert_same_bits, configuration

import jaxbandit as jb

PROGRAM = pathlib.Path(__file__).parent / "sweep_program.py"


def run_until_killed(options, folder, pattern, delay):
    """Kills the program ``delay`` seconds after it wrote such a file; True if it was still running."""
    began = time.time_ns()
    process = subprocess.Popen([sys.executable, str(PROGRAM), json.dumps(options)], stderr=subprocess.PIPE)
    while process.poll() is None and newest(folder, pattern) < began:
        time.sleep(0.005)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode != 0


def newest(folder, pattern):
    """When the newest such file was written; files come and go while we look."""
    times = [0]
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            times.append(path.stat().st_mtime_ns)
    return max(times)


def soak(tmp_path, sweep, kills, longest):
    """Kills at random moments, then lets the sweep finish; how many kills hit.

    Moments are drawn from [0, longest) seconds after the program opened its checkpoint or saved a state.
    """
    folder = tmp_path / "run"
    rng = np.random.default_rng(0)
    saving = {"checkpoint": str(folder), "checkpoint_seconds": 0}
    options = {"result": str(tmp_path / "run.nc"), "sweep": {**sweep, **saving}}
    hits = leftovers = 0
    for kill in range(kills):
        pattern = "*.jbk" if kill % 4 else "config.json"
        hits += run_until_killed(options, folder, pattern, rng.uniform(0, longest))
        leftovers += len(list(folder.glob("*.unfinished")))
    if not (tmp_path / "run.nc").exists():
        subprocess.run([sys.executable, str(PROGRAM), json.dumps(options)], check=True)
    assert_same_bits(jb.load(tmp_path / "run.nc"), jb.sweep(**configuration(**sweep)))
    left = [path.name for path in folder.iterdir() if not path.name.startswith("done-")]
    assert left == ["config.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.nc"]
    print(f"kills that hit a running sweep: {hits} of {kills}; unfinished files they left: {leftovers}")
    return hits


def test_a_killed_sweep_goes_on(tmp_path):
    # a chunk takes milliseconds here, and each is saved: the kills fall between writes and into them
    assert soak(tmp_path, {"only": "UCB-VI", "chunk_size": 100, "max_lanes": 8}, kills=3, longest=0.3) >= 1


@pytest.mark.slow
def test_a_sweep_killed_twenty_times_goes_on(tmp_path):
    sweep = {"num_episodes": 100_000, "chunk_size": 100, "max_lanes": 8}
    assert soak(tmp_path, sweep, kills=20, longest=1.0) == 20
