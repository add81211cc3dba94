"""Devices and processes change no bit: two devices in one process, and two real processes on
loopback."""

import json
import pathlib
import socket
import subprocess
import sys

import jax
import pytest
from sweep_program import assert_same_bits, configuration

import jaxbandit as jb
from jaxbandit import distributed

PROGRAM = pathlib.Path(__file__).parent / "sweep_program.py"


def start(**options):
    command = [sys.executable, str(PROGRAM), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=500)
        assert process.returncode == 0, errors


def test_two_devices_change_no_bit(tmp_path):
    finish(start(result=str(tmp_path / "two.nc"), devices=2, sweep={}))
    two = jb.load(tmp_path / "two.nc")
    assert json.loads(two.attrs["config"])["devices"] == 2
    assert_same_bits(two, jb.sweep(**configuration()))


def test_two_processes_change_no_bit_and_share_a_checkpoint(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    arguments = {"checkpoint": str(tmp_path / "run")}
    finish(
        *[
            start(
                result=str(tmp_path / f"{rank}.nc"),
                processes=[coordinator, 2, rank],
                sweep=arguments,
            )
            for rank in (0, 1)
        ]
    )
    alone = jb.sweep(**configuration())
    for rank in (0, 1):
        assert_same_bits(jb.load(tmp_path / f"{rank}.nc"), alone)
    # one process finds the lanes of both finished, and runs only what is new
    files = sorted(path.name for path in (tmp_path / "run").iterdir())
    tiles = jb.plan(**configuration(measure_seconds=0)).tiles
    assert len([name for name in files if name.startswith("done-")]) == len(tiles)
    assert not [name for name in files if name.endswith(".unfinished") or name.startswith("carry-")]
    assert_same_bits(jb.sweep(**configuration(**arguments)), alone)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == files


def test_one_process_needs_no_setting_up():
    assert distributed.is_main()
    assert distributed.gather(b"mine") == [b"mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("127.0.0.1:1",), "accepted: all three, or none of them under a cluster scheduler"),
        (("127.0.0.1:1", 2, 2), r"process_id: 2; accepted: 0\.\.1 \(num_processes is 2\)"),
    ],
)
def test_errors_of_initialize(arguments, message):
    with pytest.raises(ValueError, match=message):
        distributed.initialize(*arguments)


def test_no_scheduler_and_too_late(monkeypatch):
    jax.devices()
    with pytest.raises(
        RuntimeError, match="initialize: call it once, before anything else touches jax"
    ):
        distributed.initialize()

    def nothing_found(*_, **__):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", nothing_found)
    saying = (
        "no cluster scheduler was recognised .*; give coordinator, num_processes and process_id"
    )
    with pytest.raises(ValueError, match=saying):
        distributed.initialize()


def test_cpu_devices_come_too_late():
    jax.devices()
    with pytest.raises(
        RuntimeError, match=r"use_cpu_devices\(2\): jax has started already; call it first thing"
    ):
        distributed.use_cpu_devices(2)
