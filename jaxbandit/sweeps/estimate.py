"""How long a sweep will take, from short measured runs of its programs."""

from __future__ import annotations

import time
from collections import defaultdict

from jaxbandit.sweeps.loop import Settings, make_tile_runner
from jaxbandit.sweeps.tiles import Group, Plan

ENOUGH = 1.0
"""Seconds of a tile from which its whole length is estimated."""


def measure(settings: Settings, plan: Plan, budget: float) -> float:
    """About how many seconds the plan takes, compiling included.

    Runs the first tile of one group per learner, the largest first, then of further groups while
    ``budget`` seconds are not spent. The others are charged in proportion to H k (k+1) A.
    """
    began = time.monotonic()
    tiles: dict[int, list[int]] = defaultdict(list)
    for number, tile in enumerate(plan.tiles):
        tiles[tile.group].append(number)
    by_size = sorted(tiles, key=lambda index: -work(plan.groups[index]))
    order = sorted(by_size, key=lambda index: _rank(plan, by_size, index))
    known: dict[int, tuple[float, float]] = {}
    seconds = 0.0
    for index in order:
        group = plan.groups[index]
        alike = [other for other in known if plan.groups[other].name == group.name]
        if not alike or time.monotonic() - began < budget:
            known[index] = tile_seconds(settings, group, plan.tiles[tiles[index][0]].lanes)
            compiling, each = known[index]
        else:
            compiling, each = known[alike[0]]
            each *= work(group) / work(plan.groups[alike[0]])
        seconds += compiling + each * len(tiles[index])
    return seconds / min(plan.workers, max(1, len(plan.tiles)))


def work(group: Group) -> float:
    """Grows as the time of a tile does, about: H k (k+1) A."""
    H, k, A, _ = group.sizes
    return H * k * (k + 1) * A


def _rank(plan: Plan, order: list[int], index: int) -> int:
    """How many groups of the same learner come before this one."""
    name = plan.groups[index].name
    return sum(plan.groups[other].name == name for other in order[: order.index(index)])


def tile_seconds(settings: Settings, group: Group, lanes: tuple) -> tuple[float, float]:
    """Seconds to compile the program of a group, and to run one tile of it to its end."""
    runner = make_tile_runner(settings, group, lanes)
    carry = runner.start()
    done = 0
    while done < settings.num_episodes and runner.run_seconds < ENOUGH:
        carry = runner.step(carry)
        done = runner.episodes_done(carry)
    return runner.compile_seconds, runner.run_seconds * settings.num_episodes / max(1, done)
