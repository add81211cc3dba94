"""Who runs what: finished lanes, batches under way, and the processes of a sweep.

All processes make the same plan, from what their checkpoints hold together; each runs its own batches. The
checkpoint directory may be one for all (a shared file system) or one for each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from jaxbandit import distributed
from jaxbandit.batches import Batch, Cell, Group, Limits, lane_limit, make_batches
from jaxbandit.checkpoint import Saved, Store, decode, encode


@dataclass(frozen=True)
class Stock:
    """What the checkpoints of all processes hold."""

    records: list[Saved]
    """Finished lanes that this process has."""
    finished: list[list[dict[str, Any]]]
    """For every process, the headers of its finished records."""
    carries: list[list[dict[str, Any]]]
    """For every process, the headers of its batches under way."""

    def first_holder(self, found: Saved) -> int:
        """The first process that has this record; it alone hands it on."""
        name = found.header["name"]
        return next(p for p, headers in enumerate(self.finished) if name in [h["name"] for h in headers])


def open_store(directory: str | os.PathLike[str], config: dict[str, Any], resume: bool) -> Store:
    """Opens the directory in one process after the other: opening cleans up, and they may share it."""
    store = None
    for turn in range(jax.process_count()):
        if turn == jax.process_index():
            store = Store(directory, config, resume)
        distributed.gather(b"")
    assert store is not None
    return store


def take_stock(store: Store | None) -> Stock:
    """Reads the checkpoint and tells the other processes about it, so that all make the same plan."""
    records = store.load_done() if store is not None else []
    under_way = [store.load_carry(name) for name in store.carries()] if store is not None else []
    mine = {
        "finished": [r.header for r in records],
        "carries": [c.header for c in under_way if c is not None],
    }
    all_of_them = [json.loads(content) for content in distributed.gather(json.dumps(mine).encode())]
    return Stock(
        records, [each["finished"] for each in all_of_them], [each["carries"] for each in all_of_them]
    )


def assign(
    groups: list[Group], held: Stock, num_seeds: int, limits: Limits, num_devices: int
) -> tuple[list[Batch], list[Batch]]:
    """All batches, and those of this process. Batches under way stay with a process that has their state."""
    finished = {lane for headers in held.finished for header in headers for lane in _lanes(header)}
    batches: list[Batch] = []
    owners: list[int] = []
    where = {cell: index for index, group in enumerate(groups) for cell in group.cells}
    for header in [header for headers in held.carries for header in headers]:
        cells = tuple((learner, instance, point) for learner, instance, point in header["cells"])
        group = where[cells[0]]
        batch = Batch(group, cells, tuple(header["seeds"]), header["num_cells"], header["num_seeds"])
        lanes = set(_lanes(header))
        wanted = max(batch.seeds[: batch.num_seeds]) < num_seeds and not lanes & finished
        if wanted and batch.lanes <= max(num_devices, lane_limit(groups[group], limits)):
            holders = [p for p, headers in enumerate(held.carries) if header in headers]
            owners.append(holders[len(batches) % len(holders)])
            batches.append(batch)
            finished |= lanes
    processes = jax.process_count()
    fresh = make_batches(groups, finished, num_seeds, limits, num_devices, processes)
    owners += [index % processes for index in range(len(fresh))]
    batches += fresh
    here = jax.process_index()
    return batches, [batch for batch, owner in zip(batches, owners, strict=True) if owner == here]


def forget_stale(store: Store, records: list[Saved]) -> None:
    """Drops states whose lanes have been finished in another batch (after a change of the batch size)."""
    finished = {lane for found in records for lane in _lanes(found.header)}
    for name in store.carries():
        saved = store.load_carry(name)
        if saved is not None and set(_lanes(saved.header)) <= finished:
            store.discard_carry(name)


def _lanes(header: dict[str, Any]) -> list[tuple[Cell, int]]:
    """The lanes of a record or of a state, its padding left out."""
    cells = [(learner, instance, point) for learner, instance, point in header["cells"][: header["num_cells"]]]
    seeds = header["seeds"][: header["num_seeds"]]
    return [(cell, seed) for cell in cells for seed in seeds]


def exchange(records: list[Saved]) -> list[Saved]:
    """The records of all processes, in every process."""
    if jax.process_count() == 1:
        return records
    return [found for content in distributed.gather(_pack(records)) for found in _unpack(content)]


def _pack(records: list[Saved]) -> bytes:
    contents = [encode(found) for found in records]
    return b"".join(len(content).to_bytes(8, "big") + content for content in contents)


def _unpack(content: bytes) -> Iterator[Saved]:
    while content:
        size = int.from_bytes(content[:8], "big")
        yield decode(content[8 : 8 + size])
        content = content[8 + size :]
