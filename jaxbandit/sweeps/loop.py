"""The host loop: workers take tiles from a queue, save after chunks, and listen for a stop.

A worker is a thread: compiled programs run outside Python, so two of them keep two cores busy with one and the same
program. The main thread only waits, shows what is going on and hears signals.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxbandit import distributed
from jaxbandit.errors import SweepInterrupted
from jaxbandit.learner import Learner
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store
from jaxbandit.sweeps.families import stack
from jaxbandit.sweeps.options import SweepOptions
from jaxbandit.sweeps.progress import Display, Interruption, tell
from jaxbandit.sweeps.tiles import Group, Lane, Tile
from jaxbandit.xla.threefry import fold_in

PATIENCE = 10.0
"""Seconds that workers get to end their chunks when the sweep is given up."""
TICK = 0.2
"""Seconds between two looks of the main thread."""


@dataclass(frozen=True, kw_only=True)
class Settings(SweepOptions):
    """The options of a sweep and what follows from them; ``devices`` and ``metrics`` are lists and dictionaries here."""

    num_episodes: int
    points: np.ndarray
    """The recorded episodes."""
    workers: int
    """Tiles that run at once."""
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The options were checked before."""


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
    from jaxbandit.engines import make_runner

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

    def functions(learner: Learner) -> tuple[Any, ...]:
        forms = (learner, learner.blocks)
        return tuple(None if form is None else form.constants for form in forms)

    kinds: dict[Any, tuple[Any, ...]] = {}
    for learner in learners:
        kinds.setdefault(tuple(map(id, functions(learner))), functions(learner))
    first = learners[0]
    if len(kinds) == 1:
        return first, {}

    def own(form: int) -> Callable:
        def constants(problem, params):
            given = {name: value for name, value in params.items() if name != OWNER}
            function = list(kinds.values())[int(params[OWNER])][form]
            return given if function is None else function(problem, given)

        return constants

    numbers = [list(kinds).index(tuple(map(id, functions(learner)))) for learner in learners]
    blocks = None if first.blocks is None else first.blocks._replace(constants=own(1))
    return first._replace(constants=own(0), blocks=blocks), {OWNER: np.asarray(numbers, np.int32)}


def flatten(carry: Any) -> dict[str, np.ndarray]:
    """A runner's state as named arrays."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(carry)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restore(fresh: Any, arrays: dict[str, np.ndarray]) -> Any | None:
    """The saved state in the structure of a fresh one; None if it does not fit."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(fresh)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if set(names) != set(arrays):
        return None
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if arrays[name].shape != np.shape(leaf) or arrays[name].dtype != leaf.dtype:
            return None
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in names])


class Stop(Exception):  # noqa: N818  (not an error: how a worker ends early)
    """Raised in a worker when the sweep is to end."""


def run_tiles(
    settings: Settings,
    groups: Sequence[Group],
    tiles: Sequence[Tile],
    store: Store | None,
    display: Display,
    interruption: Interruption,
    on_chunk: Callable[[dict[int, CheckpointFile]], None] | None = None,
) -> list[CheckpointFile]:
    """Runs all tiles and returns what their lanes found; the first error of any worker ends the sweep.

    ``on_chunk`` is called in this thread after chunks, with what tiles (by number) have found so far.
    """
    waiting = list(reversed(list(enumerate(tiles))))
    found: dict[int, CheckpointFile] = {}
    under_way: dict[int, CheckpointFile] = {}
    errors: list[BaseException] = []
    lock = threading.Lock()

    def stopping() -> bool:
        return bool(errors) or interruption.requested

    def work(device: Any) -> None:
        try:
            while True:
                with lock:
                    if not waiting or stopping():
                        return
                    number, tile = waiting.pop()
                group = groups[tile.group]
                note = partial(under_way.__setitem__, number) if on_chunk is not None else None
                found[number] = run_tile(
                    settings, group, tile, store, display, stopping, device, note
                )
                if note is not None:
                    note(found[number])
        except Stop:
            return
        except BaseException as error:
            errors.append(error)

    with inherited() as enter:
        threads = []
        for number in range(min(settings.workers, len(tiles))):
            device = settings.devices[number % len(settings.devices)]
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=enter, args=(context.run, work, device), daemon=True, name=f"worker-{number}"
            )
            thread.start()
            threads.append(thread)
        seen: Any = None
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(TICK / len(threads))
                display.refresh()
                seen = _look(on_chunk, under_way, seen)
            _look(on_chunk, under_way, seen)
        except BaseException as error:  # of on_chunk, or a second Ctrl-C: nobody works on unseen
            errors.append(error)
            for thread in threads:
                thread.join(PATIENCE if isinstance(error, Exception) else TICK)
            raise
    if errors:
        raise errors[0]
    check_interruption(interruption, store)
    return [found[number] for number in range(len(tiles))]


