"""A real sweep, killed with SIGKILL at random moments and resumed each time, ends as an
uninterrupted one."""

import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from sweep_program import assert_same_bits, configuration, start, wait_for

import jaxbandit as jb


def run_until_killed(options, folder, pattern, delay):
    """Kills the program ``delay`` seconds after it wrote such a file; True if it was still
    running."""
    began = time.time_ns()
    process = start(**options)
    wait_for(process, folder, pattern, began)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return process.returncode != 0


def run_to_the_end(options):
    process = start(**options)
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def soak(tmp_path, sweep, kills, longest):
    """Kills a sweep at random moments, as often as asked for, and lets it finish: equal bits, and nothing is left behind.

    Moments are drawn from [0, longest) seconds after the program opened its checkpoint or saved a
    state. Every time it goes on with another number of lanes, of devices and of episodes in a chunk. A sweep that ends
    before enough kills have hit is looked at, and another one begins.
    """
    folder, result = tmp_path / "run", tmp_path / "run.nc"
    rng = np.random.default_rng(0)
    saving = {"checkpoint": str(folder), "checkpoint_seconds": 0}
    options = {"result": str(result), "sweep": {**sweep, **saving}}
    expected = jb.sweep(**configuration(**sweep))

    def look():
        assert_same_bits(jb.load(result), expected)
        left = sorted(path.name for path in folder.iterdir() if not path.name.startswith("done-"))
        assert left == ["config.json", "lock", "texts.gz"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.nc"]

    hits = leftovers = finished = 0
    for attempt in range(4 * kills):
        if hits == kills:
            break
        if result.exists():  # the sweep was faster than the kill
            look()
            finished += 1
            shutil.rmtree(folder)
            result.unlink()
        pattern = "*.jbk" if attempt % 4 else "config.json"
        options["devices"] = int(rng.integers(1, 3))
        options["sweep"]["max_lanes"] = [None, 16, 48][rng.integers(3)]
        options["sweep"]["chunk_size"] = sweep["chunk_size"] * int(rng.integers(1, 4))
        hits += run_until_killed(options, folder, pattern, rng.uniform(0, longest))
        leftovers += len(list(folder.glob("*.unfinished")))
    assert hits == kills
    if not result.exists():
        run_to_the_end(options)
    look()
    print(
        f"{kills} kills hit a running sweep in {attempt} attempts, {finished + 1} sweeps ended with equal bits; "
        f"unfinished files that kills left: {leftovers}"
    )


def test_a_killed_sweep_goes_on(tmp_path):
    # a chunk takes milliseconds here, and each is saved: the kills fall between writes and into
    # them
    sweep = {"only": "UCB-VI", "num_episodes": 60_000, "chunk_size": 100}
    soak(tmp_path, sweep, kills=2, longest=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sweep", "longest"),
    [
        ({"num_episodes": 400_000, "chunk_size": 100}, 1.0),
        ({"num_episodes": 400_000, "chunk_size": 100, "engine": "episodes"}, 1.0),
        ({"only": "ExpRef", "num_episodes": 10**9, "num_seeds": 8000, "chunk_size": 1}, 0.3),
    ],
    ids=["both engines", "episodes", "blocks"],
)
def test_a_sweep_killed_fifty_times_goes_on(tmp_path, sweep, longest):
    soak(tmp_path, sweep, kills=50, longest=longest)


def stopped(options, folder, *signals):
    """Runs the program, sends it signals once it has saved a state, and returns its code and last words."""
    began = time.time_ns()
    process = start(**options)
    wait_for(process, folder, "carry-*.jbk", began)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_a_program_that_is_told_to_stop_saves_and_goes_on(tmp_path):
    """SIGTERM, then Ctrl-C twice, then to the end: real processes, one checkpoint."""
    folder = tmp_path / "run"
    sweep = {"only": "UCB-VI", "num_episodes": 60_000, "chunk_size": 100}
    saving = {"checkpoint": str(folder), "checkpoint_seconds": 0}
    options = {"result": str(tmp_path / "run.nc"), "sweep": {**sweep, **saving}}
    code, errors = stopped(options, folder, signal.SIGTERM)
    assert code == 1
    assert "SweepInterrupted: sweep stopped by SIGTERM; what is done is saved" in errors
    code, errors = stopped(options, folder, signal.SIGINT, signal.SIGINT)
    # a second Ctrl-C may come when the first has been obeyed already
    assert code in (1, 130, -signal.SIGINT), errors
    assert "KeyboardInterrupt" in errors or "SweepInterrupted" in errors
    assert not list(folder.glob("*.unfinished"))
    options["sweep"]["checkpoint_seconds"] = 10
    run_to_the_end(options)
    assert_same_bits(jb.load(tmp_path / "run.nc"), jb.sweep(**configuration(**sweep)))
