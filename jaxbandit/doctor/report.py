"""One JSON object of everything, and the same for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxbandit.doctor import machine
from jaxbandit.doctor.machine import LIBRARIES
from jaxbandit.tabular import write_table


def examine(self_test: bool = True) -> dict[str, Any]:
    """Looks at the machine and, unless told not to, tests it; ``ok`` says whether nothing is wrong."""
    import jax

    versions = machine.versions()
    found: dict[str, Any] = {
        "versions": versions,
        "wheels": machine.wheel_problems(versions),
        "flags": machine.flags(),
        "settings": machine.settings(),
        "devices": machine.devices(),
    }
    found["notes"] = machine.notes(versions, found["devices"])
    problems = [
        *found["wheels"],
        *(each["problem"] for each in found["devices"] if each["problem"]),
    ]
    if self_test and found["devices"][0]["problem"] is None:
        found["self_test"] = _test(jax.local_devices()[0])
        failed = [each for each in found["self_test"]["checks"] if not each["passed"]]
        problems += [f"self-test: {each['name']}: {each['seen']}" for each in failed]
    return found | {"problems": problems, "ok": not problems}


def _test(device: Any) -> dict[str, Any]:
    import jax

    from jaxbandit.doctor.checks import run_checks
    from jaxbandit.doctor.speed import break_even, speed_table

    found: dict[str, Any] = {"checks": run_checks(device)}
    compared = [device]
    if device.platform != "cpu":
        try:
            compared.append(jax.local_devices(backend="cpu")[0])
        except RuntimeError:  # JAX_PLATFORMS leaves the CPU out
            found["break_even_lanes"] = None
    found["speed"] = speed_table(compared)
    if len(compared) == 2:
        found["break_even_lanes"] = break_even(*found["speed"])
    return found


def format_report(found: Mapping[str, Any]) -> str:
    """The report as text, without the libraries that a plugin brings.

    Example:
        >>> print(format_report({"versions": {"jax": "0.10.2"}, "wheels": [], "flags": {}, "settings": {"cores": 2},
        ...     "devices": [{"platform": "cpu", "kind": "cpu", "memory_bytes": None, "choices": "cpu", "problem": None}],
        ...     "notes": [], "problems": [], "ok": True}))
        versions  jax 0.10.2
        wheels    match
        flags     none
        settings  cores 2
        device    cpu: cpu, choices of a cpu
        result    nothing is wrong
    """
    versions = [(name, v) for name, v in found["versions"].items() if not LIBRARIES.match(name)]
    lines = [
        ("versions", ", ".join(f"{name} {version}" for name, version in versions)),
        ("wheels", "match" if not found["wheels"] else "do not match"),
        ("flags", "  ".join(f"{name}={value}" for name, value in found["flags"].items()) or "none"),
        ("settings", ", ".join(f"{name} {value}" for name, value in found["settings"].items())),
    ]
    for each in found["devices"]:
        memory = f", {each['memory_bytes'] / 1e9:.1f} GB" if each["memory_bytes"] else ""
        choices = f", choices of a {each['choices']}" if each["choices"] else ""
        lines.append(("device", f"{each['platform']}: {each['kind']}{memory}{choices}"))
    lines += [("note", note) for note in found["notes"]]
    if "self_test" in found:
        lines += _tested(found["self_test"])
    lines += [("PROBLEM", problem) for problem in found["problems"]]
    lines.append(("result", "nothing is wrong" if found["ok"] else "something is wrong"))
    return "\n".join(f"{name:9} {text}" for name, text in lines)


def _tested(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [
        (
            "test",
            f"{'passed' if each['passed'] else 'FAILED'}  {each['name']} ({each['seconds']:.1f} s): {each['seen']}",
        )
        for each in found["checks"]
    ]
    head = [
        "device",
        "lanes",
        "us per episode of all lanes",
        "us per episode and lane",
        "first time s",
    ]
    body = [
        [row["device"], f"{row['lanes']}", f"{row['us_per_step']:.1f}", f"{row['us_per_lane']:.3f}", f"{row['first_seconds']:.1f}"]
        for row in found["speed"]
    ]  # fmt: skip
    lines += [("speed", line) for line in write_table(head, body, right=range(1, 5)).splitlines()]
    if "break_even_lanes" in found:
        lanes = found["break_even_lanes"]
        told = (
            f"the device pays from {lanes} lanes on"
            if lanes
            else "not known: JAX_PLATFORMS leaves the CPU out"
        )
        lines.append(("lanes", told))
    return lines
