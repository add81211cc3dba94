"""Who runs what: finished lanes, tiles under way, and the processes of a sweep.

All processes make the same plan, from what their checkpoints hold together; each runs its own
tiles. The checkpoint directory may be one for all (a shared file system) or one for each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import jax

from jaxbandit import distributed
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store, decode, encode
from jaxbandit.sweeps.tiles import Group, Lane, Tile, lanes_of, make_tiles


@dataclass(frozen=True)
class CheckpointState:
    """What the checkpoints of all processes hold."""

    results: list[CheckpointFile]
    """Finished lanes that this process has."""
    finished: list[list[dict[str, Any]]]
    """For every process, the headers of its finished tiles."""
    carries: list[list[dict[str, Any]]]
    """For every process, the headers of its tiles under way."""

    @property
    def headers(self) -> list[dict[str, Any]]:
        """Those of all files of all processes."""
        return [header for each in (*self.finished, *self.carries) for header in each]

    def first_holder(self, found: CheckpointFile) -> int:
        """The first process that has this result; it alone hands it on."""
        name = found.header["name"]
        return next(
            p for p, headers in enumerate(self.finished) if name in [h["name"] for h in headers]
        )


def open_store(directory: str | os.PathLike[str], **how: Any) -> Store:
    """Opens the directory in one process after the other: opening cleans up, and they may share
    it."""
    store = None
    for turn in range(jax.process_count()):
        if turn == jax.process_index():
            store = Store(directory, **how, alone=turn == 0)
        distributed.gather(b"")
    assert store is not None
    return store


def set_aside(store: Store) -> Store:
    """Sets aside files of other programs, in one process after the other: they may share the directory."""
    for turn in range(jax.process_count()):
        if turn == jax.process_index():
            store.set_aside()
        distributed.gather(b"")
    return store


def checkpoint_state(store: Store | None) -> CheckpointState:
    """Reads the checkpoint and tells the other processes about it, so that all make the same
    plan."""
    results = store.load_done() if store is not None else []
    under_way = [store.load_carry(name) for name in store.carries()] if store is not None else []
    begun = [found for found in under_way if found is not None]
    mine = {
        "finished": [found.header for found in results],
        "carries": [found.header for found in begun],
    }
    all_of_them = [json.loads(content) for content in distributed.gather(json.dumps(mine).encode())]
    return CheckpointState(
        results,
        [each["finished"] for each in all_of_them],
        [each["carries"] for each in all_of_them],
    )


def assign(
    groups: list[Group], held: CheckpointState, seeds: Collection[int]
) -> tuple[list[Tile], list[Tile]]:
    """All tiles, and those of this process. Tiles under way stay with a process that has their state."""
    finished = {
        lane for headers in held.finished for header in headers for lane in lanes_of(header)
    }
    tiles: list[Tile] = []
    owners: list[int] = []
    where = {cell: index for index, group in enumerate(groups) for cell in group.cells}
    for header in [header for headers in held.carries for header in headers]:
        lanes = lanes_of(header)
        group = where.get(lanes[0][:3], -1)
        fits = group >= 0 and all(where.get(lane[:3]) == group for lane in lanes)
        wanted = {seed for *_, seed in lanes} <= set(seeds) and not set(lanes) & finished
        if fits and wanted and len(lanes) <= groups[group].demand.width:
            holders = [p for p, headers in enumerate(held.carries) if header in headers]
            owners.append(holders[len(tiles) % len(holders)])
            tiles.append(Tile(group, tuple(lanes)))
            finished |= set(lanes)
    processes = jax.process_count()
    fresh = make_tiles(groups, finished, seeds)
    owners += [index % processes for index in range(len(fresh))]
    tiles += fresh
    here = jax.process_index()
    return tiles, [tile for tile, owner in zip(tiles, owners, strict=True) if owner == here]


def begun_episodes(held: CheckpointState, tiles: Collection[Tile]) -> int:
    """Episodes, of all lanes together, that the checkpoint of this process has of unfinished tiles."""
    lanes = {tile.lanes for tile in tiles}
    mine = held.carries[jax.process_index()]
    under_way = [header for header in mine if tuple(lanes_of(header)) in lanes]
    return sum(header["episodes"] * len(header["lanes"]) for header in under_way)


def forget_stale(store: Store, results: list[CheckpointFile]) -> None:
    """Drops states whose lanes have been finished in another tile."""
    finished: set[Lane] = {lane for found in results for lane in lanes_of(found.header)}
    for name in store.carries():
        saved = store.load_carry(name)
        if saved is not None and set(lanes_of(saved.header)) <= finished:
            store.discard_carry(name)


def exchange(results: list[CheckpointFile]) -> list[CheckpointFile]:
    """The results of all processes, in every process."""
    if jax.process_count() == 1:
        return results
    return [found for content in distributed.gather(_pack(results)) for found in _unpack(content)]


def _pack(results: list[CheckpointFile]) -> bytes:
    contents = [encode(found) for found in results]
    return b"".join(len(content).to_bytes(8, "big") + content for content in contents)


def _unpack(content: bytes) -> Iterator[CheckpointFile]:
    while content:
        size = int.from_bytes(content[:8], "big")
        yield decode(content[8 : 8 + size])
        content = content[8 + size :]