def _look(on_chunk: Any, under_way: dict[int, CheckpointFile], seen: Any) -> Any:
    """Calls ``on_chunk`` if anything has come since the last time."""
    now = dict(under_way)
    mark = [(number, id(saved)) for number, saved in sorted(now.items())]
    if on_chunk is not None and now and mark != seen:
        on_chunk(now)
    return mark


@contextlib.contextmanager
def inherited() -> Iterator[Any]:
    """A function that calls another one with this thread's settings of jax, which threads do not share."""
    config: Any = jax.config
    dtypes, ranks = config.jax_numpy_dtype_promotion, config.jax_numpy_rank_promotion

    def enter(function: Any, *arguments: Any) -> None:
        promotion = jax.numpy_dtype_promotion(dtypes), jax.numpy_rank_promotion(ranks)
        with promotion[0], promotion[1], jax.transfer_guard("allow"):
            function(*arguments)

    yield enter


def run_tile(
    settings: Settings,
    group: Group,
    tile: Tile,
    store: Store | None,
    display: Display,
    stopping: Any,
    device: Any,
    note: Callable[[CheckpointFile], None] | None = None,
) -> CheckpointFile:
    """Runs a tile to its end, from its checkpoint if it has one."""
    display.begin(tile)
    name = tile.name()
    header = tile.header() | {"engine": group.engine}
    runner = make_tile_runner(settings, group, tile.lanes, device)
    carry = runner.start()
    spent = {"compile_seconds": 0.0, "run_seconds": 0.0}
    saved = store.load_carry(name) if store is not None else None
    if saved is not None:
        # a file may have been renamed: whose state it is stands in it
        own = saved.header.get("lanes") == header["lanes"]
        continued = restore(carry, saved.arrays) if own else None
        if continued is None:
            warnings.warn(
                f"checkpoint: the state of tile {name} is not its own, or does not fit this engine; it starts again",
                stacklevel=2,
            )
        else:
            carry = continued
            spent = {key: saved.header.get(key, 0.0) for key in spent}

    def seconds() -> dict[str, float]:
        return {key: spent[key] + getattr(runner, key) for key in spent}

    count = len(tile.lanes)
    done = runner.episodes_done(carry)
    display.skip(done * count, tile)
    last_save = time.monotonic()
    while done < settings.num_episodes:
        carry = runner.step(carry)
        if store is not None and store.identity is not None and runner.engine_text is not None:
            store.identity.note_engine(tile.lanes, runner.engine_text)
        before, done = done, runner.episodes_done(carry)
        display.advance((done - before) * count, tile)
        if note is not None:
            so_far = {"regret": runner.so_far(carry)[:, 0]}
            note(CheckpointFile({**header, **seconds(), "episodes": done}, so_far))
        if done >= settings.num_episodes:
            break
        due = time.monotonic() - last_save >= settings.checkpoint_seconds
        if store is not None and (due or stopping()):
            store.save_carry(
                name, CheckpointFile({**header, **seconds(), "episodes": done}, flatten(carry))
            )
            last_save = time.monotonic()
        if stopping():
            raise Stop
    result = {key: values[:, 0] for key, values in runner.result(carry).items()}
    kept = CheckpointFile({**header, **seconds(), "name": name}, result)
    if store is not None:
        store.save_done(name, kept)
    return kept


def check_interruption(interruption: Interruption, store: Store | None) -> None:
    """Raises if a stop was asked for, saying how to continue."""
    if not interruption.requested:
        return
    if store is None:
        raise SweepInterrupted(
            f"sweep stopped by {interruption.cause}; nothing was saved, because it had no checkpoint: "
            "give checkpoint=DIRECTORY to be able to continue"
        )
    raise SweepInterrupted(
        f"sweep stopped by {interruption.cause}; what is done is saved: "
        f"call it again with checkpoint={str(store.directory)!r} to continue"
    )


def run_watched(
    settings: Settings,
    groups: list[Group],
    tiles: list[Tile],
    store: Store | None,
    progress: bool | str,
    on_chunk: Callable[[dict[int, CheckpointFile]], None] | None,
    **already: int,
) -> list[CheckpointFile]:
    """`run_tiles` with a progress line, ended by Ctrl-C after the chunk; ``already`` is what a checkpoint has (`Display`)."""
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
