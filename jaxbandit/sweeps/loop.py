"""The host loop: workers take tiles from a queue, save after chunks, and listen for a stop.

A worker is a thread: compiled programs run outside Python, so two of them keep two cores busy with one and the same
program. The main thread only waits, shows what is going on and hears signals.
"""

from __future__ import annotations

import contextvars
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxbandit import distributed
from jaxbandit.errors import SweepInterrupted
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store
from jaxbandit.sweeps.lanes import Group, Tile, make_tile_runner
from jaxbandit.sweeps.options import Settings
from jaxbandit.sweeps.progress import Display, Interruption, log

PATIENCE = 10.0
"""Seconds that workers get to end their chunks when the sweep is given up."""
TICK = 0.2
"""Seconds between two looks of the main thread."""


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
    in_progress: dict[int, CheckpointFile] = {}
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
                note = partial(in_progress.__setitem__, number) if on_chunk is not None else None
                found[number] = run_tile(
                    settings, group, tile, store, display, stopping, device, note
                )
                if note is not None:
                    note(found[number])
        except Stop:
            return
        except BaseException as error:
            errors.append(error)

    enter = with_settings_of_this_thread(work)
    threads = []
    for number in range(min(settings.workers, len(tiles))):
        device = settings.devices[number % len(settings.devices)]
        thread = threading.Thread(
            target=enter, args=(device,), daemon=True, name=f"worker-{number}"
        )
        thread.start()
        threads.append(thread)
    seen: Any = None
    try:
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(TICK / len(threads))
            display.refresh()
            seen = _notify(on_chunk, in_progress, seen)
        _notify(on_chunk, in_progress, seen)
    except BaseException as error:  # of on_chunk, or a second Ctrl-C: nobody works on unseen
        errors.append(error)
        for thread in threads:
            thread.join(PATIENCE if isinstance(error, Exception) else TICK)
        raise
    if errors:
        raise errors[0]
    check_interruption(interruption, store)
    return [found[number] for number in range(len(tiles))]


def _notify(on_chunk: Any, in_progress: dict[int, CheckpointFile], seen: Any) -> Any:
    """Calls ``on_chunk`` if anything has come since the last time."""
    now = dict(in_progress)
    mark = [(number, id(saved)) for number, saved in sorted(now.items())]
    if on_chunk is not None and now and mark != seen:
        on_chunk(now)
    return mark


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
    earlier = {"compile_seconds": 0.0, "run_seconds": 0.0}
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
            earlier = {key: saved.header.get(key, 0.0) for key in earlier}

    def about(**more: Any) -> dict[str, Any]:
        return {**header, **{key: earlier[key] + getattr(runner, key) for key in earlier}, **more}

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
            note(CheckpointFile(about(episodes=done), so_far))
        if done >= settings.num_episodes:
            break
        due = time.monotonic() - last_save >= settings.checkpoint_seconds
        if store is not None and (due or stopping()):
            store.save_carry(name, CheckpointFile(about(episodes=done), flatten(carry)))
            last_save = time.monotonic()
        if stopping():
            raise Stop
    result = {key: values[:, 0] for key, values in runner.result(carry).items()}
    kept = CheckpointFile(about(name=name), result)
    if store is not None:
        store.save_done(name, kept)
    return kept


def check_interruption(interruption: Interruption, store: Store | None) -> None:
    """Raises if a stop was asked for, saying how to continue."""
    if not interruption.requested:
        return
    saved = (
        "nothing was saved, because it had no checkpoint: give checkpoint=DIRECTORY to be able to continue"
        if store is None
        else f"what is done is saved: call it again with checkpoint={str(store.directory)!r} to continue"
    )
    raise SweepInterrupted(f"sweep stopped by {interruption.cause}; {saved}")


def run_watched(
    settings: Settings,
    groups: Sequence[Group],
    tiles: Sequence[Tile],
    store: Store | None,
    on_chunk: Callable[[dict[int, CheckpointFile]], None] | None,
    **already: int,
) -> list[CheckpointFile]:
    """`run_tiles` with a progress line, ended by Ctrl-C after the chunk; ``already`` is what a checkpoint has (`Display`)."""
    if not tiles:
        log(settings.progress, "all runs are in the checkpoint: nothing is left to run")
        return []
    display = Display(
        tiles,
        settings.num_episodes,
        settings.progress if distributed.is_main() else False,
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
