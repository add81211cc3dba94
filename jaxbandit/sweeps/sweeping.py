"""The sweep: learners x instances x parameters x seeds in one call, on all devices; it survives
being killed.

    ucbvi, sizes = jb.make_learner("ucbvi"), dict(horizon=15, capacity=2, num_values=5)
    dataset = jb.sweep(
        learners={"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.grid(ucbvi, bonus_scale=[0.1,
        1.0])}, instances={"I1": mdp, "I2": jb.family("prophet-random", count=8, key=key, **sizes)},
        num_episodes=200_000, num_seeds=32, checkpoint="runs/first")

A run is a pure function of its key. The key of a lane, fold_in(fold_in(key(seed), crc32(instance)),
seed number), is the same for all learners and parameters (paired comparisons), whatever else is in
the sweep and however it is cut into tiles, chunks, devices and processes. The host loops over
jitted chunks, so memory does not grow with T.
"""

from __future__ import annotations

import dataclasses
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import jax

from jaxbandit import checks
from jaxbandit.learner import RESERVED, Learner
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric, check_metrics, dims_of
from jaxbandit.record import Recording, linear
from jaxbandit.sweeps.dataset import AXES, make_dataset, warn_of_nan
from jaxbandit.sweeps.families import expand_instances
from jaxbandit.sweeps.groups import (
    check_reports,
    choose_devices,
    device_memory,
    make_groups,
    most_workers,
)
from jaxbandit.sweeps.identity import Identity, bits_of, configuration
from jaxbandit.sweeps.loop import Settings, run_watched
from jaxbandit.sweeps.merging import seeds_of
from jaxbandit.sweeps.parameters import LearnerGrid, expand_learners
from jaxbandit.sweeps.processes import (
    assign,
    begun_episodes,
    exchange,
    forget_stale,
    open_store,
    set_aside,
    take_stock,
)
from jaxbandit.sweeps.progress import Progress
from jaxbandit.sweeps.saved import Saved
from jaxbandit.sweeps.tiles import Plan, lanes_of
from jaxbandit.xla.compilations import kept_compilations

if TYPE_CHECKING:
    import xarray


class SweepOptions(TypedDict, total=False):
    """What type checkers know of the options of `sweep`, for all its overloads; its docstring explains them."""

    engine: str
    record: Recording
    chunk_size: int | None
    max_lanes: int | None
    checkpoint: str | os.PathLike[str] | None
    progress: bool | str
    max_bytes: int | None
    devices: int | Iterable[Any] | None
    checkpoint_seconds: float
    resume: bool
    allow_other_bits: bool
    metrics: Mapping[str, Metric] | None
    on_chunk: Callable[[Progress], None] | None
    shard: tuple[int, int] | None
    pad: bool


Learners = Mapping[str, Learner | LearnerGrid]
Instances = Mapping[str, MDP | Iterable[MDP]]


# Three overloads, because what is returned depends on dry_run.
@overload
def sweep(
    learners: Learners, instances: Instances, num_episodes: int, num_seeds: int = ..., seed: int = ...,
    *, dry_run: Literal[False] = ..., **options: Unpack[SweepOptions],
) -> xarray.Dataset: ...  # fmt: skip


@overload
def sweep(
    learners: Learners, instances: Instances, num_episodes: int, num_seeds: int = ..., seed: int = ...,
    *, dry_run: Literal[True], **options: Unpack[SweepOptions],
) -> Plan: ...  # fmt: skip


@overload
def sweep(
    learners: Learners, instances: Instances, num_episodes: int, num_seeds: int = ..., seed: int = ...,
    *, dry_run: bool, **options: Unpack[SweepOptions],
) -> xarray.Dataset | Plan: ...  # fmt: skip


@kept_compilations()
def sweep(
    learners: Mapping[str, Learner | LearnerGrid],
    instances: Mapping[str, MDP | Iterable[MDP]],
    num_episodes: int,
    num_seeds: int = 32,
    seed: int = 0,
    engine: str = "auto",
    record: Recording = linear(200),  # noqa: B008  (a frozen value)
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
    pad: bool = True,
    dry_run: bool = False,
) -> xarray.Dataset | Plan:
    """Runs every learner on every instance with every seed and returns the labelled results.

    What it compiles is kept between processes, in ``$JAXBANDIT_COMPILATION_CACHE`` ("none": nowhere) or a folder of
    the user's, unless jax was told where; for that, jax's settings are changed while it runs (`xla.compilations`).

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
        pad: False runs every H and k in a program of its own; True, on a GPU, several of them in one where the learner
            allows it (``print`` of the `Plan` says what that saves). No number depends on it but in the last digits.
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
    if not isinstance(checkpoint_seconds, numbers.Real) or not checkpoint_seconds >= 0:
        raise ValueError(f"checkpoint_seconds: {checkpoint_seconds!r}; accepted: 0 or more")
    for name, flag in (("resume", resume), ("allow_other_bits", allow_other_bits)):
        checks.choice(name, flag, (False, True))
    if progress not in (True, False, "always"):
        raise ValueError(f'progress: {progress!r}; accepted: True, False, "always"')
    if checkpoint is not None:
        checks.typed("checkpoint", checkpoint, (str, os.PathLike), "a directory, or None")
    if on_chunk is not None and not callable(on_chunk):
        raise TypeError(f"on_chunk: {on_chunk!r}; accepted: a function of a Progress, or None")
    if not isinstance(record, Recording):
        raise TypeError(f"record: {record!r}; accepted: jb.record.linear, log or explicit")
    points = record.points(total)
    params = (name for grid in grids.values() for name in grid.learner.params)
    measured = check_metrics(metrics, taken=(*AXES, *RESERVED, *params))
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
        pad=checks.choice("pad", pad, (False, True)),
    )
    groups = make_groups(grids, mdps, engine, settings)
    check_reports(groups)
    settings = dataclasses.replace(
        settings, workers=most_workers(groups, settings, max_lanes, max_bytes)
    )
    config = configuration(grids, mdps, groups, settings, record)
    bits, identity = bits_of(settings.devices[0], settings.pad), Identity(settings, groups)

    store = None
    if checkpoint is not None and not dry_run:
        store = open_store(
            checkpoint,
            config=config,
            bits=bits,
            identity=identity,
            resume=resume,
            allow_other_bits=allow_other_bits,
        )
    held = take_stock(store)
    tiles, mine = assign(groups, held, seeds)
    if store is not None and identity.lower_engines(tiles, held.headers):
        held = take_stock(set_aside(store))
        tiles, mine = assign(groups, held, seeds)
    if dry_run:
        memory = device_memory(settings.devices)
        return Plan(
            groups=tuple(groups),
            tiles=tuple(tiles),
            num_episodes=total,
            workers=settings.workers,
            device_bytes=memory,
        )
    known = [found for found in held.results if held.first_holder(found) == jax.process_index()]
    described = {
        **config,
        "bits": bits,
        "other_bits": [] if store is None else store.other_bits,
        "programs": identity.by_learner(),
        "num_seeds": count,
        "shard": None if shard is None else list(shard),
        "chunk_size": chunk_size,
        "max_lanes": max_lanes,
        "max_bytes": max_bytes,
        "devices": len(settings.devices),
        "workers": settings.workers,
    }
    dims = {name: ("episode", *(dims_of(metric) or ())) for name, metric in measured.items()}
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
        known + run_watched(settings, groups, mine, store, progress, told, done=done, begun=begun)
    )
    if store is not None:
        forget_stale(store, everything)
        store.close()
    found = dataset(everything)
    warn_of_nan(found, measured)
    return found
