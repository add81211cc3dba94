"""What our programs launch on a card that is not there; counting it needs jax's CUDA plugin, and takes minutes."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from jaxbandit.experiments.bench import launches

PROGRAM = """
from jaxbandit.experiments.bench.launches import CASES, count_case
row = count_case(CASES[{number}])
print(row["launches"], row["syncs"], row["inner"], row["compile_cpu_seconds"])
"""


def loop(depth, trips, count, inner=0):
    return launches.Loop("loop", depth, trips, count, 1, inner, 10.0, 100.0)


def test_the_card_is_described():
    text = launches.DESCRIPTION.read_text(encoding="utf-8")
    assert "core_count: 108" in text
    assert "memory_bandwidth: 1555200000000" in text


def test_a_step_is_a_share_of_a_round():
    count = launches.Count((loop(0, None, 90), loop(1, None, 50), loop(2, 32, 14)), 0, 0, 0.0, 0.0)
    assert count.step(64) == {"launches": 7, "syncs": 0.5, "inner": 0, "bytes": 5, "float64": 50}
    with pytest.raises(ValueError, match="steps: 64; accepted"):
        launches.Count((loop(0, None, 90),), 0, 0, 0.0, 0.0).step(64)


def test_an_episode_is_a_share_of_a_stretch_with_what_a_stretch_does_once():
    count = launches.Count((loop(0, None, 400, inner=1), loop(1, 32, 12)), 0, 0, 0.0, 0.0)
    assert count.episode(32)["launches"] == 12.5
    assert count.episode(32)["inner"] == 0


CHECKED = [n for n, case in enumerate(launches.CASES) if case.goal or "general" in case.size]
"""All but ExpRef episode by episode, which has no form for GPUs."""


def test_the_table_has_every_program_with_a_goal():
    assert {(case.learner, case.engine, case.size[:2]) for case in launches.CASES if case.before} == {
        ("ucbvi", "episodes", (15, 2)),
        ("ucbvi", "episodes", (20, 4)),
        ("expref", "episodes", (15, 2)),
        ("policy-gradient", "episodes", (15, 2)),
        ("expref", "blocks", (15, 2)),
    }  # fmt: skip
    assert [launches.CASES[number] for number in CHECKED] == [
        case for case in launches.CASES if (case.learner, case.engine) != ("expref", "episodes")
    ]


@pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is None, reason="no CUDA plugin")
@pytest.mark.parametrize("number", CHECKED)
def test_launches_are_within_the_goals_and_nothing_is_waited_for(number):
    command = [sys.executable, "-c", PROGRAM.format(number=number)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=launches.settings()
    )
    count, syncs, inner, seconds = (float(word) for word in done.stdout.split()[-4:])
    assert count <= (launches.CASES[number].goal or np.inf)
    assert syncs == 0
    assert inner == 0
    assert seconds < 60
