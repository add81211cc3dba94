"""What the doctor says of a machine, and that its self-test notices what it is there to notice."""

import json

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.inspect import doctor
from jaxbandit.inspect.doctor import examine, format_report

WHEELS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}


def test_versions_of_what_takes_part():
    found = doctor.versions()
    assert found["jax"] == jax.__version__
    assert {"python", "system", "jaxbandit", "jaxlib", "numpy"} <= set(found)


def test_wheels_that_match():
    assert doctor.wheel_problems(WHEELS) == []
    assert doctor.wheel_problems(WHEELS | CUDA) == []
    # A patch release of jax alone is what jax itself accepts.
    assert doctor.wheel_problems({"jax": "0.10.3", "jaxlib": "0.10.2"}) == []


def test_wheels_that_do_not():
    assert "accepted: both installed" in doctor.wheel_problems({"jax": "0.10.2"})[0]
    assert "jaxlib is 0.9.1" in doctor.wheel_problems({"jax": "0.10.2", "jaxlib": "0.9.1"})[0]
    (older,) = doctor.wheel_problems(WHEELS | CUDA | {"jax-cuda12-plugin": "0.7.2"})
    assert "jax-cuda12-plugin is 0.7.2; accepted: 0.10.2" in older
    (alone,) = doctor.wheel_problems(WHEELS | {"jax-cuda13-pjrt": "0.10.2"})
    assert "without jax-cuda13-plugin" in alone


def test_flags_name_no_folder_and_no_host():
    given = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_COMPILATION_CACHE_DIR": "/home/someone",
        "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1",
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert doctor.flags(given) == {
        "CUDA_VISIBLE_DEVICES": "0",
        "JAX_COMPILATION_CACHE_DIR": "(set)",
        "JAX_COORDINATOR_ADDRESS": "(set)",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def test_devices_and_their_choices(monkeypatch):
    (first, *_) = doctor.devices()
    assert (first["platform"], first["choices"], first["problem"]) == ("cpu", "cpu", None)
    monkeypatch.setenv("JAXBANDIT_PLATFORM", "tpu")
    (first, *_) = doctor.devices()
    assert first["choices"] is None
    assert "The block engine needs float64" in first["problem"]


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
    found = doctor.run_check(name, doctor.CHECKS[name], jax.devices()[0])
    assert found["passed"], found["seen"]
    assert found["name"] == name


def test_an_error_is_a_failure_with_its_text():
    def breaks(device):
        raise RuntimeError("no memory left")

    found = doctor.run_check("memory", breaks, None)
    assert (found["passed"], found["seen"]) == (False, "RuntimeError: no memory left")


def test_another_last_bit_in_company_is_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, num_seeds, **more):
        ds = sweep(*args, num_seeds=num_seeds, **more)
        if num_seeds > 1:
            ds["regret"].values[:] = np.nextafter(ds["regret"].values, np.inf)
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    assert not doctor.lane_bits("ucbvi", "episodes", 200)(jax.devices()[0])[0]


def test_a_regret_that_is_off_is_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, **more):
        ds = sweep(*args, **more)
        ds["regret"].values[:] *= 1.001
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    assert not doctor.exact_regret(jax.devices()[0])[0]


def test_engines_that_differ_are_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, engine, **more):
        ds = sweep(*args, engine=engine, **more)
        ds["regret"].values[:] *= 1.5 if engine == "blocks" else 1
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    passed, seen = doctor.engines(jax.devices()[0])
    assert not passed
    assert "standard errors apart" in seen


ROW = {
    "device": "gpu: A100",
    "lanes": 1024,
    "us_per_step": 40.0,
    "us_per_lane": 0.04,
    "first_seconds": 9.0,
}


def test_without_a_self_test_it_looks_at_the_machine_only():
    found = examine(self_test=False)
    assert "self_test" not in found
    assert json.loads(json.dumps(found)) == found
    assert found["ok"] is (not found["problems"])
    assert "versions" in format_report(found)


def test_a_failed_check_and_wrong_wheels_are_problems(monkeypatch):
    monkeypatch.setattr(doctor, "measure", lambda device: ROW)
    monkeypatch.setattr(doctor, "CHECKS", {"bits": lambda device: (True, "same")})
    assert examine()["ok"]
    monkeypatch.setattr(doctor, "CHECKS", {"bits": lambda device: (False, "1.0 and 2.0")})
    found = examine()
    assert not found["ok"]
    assert "PROBLEM   self-test: bits: 1.0 and 2.0" in format_report(found)
    monkeypatch.setattr(doctor, "wheel_problems", lambda found: ["jaxlib is older"])
    assert examine(self_test=False)["problems"] == ["jaxlib is older"]


def test_every_step_is_named_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(doctor, "measure", lambda device: ROW)
    monkeypatch.setattr(doctor, "CHECKS", {"bits": lambda device: (True, "same")})
    examine()
    steps = capsys.readouterr().err
    for step in ("versions, flags and devices", "checking bits", "speed of cpu: cpu"):
        assert step in steps


def test_a_device_beside_the_cpu_has_its_break_even(monkeypatch):
    class Card:
        platform, device_kind = "gpu", "A100"

    rows = {"gpu": ROW, "cpu": {**ROW, "device": "cpu: cpu", "us_per_lane": 0.25}}
    monkeypatch.setattr(doctor, "measure", lambda device: rows[device.platform])
    monkeypatch.setattr(doctor, "CHECKS", {})
    found = doctor._test(Card())
    assert found["break_even_lanes"] == 160
    lines = dict(reversed(doctor._tested(found)))
    assert lines["lanes"] == "the device pays from 160 lanes on"


def test_a_tpu_is_told_what_runs_there(monkeypatch):
    monkeypatch.setenv("JAXBANDIT_PLATFORM", "tpu")
    found = examine()
    assert "self_test" not in found
    assert not found["ok"]
    assert "The episode engine (every learner)" in found["problems"][0]


def test_a_row_has_times_of_a_step_and_of_a_lane():
    row = doctor.measure(jax.devices()[0], num_episodes=64)
    assert row["lanes"] % 16 == 0
    assert row["us_per_step"] >= 0
    assert row["us_per_lane"] == row["us_per_step"] / row["lanes"]
    assert row["device"].startswith("cpu")


def test_a_device_pays_where_its_step_is_shorter_than_the_lanes_of_the_cpu():
    gpu, cpu = {"us_per_step": 30.0}, {"us_per_lane": 0.29}
    lanes = doctor.break_even(gpu, cpu)
    assert (lanes - 1) * cpu["us_per_lane"] < gpu["us_per_step"] <= lanes * cpu["us_per_lane"]
