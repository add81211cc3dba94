"""The sweep: learners x instances x parameters x seeds in one call, on all devices; it survives
being killed.

    ucbvi, sizes = jb.make_learner("ucbvi"), dict(horizon=15, capacity=2, num_values=5)
    dataset = jb.sweep(
        learners={"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.grid(ucbvi, bonus_scale=[0.1,
        1.0])}, instances={"I1": mdp, "I2": jb.family("prophet-random", count=8, key=key, **sizes)},
        num_episodes=200_000, num_seeds=32, checkpoint="runs/first")

A run is a pure function of its key. The key of a lane, fold_in(fold_in(key(seed), crc32(instance)),
seed number), is the same for all learners and parameters (paired comparisons), whatever else is in
the sweep and however it is cut into batches, chunks, devices and processes. The host loops over
jitted chunks, so memory does not grow with T.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxbandit import checks, distributed
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, validate
from jaxbandit.metrics import Metric, check_metrics, dims_of
from jaxbandit.record import Grid, linear
from jaxbandit.sweeps.axes import (
    LearnerGrid,
    expand_instances,
    expand_learners,
    shape_of,
)
from jaxbandit.sweeps.checkpoint import Saved, Store
from jaxbandit.sweeps.dataset import AXES, make_dataset
from jaxbandit.sweeps.identity import bits_of, identity, programs_of
from jaxbandit.sweeps.loop import Settings, make_tile_runner, run_tiles
from jaxbandit.sweeps.merging import seeds_of
from jaxbandit.sweeps.processes import (
    assign,
    begun_episodes,
    exchange,
    forget_stale,
    open_store,
    take_stock,
)
from jaxbandit.sweeps.progress import Display, Interruption, tell
from jaxbandit.sweeps.tiles import Demand, Group, Plan, Tile, lanes_of

if TYPE_CHECKING:
    import xarray

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
    allow_other_bits: bool = False,
    metrics: Mapping[str, Metric] | None = None,
    on_chunk: Callable[[Progress], None] | None = None,
    shard: tuple[int, int] | None = None,
    dry_run: bool = False,
) -> xarray.Dataset | Plan:
    """Runs every learner on every instance with every seed and returns the labelled results.

    Args:
        learners: name -> learner, or -> `grid` of one.
        instances: name -> MDP, or -> several of them (`family`, a list), which become "name/0",
        "name/1", ...
        num_episodes: T.
        num_seeds: runs per learner, instance and parameter point: seeds 0..num_seeds-1.
        seed: the root key of everything.
        engine: "blocks", "episodes", or "auto": blocks where the learner has a block form.
        record: when the regret is recorded (`jaxbandit.record`).
        chunk_size: episodes between two looks of the host (progress, checkpoint, Ctrl-C); the block
            engine counts stages of a phase instead. None leaves it to the engine.
        max_lanes: how many lanes may run at once; at least one tile (16 lanes on a CPU) does.
        max_bytes: how much memory they may take; at least what one tile takes.
        checkpoint: a directory. What is finished there is not run again (also with more seeds),
            what was under way goes on to the same bits. Use one directory for one sweep at a time.
        checkpoint_seconds: the state is saved after a chunk, at most this often; 0 saves after
        every chunk.
        resume: False throws away what the directory holds.
        allow_other_bits: True continues a checkpoint of another kind of device or another jax, whose last digits may
            differ; the result says so.
        progress: True shows a bar in terminals and notebooks, "always" elsewhere too, False never.
        devices: how many, or which; None takes all local ones. On a CPU, how many cores.
        metrics: name -> function(state, world), evaluated at the recorded episodes (`jaxbandit.metrics`); each becomes a
            variable of the Dataset.
        on_chunk: called after chunks, in this thread, with a `Progress` (``episodes``, ``total``, ``dataset()``);
            see `jb.hooks`.
        shard: (i, n) runs only the i-th of n parts of the seeds, for machines that do not see each other; `merge` puts
            the results together.
        dry_run: True runs nothing and returns the `Plan` (checkpoint not looked at), whose text
            lists shapes, lanes, tiles, bytes and compilations.

    Returns:
        An ``xarray.Dataset`` (see `jaxbandit.sweeps.dataset`). With several processes, the same in
        all of them.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> ds = jb.sweep({"UCB-VI": jb.make_learner("ucbvi")}, {"I1": mdp}, num_episodes=100, num_seeds=2,
        ...               record=jb.record.linear(4))
        >>> dict(ds["regret"].sizes)
        {'learner': 1, 'instance': 1, 'seed': 2, 'episode': 4}
    """
    grids, mdps = expand_learners(learners), expand_instances(instances)
    total = checks.whole("num_episodes", num_episodes, at_most=checks.MOST_EPISODES)
    count = checks.whole("num_seeds", num_seeds, at_most=checks.MOST_SEEDS)
    for name, limit in (
        ("chunk_size", chunk_size),
        ("max_lanes", max_lanes),
        ("max_bytes", max_bytes),
    ):
        if limit is not None:
            checks.whole(name, limit)
    seed = checks.seed("seed", seed)
    if not checkpoint_seconds >= 0:
        raise ValueError(f"checkpoint_seconds: {checkpoint_seconds!r}; accepted: 0 or more")
    if progress not in (True, False, "always"):
        raise ValueError(f'progress: {progress!r}; accepted: True, False, "always"')
    if not isinstance(record, Grid):
        raise TypeError(f"record: {record!r}; accepted: a grid (jb.record.linear, log or explicit)")
    points = record.points(total)
    measured = check_metrics(metrics, taken=AXES)
    seeds = list(range(count)) if shard is None else seeds_of(shard, count)
    if not seeds:
        raise ValueError(
            f"shard: {shard!r} of {count} seeds is empty; accepted: at most {count} shards"
        )
    chosen, workers = choose_devices(devices)
    settings = Settings(
        num_episodes=total,
        points=points,
        seed=seed,
        chunk_size=chunk_size,
        devices=chosen,
        workers=workers,
        checkpoint_seconds=checkpoint_seconds,
        metrics=measured,
    )
    groups = make_groups(grids, mdps, engine, settings)
    settings = dataclasses.replace(
        settings, workers=_most_workers(groups, settings, max_lanes, max_bytes)
    )
    config = identity(grids, mdps, groups, settings, record)
    bits, programs = bits_of(settings.devices[0]), programs_of(grids)

    store = None
    if checkpoint is not None and not dry_run:
        store = open_store(
            checkpoint,
            config=config,
            bits=bits,
            programs=programs,
            resume=resume,
            allow_other_bits=allow_other_bits,
        )
    held = take_stock(store)
    tiles, mine = assign(groups, held, seeds)
    if dry_run:
        return Plan(tuple(groups), tuple(tiles), total, settings.workers)
    known = [found for found in held.results if held.first_holder(found) == jax.process_index()]
    described = {
        **config,
        "bits": bits,
        "other_bits": [] if store is None else store.other_bits,
        "programs": {name: each.digest for name, each in programs.items()},
        "num_seeds": count,
        "shard": None if shard is None else list(shard),
        "chunk_size": chunk_size,
        "max_lanes": max_lanes,
        "max_bytes": max_bytes,
        "devices": len(settings.devices),
        "workers": settings.workers,
    }
    dims = {name: axes for name, metric in measured.items() if (axes := _metric_axes(metric))}
    dataset = partial(
        make_dataset, learners=grids, instances=mdps, seeds=seeds, points=points, config=described,
        metric_dims=dims,
    )  # fmt: skip

    def report(under_way: dict[int, Saved]) -> None:
        parts = [*known, *under_way.values()]
        done = sum(
            len(lanes_of(each.header)) * each.header.get("episodes", total) for each in parts
        )
        lanes = len(seeds) * sum(len(group.cells) for group in groups)
        if on_chunk is not None:
            on_chunk(Progress(done, total * lanes, partial(dataset, parts)))

    told = report if on_chunk is not None else None
    done = total * sum(len(lanes_of(found.header)) for found in known)
    begun = begun_episodes(held, mine)
    everything = exchange(
        known + _run(settings, groups, mine, store, progress, told, done=done, begun=begun)
    )
    if store is not None:
        forget_stale(store, everything)
        store.close()
    return dataset(everything)


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a sweep stands, for ``on_chunk``."""

    episodes: int
    """Episodes played, of all lanes together."""
    total: int
    """Episodes to play."""
    dataset: Callable[[], Any]
    """dataset() -> the Dataset so far; nan where nothing has come yet."""


