"""From lanes to batches: what runs together, how often it compiles, and how much memory it takes.

A lane is one run: (learner, instance, parameter point, seed). Lanes of learners that are one program and differ
in their parameters only, on instances of one shape, form a *compile group*; its cells (learner, instance,
parameter point) x seeds are cut into rectangular batches that fit a budget of lanes or bytes. A batch is filled
with seeds first, because seeds of a cell share its tables.
Batches of a group are equal in shape, so that the group compiles once: the last ones are padded with further
seeds and repeated cells, whose results are dropped. No number depends on the batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from jaxbandit.axes import LearnerGrid
from jaxbandit.learners.base import Learner
from jaxbandit.mdp import MDP

Cell = tuple[str, str, int]
"""(learner name, instance name, index of the parameter point)."""

DEFAULT_BYTES = 2**30


@dataclass(frozen=True)
class Group:
    """Learners of one program on all instances of one shape."""

    grids: Mapping[str, LearnerGrid]
    engine: str
    instances: Mapping[str, MDP]
    estimate: Callable[[Group], int]
    """The memory of a lane; only asked for when it is needed."""

    @cached_property
    def bytes_per_lane(self) -> int:
        """Estimated memory of a lane."""
        return self.estimate(self)

    @property
    def cells(self) -> list[Cell]:
        """All (learner, instance, parameter point)."""
        return [
            (learner, name, point)
            for learner, grid in self.grids.items()
            for name in self.instances
            for point in range(grid.size)
        ]

    @property
    def learner(self) -> Learner:
        """One of the learners: what they do is the same."""
        return next(iter(self.grids.values())).learner


@dataclass(frozen=True)
class Batch:
    """A rectangle cells x seeds of one group, with padding at the end of both."""

    group: int
    """Position in the plan's groups."""
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    num_cells: int
    """Cells that count; the others are padding."""
    num_seeds: int
    """Seeds that count."""

    @property
    def lanes(self) -> int:
        """Lanes that are run, padding included."""
        return len(self.cells) * len(self.seeds)

    @property
    def lanes_kept(self) -> int:
        """Lanes whose results count."""
        return self.num_cells * self.num_seeds

    def header(self) -> dict[str, Any]:
        """The batch as plain data, for checkpoints."""
        return {
            "cells": [list(cell) for cell in self.cells],
            "seeds": list(self.seeds),
            "num_cells": self.num_cells,
            "num_seeds": self.num_seeds,
        }

    def name(self) -> str:
        """A file name that no other batch has."""
        return hashlib.sha256(json.dumps(self.header()).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Plan:
    """What a sweep will run; ``print(plan)`` lists it."""

    groups: tuple[Group, ...]
    batches: tuple[Batch, ...]
    num_episodes: int
    num_devices: int

    @property
    def num_lanes(self) -> int:
        """Lanes to run (those that are finished already are not counted)."""
        return sum(batch.lanes_kept for batch in self.batches)

    @property
    def compilations(self) -> int:
        """Different (program, shape, batch shape) combinations; each is compiled once."""
        of_group = [(g.engine, g.learner.rules, _sizes(g)) for g in self.groups]
        shapes = {(of_group[b.group], len(b.cells), len(b.seeds)) for b in self.batches}
        return len(shapes)

    @property
    def peak_bytes(self) -> int:
        """Estimated memory of the largest batch."""
        return max((b.lanes * self.groups[b.group].bytes_per_lane for b in self.batches), default=0)

    def __str__(self) -> str:
        """A table: one line per compile group; "of" is the shape of its batches, cells x seeds."""
        rows = [["learners", "engine", *"HkA", "instances", "points", "lanes", "batches", "of", "memory"]]
        for index, group in enumerate(self.groups):
            mine = [batch for batch in self.batches if batch.group == index]
            shapes = sorted({(len(b.cells), len(b.seeds)) for b in mine})
            largest = max((b.lanes for b in mine), default=0) * group.bytes_per_lane
            counts = [*_sizes(group)[:3], len(group.instances), sum(grid.size for grid in group.grids.values())]
            counts += [sum(b.lanes_kept for b in mine), len(mine)]
            cut_into = ", ".join(f"{cells}x{seeds}" for cells, seeds in shapes) or "-"
            rows.append([" + ".join(group.grids), group.engine, *map(str, counts), cut_into, format_bytes(largest)])
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        total = (
            f"{self.num_lanes} lanes of {self.num_episodes} episodes; batches: {len(self.batches)}, "
            f"compilations: {self.compilations}, devices: {self.num_devices}, "
            f"largest batch: about {format_bytes(self.peak_bytes)} and the engine's buffers for a chunk"
        )
        return "\n".join([*lines, total])


def _sizes(group: Group) -> tuple[int, int, int, int]:
    mdp = next(iter(group.instances.values()))
    return mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes


def format_bytes(count: float) -> str:
    """Bytes for people: '3.2 MB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class Limits(NamedTuple):
    """What may run at once; without any limit, `DEFAULT_BYTES`."""

    max_lanes: int | None = None
    max_bytes: int | None = None


def lane_limit(group: Group, limits: Limits) -> int:
    """How many lanes of a group may run at once."""
    max_lanes, max_bytes = limits
    if max_bytes is None:
        if max_lanes is not None:
            return max_lanes
        max_bytes = DEFAULT_BYTES
    fitting = max(1, max_bytes // max(1, group.bytes_per_lane))
    return fitting if max_lanes is None else min(max_lanes, fitting)


def cut(
    index: int, cells: list[Cell], seeds: list[int], limit: int, num_devices: int = 1, num_processes: int = 1
) -> list[Batch]:
    """Equal rectangles of at most ``limit`` lanes (if the devices allow) that cover cells x seeds.

    Seeds per batch are a multiple of the devices; several processes get enough batches for all of them.
    """
    devices = min(num_devices, len(seeds))
    parts = _ceil(len(seeds), max(devices, limit - limit % devices))
    shared = _ceil(parts, num_processes) * num_processes
    parts = shared if shared <= len(seeds) else parts
    width = _ceil(_ceil(len(seeds), parts), devices) * devices
    cell_parts = _ceil(len(cells), max(1, limit // width))
    if _ceil(len(seeds), width) % num_processes and len(cells) >= num_processes:
        cell_parts = max(cell_parts, num_processes)
    height = _ceil(len(cells), cell_parts)
    batches = []
    for top in range(0, len(cells), height):
        rows = cells[top : top + height]
        for left in range(0, len(seeds), width):
            columns = seeds[left : left + width]
            more = [columns[-1] + 1 + j for j in range(width - len(columns))]
            repeated = [rows[-1]] * (height - len(rows))
            batches.append(Batch(index, (*rows, *repeated), (*columns, *more), len(rows), len(columns)))
    return batches


def make_batches(
    groups: Collection[Group],
    finished: Collection[tuple[Cell, int]],
    num_seeds: int,
    limits: Limits,
    num_devices: int = 1,
    num_processes: int = 1,
) -> list[Batch]:
    """Batches for all lanes that are not finished; cells that miss the same seeds are batched together."""
    batches = []
    done = set(finished)
    for index, group in enumerate(groups):
        missing: dict[tuple[int, ...], list[Cell]] = {}
        for cell in group.cells:
            seeds = tuple(s for s in range(num_seeds) if (cell, s) not in done)
            if seeds:
                missing.setdefault(seeds, []).append(cell)
        limit = lane_limit(group, limits)
        for seeds, cells in missing.items():
            batches += cut(index, cells, list(seeds), limit, num_devices, num_processes)
    return batches


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
