"""From lanes to tiles: what runs together, on which devices, and how a tile is run.

A lane is one run: (learner, instance, parameter point, seed). Lanes of learners whose functions lower to the same texts,
with any values of their parameters, on one engine and on instances whose tables have one size, form a *group*, which
compiles once. The lanes of a group that are not finished are dealt into *tiles* of as many lanes as the engine's program
takes; the last one may be short (the engine pads it). Tiles wait in a queue, from which workers take them. No number
depends on the tiles.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxbandit.engines import make_runner, table_sizes
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.sweeps.arguments import LearnerGrid, stack
from jaxbandit.sweeps.options import Settings
from jaxbandit.tabular import write_table
from jaxbandit.xla.platforms import memory_of, num_cores
from jaxbandit.xla.programs import Lowered
from jaxbandit.xla.threefry import fold_in

Cell = tuple[str, str, int]
"""(learner name, instance name, index of the parameter point)."""
Lane = tuple[str, str, int, int]
"""A cell and the number of the seed."""
IN_FLIGHT = 2
"""Tiles on one device that has a memory of its own, at most."""
LONGEST = 30
"""Letters of a name in the text of a plan."""
ENOUGH = 1.0
"""Seconds of a tile from which its whole length is estimated."""


@dataclass(frozen=True)
class Group:
    """Learners of one program on all instances of one size."""

    grids: Mapping[str, LearnerGrid]
    engine: str
    instances: Mapping[str, MDP]
    width: int = 1
    """Lanes of a tile."""
    bytes_per_lane: int = 0
    functions: Mapping[str, Lowered] = field(default_factory=dict)
    """What the functions of its learners lower to, by name."""
    reports: Mapping[str, int] = field(default_factory=dict)
    """What the learners report: name -> number of axes."""

    @property
    def tile_bytes(self) -> int:
        """Estimated memory of a tile."""
        return self.width * self.bytes_per_lane

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
        starts = range(0, len(lanes), group.width)
        tiles.append([Tile(index, tuple(lanes[at : at + group.width])) for at in starts])
    return [mine[0] for mine in tiles] + [tile for mine in tiles for tile in mine[1:]]


def make_groups(
    grids: Mapping[str, LearnerGrid], mdps: Mapping[str, MDP], settings: Settings
) -> list[Group]:
    """Programs x shapes of instances, with the engine of each and an estimate of its memory."""
    known: dict[Any, Group] = {}
    groups: dict[Any, Group] = {}
    for name, grid in grids.items():
        learner = grid.learner
        own = "episodes" if learner.blocks is None else "blocks"
        engine = own if settings.engine == "auto" else settings.engine
        if engine == "blocks" and learner.blocks is None:
            raise ValueError(
                f"engine: 'blocks' for learners[{name!r}] ({learner.name}), which has no block form; "
                "accepted: 'auto' or 'episodes'"
            )
        # By types too: side by side in one array, 3 would become 3.0 beside a 2.5.
        arrays = {key: np.asarray(values) for key, values in sorted(learner.params.items())}
        leaves = tuple((key, array.shape[1:], array.dtype) for key, array in arrays.items())
        by_program: dict[Any, dict[str, MDP]] = {}
        for instance, mdp in mdps.items():
            if "rank" in learner.requires and mdp.rank is None:
                raise ValueError(
                    f"instances[{instance!r}] has no order of actions (rank), which learners[{name!r}] "
                    f"({learner.name}) needs; "
                    "accepted: ordered instances, such as prophet, posted-pricing and knapsack"
                )
            shape = (mdp.prob.shape, str(mdp.prob.dtype), mdp.rank is None)
            by_program.setdefault((shape, table_sizes(engine, mdp)), {})[instance] = mdp
        for alike in by_program.values():
            same = (engine, leaves, tuple(alike))
            # The very same functions are lowered once: nothing changes while groups are made.
            parts = (*same, *_functions_of(learner))
            if parts not in known:
                known[parts] = _lowered(settings, Group({name: grid}, engine, alike))
            key = (*same, *sorted(known[parts].parts.items()))
            before = groups.get(key, known[parts])
            groups[key] = dataclasses.replace(before, grids={**before.grids, name: grid})
    return list(groups.values())


def _functions_of(learner: Learner) -> list[Any]:
    """All that a learner's program is made of, functions by their identity."""
    apart = ("params", "name", "check", "specs", "blocks")
    fields = [
        value
        for form in (learner, learner.blocks)
        for name, value in (() if form is None else form._asdict().items())
        if name not in apart
    ]
    return [id(value) if callable(value) else repr(value) for value in fields]


