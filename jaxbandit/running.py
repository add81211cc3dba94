"""The host loop: one batch at a time through a runner, checkpoints after chunks, an ear for Ctrl-C."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit.axes import stack
from jaxbandit.batches import Batch, Cell, Group
from jaxbandit.checkpoint import Saved, Store
from jaxbandit.progress import Interruption, SweepInterrupted


@dataclass(frozen=True)
class Settings:
    """What all batches of a sweep share."""

    num_episodes: int
    points: np.ndarray
    seed: int
    chunk_size: int | None
    devices: Sequence[Any]
    checkpoint_seconds: float


def lane_keys(seed: int, cells: Sequence[Cell], seeds: Sequence[int]) -> jax.Array:
    """Keys [cells, seeds]: fold_in(fold_in(key(seed), crc32(instance name)), seed number)."""
    root = jax.random.key(seed, impl="threefry2x32")
    names = np.asarray([zlib.crc32(instance.encode()) for _, instance, _ in cells], np.uint32)
    numbers = np.asarray(seeds, np.uint32)
    fold = jax.random.fold_in
    return jax.vmap(lambda name: jax.vmap(lambda number: fold(fold(root, name), number))(numbers))(names)


def make_batch_runner(settings: Settings, group: Group, cells: Sequence[Cell], seeds: Sequence[int]) -> Any:
    """The engine's runner for a rectangle cells x seeds of a group."""
    from jaxbandit.engines import make_runner

    points = [(group.grids[learner].learner.params, point) for learner, _, point in cells]
    params = {name: np.stack([np.asarray(of[name])[point] for of, point in points]) for name in points[0][0]}
    # Every device gets as many seeds, so a batch begun by another run may have to do with fewer devices.
    count = max(n for n in range(1, len(settings.devices) + 1) if len(seeds) % n == 0)
    return make_runner(
        group.engine,
        group.learner._replace(params=params),
        stack([group.instances[instance] for _, instance, _ in cells]),
        lane_keys(settings.seed, cells, seeds),
        settings.num_episodes,
        settings.points,
        chunk_size=settings.chunk_size,
        devices=list(settings.devices[:count]),
    )


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


def run_batch(
    settings: Settings, group: Group, batch: Batch, store: Store | None, bar: Any, interruption: Interruption
) -> Saved:
    """Runs a batch to its end, from its checkpoint if it has one, and returns the record of its lanes."""
    name = batch.name()
    header = batch.header()
    runner = make_batch_runner(settings, group, batch.cells, batch.seeds)
    carry = runner.start()
    spent = {"compile_seconds": 0.0, "run_seconds": 0.0}
    saved = store.load_carry(name) if store is not None else None
    if saved is not None:
        continued = restore(carry, saved.arrays)
        if continued is None:
            warnings.warn(
                f"checkpoint: the state of batch {name} does not fit this engine; the batch starts again",
                stacklevel=2,
            )
        else:
            carry = continued
            spent = {key: saved.header[key] for key in spent}

    def seconds() -> dict[str, float]:
        return {key: spent[key] + getattr(runner, key) for key in spent}

    done = runner.episodes_done(carry)
    bar.total -= done * batch.lanes_kept  # so that rate and time left are those of what is run now
    last_save = time.monotonic()
    while done < settings.num_episodes:
        carry = runner.step(carry)
        before, done = done, runner.episodes_done(carry)
        bar.update((done - before) * batch.lanes_kept)
        if done >= settings.num_episodes:
            break
        due = time.monotonic() - last_save >= settings.checkpoint_seconds
        if store is not None and (due or interruption.requested):
            store.save_carry(name, Saved({**header, **seconds(), "episodes": done}, flatten(carry)))
            last_save = time.monotonic()
        check_interruption(interruption, store)
    kept = {key: values[: batch.num_cells, : batch.num_seeds] for key, values in runner.result(carry).items()}
    header["cells"], header["seeds"] = header["cells"][: batch.num_cells], header["seeds"][: batch.num_seeds]
    record = Saved({**header, **seconds(), "name": name}, kept)
    if store is not None:
        store.save_done(name, record)
    return record


def check_interruption(interruption: Interruption, store: Store | None) -> None:
    """Raises if Ctrl-C was pressed, saying how to continue."""
    if not interruption.requested:
        return
    if store is None:
        raise SweepInterrupted(
            "sweep stopped by Ctrl-C; nothing was saved, because it had no checkpoint: "
            "give checkpoint=DIRECTORY to be able to continue"
        )
    raise SweepInterrupted(
        "sweep stopped by Ctrl-C; what is done is saved: "
        f"call it again with checkpoint={str(store.directory)!r} to continue"
    )
