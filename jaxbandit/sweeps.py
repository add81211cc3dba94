"""The sweep: learners x instances x parameters x seeds in one call, on all devices; it survives being killed.

    ucbvi, sizes = jb.make_learner("ucbvi"), dict(horizon=15, capacity=2, num_values=5)
    dataset = jb.sweep(
        learners={"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.grid(ucbvi, bonus_scale=[0.1, 1.0])},
        instances={"I1": mdp, "I2": jb.family("prophet-random", count=8, key=key, **sizes)},
        num_episodes=200_000, num_seeds=32, checkpoint="runs/first")

A run is a pure function of its key. The key of a lane, fold_in(fold_in(key(seed), crc32(instance)), seed
number), is the same for all learners and parameters (paired comparisons), whatever else is in the sweep and
however it is cut into batches, chunks, devices and processes. The host loops over jitted chunks, so memory
does not grow with T.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxbandit
from jaxbandit import distributed
from jaxbandit.axes import (
    LearnerGrid,
    digest,
    expand_instances,
    expand_learners,
    family,
    grid,
    program_digest,
    shape_of,
)
from jaxbandit.batches import Batch, Group, Limits, Plan
from jaxbandit.checkpoint import Saved, Store
from jaxbandit.dataset import make_dataset
from jaxbandit.learners.base import Learner
from jaxbandit.mdp import MDP, validate
from jaxbandit.progress import Interruption, SweepInterrupted, progress_bar
from jaxbandit.record import Grid, linear
from jaxbandit.running import Settings, check_interruption, make_batch_runner, run_batch
from jaxbandit.sharing import assign, exchange, forget_stale, open_store, take_stock

if TYPE_CHECKING:
    import xarray

__all__ = ["SweepInterrupted", "family", "grid", "sweep"]

PROBE_CHUNK = 32
NUMBERS = 3
"""To be raised with every change of an engine that changes its numbers: checkpoints of the old ones are refused."""
ENGINES = ("auto", "episodes", "blocks")


def sweep(
    learners: Mapping[str, Learner | LearnerGrid],
    instances: Mapping[str, MDP | Iterable[MDP]],
    num_episodes: int,
    num_seeds: int = 32,
    seed: int = 0,
    engine: str = "auto",
    record: Grid = linear(200),  # noqa: B008  (a frozen value)
    chunk_size: int | None = None,
    max_lanes: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | str = True,
    *,
    max_bytes: int | None = None,
    devices: int | Iterable[Any] | None = None,
    checkpoint_seconds: float = 10.0,
    resume: bool = True,
    dry_run: bool = False,
) -> xarray.Dataset | Plan:
    """Runs every learner on every instance with every seed and returns the labelled results.

    Args:
        learners: name -> learner, or -> `grid` of one.
        instances: name -> MDP, or -> several of them (`family`, a list), which become "name/0", "name/1", ...
        num_episodes: T.
        num_seeds: runs per learner, instance and parameter point: seeds 0..num_seeds-1.
        seed: the root key of everything.
        engine: "blocks", "episodes", or "auto": blocks where the learner has a block form.
        record: when the regret is recorded (`jaxbandit.record`).
        chunk_size: episodes between two looks of the host (progress, checkpoint, Ctrl-C); the block engine
            counts stages of a phase instead. None leaves it to the engine.
        max_lanes: how many lanes may run at once.
        max_bytes: how much memory they may take; without either limit about 1 GB.
        checkpoint: a directory. What is finished there is not run again (also with more seeds), what was
            under way goes on to the same bits. Use one directory for one sweep at a time.
        checkpoint_seconds: the state is saved after a chunk, at most this often; 0 saves after every chunk.
        resume: False throws away what the directory holds.
        progress: True shows a bar in terminals and notebooks, "always" elsewhere too, False never.
        devices: how many, or which; None takes all local ones.
        dry_run: True runs nothing and returns the `Plan` (checkpoint not looked at), whose text lists shapes,
            lanes, batches, bytes and compilations.

    Returns:
        An ``xarray.Dataset`` (see `jaxbandit.dataset`). With several processes, the same in all of them.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> ds = jb.sweep({"UCB-VI": jb.make_learner("ucbvi")}, {"I1": mdp}, num_episodes=100, num_seeds=2,
        ...               record=jb.record.linear(4))
        >>> dict(ds["regret"].sizes)
        {'learner': 1, 'instance': 1, 'seed': 2, 'episode': 4}
    """
    grids, mdps = expand_learners(learners), expand_instances(instances)
    total, count = _whole("num_episodes", num_episodes), _whole("num_seeds", num_seeds)
    for name, limit in (("chunk_size", chunk_size), ("max_lanes", max_lanes), ("max_bytes", max_bytes)):
        if limit is not None:
            _whole(name, limit)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ValueError(f"seed: {seed!r}; accepted: a whole number")
    if not checkpoint_seconds >= 0:
        raise ValueError(f"checkpoint_seconds: {checkpoint_seconds!r}; accepted: 0 or more")
    if progress not in (True, False, "always"):
        raise ValueError(f'progress: {progress!r}; accepted: True, False, "always"')
    if not isinstance(record, Grid):
        raise TypeError(f"record: {record!r}; accepted: a grid (jb.record.linear, log or explicit)")
    points = record.points(total)
    settings = Settings(total, points, int(seed), chunk_size, _devices(devices), checkpoint_seconds)
    groups = make_groups(grids, mdps, engine, settings)
    config = _identity(grids, mdps, groups, settings, record)

    store = open_store(checkpoint, config, resume) if checkpoint is not None and not dry_run else None
    held = take_stock(store)
    limits = Limits(max_lanes, max_bytes)
    batches, mine = assign(groups, held, count, limits, len(settings.devices))
    if dry_run:
        return Plan(tuple(groups), tuple(batches), total, len(settings.devices))
    records = [found for found in held.records if held.first_holder(found) == jax.process_index()]
    records += _run(settings, groups, mine, store, progress)
    everything = exchange(records)
    if store is not None:
        forget_stale(store, everything)
    described = {
        **config,
        "num_seeds": count,
        "chunk_size": chunk_size,
        **limits._asdict(),
        "devices": len(settings.devices),
    }
    return make_dataset(everything, grids, mdps, count, points, described)


def make_groups(
    grids: Mapping[str, LearnerGrid], mdps: Mapping[str, MDP], engine: str, settings: Settings
) -> list[Group]:
    """Programs x shapes of instances, with the engine of each and an estimate of its memory."""
    if engine not in ENGINES:
        raise ValueError(f"engine: {engine!r}; accepted: {', '.join(ENGINES)}")
    shapes: dict[Any, dict[str, MDP]] = {}
    for name, mdp in mdps.items():
        try:
            validate(mdp)
        except ValueError as error:
            raise ValueError(f"instances[{name!r}]: {error}") from error
        shapes.setdefault(shape_of(mdp), {})[name] = mdp
    programs: dict[Any, dict[str, LearnerGrid]] = {}
    for name, points in grids.items():
        learner = points.learner
        if engine == "blocks" and learner.blocks is None:
            raise ValueError(
                f"engine: 'blocks' for learners[{name!r}] ({learner.name}), which has no block form; "
                "accepted: 'auto' or 'episodes'"
            )
        for members in shapes.values():
            first = next(iter(members))
            if "rank" in learner.needs and members[first].rank is None:
                raise ValueError(
                    f"instances[{first!r}] has no order of actions (rank), which learners[{name!r}] "
                    f"({learner.name}) needs; "
                    "accepted: ordered instances, such as prophet, posted-pricing and knapsack"
                )
        chosen = engine if engine != "auto" else ("episodes" if learner.blocks is None else "blocks")
        leaves = [(key, np.shape(values)[1:]) for key, values in sorted(learner.params.items())]
        programs.setdefault((chosen, learner.rules, tuple(leaves)), {})[name] = points
    return [
        Group(same, chosen, members, partial(_bytes_per_lane, settings))
        for (chosen, *_), same in programs.items()
        for members in shapes.values()
    ]


def _bytes_per_lane(settings: Settings, group: Group) -> int:
    # Engines size a chunk so that its records take a fixed amount; a small one leaves what lanes add.
    small = settings.chunk_size or (PROBE_CHUNK if group.engine == "episodes" else None)
    probe = dataclasses.replace(settings, chunk_size=small, devices=settings.devices[:1])
    curve = 16 * len(settings.points)
    return make_batch_runner(probe, group, group.cells[:1], [0]).bytes_per_lane + curve


def _identity(
    grids: Mapping[str, LearnerGrid],
    mdps: Mapping[str, MDP],
    groups: list[Group],
    settings: Settings,
    record: Grid,
) -> dict[str, Any]:
    """All that the numbers of a lane depend on: the configuration whose fingerprint a checkpoint carries."""
    engines = {name: group.engine for group in groups for name in group.grids}
    return {
        "learners": {
            name: {
                "learner": points.learner.name,
                "engine": engines[name],
                "varied": list(points.names),
                "params": {
                    key: _plain(np.asarray(values).tolist()) for key, values in points.learner.params.items()
                },
                "program": program_digest(points.learner)[:16],
            }
            for name, points in grids.items()
        },
        "instances": {
            name: {
                "horizon": mdp.horizon,
                "width": mdp.width,
                "num_actions": mdp.num_actions,
                "num_outcomes": mdp.num_outcomes,
                "sha256": digest(mdp),
            }
            for name, mdp in mdps.items()
        },
        "num_episodes": settings.num_episodes,
        "seed": settings.seed,
        "record": record.describe(),
        "prng": "threefry2x32",
        "partitionable": bool(jax.config.jax_threefry_partitionable),  # type: ignore[attr-defined]
        "x64": bool(jax.config.jax_enable_x64),  # type: ignore[attr-defined]
        "jaxbandit": jaxbandit.__version__,
        "numbers": NUMBERS,
    }


def _plain(value: Any) -> Any:
    """Numbers as JSON has them: nan becomes null."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _run(
    settings: Settings, groups: list[Group], batches: list[Batch], store: Store | None, progress: bool | str
) -> list[Saved]:
    total = settings.num_episodes * sum(batch.lanes_kept for batch in batches)
    records = []
    show = progress if distributed.is_main() else False
    with progress_bar(total, show) as bar, Interruption() as interruption:
        for batch in batches:
            check_interruption(interruption, store)
            records.append(run_batch(settings, groups[batch.group], batch, store, bar, interruption))
    return records


def _devices(devices: int | Iterable[Any] | None) -> list[Any]:
    local = jax.local_devices()
    if devices is None:
        return local
    if isinstance(devices, int):
        if not 1 <= devices <= len(local):
            raise ValueError(
                f"devices: {devices}; accepted: 1..{len(local)} "
                "(more CPU devices: jaxbandit.distributed.use_cpu_devices, before jax starts)"
            )
        return local[:devices]
    return list(devices)


def _whole(name: str, value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer)
        or value != int(value)
        or value < 1
    ):
        raise ValueError(f"{name}: {value!r}; accepted: a whole number, at least 1")
    return int(value)
