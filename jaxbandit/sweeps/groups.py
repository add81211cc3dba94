"""What of a sweep runs together: groups of learners and instances, the devices, and how many tiles at once.

A group is what one compiled program can run: learners whose functions lower to the same texts, with any values of
their parameters, on one engine, on instances whose tables have one size: several sizes are several programs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.engines import table_sizes
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, validate
from jaxbandit.sweeps.families import shape_of
from jaxbandit.sweeps.loop import Settings, make_tile_runner
from jaxbandit.sweeps.parameters import LearnerGrid
from jaxbandit.sweeps.tiles import Demand, Group, format_bytes
from jaxbandit.xla.platforms import memory_of, num_cores

ENGINES = ("auto", "episodes", "blocks")
IN_FLIGHT = 2
"""Tiles on one device that has a memory of its own, at most."""


def make_groups(
    grids: Mapping[str, LearnerGrid], mdps: Mapping[str, MDP], engine: str, settings: Settings
) -> list[Group]:
    """Programs x shapes of instances, with the engine of each and an estimate of its memory."""
    if engine not in ENGINES:
        raise ValueError(f"engine: {engine!r}; accepted: {', '.join(ENGINES)}")
    _check(mdps)
    known: dict[Any, Group] = {}
    groups: dict[Any, Group] = {}
    for name, grid in grids.items():
        learner = grid.learner
        if engine == "blocks" and learner.blocks is None:
            raise ValueError(
                f"engine: 'blocks' for learners[{name!r}] ({learner.name}), which has no block form; "
                "accepted: 'auto' or 'episodes'"
            )
        _check_order(name, grid, mdps)
        chosen = (
            engine if engine != "auto" else ("episodes" if learner.blocks is None else "blocks")
        )
        # By types too: side by side in one array, 3 would become 3.0 beside a 2.5.
        arrays = {key: np.asarray(values) for key, values in sorted(learner.params.items())}
        leaves = tuple((key, array.shape[1:], array.dtype) for key, array in arrays.items())
        for alike in _by_program(chosen, mdps):
            same = (chosen, leaves, tuple(alike))
            # The very same functions are lowered once: nothing changes while groups are made.
            parts = (*same, *_functions_of(learner))
            if parts not in known:
                known[parts] = _lowered(settings, name, grid, chosen, alike)
            found = known[parts]
            key = (*same, *sorted(found.parts.items()))
            before = groups.get(key, found)
            groups[key] = dataclasses.replace(before, grids={**before.grids, name: grid})
    return list(groups.values())


def _functions_of(learner: Learner) -> list[Any]:
    """All that a learner's program is made of, functions by their identity."""
    forms = [learner, *(() if learner.blocks is None else (learner.blocks,))]
    fields = [
        value
        for form in forms
        for name, value in form._asdict().items()
        if name not in ("params", "name", "check", "specs", "blocks", "of")
    ]
    return [id(value) if callable(value) else repr(value) for value in fields]


def _lowered(
    settings: Settings, name: str, grid: LearnerGrid, engine: str, instances: Mapping[str, MDP]
) -> Group:
    """The group of one learner: its functions are lowered, and the engine asked for the demand of a lane."""
    group = Group(
        grids={name: grid},
        engine=engine,
        instances=instances,
        demand=Demand(width=1, bytes_per_lane=0),
        functions={},
    )
    runner = make_tile_runner(settings, group, [(*group.cells[0], 0)])
    demand = Demand(
        width=runner.width,
        bytes_per_lane=runner.bytes_per_lane + 16 * len(settings.points),
        reports=runner.reported(),
    )
    return dataclasses.replace(group, demand=demand, functions=runner.functions)


def _check(mdps: Mapping[str, MDP]) -> None:
    """An error that names the instance that is none."""
    for name, mdp in mdps.items():
        try:
            validate(mdp)
        except ValueError as error:
            raise ValueError(f"instances[{name!r}]: {error}") from error