def _metric_axes(metric: Metric) -> tuple[str, ...] | None:
    """The dimensions of a metric beyond those of a lane, if its axes have names."""
    names = dims_of(metric)
    return None if names is None else ("episode", *names)


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
        chosen = (
            engine if engine != "auto" else ("episodes" if learner.blocks is None else "blocks")
        )
        leaves = [(key, np.shape(values)[1:]) for key, values in sorted(learner.params.items())]
        programs.setdefault((chosen, learner.rules, tuple(leaves)), {})[name] = points
    return [
        Group(same, chosen, alike, partial(_ask, settings))
        for (chosen, *_), same in programs.items()
        for members in shapes.values()
        for alike in by_size(chosen, members)
    ]


def by_size(engine: str, instances: dict[str, MDP]) -> list[dict[str, MDP]]:
    """Instances of one shape, apart where the engine's tables of them differ in size."""
    from jaxbandit.engines import table_sizes

    found: dict[Any, dict[str, MDP]] = {}
    for name, mdp in instances.items():
        found.setdefault(table_sizes(engine, mdp), {})[name] = mdp
    return list(found.values())


def _ask(settings: Settings, group: Group) -> Demand:
    """What the engine says of one lane of a group."""
    runner = make_tile_runner(settings, group, [(*group.cells[0], 0)])
    return Demand(runner.width, runner.bytes_per_lane + 16 * len(settings.points))


