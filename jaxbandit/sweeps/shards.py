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

import functools
import json
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxbandit import checks, distributed
from jaxbandit.record import Recording
from jaxbandit.results.axes import described
from jaxbandit.sweeps.checkpoint import CheckpointFile, Store, decode, encode
from jaxbandit.sweeps.lanes import Group, Lane, Tile, lanes_of, make_tiles

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
    message = f"shard: {shard!r}; accepted: (i, n), whole numbers with 1 <= i <= n"
    if not isinstance(shard, Sequence) or isinstance(shard, str) or len(shard) != 2:
        raise ValueError(message)
    if any(isinstance(part, bool) or not isinstance(part, int | np.integer) for part in shard):
        raise ValueError(message)
    index, count = (int(part) for part in shard)
    if not 1 <= index <= count:
        raise ValueError(message)
    return index, count


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
    given = [checks.dataset("shards", part) for part in shards]
    if not given:
        raise ValueError("shards: none; accepted: the Datasets of all shards of a sweep")
    placed = _placed(given)
    first = min(placed)
    for index, part in placed.items():
        _check_same(first, _comparable(placed[first]), index, _comparable(part))
    config = described(placed[first], "config")
    count = config["shard"][1]
    wanted = [i for i in range(1, count + 1) if seeds_of((i, count), config["num_seeds"])]
    missing = [i for i in wanted if i not in placed]
    if missing:
        raise ValueError(
            f"shards: {_listed(missing, count)} missing of {count}; accepted: all shards of the sweep"
        )
    parts = [placed[i] for i in wanted]
    for i, part in zip(wanted, parts, strict=True):
        _check_axes(f"{i}/{count}", part, config | {"shard": [i, count]})
        _check_same(wanted[0], _layout(parts[0]), i, _layout(part))
    _check_holes(parts)
    return _joined(parts, config)


def _placed(parts: list[xarray.Dataset]) -> dict[int, xarray.Dataset]:
    """The parts by their number; all must be of the same cut."""
    placed: dict[int, xarray.Dataset] = {}
    cuts: dict[int, int] = {}
    for position, part in enumerate(parts):
        shard = described(part, "config").get("shard")
        if shard is None:
            raise ValueError(
                f"shards: number {position} is no shard (its configuration has none); accepted: "
                "Datasets of sweeps with shard=(i, n)"
            )
        index, count = check_shard(shard)
        if index in placed:
            raise ValueError(f"shards: {index}/{count} comes twice; accepted: every shard once")
        placed[index], cuts[index] = part, count
    if len(set(cuts.values())) > 1:
        seen = ", ".join(f"{index}/{count}" for index, count in sorted(cuts.items()))
        raise ValueError(f"shards: {seen}; accepted: shards i/n of one n")
    return placed


def _check_same(one: int, expected: dict[str, Any], other: int, found: dict[str, Any]) -> None:
    """An error that names the first entry in which two shards differ."""
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"shards: {one} and {other} differ in {name} ({_short(expected.get(name))} and "
                f"{_short(found.get(name))}); accepted: shards of one sweep by one program"
            )


def _comparable(part: xarray.Dataset) -> dict[str, Any]:
    config = {n: value for n, value in described(part, "config").items() if n not in FREE}
    versions = described(part, "versions")
    return config | {f"{name} (version)": versions.get(name) for name in PROGRAM}


def _layout(part: xarray.Dataset) -> dict[str, Any]:
    """Axes and type of every variable, and all coordinates; the seeds and the number of phases differ between shards."""
    found: dict[str, Any] = {}
    for name, variable in part.variables.items():
        sizes = {str(d): n for d, n in variable.sizes.items() if d not in ("seed", "phase")}
        found[f"variable {name}"] = [[str(d) for d in variable.dims], sizes, variable.dtype.kind]
        if name in part.coords and name not in ("seed", "phase"):
            found[f"coordinate {name}"] = [str(each) for each in variable.values.ravel()]
    return found


def _check_axes(shard: str, part: xarray.Dataset, config: dict[str, Any]) -> None:
    """An error that names an axis that is not the one of the configuration, or a metric that is gone."""
    learners, instances = config.get("learners"), config.get("instances")
    expected: dict[str, list[Any]] = {"seed": seeds_of(config["shard"], config["num_seeds"])}
    if isinstance(config.get("record"), dict):
        how = {name: value for name, value in config["record"].items() if name != "episodes"}
        episodes = tuple(config["record"].get("episodes", ()))
        points = Recording(**how, episodes=episodes).points(config["num_episodes"])
        expected["episode"] = points.tolist()
    if learners:
        expected["learner"] = list(learners)
        varied = [each for each in learners.values() if each["varied"]]
        if varied:
            sizes = [len(each["params"][each["varied"][0]]) for each in varied]
            expected["parameter"] = [None] * max(sizes)
    if instances:
        expected["instance"] = list(instances)
        longest, widest = (
            max(each[name] for each in instances.values()) for name in ("horizon", "width")
        )
        expected |= {"stage": list(range(1, longest + 1)), "level": list(range(widest + 1))}
    for axis, values in expected.items():
        found = part[axis].values.tolist() if axis in part.dims else []
        right = len(found) == len(values) if axis == "parameter" else found == values
        if not right:
            what = "seeds" if axis == "seed" else f"{axis} axis"
            raise ValueError(
                f"shards: {shard} holds the {what} {_short(found)}; accepted: {_short(values)}, "
                "as its configuration says"
            )
    gone = [name for name in ("regret", *config.get("metrics", {})) if name not in part]
    if gone:
        raise ValueError(f"shards: {shard} has no {gone[0]}; accepted: all variables of the sweep")


def _check_holes(parts: list[xarray.Dataset]) -> None:
    """An error if a run has no regret where other seeds have one: what was not run is not to become a nan."""
    known = [part["regret"].notnull() for part in parts]
    some = functools.reduce(operator.or_, (each.any("seed") for each in known))
    for part, each in zip(parts, known, strict=True):
        holes = (some & ~each).transpose("seed", ...)
        if bool(holes.any()):
            seed = int(part["seed"].values[np.argwhere(holes.values)[0][0]])
            raise ValueError(
                f"shards: regret of seed {seed} has nan where others have numbers; accepted: finished shards"
            )


def _joined(parts: list[xarray.Dataset], config: dict[str, Any]) -> xarray.Dataset:
    """All seeds in order; phases that no run of a shard finished are nan there."""
    import xarray

    first = parts[0]
    if "phase" in first.dims:
        most = max((part["phase"].values for part in parts), key=len)
        parts = [part.reindex(phase=most) for part in parts]
    whole = xarray.concat(
        parts, dim="seed", join="exact", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override",
    ).sortby("seed")  # fmt: skip
    for name in SECONDS:
        if name in first:
            whole[name] = functools.reduce(operator.add, (part[name] for part in parts))
    if "episodes_per_second" in first:
        played = (part["episodes_per_second"] * part["run_seconds"] for part in parts)
        whole["episodes_per_second"] = functools.reduce(operator.add, played) / whole["run_seconds"]
    dates = [part.attrs["created"] for part in parts if "created" in part.attrs]
    said = {name: value for name, value in config.items() if name != "shard"}
    whole.attrs = {**first.attrs, "config": json.dumps(said)}
    if dates:
        whole.attrs["created"] = max(dates)
    return whole


def _listed(indices: list[int], count: int) -> str:
    shown = ", ".join(f"{index}/{count}" for index in indices[:10])
    return shown + (f" and {len(indices) - 10} more" if len(indices) > 10 else "")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
        if fits and wanted and len(lanes) <= groups[group].width:
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
