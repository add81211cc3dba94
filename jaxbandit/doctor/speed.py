"""A small speed table, and on a GPU the number of lanes from which it pays."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

SIZES = {"horizon": 15, "capacity": 2, "num_values": 5}
EPISODES = 2048


def speed_table(devices: Sequence[Any]) -> list[dict[str, Any]]:
    """UCB-VI on each of the devices: microseconds per episode of a full load, and per episode and lane."""
    return [measure(device) for device in devices]


def measure(device: Any, num_episodes: int = EPISODES) -> dict[str, Any]:
    """One tile for every worker of a device (on a CPU, a tile for each core), timed after it has been compiled."""
    import os

    import jaxbandit as jb
    from jaxbandit.xla.platforms import platform_of

    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    workers = cores if device.platform == "cpu" else 1
    lanes = platform_of(device).lanes * workers
    mdp = jb.make_instance("prophet-uniform", **SIZES)

    def play(count: int) -> float:
        began = time.perf_counter()
        jb.sweep(
            {"UCB-VI": jb.make_learner("ucbvi", preset="practical")}, {"I1": mdp}, num_episodes=count,
            num_seeds=lanes, record=jb.record.linear(1), progress=False, devices=[device] * workers,
        )  # fmt: skip
        return time.perf_counter() - began

    first = play(num_episodes)
    short, full = play(1), play(num_episodes)  # what a sweep takes whatever its length is taken off
    step = max(full - short, 0.0) / num_episodes * 1e6
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "learner": "ucbvi",
        **SIZES,
        "lanes": lanes,
        "us_per_step": step,
        "us_per_lane": step / lanes,
        "first_seconds": first,
    }


def break_even(device: Mapping[str, Any], cpu: Mapping[str, Any]) -> int:
    """Lanes from which a device is faster than the CPU: a step of the device takes what it takes with any number up to
    its tile's, one of the CPU is paid lane by lane.

    Example:
        >>> break_even({"us_per_step": 40.0}, {"us_per_lane": 0.25})
        160
    """
    return math.ceil(device["us_per_step"] / max(cpu["us_per_lane"], 1e-9))
