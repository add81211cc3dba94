"""What the doctor says of a machine, and that its self-test notices what it is there to notice."""

import json

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import doctor
from jaxbandit.cli.doctor import examine, format_report

WHEELS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}
CPU = jax.devices()[0]
ROW = {"device": "gpu: A100", "lanes": 1024, "us_per_step": 40.0, "us_per_lane": 0.04, "first_seconds": 9.0}  # fmt: skip


def test_versions_and_wheels():
    found = doctor.versions()
    assert found["jax"] == jax.__version__
    assert {"python", "system", "jaxbandit", "jaxlib", "numpy"} <= set(found)
    assert doctor.wheel_problems(WHEELS) == []
    assert doctor.wheel_problems(WHEELS | CUDA) == []
    # A patch release of jax alone is what jax itself accepts.
    assert doctor.wheel_problems({"jax": "0.10.3", "jaxlib": "0.10.2"}) == []
    for wheels, problem in (
        ({"jax": "0.10.2"}, "accepted: both installed"),
        ({"jax": "0.10.2", "jaxlib": "0.9.1"}, "jaxlib is 0.9.1"),
        (WHEELS | CUDA | {"jax-cuda12-plugin": "0.7.2"}, "jax-cuda12-plugin is 0.7.2; accepted: 0.10.2"),
        (WHEELS | {"jax-cuda13-pjrt": "0.10.2"}, "without jax-cuda13-plugin"),
    ):  # fmt: skip
        (seen,) = doctor.wheel_problems(wheels)
        assert problem in seen


def test_flags_name_no_folder_and_no_host():
    shown = {"CUDA_VISIBLE_DEVICES": "0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    private = {"JAX_COMPILATION_CACHE_DIR": "/home/me", "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1"}
    found = doctor.flags({**shown, **private, "PATH": "/bin"})
    assert found == shown | dict.fromkeys(private, "(set)")


def test_notes(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert doctor.notes(WHEELS, [{"platform": "cpu"}]) == []
    assert "sees no GPU" in doctor.notes(CUDA, [{"platform": "cpu"}])[0]
    (memory,) = doctor.notes(CUDA, [{"platform": "gpu"}])
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in memory
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert doctor.notes(CUDA, [{"platform": "gpu"}]) == []


@pytest.mark.parametrize("name", doctor.CHECKS)
def test_every_check_passes_on_a_machine_that_is_right(name):
    found = doctor.run_check(name, doctor.CHECKS[name], CPU)
    assert found["passed"] is True, found["seen"]
    assert found["name"] == name


def test_what_is_wrong_is_noticed(monkeypatch):
    """Another last bit in a batch, a regret that is off, engines that differ, an error."""
    sweep = jb.sweep

    def wrong(*args, num_seeds, num_episodes, engine="auto", **more):
        ds = sweep(*args, num_seeds=num_seeds, num_episodes=num_episodes, engine=engine, **more)
        seen = ds["regret"].values
        if num_seeds == 37:
            seen[:] = np.nextafter(seen, np.inf)
        elif num_episodes == 1000:
            seen[:] *= 1.001
        elif engine == "blocks":
            seen[:] *= 1.5
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    for name in ("bits, episodes", "exact regret", "law of the engines"):
        assert doctor.run_check(name, doctor.CHECKS[name], CPU)["passed"] is False
    found = doctor.run_check("memory", lambda device: 1 / 0, None)
    assert (found["passed"], found["seen"]) == (False, "ZeroDivisionError: division by zero")


def test_failures_are_problems_and_every_step_is_named_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(doctor, "measure", lambda device: ROW)
    monkeypatch.setattr(doctor, "CHECKS", {"bits": lambda device: (True, "same")})
    assert examine()["ok"]
    steps = capsys.readouterr().err
    for step in ("versions, flags and devices", "checking bits", "speed of cpu: cpu"):
        assert step in steps
    monkeypatch.setattr(doctor, "CHECKS", {"bits": lambda device: (False, "1.0 and 2.0")})
    found = examine()
    assert not found["ok"]
    assert "PROBLEM   self-test: bits: 1.0 and 2.0" in format_report(found)
    assert json.loads(json.dumps(found)) == found
    monkeypatch.setattr(doctor, "wheel_problems", lambda found: ["jaxlib is older"])
    found = examine(self_test=False)
    assert found["problems"] == ["jaxlib is older"]
    assert "self_test" not in found


def test_a_device_beside_the_cpu_has_its_break_even(monkeypatch):
    class Card:
        platform, device_kind = "gpu", "A100"

    rows = {"gpu": ROW, "cpu": {**ROW, "device": "cpu: cpu", "us_per_lane": 0.25}}
    monkeypatch.setattr(doctor, "measure", lambda device: rows[device.platform])
    monkeypatch.setattr(doctor, "CHECKS", {})
    found = doctor._test(Card())
    lanes = found["break_even_lanes"]
    assert (lanes - 1) * 0.25 < 40.0 <= lanes * 0.25
    text = format_report(examine(self_test=False) | {"self_test": found})
    assert "lanes     the device pays from 160 lanes on\n" in text
    assert "speed     gpu: A100: 40.0 us per episode of 1024 lanes, 0.040 us per" in text


def test_a_tpu_is_told_what_runs_there(monkeypatch):
    (first, *_) = doctor.devices()
    assert (first["platform"], first["choices"], first["problem"]) == ("cpu", "cpu", None)
    monkeypatch.setenv("JAXBANDIT_PLATFORM", "tpu")
    found = examine()
    assert "self_test" not in found
    assert not found["ok"]
    assert found["devices"][0]["choices"] is None
    assert "The episode engine (every learner)" in found["problems"][0]
    assert "The block engine needs float64" in found["problems"][0]


def test_a_row_has_times_of_a_step_and_of_a_lane(monkeypatch):
    monkeypatch.setattr(doctor, "SIZES", doctor.SMALL)
    row = doctor.measure(CPU, num_episodes=64)
    assert row["lanes"] % 16 == 0
    assert row["us_per_step"] >= 0
    assert row["us_per_lane"] == row["us_per_step"] / row["lanes"]
    assert row["device"].startswith("cpu")
