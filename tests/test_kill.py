"""A real sweep, killed with SIGKILL at random moments and resumed each time, ends as an uninterrupted one."""

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


def run_until_killed(options, folder, delay):
    """Kills the program ``delay`` seconds after it touched its checkpoint; True if it was still running."""
    before = (folder / "config.json").stat().st_mtime_ns if (folder / "config.json").exists() else 0
    process = subprocess.Popen([sys.executable, str(PROGRAM), json.dumps(options)], stderr=subprocess.PIPE)
    while process.poll() is None:
        if (folder / "config.json").exists() and (folder / "config.json").stat().st_mtime_ns > before:
            break
        time.sleep(0.01)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode != 0


def soak(tmp_path, sweep, kills, longest):
    """Kills at moments drawn from [0, longest) seconds, then lets the sweep finish; how many kills hit."""
    folder = tmp_path / "run"
    rng = np.random.default_rng(0)
    saving = {"checkpoint": str(folder), "checkpoint_seconds": 0}
    options = {"result": str(tmp_path / "run.nc"), "sweep": {**sweep, **saving}}
    hits = sum(run_until_killed(options, folder, rng.uniform(0, longest)) for _ in range(kills))
    if not (tmp_path / "run.nc").exists():
        subprocess.run([sys.executable, str(PROGRAM), json.dumps(options)], check=True)
    assert_same_bits(jb.load(tmp_path / "run.nc"), jb.sweep(**configuration(**sweep)))
    left = [path.name for path in folder.iterdir() if not path.name.startswith("done-")]
    assert left == ["config.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.nc"]
    return hits


def test_a_killed_sweep_goes_on(tmp_path):
    # a chunk takes milliseconds here, and each is saved: the kills fall between writes and into them
    hits = soak(tmp_path, {"only": "UCB-VI", "chunk_size": 100, "max_lanes": 8}, kills=3, longest=1.5)
    assert hits >= 1


@pytest.mark.slow
def test_a_sweep_killed_twenty_times_goes_on(tmp_path):
    sweep = {"num_episodes": 200_000, "chunk_size": 100, "max_lanes": 8, "engine": "episodes"}
    assert soak(tmp_path, sweep, kills=20, longest=6.0) == 20