def _check_order(name: str, grid: LearnerGrid, mdps: Mapping[str, MDP]) -> None:
    """An error if the learner needs an order of actions that some instance does not have."""
    for instance, mdp in mdps.items():
        if "rank" in grid.learner.requires and mdp.rank is None:
            raise ValueError(
                f"instances[{instance!r}] has no order of actions (rank), which learners[{name!r}] "
                f"({grid.learner.name}) needs; "
                "accepted: ordered instances, such as prophet, posted-pricing and knapsack"
            )


def _by_program(engine: str, mdps: Mapping[str, MDP]) -> list[dict[str, MDP]]:
    """The instances that one program runs: of one shape, with engine's tables of one size."""
    found: dict[Any, dict[str, MDP]] = {}
    for name, mdp in mdps.items():
        found.setdefault((shape_of(mdp), table_sizes(engine, mdp)), {})[name] = mdp
    return list(found.values())


def check_reports(groups: Sequence[Group]) -> None:
    """An error, before anything runs, if what the learners report cannot stand in one result."""
    varied = {name for group in groups for grid in group.grids.values() for name in grid.names}
    known: dict[str, tuple[str, int]] = {}
    for group in groups:
        for name, axes in group.demand.reports.items():
            where = f"learner {group.learner.name!r}: report: {name!r}"
            if name in varied:
                raise ValueError(
                    f"{where}; accepted: names other than those of parameters that vary, "
                    f"{', '.join(sorted(varied))}"
                )
            other, count = known.setdefault(name, (group.learner.name, axes))
            if axes != count:
                raise ValueError(
                    f"{where} has {axes} axes, that of learner {other!r} {count}; "
                    "accepted: one number of axes for all learners"
                )


def most_workers(
    groups: list[Group], settings: Settings, max_lanes: int | None, max_bytes: int | None
) -> int:
    """How many tiles may run at once.

    Where devices say how much memory they have, two on each if they fit: the host sums and saves one while the other
    computes.
    """
    most = settings.workers
    memory = device_memory(settings.devices)
    if memory is not None:
        most = len(settings.devices) * min(IN_FLIGHT, *(_that_fit(memory, x) for x in groups))
    if max_lanes is not None:
        most = min(most, *(max_lanes // group.demand.width for group in groups))
    if max_bytes is not None:
        demands = [group.demand for group in groups]
        most = min(most, *(max_bytes // (d.width * d.bytes_per_lane) for d in demands))
    return max(1, most)


def device_memory(devices: Sequence[Any]) -> int | None:
    """Bytes that jax may use on the smallest of the devices; None where they do not say."""
    known = [memory for memory in map(memory_of, devices) if memory is not None]
    return min(known) if known else None


def _that_fit(memory: int, group: Group) -> int:
    """Tiles of a group that a device of so much memory holds; an error if it holds none."""
    each = group.demand.width * group.demand.bytes_per_lane
    if each > memory:
        raise ValueError(
            f"{group.title}: a tile of {group.demand.width} lanes needs about {format_bytes(each)} on a "
            f"device; accepted: at most {format_bytes(memory)}, what jax may use there (smaller "
            "sizes, or JAX_PLATFORMS=cpu)"
        )
    return memory // each


def choose_devices(devices: int | Iterable[Any] | None) -> tuple[list[Any], int]:
    """The devices of a sweep and how many tiles run on them at once.

    A program runs on one device. On a CPU a device is the whole processor, so there as many tiles run as it has cores.
    """
    local = jax.local_devices()
    cpu = local[0].platform == "cpu"
    most = max(num_cores(), len(local)) if cpu else len(local)
    if devices is None:
        return local, most
    several = isinstance(devices, Iterable) and not isinstance(devices, str | bytes)
    if isinstance(devices, bool) or not (isinstance(devices, int) or several):
        raise ValueError(f"devices: {devices!r}; accepted: a number, jax devices, or None for all")
    if isinstance(devices, int):
        if not 1 <= devices <= most:
            raise ValueError(
                f"devices: {devices}; accepted: 1..{most}, the {'cores' if cpu else 'devices'} of this machine"
            )
        return local[:devices], devices
    chosen = list(devices)
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        raise ValueError(f"devices: {chosen!r}; accepted: at least one jax device (jax.devices())")
    return chosen, len(chosen)
