"""Shards of a sweep, run apart from each other, as the one sweep that they are parts of.

A lane is a pure function of its instance and seed, so machines that run parts of a sweep need not
talk: shard i of n holds the seeds s with s mod n = i - 1 (and all learners, instances and parameter
points), says so in its configuration as ``"shard": [i, n]``, and `merge` puts the parts together, bit
for bit what one machine would have returned. Seconds are what the shards took together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit import checks

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

    Shards that are missing, come twice or belong to other sweeps are named in the error. (A sweep of
    fewer seeds than shards has shards without seeds; they may be there or not.)

    Example:
        >>> import json, numpy as np, xarray as xr
        >>> def part(i, seeds):
        ...     config = json.dumps({"num_episodes": 9, "num_seeds": 3, "seed": 0, "shard": [i, 2]})
        ...     regret = np.reshape(seeds, (1, 1, -1, 1)) * 10.0
        ...     return xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), regret)},
        ...                       coords={"seed": seeds}, attrs={"config": config})
        >>> merge([part(2, [1]), part(1, [0, 2])])["regret"].values.ravel().tolist()
        [0.0, 10.0, 20.0]
    """
    if not isinstance(shards, Iterable) or getattr(shards, "ndim", 1) == 0:
        raise TypeError(f"shards: {type(shards).__name__}; accepted: a list of Datasets")
    parts = [checks.dataset("shards", part) for part in shards]
    if not parts:
        raise ValueError("shards: none; accepted: the Datasets of all shards of a sweep")
    placed = _placed(parts)
    _check_configurations(placed)
    index = min(placed)
    config = _config(placed[index])
    count, num_seeds = config["shard"][1], config["num_seeds"]
    wanted = [i for i in range(1, count + 1) if seeds_of((i, count), num_seeds)]
    missing = [i for i in wanted if i not in placed]
    if missing:
        raise ValueError(
            f"shards: {_listed(missing, count)} missing of {count}; accepted: all shards of the sweep"
        )
    for i in wanted:
        found = [int(seed) for seed in placed[i]["seed"].values]
        if sorted(found) != seeds_of((i, count), num_seeds):
            raise ValueError(
                f"shards: {i}/{count} holds the seeds {found}; accepted: "
                f"{seeds_of((i, count), num_seeds)}, every one of a finished shard"
            )
    return _joined([placed[i] for i in wanted], config)


def _placed(parts: list[xarray.Dataset]) -> dict[int, xarray.Dataset]:
    """The parts by their number; all must be of the same cut."""
    placed: dict[int, xarray.Dataset] = {}
    cuts: dict[int, int] = {}
    for position, part in enumerate(parts):
        shard = _config(part).get("shard")
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


def _check_configurations(placed: Mapping[int, xarray.Dataset]) -> None:
    """An error that names the first entry in which two shards differ."""
    first = min(placed)
    expected = _comparable(placed[first])
    for index, part in placed.items():
        found = _comparable(part)
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                raise ValueError(
                    f"shards: {first} and {index} differ in {name} ({_short(expected.get(name))} and "
                    f"{_short(found.get(name))}); accepted: shards of one sweep by one program"
                )


def _comparable(part: xarray.Dataset) -> dict[str, Any]:
    config = {name: value for name, value in _config(part).items() if name not in FREE}
    versions = described(part, "versions")
    return config | {f"{name} (version)": versions.get(name) for name in PROGRAM}


def _config(part: xarray.Dataset) -> dict[str, Any]:
    return described(part, "config")


def described(dataset: xarray.Dataset, name: str) -> dict[str, Any]:
    """What an attribute of a result says in JSON, {} without it; a stranger's may say anything, and be refused.

    Example:
        >>> import xarray
        >>> described(xarray.Dataset(attrs={"config": '{"seed": 0}'}), "config")
        {'seed': 0}
    """
    text = dataset.attrs.get(name, "{}")
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"{name}: {str(text)[:40]!a}; accepted: what a sweep writes, a JSON object"
        )
    return found


def _joined(parts: list[xarray.Dataset], config: dict[str, Any]) -> xarray.Dataset:
    """All seeds in order; axes that shards cut differently (phases) are padded with nan."""
    import xarray

    by_run = [part.drop_vars([n for n in part.data_vars if "seed" not in part[n].dims]) for part in parts]  # fmt: skip
    whole = xarray.concat(
        by_run, dim="seed", join="outer", data_vars="all", coords="minimal", compat="override", combine_attrs="override",
    ).sortby("seed")  # fmt: skip
    first = parts[0]
    for name in first.data_vars:
        if name in SECONDS:
            whole[name] = sum(part[name] for part in parts)
        elif name == "episodes_per_second":
            continue
        elif name not in whole:
            whole[name] = first[name]
    if "episodes_per_second" in first:
        lanes = sum(part["episodes_per_second"] * part["run_seconds"] for part in parts)
        whole["episodes_per_second"] = lanes / whole["run_seconds"]
    whole = whole[list(first.data_vars)]
    for name, variable in whole.variables.items():
        if name in first.variables and variable.dtype != first[name].dtype:
            whole[name] = whole[name].astype(first[name].dtype)
    whole = whole.transpose(*[dim for dim in first.dims if dim in whole.dims])
    order = {name: first[name].dims for name in first.data_vars}
    for name, dims in order.items():
        whole[name] = whole[name].transpose(*dims)
    described = {name: value for name, value in config.items() if name != "shard"}
    dates = [part.attrs["created"] for part in parts if "created" in part.attrs]
    whole.attrs = {**first.attrs, "config": json.dumps(described)}
    if dates:
        whole.attrs["created"] = max(dates)
    return whole


def _listed(indices: list[int], count: int) -> str:
    shown = ", ".join(f"{index}/{count}" for index in indices[:10])
    return shown + (f" and {len(indices) - 10} more" if len(indices) > 10 else "")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