def _most_workers(
    groups: list[Group], settings: Settings, max_lanes: int | None, max_bytes: int | None
) -> int:
    """How many tiles may run at once."""
    most = settings.workers
    if max_lanes is not None:
        most = min(most, *(max_lanes // group.demand.width for group in groups))
    if max_bytes is not None:
        demands = [group.demand for group in groups]
        most = min(most, *(max_bytes // (d.width * d.bytes_per_lane) for d in demands))
    return max(1, most)


def _run(
    settings: Settings,
    groups: list[Group],
    tiles: list[Tile],
    store: Store | None,
    progress: bool | str,
    on_chunk: Callable[[dict[int, Saved]], None] | None,
    **already: int,
) -> list[Saved]:
    if not tiles:
        tell(progress, "all runs are in the checkpoint: nothing is left to run")
        return []
    display = Display(
        tiles,
        settings.num_episodes,
        progress if distributed.is_main() else False,
        workers=settings.workers,
        programs={number: group.title for number, group in enumerate(groups)},
        **already,
    )
    with display, Interruption() as interruption:
        try:
            return run_tiles(settings, groups, tiles, store, display, interruption, on_chunk)
        except BaseException:
            if store is not None:
                store.close()
            raise


def choose_devices(devices: int | Iterable[Any] | None) -> tuple[list[Any], int]:
    """The devices of a sweep and how many tiles run on them at once.

    A program runs on one device. On a CPU a device is the whole processor, so there as many tiles run as it has cores.
    """
    local = jax.local_devices()
    cpu = local[0].platform == "cpu"
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    most = max(cores, len(local)) if cpu else len(local)
    if devices is None:
        return local, most
    if isinstance(devices, bool) or not isinstance(devices, int | Iterable):
        raise ValueError(f"devices: {devices!r}; accepted: a number, jax devices, or None for all")
    if isinstance(devices, int):
        if not 1 <= devices <= most:
            raise ValueError(
                f"devices: {devices}; accepted: 1..{most}, the {'cores' if cpu else 'devices'} of this machine"
            )
        return local[:devices], devices
    chosen = list(devices)
    if not chosen:
        raise ValueError("devices: []; accepted: at least one device")
    return chosen, len(chosen)
