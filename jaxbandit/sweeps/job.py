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
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from jaxbandit import checks
from jaxbandit.learner import RESERVED, Learner
from jaxbandit.mdp import MDP
from jaxbandit.metrics import check_metrics, dims_of
from jaxbandit.results.dataset import AXES, make_dataset, warn_of_nan
from jaxbandit.sweeps.arguments import Instances, LearnerGrid, expand_instances, expand_learners
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store
from jaxbandit.sweeps.forecast import Plan, measure
from jaxbandit.sweeps.identity import Identity, backend_fingerprint, configuration
from jaxbandit.sweeps.lanes import (
    Group,
    check_reports,
    choose_devices,
    device_memory,
    lanes_of,
    make_groups,
    make_tiles,
    max_workers,
)
from jaxbandit.sweeps.loop import run_watched
from jaxbandit.sweeps.options import Settings, SweepOptions, with_options
from jaxbandit.sweeps.progress import Progress
from jaxbandit.sweeps.shards import (
    assign,
    begun_episodes,
    checkpoint_state,
    exchange,
    forget_stale,
    in_turn,
    seeds_of,
)
from jaxbandit.xla.compat import on_host
from jaxbandit.xla.compilations import persistent_cache

if TYPE_CHECKING:
    import xarray

Learners = Mapping[str, Learner | LearnerGrid] | Learner | LearnerGrid
GivenInstances = Mapping[str, MDP | Iterable[MDP]] | MDP


class Job(NamedTuple):
    """The arguments of a sweep, checked."""

    grids: dict[str, LearnerGrid]
    mdps: Instances
    seeds: list[int]
    settings: Settings
    groups: list[Group]


@with_options
@persistent_cache()
@on_host("sweep")
def sweep(
    learners: Learners,
    instances: GivenInstances,
    num_episodes: int,
    num_seeds: int = 32,
    *,
    dry_run: bool = False,
    options: SweepOptions,
) -> xarray.Dataset:
    """Runs every learner on every instance with every seed and returns the labelled results.

    Compiled programs are kept between processes, in ``$JAXBANDIT_COMPILATION_CACHE`` ("none": nowhere) or your cache
    folder, unless jax was told where; jax's settings are restored after the sweep (`xla.compilations`).

    Args:
        learners: name -> learner, or -> `grid` of one; or a single learner.
        instances: name -> MDP, or -> several of them (`family`, a list), which become "name/0",
            "name/1", ...; or a single MDP.
        num_episodes: T.
        num_seeds: runs per learner, instance and parameter setting: seeds 0..num_seeds-1.
        dry_run: deprecated, see `plan`.
        **options: the fields of `jaxbandit.sweeps.options.SweepOptions`, which explains them.

    Returns:
        An ``xarray.Dataset`` (see `jaxbandit.results.dataset`). With several processes, the same in
        all of them.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> ds = jb.sweep({"UCB-VI": jb.make_learner("ucbvi")}, {"I1": mdp}, num_episodes=100, num_seeds=2,
        ...               record=jb.record.linear(4))
        >>> dict(ds["regret"].sizes)
        {'learner': 1, 'instance': 1, 'seed': 2, 'episode': 4}
    """
    job = prepare(learners, instances, num_episodes, num_seeds, options)
    if dry_run:
        warnings.warn("sweep(dry_run=True) is now jb.plan(...)", DeprecationWarning, stacklevel=5)
        return make_plan(job)  # type: ignore[return-value]
    grids, mdps, seeds, settings, groups = job
    config = configuration(grids, mdps, groups, settings)
    backend, identity = backend_fingerprint(settings.devices[0]), Identity(settings, groups)
    store: Store | None = None
    if (folder := settings.checkpoint) is not None:
        store = in_turn(
            lambda first: Store(
                folder, config, backend, identity, settings.resume, settings.allow_backend_change, alone=first
            )
        )  # fmt: skip
    held = checkpoint_state(store)
    tiles, mine = assign(groups, held, seeds)
    if store is not None and identity.lower_engines(tiles, held.headers):
        in_turn(lambda first: store.set_aside())
        held = checkpoint_state(store)
        _, mine = assign(groups, held, seeds)
    known = [found for found in held.results if held.first_holder(found) == jax.process_index()]
    total = settings.num_episodes
    dataset = partial(
        make_dataset, learners=grids, instances=mdps, seeds=seeds, points=settings.points,
        config={
            **config,
            "bits": backend,
            "other_bits": [] if store is None else store.other_backends,
            "programs": identity.by_learner(),
            "num_seeds": settings.num_seeds,
            "shard": None if settings.shard is None else list(settings.shard),
            **{name: getattr(settings, name) for name in ("chunk_size", "max_lanes", "max_bytes", "workers")},
            "devices": len(settings.devices),
        },
        metric_dims={name: ("episode", *(dims_of(metric) or ())) for name, metric in settings.metrics.items()},
    )  # fmt: skip

    def report(in_progress: dict[int, CheckpointFile], on_chunk: Any = settings.on_chunk) -> None:
        parts = [*known, *in_progress.values()]
        done = sum(
            len(lanes_of(each.header)) * each.header.get("episodes", total) for each in parts
        )
        lanes = len(seeds) * sum(len(group.cells) for group in groups)
        on_chunk(Progress(done, total * lanes, partial(dataset, parts)))

    done = total * sum(len(lanes_of(found.header)) for found in known)
    begun = begun_episodes(held, mine)
    notify = None if settings.on_chunk is None else report
    run = run_watched(settings, groups, mine, store, notify, done=done, begun=begun)
    everything = exchange(known + run)
    if store is not None:
        forget_stale(store, everything)
        store.close()
    found = dataset(everything)
    warn_of_nan(found, settings.metrics)
    return found


