"""Parts of one sweep on several machines: shards that never meet, and processes that share their lanes.

A lane is a pure function of its instance and seed, so machines that run parts of a sweep need not
talk: shard i of n holds the seeds s with s mod n = i - 1 (and all learners, instances and parameter
points) and says so in its configuration as ``"shard": [i, n]``. There are two ways to put them together, both bit
for bit what one machine would have returned:
- their checkpoints: files of finished lanes are named after their lanes, so that one directory with the files of all
  shards is the checkpoint of the whole sweep, which then has nothing left to run;
- their Datasets: `merge` checks every axis against the configuration and concatenates. Seconds are summed.

Processes of one sweep (`jaxbandit.distributed`) make the same plan, from what their checkpoints hold together; each runs
its own tiles. The checkpoint directory may be one for all (a shared file system) or one for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import jax
import numpy as np

from jaxbandit import checks, distributed
from jaxbandit.record import Recording
from jaxbandit.results.axes import described
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store, decode, encode
from jaxbandit.sweeps.identity import Identity
from jaxbandit.sweeps.lanes import Lane, Tile, lanes_of, make_tiles, shorten

if TYPE_CHECKING:
    import xarray

FREE = ("shard", "chunk_size", "max_lanes", "max_bytes", "devices", "workers")
"""Entries of the configuration that change no number."""
PROGRAM = ("jaxbandit", "jax", "jaxlib", "device")
"""Versions that may: parts that differ in them are not one run."""
SECONDS = ("compile_seconds", "run_seconds")


def seeds_of(shard: tuple[int, int], num_seeds: int) -> list[int]:
    """The seeds of shard i of n: dealt like cards, so that adding seeds moves none.

    Example:
        >>> seeds_of((1, 3), 8), seeds_of((3, 3), 8)
        ([0, 3, 6], [2, 5])
    """
    index, count = check_shard(shard)
    return list(range(index - 1, num_seeds, count))


def check_shard(shard: Any) -> tuple[int, int]:
    """(i, n) as integers, or an error unless 1 <= i <= n.

    Example:
        >>> check_shard((4, 3))
        Traceback (most recent call last):
        ...
        ValueError: shard: (4, 3); accepted: (i, n), whole numbers with 1 <= i <= n
    """
    parts = list(shard) if isinstance(shard, Sequence) and not isinstance(shard, str) else []
    whole = [isinstance(each, int | np.integer) and not isinstance(each, bool) for each in parts]
    if whole != [True, True] or not 1 <= parts[0] <= parts[1]:
        raise ValueError(f"shard: {shard!r}; accepted: (i, n), whole numbers with 1 <= i <= n")
    return int(parts[0]), int(parts[1])


def merge(shards: Iterable[xarray.Dataset]) -> xarray.Dataset:
    """The Dataset of the whole sweep from those of all its shards, in any order.

    Every axis of every part must be the one that its configuration describes. Shards that are missing, come twice, were
    cut or renamed, or belong to other sweeps are named in the error. (A sweep of fewer seeds than shards has
    shards without seeds; they may be there or not.)

    Example:
        >>> import json, numpy as np, xarray as xr
        >>> def part(i, seeds):
        ...     config = json.dumps({"num_episodes": 9, "num_seeds": 3, "seed": 0, "shard": [i, 2]})
        ...     regret = np.reshape(seeds, (1, 1, -1, 1)) * 10.0
        ...     return xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), regret)},
        ...                       coords={"seed": seeds, "episode": [9]}, attrs={"config": config})
        >>> merge([part(2, [1]), part(1, [0, 2])])["regret"].values.ravel().tolist()
        [0.0, 10.0, 20.0]
    """
    if not isinstance(shards, Iterable) or getattr(shards, "ndim", 1) == 0:
        raise TypeError(f"shards: {type(shards).__name__}; accepted: a list of Datasets")
    placed, count = _placed([checks.dataset("shards", part) for part in shards])
    first = min(placed)
    config, expected = described(placed[first], "config"), _facts(placed[first])
    for other, part in placed.items():
        facts = _facts(part)
        for name in sorted({*expected, *facts}):
            if expected.get(name) != facts.get(name):
                seen = " and ".join(_short(each.get(name)) for each in (expected, facts))
                differing = f"{first} and {other} differ in {name} ({seen})"
                _refuse(differing, "shards of one sweep by one program")
    held = {index: seeds_of((index, count), config["num_seeds"]) for index in range(1, count + 1)}
    missing = [f"{index}/{count}" for index, seeds in held.items() if seeds and index not in placed]
    if missing:
        _refuse(f"{shorten(', '.join(missing), 100)} missing of {count}", "all shards of the sweep")
    parts = {index: placed[index] for index, seeds in held.items() if seeds}
    for index, part in parts.items():
        for axis, values in {"seed": held[index], **_axes(config)}.items():
            found = part[axis].values.tolist() if axis in part.dims else []
            if found != values:
                what = f"{index}/{count} holds the {axis} axis {_short(found)}"
                _refuse(what, f"{_short(values)}, as its configuration says")
        for name in ("regret", *config.get("metrics", ())):
            if name not in part:
                _refuse(f"{index}/{count} has no {name}", "all variables of the sweep")
    whole = _joined(list(parts.values()))
    known = whole["regret"].notnull()
    holes = (known.any("seed") & ~known).any([dim for dim in known.dims if dim != "seed"])
    for seed in whole["seed"].values[holes.values]:
        _refuse(f"regret of seed {seed} has nan where others have numbers", "finished shards")
    return whole


def _refuse(seen: str, accepted: str) -> NoReturn:
    raise ValueError(f"shards: {seen}; accepted: {accepted}")


def _short(value: Any) -> str:
    return shorten(json.dumps(value))


def _placed(parts: list[xarray.Dataset]) -> tuple[dict[int, xarray.Dataset], int]:
    """The parts by their number, and of how many."""
    placed: dict[int, xarray.Dataset] = {}
    counts = set()
    for position, part in enumerate(parts):
        shard = described(part, "config").get("shard")
        if shard is None:
            what = f"number {position} is no shard (its configuration has none)"
            _refuse(what, "Datasets of sweeps with shard=(i, n)")
        index, count = check_shard(shard)
        if index in placed:
            _refuse(f"{index}/{count} comes twice", "every shard once")
        placed[index] = part
        counts.add(count)
    if not counts:
        _refuse("none", "the Datasets of all shards of a sweep")
    if len(counts) > 1:
        _refuse(f"parts of {sorted(counts)}", "shards i/n of one n")
    return placed, counts.pop()


def _facts(part: xarray.Dataset) -> dict[str, Any]:
    """What shards of one sweep have in common: configuration, versions, variables and coordinates.

    The seeds and the number of phases differ between shards.
    """
    config, versions = described(part, "config"), described(part, "versions")
    facts = {name: value for name, value in config.items() if name not in FREE}
    facts |= {f"{name} (version)": versions.get(name) for name in PROGRAM}
    for name, variable in part.variables.items():
        sizes = {str(d): n for d, n in variable.sizes.items() if d not in ("seed", "phase")}
        facts[f"variable {name}"] = [[str(d) for d in variable.dims], sizes, variable.dtype.kind]
        if name in part.coords and name not in ("seed", "phase"):
            facts[f"coordinate {name}"] = [str(each) for each in variable.values.ravel()]
    return facts


def _axes(config: dict[str, Any]) -> dict[str, list[Any]]:
    """The axes, but the seeds, of a sweep of this configuration."""
    learners, instances = config.get("learners", {}), config.get("instances", {})
    expected: dict[str, list[Any]] = {"learner": list(learners), "instance": list(instances)}
    if isinstance(config.get("record"), dict):
        record = {"episodes": (), **config["record"]}
        record["episodes"] = tuple(record["episodes"])
        expected["episode"] = Recording(**record).points(config["num_episodes"]).tolist()
    varied = [each for each in learners.values() if each["varied"]]
    points = [len(each["params"][each["varied"][0]]) for each in varied]
    expected["parameter"] = list(range(max(points, default=0)))
    sizes = [(each["horizon"], each["width"]) for each in instances.values()]
    if sizes:
        longest, widest = map(max, zip(*sizes, strict=True))
        expected |= {"stage": list(range(1, longest + 1)), "level": list(range(widest + 1))}
    return {axis: values for axis, values in expected.items() if values}


def _joined(parts: list[xarray.Dataset]) -> xarray.Dataset:
    """All seeds in order; phases that no run of a shard finished are nan there."""
    import xarray

    if "phase" in parts[0].dims:
        most = max((part["phase"].values for part in parts), key=len)
        parts = [part.reindex(phase=most) for part in parts]
    whole = xarray.concat(
        parts, dim="seed", join="exact", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override",
    ).sortby("seed")  # fmt: skip
    for name in (name for name in SECONDS if name in whole):
        whole[name] = whole[name].copy(data=sum(part[name].values for part in parts))
    if "episodes_per_second" in whole:
        played = sum(
            part["episodes_per_second"].values * part["run_seconds"].values for part in parts
        )
        rate = played / whole["run_seconds"].values
        whole["episodes_per_second"] = whole["episodes_per_second"].copy(data=rate)
    config = described(parts[0], "config")
    del config["shard"]
    whole.attrs["config"] = json.dumps(config)
    dates = [part.attrs["created"] for part in parts if "created" in part.attrs]
    if dates:
        whole.attrs["created"] = max(dates)
    return whole


class CheckpointState(NamedTuple):
    """What the checkpoints of all processes hold."""

    results: list[CheckpointFile]
    """Finished lanes that this process hands on: it is the first that has them."""
    finished: list[list[dict[str, Any]]]
    """For every process, the headers of its finished tiles."""
    carries: list[list[dict[str, Any]]]
    """For every process, the headers of its tiles under way."""


def in_turn(function: Callable[[bool], Any]) -> Any:
    """What ``function`` gives, called in one process after the other, which may share a directory; True for the first."""
    found = None
    for turn in range(jax.process_count()):
        if turn == jax.process_index():
            found = function(turn == 0)
        distributed.gather(b"")
    return found


def checkpoint_state(store: Store | None) -> CheckpointState:
    """Reads the checkpoint and tells the other processes about it, so that all make the same
    plan."""
    results = [] if store is None else store.load_done()
    begun = [] if store is None else store.load_carries().values()
    mine = [[found.header for found in files] for files in (results, begun)]
    of_all = [json.loads(content) for content in distributed.gather(json.dumps(mine).encode())]
    finished, carries = ([each[kind] for each in of_all] for kind in (0, 1))
    earlier = {header["name"] for each in finished[: jax.process_index()] for header in each}
    own = [found for found in results if found.header["name"] not in earlier]
    return CheckpointState(own, finished, carries)


def assign(
    identity: Identity, held: CheckpointState, seeds: Collection[int]
) -> tuple[list[Tile], list[Tile]]:
    """All tiles, and those of this process. Tiles under way stay with a process that has their state."""
    done = {lane for each in held.finished for header in each for lane in lanes_of(header)}
    tiles: list[Tile] = []
    owners: list[int] = []
    for header in [header for headers in held.carries for header in headers]:
        lanes = lanes_of(header)
        group = identity.group_of(lanes)
        wanted = {seed for *_, seed in lanes} <= set(seeds) and done.isdisjoint(lanes)
        if group is not None and wanted and len(lanes) <= identity.groups[group].width:
            holders = [p for p, headers in enumerate(held.carries) if header in headers]
            owners.append(holders[len(tiles) % len(holders)])
            tiles.append(Tile(group, tuple(lanes)))
            done |= set(lanes)
    fresh = make_tiles(identity.groups, done, seeds)
    owners += [index % jax.process_count() for index in range(len(fresh))]
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
    for name, saved in store.load_carries().items():
        if finished.issuperset(lanes_of(saved.header)):
            store.discard_carry(name)


def exchange(results: list[CheckpointFile]) -> list[CheckpointFile]:
    """The results of all processes, in every process."""
    if jax.process_count() == 1:
        return results
    packed = {str(n): np.frombuffer(encode(each), np.uint8) for n, each in enumerate(results)}
    contents = distributed.gather(encode(CheckpointFile({}, packed)))
    return [
        decode(each.tobytes()) for content in contents for each in decode(content).arrays.values()
    ]
