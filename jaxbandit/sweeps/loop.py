"""The sweep: learners x instances x parameters x seeds in one call, on all devices; it survives
being killed.

    ucbvi, sizes = jb.make_learner("ucbvi"), dict(horizon=15, capacity=2, num_values=5)
    dataset = jb.sweep(
        learners={"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.grid(ucbvi, bonus_scale=[0.1,
        1.0])}, instances={"I1": mdp, "I2": jb.family("prophet-random", count=8, key=key, **sizes)},
        num_episodes=200_000, num_seeds=32, checkpoint="runs/first")

A run is a pure function of its key. The key of a lane, fold_in(fold_in(key(seed), crc32(instance)),
seed number), is the same for all learners and parameters (paired comparisons), whatever else is in
the sweep and however it is cut into tiles, chunks, devices and processes.

The host loops over jitted chunks, so memory does not grow with T. Its workers take tiles from a queue, save after chunks,
and listen for a stop. A worker is a thread: compiled programs run outside Python, so two of them keep two cores busy with
one and the same program. The main thread only waits, shows what is going on and hears signals.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxbandit import checks, distributed
from jaxbandit.errors import SweepInterrupted
from jaxbandit.learner import RESERVED, Learner
from jaxbandit.mdp import MDP
from jaxbandit.metrics import check_metrics, dims_of
from jaxbandit.results.dataset import AXES, make_dataset, warn_of_nan
from jaxbandit.sweeps.arguments import Instances, LearnerGrid, expand_instances, expand_learners
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store
from jaxbandit.sweeps.identity import Identity, backend_fingerprint, configuration
from jaxbandit.sweeps.lanes import (
    Group,
    Plan,
    Tile,
    check_reports,
    choose_devices,
    device_memory,
    make_groups,
    make_tile_runner,
    make_tiles,
    max_workers,
    measure,
)
from jaxbandit.sweeps.options import Settings, SweepOptions, with_options
from jaxbandit.sweeps.progress import Display, Interruption, Progress, log
from jaxbandit.sweeps.shards import (
    SECONDS,
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
PATIENCE = 10.0
"""Seconds that workers get to end their chunks when the sweep is given up."""
TICK = 0.2
"""Seconds between two looks of the main thread."""


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
    with contextlib.ExitStack() as opened:
        store: Store | None = None
        if (folder := settings.checkpoint) is not None:
            how = (settings.resume, settings.allow_backend_change)
            store = in_turn(lambda first: Store(folder, config, backend, identity, *how, first))
            opened.callback(store.close)
        held = checkpoint_state(store)
        tiles, mine = assign(identity, held, seeds)
        headers = [header for each in (*held.finished, *held.carries) for header in each]
        if store is not None and identity.lower_engines(tiles, headers):
            in_turn(lambda first: store.set_aside())
            held = checkpoint_state(store)
            _, mine = assign(identity, held, seeds)
        free = ("chunk_size", "max_lanes", "max_bytes", "workers", "num_seeds")
        dataset = partial(
            make_dataset, learners=grids, instances=mdps, seeds=seeds, points=settings.points,
            config={
                **config,
                "bits": backend,
                "other_bits": [] if store is None else store.other_backends,
                "programs": identity.by_learner(),
                "shard": None if settings.shard is None else list(settings.shard),
                "devices": len(settings.devices),
                **{name: getattr(settings, name) for name in free},
            },
            metric_dims={name: ("episode", *(dims_of(metric) or ())) for name, metric in settings.metrics.items()},
        )  # fmt: skip

        total = settings.num_episodes

        def played(parts: Iterable[CheckpointFile]) -> int:
            headers = [part.header for part in parts]
            return sum(len(each["lanes"]) * each.get("episodes", total) for each in headers)

        def report(in_progress: Iterable[CheckpointFile]) -> None:
            parts = [*held.results, *in_progress]
            lanes = len(seeds) * sum(len(group.cells) for group in groups)
            on_chunk(Progress(played(parts), total * lanes, partial(dataset, parts)))

        on_chunk: Any = settings.on_chunk
        notify = None if on_chunk is None else report
        loop = HostLoop(identity=identity, tiles=mine, store=store, on_chunk=notify)
        run = loop.run(done=played(held.results), begun=begun_episodes(held, mine))
        everything = exchange(held.results + run)
        if store is not None:
            forget_stale(store, everything)
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
    return found if seconds == 0 else measure(job.settings, found, seconds)


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
    if isinstance(learners, Learner | LearnerGrid):
        own = learners.learner if isinstance(learners, LearnerGrid) else learners
        learners = {own.name: learners}
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
    given = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)} | {
        "devices": devices,
        "metrics": check_metrics(options.metrics, taken=(*AXES, *RESERVED, *params)),
    }
    points = options.record.points(total)
    settings = Settings(
        **given, num_episodes=total, num_seeds=count, points=points, workers=workers
    )
    groups = make_groups(grids, mdps, settings)
    check_reports(groups)
    settings = dataclasses.replace(settings, workers=max_workers(groups, settings))
    return Job(grids=grids, mdps=mdps, seeds=seeds, settings=settings, groups=groups)


def flatten(carry: Any) -> dict[str, np.ndarray]:
    """A runner's state as named arrays."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(carry)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restore(fresh: Any, arrays: dict[str, np.ndarray]) -> Any | None:
    """The saved state in the structure of a fresh one; None if it does not fit."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(fresh)
    wanted = {jax.tree_util.keystr(path): (np.shape(x), x.dtype) for path, x in leaves}
    if wanted != {name: (array.shape, array.dtype) for name, array in arrays.items()}:
        return None
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in wanted])


class Stop(Exception):  # noqa: N818  (not an error: how a worker ends early)
    """Raised in a worker when the sweep is to end."""


@dataclass
class HostLoop:
    """Workers that run the tiles of a sweep; the first error of any of them ends it."""

    identity: Identity
    """With the settings and the groups."""
    tiles: Sequence[Tile]
    store: Store | None
    on_chunk: Callable[[Iterable[CheckpointFile]], None] | None = None
    """Called in the main thread after chunks, with what the tiles have found so far."""
    interruption: Interruption = field(default_factory=Interruption)
    found: dict[int, CheckpointFile] = field(default_factory=dict)
    """By the number of the tile."""
    news: threading.Event = field(default_factory=threading.Event)
    """Set when something is found."""
    errors: list[BaseException] = field(default_factory=list)

    def run(self, **already: int) -> list[CheckpointFile]:
        """What the lanes of all tiles found; ``already`` is what a checkpoint has (`Display`)."""
        settings, tiles = self.identity.settings, self.tiles
        if not tiles:
            log(settings.progress, "all runs are in the checkpoint: nothing is left to run")
            return []
        show = settings.progress if distributed.is_main() else False
        titles = {number: group.title for number, group in enumerate(self.identity.groups)}
        workers = min(settings.workers, len(tiles))
        self.display = Display(tiles, settings.num_episodes, show, workers, titles, **already)
        waiting, lock = iter(enumerate(tiles)), threading.Lock()

        def work(device: Any) -> None:
            try:
                while not self.stopping():
                    with lock:
                        number, tile = next(waiting, (0, None))
                    if tile is None:
                        return
                    self._note(number, self.run_tile(number, tile, device))
            except Stop:
                return
            except BaseException as error:
                self.errors.append(error)

        enter, devices = with_settings_of_this_thread(work), settings.devices
        threads = [
            threading.Thread(
                target=enter, args=(devices[n % len(devices)],), daemon=True, name=f"worker-{n}"
            )
            for n in range(workers)
        ]
        with self.display, self.interruption:
            for thread in threads:
                thread.start()
            try:
                while any(thread.is_alive() for thread in threads):
                    for thread in threads:
                        thread.join(TICK / workers)
                    self.display.refresh()
                    self._notify()
                self._notify()
            except (
                BaseException
            ) as error:  # of on_chunk, or a second Ctrl-C: nobody works on unseen
                self.errors.append(error)
                for thread in threads:
                    thread.join(PATIENCE if isinstance(error, Exception) else TICK)
                raise
        if self.errors:
            raise self.errors[0]
        if self.interruption.requested:
            saved = "nothing was saved, because it had no checkpoint: give checkpoint=DIRECTORY to be able to continue"
            if self.store is not None:
                saved = f"what is done is saved: call it again with checkpoint={str(self.store.directory)!r} to continue"
            raise SweepInterrupted(f"sweep stopped by {self.interruption.cause}; {saved}")
        return [self.found[number] for number in range(len(tiles))]

    def stopping(self) -> bool:
        """Whether the workers are to end."""
        return bool(self.errors) or self.interruption.requested

    def _note(self, number: int, found: CheckpointFile) -> None:
        self.found[number] = found
        self.news.set()

    def _notify(self) -> None:
        if self.on_chunk is not None and self.news.is_set():
            self.news.clear()
            self.on_chunk(dict(self.found).values())

    def run_tile(self, number: int, tile: Tile, device: Any) -> CheckpointFile:
        """Runs a tile to its end, from its checkpoint if it has one."""
        self.display.begin(tile)
        settings, store = self.identity.settings, self.store
        group = self.identity.groups[tile.group]
        name, count = tile.name(), len(tile.lanes)
        header = tile.header() | {"engine": group.engine}
        runner = make_tile_runner(settings, group, tile.lanes, device)
        carry, earlier = runner.start(), dict.fromkeys(SECONDS, 0.0)
        saved = None if store is None else store.load_carry(name)
        if saved is not None:
            # a file may have been renamed: whose state it is stands in it
            own = saved.header["lanes"] == header["lanes"]
            continued = restore(carry, saved.arrays) if own else None
            if continued is None:
                warnings.warn(
                    f"checkpoint: the state of tile {name} is not its own, or does not fit this engine; it starts again",
                    stacklevel=2,
                )
            else:
                carry, earlier = continued, {key: saved.header[key] for key in SECONDS}

        def file(arrays: dict[str, Any], **more: Any) -> CheckpointFile:
            seconds = {key: earlier[key] + getattr(runner, key) for key in SECONDS}
            return CheckpointFile(header | seconds | more, arrays)

        done = runner.episodes_done(carry)
        self.display.skip(done * count, tile)
        last_save = time.monotonic()
        while done < settings.num_episodes:
            seconds = runner.run_seconds
            carry = runner.step(carry)
            if runner.engine_text is not None:
                self.identity.engines[tile.group] = runner.engine_text
            before, done = done, runner.episodes_done(carry)
            self.display.advance((done - before) * count, tile, runner.run_seconds - seconds)
            if done >= settings.num_episodes:
                break
            if self.on_chunk is not None:
                self._note(number, file({"regret": runner.so_far(carry)[:, 0]}, episodes=done))
            due = time.monotonic() - last_save >= settings.checkpoint_seconds
            if store is not None and (due or self.stopping()):
                store.save_carry(name, file(flatten(carry), episodes=done))
                last_save = time.monotonic()
            if self.stopping():
                raise Stop
        results = {key: values[:, 0] for key, values in runner.result(carry).items()}
        kept = file(results, name=name)
        if store is not None:
            store.save_done(name, kept)
        return kept


def with_settings_of_this_thread(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """``function``, called in any thread with this thread's context and settings of jax, which threads do not share."""
    config: Any = jax.config
    dtypes, ranks = config.jax_numpy_dtype_promotion, config.jax_numpy_rank_promotion
    context = contextvars.copy_context()

    def enter(argument: Any) -> None:
        promotion = jax.numpy_dtype_promotion(dtypes), jax.numpy_rank_promotion(ranks)
        with promotion[0], promotion[1], jax.transfer_guard("allow"):
            context.copy().run(function, argument)

    return enter