@with_options
@persistent_cache()
def plan(
    learners: Learners,
    instances: GivenInstances,
    num_episodes: int,
    num_seeds: int = 32,
    *,
    measure_seconds: float = 5.0,
    options: SweepOptions,
) -> Plan:
    """What `sweep` would run with the same arguments: programs, lanes, tiles, bytes and about how long.

    Nothing is stored, and the checkpoint is not read.

    Args:
        learners: as in `sweep`.
        instances: as in `sweep`.
        num_episodes: as in `sweep`.
        num_seeds: as in `sweep`.
        measure_seconds: about how long short runs may take, from which the time is estimated; 0
            estimates none. Programs that are compiled for it are cached for the sweep.
        **options: as in `sweep`.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> plan = jb.plan({"UCB-VI": jb.make_learner("ucbvi")}, {"I1": mdp}, 100, 2, measure_seconds=0)
        >>> plan.num_lanes, plan.compilations
        (2, 1)
    """
    seconds = checks.number("measure_seconds", measure_seconds, low=0)
    job = prepare(learners, instances, num_episodes, num_seeds, options)
    found = make_plan(job)
    if seconds == 0:
        return found
    return dataclasses.replace(found, seconds=measure(job.settings, found, seconds))


def make_plan(job: Job) -> Plan:
    """The plan of a job whose lanes are all still to run."""
    return Plan(
        groups=tuple(job.groups),
        tiles=tuple(make_tiles(job.groups, (), job.seeds)),
        num_episodes=job.settings.num_episodes,
        workers=job.settings.workers,
        device_bytes=device_memory(job.settings.devices),
    )


def prepare(
    learners: Any, instances: Any, num_episodes: Any, num_seeds: Any, options: SweepOptions
) -> Job:
    """Checks the arguments of a sweep and forms its groups; nothing is run."""
    if isinstance(learners, Learner):
        learners = {learners.name: learners}
    elif isinstance(learners, LearnerGrid):
        learners = {learners.learner.name: learners}
    if isinstance(instances, MDP):
        instances = {"MDP": instances}
    grids, mdps = expand_learners(learners), expand_instances(instances)
    total = checks.whole("num_episodes", num_episodes, at_most=checks.MOST_EPISODES)
    count = checks.whole("num_seeds", num_seeds, at_most=checks.MOST_SEEDS)
    params = (name for grid in grids.values() for name in grid.learner.params)
    seeds = list(range(count)) if options.shard is None else seeds_of(options.shard, count)
    if not seeds:
        raise ValueError(
            f"shard: {options.shard!r} of {count} seeds is empty; accepted: at most {count} shards"
        )
    devices, workers = choose_devices(options.devices)
    own = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)} | {
        "devices": devices,
        "metrics": check_metrics(options.metrics, taken=(*AXES, *RESERVED, *params)),
    }
    points = options.record.points(total)
    settings = Settings(**own, num_episodes=total, num_seeds=count, points=points, workers=workers)
    groups = make_groups(grids, mdps, settings)
    check_reports(groups)
    settings = dataclasses.replace(settings, workers=max_workers(groups, settings))
    return Job(grids=grids, mdps=mdps, seeds=seeds, settings=settings, groups=groups)
