"""From lanes to tiles: what runs together, how often it compiles, and how much memory it takes.

A lane is one run: (learner, instance, parameter point, seed). Lanes of learners that are one program and differ
in their parameters only, on instances of one size, form a *group*, which compiles once. The lanes of a group that are
not finished are dealt into *tiles* of as many lanes as the engine's program takes; the last one may be short (the
engine pads it). Tiles wait in a queue, from which workers take them. No number depends on the tiles.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.sweeps.parameters import LearnerGrid
from jaxbandit.tabular import write_table
from jaxbandit.xla.lowering import Lowered

Cell = tuple[str, str, int]
"""(learner name, instance name, index of the parameter point)."""
Lane = tuple[str, str, int, int]
"""A cell and the number of the seed."""


LONGEST = 30
"""Letters of a name in the text of a plan."""


@dataclass(frozen=True)
class Demand:
    """What an engine says of the lanes of a group."""

    width: int
    """Lanes of a tile."""
    bytes_per_lane: int
    reports: Mapping[str, int] = field(default_factory=dict)
    """What the learner reports: name -> number of axes."""


@dataclass(frozen=True)
class Group:
    """Learners of one program on all instances of one size."""

    grids: Mapping[str, LearnerGrid]
    engine: str
    instances: Mapping[str, MDP]
    demand: Demand
    """Width of a tile and memory of a lane."""
    functions: Mapping[str, Lowered]
    """What the functions of its learners lower to, by name."""

    @property
    def parts(self) -> dict[str, str]:
        """The digests of the functions, by name."""
        return {name: each.digest for name, each in self.functions.items()}

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

    @property
    def title(self) -> str:
        """What it is called while it compiles."""
        H, k, _, _ = self.sizes
        return f"{self.name}, H={H} k={k}"

    @property
    def name(self) -> str:
        """What the names of its learners begin with."""
        first, *others = self.grids
        words = first.split()
        while words and any(not name.startswith(" ".join(words)) for name in others):
            words.pop()
        many = f"{first} and {len(others)} more"
        return " ".join(words) or many

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """H, k, A, M of its program."""
        mdp = next(iter(self.instances.values()))
        return mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes


@dataclass(frozen=True)
class Tile:
    """Lanes of one group that run side by side."""

    group: int
    """Position in the plan's groups."""
    lanes: tuple[Lane, ...]

    def header(self) -> dict[str, Any]:
        """The tile as plain data, for checkpoints."""
        return {"lanes": [list(lane) for lane in self.lanes]}

    def name(self) -> str:
        """A file name that no other tile has."""
        return hashlib.sha256(json.dumps(self.header()).encode()).hexdigest()[:24]


def lanes_of(header: Mapping[str, Any]) -> list[Lane]:
    """The lanes in the header of a checkpoint file."""
    return [(learner, instance, point, seed) for learner, instance, point, seed in header["lanes"]]


@dataclass(frozen=True)
class Plan:
    """What a sweep will run; ``print(plan)`` lists it."""

    groups: tuple[Group, ...]
    tiles: tuple[Tile, ...]
    num_episodes: int
    workers: int
    device_bytes: int | None = None
    """Memory of a device that has its own and says so; else None."""
    seconds: float | None = None
    """About how long the sweep takes, compiling included; None if it was not measured."""

    @property
    def num_lanes(self) -> int:
        """Lanes to run (those that are finished already are not counted)."""
        return sum(len(tile.lanes) for tile in self.tiles)

    @property
    def compilations(self) -> int:
        """Programs that are compiled: one for each group that has something to run."""
        return len({tile.group for tile in self.tiles})

    @property
    def peak_bytes(self) -> int:
        """Estimated memory of the tiles that run at the same time."""
        demands = [self.groups[tile.group].demand for tile in self.tiles]
        each = sorted((d.width * d.bytes_per_lane for d in demands), reverse=True)
        return sum(each[: self.workers])

    def __str__(self) -> str:
        """A table with a line per learner and engine, then totals."""
        head = ["learners", "engine", "sizes (H, k, A)", "lanes", "tiles", "memory of a tile"]
        rows = []
        for name, engine in dict.fromkeys((group.name, group.engine) for group in self.groups):
            mine = {
                index: group
                for index, group in enumerate(self.groups)
                if (group.name, group.engine) == (name, engine)
            }
            sizes = sorted({group.sizes[:3] for group in mine.values()})
            shown = str(sizes[0]) if len(sizes) == 1 else f"{len(sizes)} up to {sizes[-1]}"
            tiles = [tile for tile in self.tiles if tile.group in mine]
            lanes = sum(len(tile.lanes) for tile in tiles)
            widest = max(g.demand.width * g.demand.bytes_per_lane for g in mine.values())
            short = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
            row = [short, engine, shown, str(lanes), str(len(tiles)), format_bytes(widest)]
            rows.append(row)
        lines = [write_table(head, rows)]
        limit = ""
        if self.device_bytes is not None:
            limit = f", on devices of {format_bytes(self.device_bytes)} each"
        lines += [
            f"{self.num_lanes} lanes of {self.num_episodes} episodes, {len(self.tiles)} tiles, {self.workers} at a time",
            f"programs to compile: {self.compilations}; memory: about {format_bytes(self.peak_bytes)} and the results{limit}",
        ]
        if self.seconds is not None:
            lines.append(f"time: about {format_seconds(self.seconds)}, from short measured runs")
        return "\n".join(lines)


def format_seconds(seconds: float) -> str:
    """Seconds for people.

    Example:
        >>> format_seconds(3.2), format_seconds(200), format_seconds(1e4)
        ('3 s', '3 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def format_bytes(count: float) -> str:
    """Bytes for people: '3.2 MB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def make_tiles(
    groups: Collection[Group], finished: Collection[Lane], seeds: Collection[int]
) -> list[Tile]:
    """Tiles for all lanes that are not finished, one group after the other; a cell's seeds are neighbours.

    The first tiles of all groups come first, so that their programs are compiled side by side.
    """
    done = set(finished)
    tiles: list[list[Tile]] = []
    for index, group in enumerate(groups):
        lanes = [
            (*cell, seed) for cell in group.cells for seed in seeds if (*cell, seed) not in done
        ]
        if not lanes:
            continue
        width = group.demand.width
        tiles.append(
            [Tile(index, tuple(lanes[at : at + width])) for at in range(0, len(lanes), width)]
        )
    return [mine[0] for mine in tiles] + [tile for mine in tiles for tile in mine[1:]]
