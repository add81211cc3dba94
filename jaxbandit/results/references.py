"""Committed results to compare with: small files in the package, read without running anything.

    theirs = jb.reference("prophet")                                  # the paper's figure
    mine = jb.sweep({"Mine": learner}, **jb.reference_sweep("prophet"))
    jb.plot_panels(jb.reference("prophet", mine))                     # one's own learner in it

A file holds the regret of every run at some recorded episodes, the instances themselves, and in its
attributes the command that made it, the versions and a note on its size. Seeds and instances are those
of the sweep, so that comparisons with it are paired.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept, dataset
from jaxbandit.mdp import MDP, digest
from jaxbandit.record import explicit
from jaxbandit.results.axes import described
from jaxbandit.results.dataset import stack_padded
from jaxbandit.results.io import load

if TYPE_CHECKING:
    import xarray

TABLES = ("prob", "reward", "next_level", "rank", "start")
PREFIX = "mdp_"
"""Of the variables that hold the instances."""
AXES = tuple(f"{PREFIX}{axis}" for axis in ("stage", "level", "action", "outcome"))


def reference_names() -> list[str]:
    """What `reference` accepts.

    Example:
        >>> "prophet" in reference_names()
        True
    """
    folder = resources.files("jaxbandit.results") / "data"
    return sorted(f.name[:-3] for f in folder.iterdir() if f.name.endswith(".nc"))


def reference(name: str, mine: xarray.Dataset | None = None) -> xarray.Dataset:
    """The committed results of that name, with one's own learners beside them if given.

    Args:
        name: "prophet", the regret figure at T = 100,000, or "prophet-full", at the paper's T = 2,000,000; see
            the attribute "note".
        mine: a sweep of other learners made with the arguments of `reference_sweep`. Its instances must
            be among the reference's, and its recorded episodes must contain the reference's.

    Example:
        >>> import jaxbandit as jb
        >>> theirs = jb.reference("prophet")
        >>> [str(name) for name in theirs["learner"].values][:2], theirs.sizes["seed"]
        (['ExpRef (theory)', 'OrderedExpRef (theory)'], 6)
    """
    stored = _stored(name)
    plain = stored.drop_vars([v for v in stored.data_vars if str(v).startswith(PREFIX)])
    plain["regret"] = plain["regret"].astype(np.float64)
    return plain if mine is None else _together(plain, mine)


def reference_sweep(name: str) -> dict[str, Any]:
    """The arguments with which `jaxbandit.sweep` runs other learners for a paired comparison.

    Example:
        >>> import jaxbandit as jb
        >>> how = jb.reference_sweep("prophet")
        >>> sorted(how), how["num_episodes"]
        (['instances', 'num_episodes', 'num_seeds', 'record', 'seed'], 100000)
    """
    stored = _stored(name)
    config = described(stored, "config")
    return {
        "instances": _by_family(stored),
        "num_episodes": int(config["num_episodes"]),
        "num_seeds": int(stored.sizes["seed"]),
        "seed": int(config["seed"]),
        "record": explicit([int(t) for t in stored["episode"].values]),
    }


def make_reference(
    dataset: xarray.Dataset, instances: dict[str, MDP], *, points: int, command: str, note: str
) -> xarray.Dataset:
    """A sweep's results as a reference: regret in float32 at ``points`` episodes, and the instances.

    Example: see the tests; `jaxbandit.experiments.references` writes the committed files with it.
    """
    config = described(dataset, "config")
    for name, mdp in instances.items():
        known = config["instances"].get(name, {}).get("sha256")
        if digest(mdp) != known:
            raise ValueError(
                f"instances[{name!r}]: SHA-256 {digest(mdp)}; accepted: {known}, that of the sweep"
            )
    count = dataset.sizes["episode"]
    if not 1 <= points <= count or count % points:
        raise ValueError(f"points: {points}; accepted: a divisor of the {count} recorded episodes")
    few = dataset.isel(episode=np.arange(count // points - 1, count, count // points))
    kept = few[["regret", "optimal_value"]]
    kept["regret"] = few["regret"].astype(np.float32)
    for table in TABLES:
        arrays = [np.asarray(getattr(instances[str(n)], table)) for n in kept["instance"].values]
        stacked = stack_padded(arrays, fill=-1, dtype=arrays[0].dtype)
        kept[f"{PREFIX}{table}"] = (("instance", *AXES[: stacked.ndim - 1]), stacked)
    of_sweep = {key: dataset.attrs.get(key) for key in ("config", "versions", "created")}
    kept.attrs = {key: text for key, text in of_sweep.items() if text is not None}
    return kept.assign_attrs(command=command, note=note)


def stored_instances(stored: xarray.Dataset) -> dict[str, MDP]:
    """The instances as they were; their digests are checked."""
    found = {}
    config = described(stored, "config")["instances"]
    for name in map(str, stored["instance"].values):
        about = config[name]
        sizes = (about["horizon"], about["width"] + 1, about["num_actions"], about["num_outcomes"])
        corner = {axis: slice(size) for axis, size in zip(AXES, sizes, strict=True)}
        own = stored.sel(instance=name).isel(corner)
        mdp = MDP(**{table: own[f"{PREFIX}{table}"].values for table in TABLES})
        if digest(mdp) != about["sha256"]:
            raise ValueError(
                f"reference: instance {name!r} has SHA-256 {digest(mdp)}; accepted: {about['sha256']}"
            )
        found[name] = mdp
    return found


def _by_family(stored: xarray.Dataset) -> dict[str, MDP | list[MDP]]:
    """Instances as they were given to the sweep: drawn ones ("I2/0", "I2/1", ...) as a list."""
    families: dict[str, Any] = {}
    for name, mdp in stored_instances(stored).items():
        family = str(stored["family"].sel(instance=name).item())
        if name == family:
            families[name] = mdp
        else:
            families.setdefault(family, []).append(mdp)
    return families


def _stored(name: str) -> xarray.Dataset:
    accept("name", name, reference_names())
    with resources.as_file(resources.files("jaxbandit.results") / "data" / f"{name}.nc") as path:
        return load(path)


def _together(theirs: xarray.Dataset, mine: xarray.Dataset) -> xarray.Dataset:
    """Both on the learner axis; where ``mine`` lacks instances or seeds, nan."""
    import xarray

    dataset("mine", mine)
    config = [described(part, "config") for part in (theirs, mine)]

    def require(holds: bool, seen: str, accepted: Any) -> None:
        if not holds:
            raise ValueError(f"mine: {seen}; accepted: {accepted}")

    for entry in ("num_episodes", "seed"):
        expected, found = (part.get(entry) for part in config)
        require(found == expected, f"{entry} {found}", f"{expected}, as reference_sweep says")
    known, given = (part.get("instances", {}) for part in config)
    for name in map(str, mine["instance"].values):
        same = given.get(name, {}).get("sha256") == known.get(name, {}).get("sha256", "")
        require(same, f"instance {name!r} is not that of the reference", "those of reference_sweep")
    twice = sorted({*theirs["learner"].values.tolist()} & {*mine["learner"].values.tolist()})
    require(not twice, f"learners {twice} are in the reference", "other names")
    missing = {*theirs["episode"].values.tolist()} - {*mine["episode"].values.tolist()}
    absent = f"episode {min(missing, default=0)} was not recorded"
    require(not missing, absent, "the record of reference_sweep")
    own = mine[["regret"]].sel(episode=theirs["episode"].values)
    joined = xarray.concat(
        [theirs[["regret"]], own], dim="learner", join="outer", coords="minimal", compat="override", combine_attrs="override",
    )  # fmt: skip
    joined = joined.sel(instance=theirs["instance"].values)
    return joined.assign(optimal_value=theirs["optimal_value"]).assign_coords(
        family=("instance", theirs["family"].values)
    )
