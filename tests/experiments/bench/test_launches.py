"""The count machine on a card that is not there; needs jax's CUDA plugin, and takes a minute."""

import importlib.util
import subprocess
import sys

import pytest
from jaxbandit.experiments.bench import launches

PROGRAM = """
from jaxbandit.experiments.bench.launches import CASES, count_case
row = count_case(CASES[{number}])
print(row["launches"], row["syncs"], row["inner"])
"""


def test_the_card_is_described():
    text = launches.DESCRIPTION.read_text(encoding="utf-8")
    assert "core_count: 108" in text
    assert "memory_bandwidth: 1555200000000" in text


def test_the_unit_is_a_step_of_a_round_or_a_turn():
    def loop(depth, trips, count):
        return launches.Loop("loop", depth, trips, count, 1, 0, 10.0, 100.0)

    count = launches.Count((loop(0, None, 90), loop(1, None, 50), loop(2, 32, 14)), 0, 0.0)
    assert count.unit(64) == {"launches": 7, "syncs": 0.5, "inner": 0, "bytes": 5, "float64": 50}
    assert count.unit()["launches"] == 90
    with pytest.raises(ValueError, match="steps: 64; accepted"):
        launches.Count((loop(0, None, 90),), 0, 0.0).unit(64)


@pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is None, reason="no CUDA plugin")
@pytest.mark.parametrize("number", [0, 1])
def test_a_step_launches_little_and_waits_for_nothing(number):
    command = [sys.executable, "-c", PROGRAM.format(number=number)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=launches.settings()
    )
    count, syncs, inner = (float(word) for word in done.stdout.split()[-3:])
    assert count <= 12
    assert syncs == 0
    assert inner == 0