def _lowered(settings: Settings, group: Group) -> Group:
    """The group with what its learner's functions lower to, and what its engine says of tiles and lanes."""
    runner = make_tile_runner(settings, group, [(*group.cells[0], 0)])
    return dataclasses.replace(
        group,
        width=runner.width,
        bytes_per_lane=runner.bytes_per_lane + 16 * len(settings.points),
        functions=runner.functions,
        reports=runner.reported(),
    )


def check_reports(groups: Sequence[Group]) -> None:
    """An error, before anything runs, if what the learners report cannot stand in one result."""
    varied = {name for group in groups for grid in group.grids.values() for name in grid.names}
    known: dict[str, tuple[str, int]] = {}
    for group in groups:
        for name, axes in group.reports.items():
            other, count = known.setdefault(name, (group.learner.name, axes))
            wrong = None
            if name in varied:
                listed = ", ".join(sorted(varied))
                wrong = f"; accepted: names other than those of parameters that vary, {listed}"
            elif axes != count:
                wrong = f" has {axes} axes, that of learner {other!r} {count}; accepted: one number of axes for all learners"
            if wrong is not None:
                raise ValueError(f"learner {group.learner.name!r}: report: {name!r}{wrong}")


def max_workers(groups: Sequence[Group], settings: Settings) -> int:
    """How many tiles may run at once.

    Where devices say how much memory they have, two on each if they fit: the host sums and saves one while the other
    computes.
    """
    most, memory = settings.workers, device_memory(settings.devices)
    largest = max(groups, key=lambda group: group.tile_bytes)
    if memory is not None:
        if largest.tile_bytes > memory:
            needed, there = map(format_bytes, (largest.tile_bytes, memory))
            raise ValueError(
                f"{largest.title}: a tile of {largest.width} lanes needs about {needed} on a device; accepted: "
                f"at most {there}, what jax may use there (smaller sizes, or JAX_PLATFORMS=cpu)"
            )
        most = len(settings.devices) * min(IN_FLIGHT, memory // largest.tile_bytes)
    if settings.max_lanes is not None:
        most = min(most, settings.max_lanes // max(group.width for group in groups))
    if settings.max_bytes is not None:
        most = min(most, settings.max_bytes // largest.tile_bytes)
    return max(1, most)


def device_memory(devices: Sequence[Any]) -> int | None:
    """Bytes that jax may use on the smallest of the devices; None where they do not say."""
    known = [memory for memory in map(memory_of, devices) if memory is not None]
    return min(known) if known else None


def format_bytes(count: float) -> str:
    """Bytes for people.

    Example:
        >>> [format_bytes(count) for count in (12, 1234, 3.2e6, 7e12)]
        ['12 bytes', '1.2 kB', '3.2 MB', '7.0 TB']
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shorten(text: str, most: int = 60) -> str:
    """The text, its end cut off where it is longer.

    Example:
        >>> shorten("a long name", 7)
        'a lo...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def choose_devices(devices: int | Iterable[Any] | None) -> tuple[list[Any], int]:
    """The devices of a sweep and how many tiles run on them at once.

    A program runs on one device. On a CPU a device is the whole processor, so there as many tiles run as it has cores.
    """
    local = jax.local_devices()
    cpu = local[0].platform == "cpu"
    most = max(num_cores(), len(local)) if cpu else len(local)
    if devices is None:
        return local, most
    if isinstance(devices, int) and not isinstance(devices, bool):
        if not 1 <= devices <= most:
            raise ValueError(
                f"devices: {devices}; accepted: 1..{most}, the {'cores' if cpu else 'devices'} of this machine"
            )
        return local[:devices], devices
    chosen = list(devices) if isinstance(devices, Iterable) else []
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        raise ValueError(
            f"devices: {devices!r}; accepted: a number, at least one jax device (jax.devices()), or None for all"
        )
    return chosen, len(chosen)


def lane_keys(seed: int, lanes: Sequence[Lane]) -> np.ndarray:
    """Words of keys, uint32 [lanes, 1, 2]: fold_in(fold_in(key(seed), crc32(instance name)), seed number).

    On the host: jax would compile a program for every number of lanes, and add `jax_random_seed_offset` to the seed.
    """
    root = np.array([0, seed], np.uint32)
    names = np.asarray([zlib.crc32(instance.encode()) for _, instance, _, _ in lanes], np.uint32)
    numbers = np.asarray([number for *_, number in lanes], np.uint32)
    return np.stack(fold_in(fold_in((root[:1], root[1:]), names), numbers), -1)[:, None]


def make_tile_runner(
    settings: Settings, group: Group, lanes: Sequence[Lane], device: Any = None
) -> Any:
    """The engine's runner for some lanes of a group, each a group of its own with one seed."""
    mdps = [group.instances[instance] for _, instance, _, _ in lanes]
    each = [(group.grids[learner].learner, number) for learner, _, number, _ in lanes]
    learner, owners = _with_own_constants([learner for learner, _ in each])
    params = {
        name: np.stack([np.asarray(own.params[name])[number] for own, number in each])
        for name in learner.params
    }
    return make_runner(
        group.engine,
        learner._replace(params=params | owners),
        stack(mdps),
        lane_keys(settings.seed, lanes),
        settings.num_episodes,
        settings.points,
        chunk_size=settings.chunk_size,
        devices=[device or settings.devices[0]],
        metrics=settings.metrics,
        functions=group.functions,
    )


OWNER = "learner number"
"""A parameter that tells whose constants a lane has; it is no identifier, so no learner has it."""


def _with_own_constants(learners: Sequence[Learner]) -> tuple[Learner, dict[str, np.ndarray]]:
    """The first of learners that lower to one program, and parameters by which each lane has its own learner's constants."""

    def functions(learner: Learner) -> list[Any]:
        return [None if form is None else form.constants for form in (learner, learner.blocks)]

    def own(form: int) -> Callable:
        def constants(problem, params):
            given = {name: value for name, value in params.items() if name != OWNER}
            function = functions(kinds[order[int(params[OWNER])]])[form]
            return given if function is None else function(problem, given)

        return constants

    names = [tuple(map(id, functions(learner))) for learner in learners]
    kinds = dict(zip(names, learners, strict=True))
    first, order = learners[0], list(kinds)
    if len(kinds) == 1:
        return first, {}
    blocks = None if first.blocks is None else first.blocks._replace(constants=own(1))
    numbers = np.asarray([order.index(name) for name in names], np.int32)
    return first._replace(constants=own(0), blocks=blocks), {OWNER: numbers}


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
        each = sorted((self.groups[tile.group].tile_bytes for tile in self.tiles), reverse=True)
        return sum(each[: self.workers])

    def __str__(self) -> str:
        """A table with a line per learner and engine, then totals."""
        head = ["learners", "engine", "sizes (H, k, A)", "lanes", "tiles", "memory of a tile"]
        rows: list[list[str]] = []
        by_name: dict[tuple[str, str], dict[int, Group]] = {}
        for index, group in enumerate(self.groups):
            by_name.setdefault((group.name, group.engine), {})[index] = group
        for (name, engine), mine in by_name.items():
            sizes = sorted({group.sizes[:3] for group in mine.values()})
            shown = str(sizes[0]) if len(sizes) == 1 else f"{len(sizes)} up to {sizes[-1]}"
            tiles = [tile for tile in self.tiles if tile.group in mine]
            lanes = sum(len(tile.lanes) for tile in tiles)
            widest = format_bytes(max(group.tile_bytes for group in mine.values()))
            cells = [shorten(name, LONGEST), engine, shown, str(lanes), str(len(tiles)), widest]
            rows.append(cells)
        lines = [write_table(head, rows)]
        own = self.device_bytes
        limit = "" if own is None else f", on devices of {format_bytes(own)} each"
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


def measure(settings: Settings, plan: Plan, budget: float) -> Plan:
    """The plan with about how many seconds it takes, compiling included.

    Runs the first tile of one group per learner, the largest first, then of further groups while
    ``budget`` seconds are not spent. The others are charged in proportion to H k (k+1) A.
    """
    began = time.monotonic()
    tiles: dict[int, list[Tile]] = {}
    for tile in plan.tiles:
        tiles.setdefault(tile.group, []).append(tile)
    by_size = sorted(tiles, key=lambda index: work(plan.groups[index]))
    largest = {plan.groups[index].name: index for index in by_size}.values()
    known: dict[str, tuple[float, float, float]] = {}
    seconds = 0.0
    for index in sorted(by_size[::-1], key=lambda index: index not in largest):
        group = plan.groups[index]
        if group.name not in known or time.monotonic() - began < budget:
            runner = make_tile_runner(settings, group, tiles[index][0].lanes)
            carry, done = runner.start(), 0
            while done < settings.num_episodes and runner.run_seconds < ENOUGH:
                carry = runner.step(carry)
                done = runner.episodes_done(carry)
            compiling = runner.compile_seconds
            each = runner.run_seconds * settings.num_episodes / max(1, done)
            known.setdefault(group.name, (compiling, each, work(group)))
        else:
            compiling, each, size = known[group.name]
            each *= work(group) / size
        seconds += compiling + each * len(tiles[index])
    return dataclasses.replace(plan, seconds=seconds / min(plan.workers, max(1, len(plan.tiles))))


def work(group: Group) -> float:
    """Grows as the time of a tile does, about: H k (k+1) A."""
    H, k, A, _ = group.sizes
    return H * k * (k + 1) * A
