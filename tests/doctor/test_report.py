"""The report: one JSON object, a text, and whether anything is wrong."""

import json

from jaxbandit.doctor import checks, examine, format_report, machine, report, speed

ROW = {
    "device": "gpu: A100",
    "lanes": 1024,
    "us_per_step": 40.0,
    "us_per_lane": 0.04,
    "first_seconds": 9.0,
}


def passing(device):
    return [{"name": "bits", "passed": True, "seen": "same", "seconds": 0.1}]


def failing(device):
    return [{"name": "bits", "passed": False, "seen": "1.0 and 2.0", "seconds": 0.1}]


def test_without_a_self_test_it_looks_at_the_machine_only():
    found = examine(self_test=False)
    assert "self_test" not in found
    assert json.loads(json.dumps(found)) == found
    assert found["ok"] is (not found["problems"])
    assert "versions" in format_report(found)


def test_a_failed_check_and_wrong_wheels_are_problems(monkeypatch):
    monkeypatch.setattr(speed, "speed_table", lambda devices: [ROW for _ in devices])
    monkeypatch.setattr(checks, "run_checks", passing)
    assert examine()["ok"]
    monkeypatch.setattr(checks, "run_checks", failing)
    found = examine()
    assert not found["ok"]
    assert "PROBLEM   self-test: bits: 1.0 and 2.0" in format_report(found)
    monkeypatch.setattr(checks, "run_checks", passing)
    monkeypatch.setattr(machine, "wheel_problems", lambda found: ["jaxlib is older"])
    assert examine()["problems"] == ["jaxlib is older"]


def test_a_device_beside_the_cpu_has_its_break_even(monkeypatch):
    class Card:
        platform, device_kind = "gpu", "A100"

    rows = [ROW, {**ROW, "device": "cpu: cpu", "us_per_lane": 0.25}]
    monkeypatch.setattr(speed, "speed_table", lambda devices: rows[: len(devices)])
    monkeypatch.setattr(checks, "run_checks", passing)
    found = report._test(Card())
    assert found["break_even_lanes"] == 160
    lines = dict(reversed(report._tested(found)))
    assert lines["lanes"] == "the device pays from 160 lanes on"


def test_a_tpu_is_told_what_runs_there(monkeypatch):
    monkeypatch.setenv("JAXBANDIT_PLATFORM", "tpu")
    found = examine()
    assert "self_test" not in found
    assert not found["ok"]
    assert "The episode engine (every learner)" in found["problems"][0]
