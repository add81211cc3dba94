"""The Dataset of a sweep: labelled arrays from the results of finished tiles, and what is taken out of them again.

    regret          [learner, instance, (parameter), seed, episode]   cumulative exact expected regret
    final_gap       [..., seed]                        regret of an episode of the next policy
    final_policy    [..., seed, stage, level]          its actions; nan if unknown or randomised
    phase_end       [..., seed, phase]                 episode at which a phase ended, or nan
    active_actions  [..., seed, phase, stage, level]   number of active actions after the phase
    compile_seconds, run_seconds, episodes_per_second  [learner, instance]
    optimal_value   [instance];  optimal_policy  [instance, stage, level]
    mdp_prob, mdp_reward, mdp_next_level  [instance, stage, level, action, outcome]
    mdp_rank        [instance, stage, level, action], nan without an order;  mdp_start [instance]
    action_name     [instance, stage, action];  reward_unit, reward_scale, level_name [instance]
    reward_offset   [instance, stage]: added to rewards in the unit; nan if the instance has none

The instances (mdp_*, action_name, ...) let a result be read and drawn by itself: `jaxbandit.instance_of` turns them back
into an MDP. `jaxbandit.select` takes runs by the values of parameters, `jaxbandit.final_policy` the policy of a run. Instances of different sizes are padded with nan (names with ""), and so are learners without phases or with
fewer parameter points; a learner without a grid is the same at every point. A tile's seconds are shared out evenly among
its lanes.
"""

from __future__ import annotations

import datetime
import json
import platform
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxbandit
from jaxbandit import checks
from jaxbandit.engines.tables import optimal_policy, optimal_value
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, labels_of, remember
from jaxbandit.metrics import METRICS
from jaxbandit.results.axes import (
    check_axes,
    index_parameters,
    only_one,
    parameter_coordinates,
    parameter_names,
    parameter_table,
    whole,
)

if TYPE_CHECKING:
    import xarray

LANE = ("learner", "instance", "parameter", "seed")
AXES: dict[str, tuple[str, ...]] = {
    "regret": ("episode",),
    "final_gap": (),
    "final_policy": ("stage", "level"),
    "phase_end": ("phase",),
    "active_actions": ("phase", "stage", "level"),
}
SMALL_NUMBERS = ("final_policy", "active_actions")
"""Small whole numbers (or nan): float32 holds them exactly in half the memory."""
TABLES = ("prob", "reward", "next_level")
TEXTS: dict[str, tuple[str, str]] = {
    "regret": ("cumulative regret", "reward"),
    "final_gap": ("regret of one episode of the last policy", "reward"),
    "final_policy": ("actions of the last policy", "1"),
    "phase_end": ("episode at which the phase ended", "episodes"),
    "active_actions": ("active actions after the phase", "1"),
    "compile_seconds": ("time of compiling", "s"),
    "run_seconds": ("time of running", "s"),
    "episodes_per_second": ("episodes per second", "s-1"),
    "optimal_value": ("value of the optimal policy", "reward"),
    "optimal_policy": ("actions of the optimal policy", "1"),
    "mdp_prob": ("probability of the outcome", "1"),
    "mdp_reward": ("reward of the outcome", "reward"),
    "mdp_next_level": ("level that the outcome leads to", "1"),
    "mdp_rank": ("known order of the actions", "1"),
    "mdp_start": ("level of the first stage", "1"),
    "action_name": ("name of the action", "1"),
    "reward_unit": ("unit of rewards", "1"),
    "reward_scale": ("what a reward of 1 is in that unit", "1"),
    "reward_offset": ("what is added to a reward in that unit", "1"),
    "level_name": ("what a level counts", "1"),
    "family": ("family of the instance", "1"),
    "episode": ("episode", "episodes"),
    "parameter": ("point of the parameter grid", "1"),
    "varied": ("whether the learner varies parameters", "1"),
}
"""Variable -> long_name and units, if the first is not the name itself or the second not "1"; "reward" is the reward of the MDP, at most 1 in an episode."""


def make_dataset(
    results: Sequence[Any],
    learners: Mapping[str, Any],
    instances: Any,
    seeds: Sequence[int],
    points: np.ndarray,
    config: Mapping[str, Any],
    metric_dims: Mapping[str, tuple[str, ...]] | None = None,
) -> xarray.Dataset:
    """Puts the results of all tiles in their places; lanes without one stay nan.

    Args:
        results: what tiles found: a ``header`` with their lanes, and ``arrays`` [lanes, ...].
        learners: name -> `LearnerGrid`.
        instances: name -> MDP, with their ``families``.
        seeds: of the sweep.
        points: the recorded episodes.
        config: the configuration.
        metric_dims: metric -> names of its axes.
    """
    import xarray

    sizes = {
        "stage": max(mdp.horizon for mdp in instances.values()),
        "level": max(mdp.width for mdp in instances.values()) + 1,
        "episode": len(points),
    }
    axes = AXES | dict(metric_dims or {})
    variables: dict[str, Any] = {}
    for name in dict.fromkeys([*AXES, *(name for found in results for name in found.arrays)]):
        # a metric's own axes, and those of a report, may have no names
        named = axes.get(name, ())
        values = _fill(name, results, learners, list(instances), seeds, named, sizes)
        unnamed = (f"{name}_axis{j}" for j in range(values.ndim - 4 - len(named)))
        variables[name] = ((*LANE, *named, *unnamed), values)
    variables |= _seconds(results, list(learners), list(instances), config["num_episodes"])
    policies = stack_padded([optimal_policy(mdp) for mdp in instances.values()])
    variables["optimal_policy"] = (("instance", "stage", "level"), policies)
    variables["optimal_value"] = ("instance", np.array([*map(optimal_value, instances.values())]))
    coords: dict[str, Any] = {
        "learner": list(learners),
        "instance": list(instances),
        "seed": np.asarray(seeds, np.int64),
        "episode": points,
        "phase": np.arange(1, variables["phase_end"][1].shape[len(LANE)] + 1),
        "stage": np.arange(1, sizes["stage"] + 1),
        "level": np.arange(sizes["level"]),
        "family": ("instance", [instances.families[name] for name in instances]),
    }
    dataset = xarray.Dataset(variables, coords, _attributes(config))
    finished = np.flatnonzero(dataset["phase_end"].notnull().any(LANE))
    dataset = dataset.isel(phase=slice(max([0, *finished]) + 1))  # of the others at least one stays
    grids = {name: (grid.names, grid.learner.params) for name, grid in learners.items()}
    if any(names for names, _ in grids.values()):
        dataset = index_parameters(dataset.assign_coords(parameter_coordinates(grids)))
    else:
        dataset = dataset.isel(parameter=0)
    return annotate(store_instances(dataset, instances))


def warn_of_nan(dataset: xarray.Dataset, metrics: Mapping[str, Any]) -> None:
    """A warning about every metric that is nan where a number could be expected.

    Shipped ones are nan for learners that do not have them, and one of the user's own may be so for some of
    the learners; but none of these is nan here and a number there for one learner.
    """
    ran = dataset["regret"].notnull()
    for name, metric in metrics.items():
        own = [dim for dim in dataset[name].dims if dim not in ran.dims]
        known = dataset[name].notnull().any(own)
        having = known.any([dim for dim in known.dims if dim != "learner"])
        if not bool(having.any()) and metric not in METRICS.values():
            warnings.warn(f"metrics[{name!r}]: nan in all runs of all learners", stacklevel=4)
        missing = (ran & ~known & having).transpose(*ran.dims)
        if bool(missing.any()):
            place = np.argwhere(missing.values)[0]
            dims = zip(missing.dims, place, strict=True)
            where = ", ".join(f"{dim} {missing[dim].values[j]}" for dim, j in dims)
            warnings.warn(
                f"metrics[{name!r}]: nan in {int(missing.sum())} of {int((ran & having).sum())} values, "
                f"first at {where}",
                stacklevel=4,
            )


def _fill(
    name: str,
    results: Sequence[Any],
    learners: Mapping[str, Any],
    instances: list[str],
    seeds: Sequence[int],
    named: tuple[str, ...],
    sizes: Mapping[str, int],
) -> np.ndarray:
    """One variable [learner, instance, parameter, seed, ...]: nan where there is nothing; learners without a grid are the
    same at every point."""
    having = [found for found in results if name in found.arrays]
    shapes = {found.arrays[name].shape[1:] for found in having} or {(1,) * len(named)}
    if len(set(map(len, shapes))) > 1:
        shown = sorted(shapes, key=len)
        raise ValueError(f"{name}: shapes {shown}; accepted: one number of axes for all learners")
    tail = np.max([*shapes], axis=0).astype(int)
    tail[: len(named)] = [sizes.get(axis, size) for axis, size in zip(named, tail, strict=False)]
    points = max(grid.size for grid in learners.values())
    values = np.full(
        (len(learners), len(instances), points, len(seeds), *tail),
        np.nan,
        np.float32 if name in SMALL_NUMBERS else np.float64,
    )
    rows, column = list(learners), {seed: j for j, seed in enumerate(seeds)}
    for found in having:
        corner: Any = tuple(map(slice, found.arrays[name].shape[1:]))
        for row, (learner, instance, point, seed) in enumerate(found.header["lanes"]):
            if seed in column:
                place = (rows.index(learner), instances.index(instance), point, column[seed])
                values[(*place, *corner)] = found.arrays[name][row]
    for row, grid in enumerate(learners.values()):
        if not grid.names:
            values[row] = values[row, :, :1]
    return values


def _seconds(
    results: Sequence[Any], learners: list[str], instances: list[str], num_episodes: int
) -> dict[str, Any]:
    totals = np.zeros((3, len(learners), len(instances)))
    for found in results:
        lanes = found.header["lanes"]
        shares = [found.header[name] / len(lanes) for name in ("compile_seconds", "run_seconds")]
        for learner, instance, _, _ in lanes:
            place = (slice(None), learners.index(learner), instances.index(instance))
            totals[place] += [*shares, float(num_episodes)]
    compiling, running, episodes = totals
    rate = np.divide(episodes, running, out=np.full_like(running, np.nan), where=running > 0)
    named = {"compile_seconds": compiling, "run_seconds": running, "episodes_per_second": rate}
    return {name: (("learner", "instance"), values) for name, values in named.items()}


def _attributes(config: Mapping[str, Any]) -> dict[str, str]:
    import jaxlib
    import xarray

    device = jax.local_devices()[0]
    versions = {
        "jaxbandit": jaxbandit.__version__,
        "python": platform.python_version(),
        **{module.__name__: module.__version__ for module in (jax, jaxlib, np, xarray)},
        "device": f"{device.platform}: {device.device_kind}",
    }
    return {
        "config": json.dumps(config),
        "versions": json.dumps(versions),
        "seed": str(config["seed"]),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "jaxbandit_version": jaxbandit.__version__,
    }


def annotate(dataset: xarray.Dataset) -> xarray.Dataset:
    """Gives every variable and coordinate its ``long_name`` and ``units``.

    Example:
        >>> import xarray
        >>> annotate(xarray.Dataset({"regret": ("episode", [0.5])}))["regret"].attrs
        {'long_name': 'cumulative regret', 'units': 'reward'}
    """
    for name, variable in dataset.variables.items():
        text, units = TEXTS.get(str(name), (str(name).replace("_", " "), "1"))
        dataset[name].attrs.update({"long_name": text, "units": units, **variable.attrs})
    return dataset


def store_instances(dataset: xarray.Dataset, instances: Mapping[str, MDP]) -> xarray.Dataset:
    """The Dataset with the tables and the names of its instances, in its order."""
    mdps = list(instances.values())
    sizes = tuple(np.max([mdp.prob.shape for mdp in mdps], axis=0).tolist())
    states = ("instance", "stage", "level", "action")
    added: dict[str, Any] = {
        f"mdp_{name}": ((*states, "outcome"), stack_padded([getattr(mdp, name) for mdp in mdps]))
        for name in TABLES
    }
    ranks = [np.empty((0, 0, 0)) if mdp.rank is None else mdp.rank for mdp in mdps]
    added["mdp_rank"] = (states, stack_padded(ranks, sizes[:3]))
    added["mdp_start"] = (("instance",), np.array([int(mdp.start) for mdp in mdps], np.int32))
    added |= _names([labels_of(mdp) for mdp in mdps], sizes)
    # coordinates, so that results of different sizes can be joined
    return dataset.assign(added).assign_coords(
        action=np.arange(sizes[2]), outcome=np.arange(sizes[3])
    )


def stack_padded(
    arrays: Sequence[Any],
    shape: tuple[int, ...] | None = None,
    fill: float = np.nan,
    dtype: Any = np.float32,
) -> np.ndarray:
    """Arrays of one rank on a new first axis, each in the first corner of ``shape`` (the largest sizes if None).

    Example:
        >>> stack_padded([[1, 2], [3]]).tolist()
        [[1.0, 2.0], [3.0, nan]]
    """
    arrays = [np.asarray(array) for array in arrays]
    if shape is None:
        shape = tuple(np.max([array.shape for array in arrays], axis=0).astype(int).tolist())
    padded = np.full((len(arrays), *shape), fill, dtype)
    for row, array in enumerate(arrays):
        corner: Any = (row, *(slice(0, size) for size in array.shape))
        padded[corner] = array
    return padded


def _names(labels: list[Labels], sizes: tuple[int, ...]) -> dict[str, Any]:
    """Names and units; empty ones where an instance has none, so that all results join."""
    names = np.full((len(labels), sizes[0], sizes[2]), "", object)
    for row, each in enumerate(labels):
        for i, actions in enumerate(each.actions):
            names[row, i, : len(actions)] = actions
    offsets = stack_padded([each.offsets for each in labels], sizes[:1], dtype=np.float64)
    return {
        "action_name": (("instance", "stage", "action"), names.astype(str)),
        "reward_unit": (("instance",), np.array([each.unit for each in labels], str)),
        "reward_scale": (("instance",), np.array([each.scale for each in labels])),
        "reward_offset": (("instance", "stage"), offsets),
        "level_name": (("instance",), np.array([each.level for each in labels], str)),
    }


def select(ds: xarray.Dataset, **values: float) -> xarray.Dataset:
    """The runs with these values of their parameters; learners that do not vary them stay.

    Where all learners go through the same points, ``ds.sel(bonus_scale=0.5)`` selects, too; this
    also takes several parameters at once, and learners whose points differ.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
        >>> learners = {"UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 0.5, 1.0])}
        >>> ds = jb.sweep(learners, {"I1": mdp}, num_episodes=20, num_seeds=1, progress=False)
        >>> jb.select(ds, bonus_scale=0.5)["bonus_scale"].values.tolist()
        [0.5]
        >>> ds.sel(bonus_scale=0.5)["regret"].sizes == ds["regret"].isel(parameter=1).sizes
        True
        >>> jb.select(ds, bonus_scale=0.7)
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: 0.7; accepted: 0.1, 0.5, 1
    """
    import xarray

    ds = whole(ds)
    known = parameter_names(ds)
    keep = np.ones((ds.sizes["learner"], ds.sizes.get("parameter", 1)), bool)
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{name}: no such parameter; accepted: {', '.join(known) or 'none'}")
        table = parameter_table(ds, name)
        near = np.isclose(table, checks.number(name, value), rtol=1e-6, atol=0.0)
        if not near.any():
            listed = ", ".join(f"{x:g}" for x in np.unique(table[np.isfinite(table)]))
            raise ValueError(f"{name}: {value}; accepted: {listed}")
        keep &= near | np.isnan(table).all(axis=1, keepdims=True)
    chosen = xarray.DataArray(keep, dims=("learner", "parameter"))
    masked = {
        name: variable.where(chosen).transpose(*variable.dims)
        for name, variable in {**ds.data_vars, **ds.coords}.items()
        if {"learner", "parameter"} <= set(variable.dims)
    }
    found = ds.assign(masked).dropna("learner", how="all", subset=["regret"])
    # learners that vary nothing are the same at every point, so they decide nothing
    deciding = found.sel(learner=found["varied"]) if "varied" in found.coords else found
    there = deciding["regret"].notnull().any(["learner", "instance", "seed", "episode"])
    return found.isel(parameter=np.flatnonzero(there.values))


def final_policy(
    ds: xarray.Dataset,
    learner: str,
    instance: str | None = None,
    seed: int = 0,
    parameter: int = 0,
) -> np.ndarray:
    """The policy that a run would play next, int32 [H, k+1], as `evaluate` and "fixed" take it.

    Args:
        ds: the Dataset of a sweep.
        learner: its name in the sweep.
        instance: not needed if there is one.
        seed: of the run.
        parameter: index along the parameter grid, if there is one.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
        >>> oracle = {"oracle": jb.make_learner("oracle")}
        >>> ds = jb.sweep(oracle, {"I1": mdp}, num_episodes=20, num_seeds=1, progress=False)
        >>> policy = jb.final_policy(ds, "oracle")
        >>> policy.dtype, float(jb.regret(mdp, policy))
        (dtype('int32'), 0.0)
    """
    ds = whole(ds, "final_policy")
    runs = runs_of(ds, "final_policy", learner, instance, parameter)
    known = ds["seed"].values.tolist()
    checks.accept("seed", seed, known)
    values = runs.isel(seed=known.index(seed)).transpose("stage", "level").values
    if "optimal_policy" in ds:  # has the instance's own sizes; a policy that is random is nan, too
        best = ds["optimal_policy"].sel(instance=runs["instance"])
        values = crop(values, best.transpose("stage", "level").values)
    if not values.size or not np.isfinite(values).all():
        raise ValueError(
            f"learner: {learner!r} ends with no policy of plain actions; accepted: a learner whose "
            "last policy is not random"
        )
    return values.astype(np.int32)


def runs_of(
    ds: xarray.Dataset,
    variable: str,
    learner: str | None,
    instance: str | None,
    parameter: int | None = None,
) -> xarray.DataArray:
    """A variable of a whole result for all seeds of one learner; instance and parameter need not be given if there is one."""
    checks.accept("learner", learner, [str(name) for name in ds["learner"].values])
    where = only_one("instance", instance, [str(name) for name in ds["instance"].values])
    if variable not in ds:
        raise ValueError(f"ds: no variable {variable!r}; accepted: the Dataset of a sweep")
    runs = ds[variable].sel(learner=learner, instance=where)
    if "parameter" not in runs.dims:
        return runs
    size = runs.sizes["parameter"]
    chosen = 0 if parameter is None and size == 1 else parameter
    checks.accept("parameter", chosen, range(size))
    return runs.isel(parameter=chosen)


def crop(values: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """[stage, level, ...] without the last ones that are nan throughout, in ``known`` if given: padding of smaller instances."""
    finite = np.isfinite(values if known is None else known)
    stages, levels = (np.flatnonzero(finite.any(axis=axis)) for axis in (1, 0))
    return values[: stages[-1] + 1, : levels[-1] + 1] if stages.size else values


def instance_of(ds: xarray.Dataset, instance: str | None = None) -> MDP:
    """The MDP that a result is about, with its labels; not needed by name if there is one.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
        >>> oracle = {"oracle": jb.make_learner("oracle")}
        >>> ds = jb.sweep(oracle, {"I1": mdp}, num_episodes=20, num_seeds=1, progress=False)
        >>> jb.instance_of(ds)
        MDP(H=2, k=1, A=2, ordered)
    """
    ds = whole(ds)
    where = only_one("instance", instance, [str(name) for name in ds["instance"].values])
    if "mdp_prob" not in ds:
        raise ValueError("ds: no variable 'mdp_prob'; accepted: the Dataset of a sweep")
    chosen = ds.sel(instance=where)
    axes = ("stage", "level", "action", "outcome")
    prob = chosen["mdp_prob"].transpose(*axes).values
    known = np.isfinite(prob)
    sizes = [int(known.any(axis=tuple({0, 1, 2, 3} - {j})).sum()) for j in range(4)]
    corner = tuple(map(slice, sizes))
    reward, following = (
        chosen[f"mdp_{name}"].transpose(*axes).values[corner] for name in ("reward", "next_level")
    )
    rank = chosen["mdp_rank"].transpose(*axes[:3]).values[corner[:3]]
    mdp = MDP(
        prob=np.ascontiguousarray(prob[corner]),
        reward=np.ascontiguousarray(reward),
        next_level=following.astype(np.int32),
        rank=None if np.isnan(rank).all() else rank.astype(np.int32),
        start=np.asarray(int(chosen["mdp_start"]), np.int32),
    )
    return _with_names(mdp, chosen)


def in_units(ds: xarray.Dataset) -> xarray.Dataset:
    """The result with regret, gaps and values in the unit of its instances ("$"), for figures.

    A reward of 1 is ``reward_scale`` units (`label`, and the constructors, say how many), and a value has the sum of
    ``reward_offset`` added, if the MDP came from arrays in another unit (`from_arrays`). The instances of one result must
    share their unit.

    Example:
        >>> import jaxbandit as jb
        >>> tables = dict(values=[[200, 500]] * 2, probabilities=[[0.5, 0.5]] * 2, capacity=1)
        >>> mdp = jb.label(jb.make_instance("posted-pricing", **tables), unit="$")
        >>> low = {"low": jb.make_learner("fixed", policy=[[0, 0], [0, 0]])}
        >>> ds = jb.sweep(low, {"shop": mdp}, num_episodes=10, num_seeds=1, progress=False)
        >>> dollars = jb.in_units(ds)
        >>> f"{dollars['optimal_value'].item():.0f}", dollars["regret"].attrs["units"]
        ('375', '$')
    """
    check_axes(checks.dataset("ds", ds))
    if "reward_scale" not in ds:
        raise ValueError("ds: no variable 'reward_scale'; accepted: the Dataset of a sweep")
    units = sorted(set(np.atleast_1d(ds["reward_unit"].values).tolist()))
    if len(units) > 1:
        listed = ", ".join(repr(unit) for unit in units)
        raise ValueError(f"ds: units {listed}; accepted: instances with one unit (ds.sel)")
    changed = {}
    for name in ("regret", "final_gap", "optimal_value"):
        if name in ds:
            text = ds[name].attrs.get("long_name", name)
            scaled = ds[name] * ds["reward_scale"]
            if name == "optimal_value" and "reward_offset" in ds:
                scaled = scaled + ds["reward_offset"].sum("stage")
            scaled = scaled.transpose(*ds[name].dims)
            changed[name] = scaled.assign_attrs(long_name=text, units=units[0] or "own units")
    changed["regret_scale"] = (ds.get("regret_scale", 1.0) * ds["reward_scale"]).assign_attrs(
        long_name="what a regret of 1 of the sweep is in these units"
    )
    for name, neutral in (("reward_scale", 1.0), ("reward_offset", 0.0)):
        if name in ds:
            changed[name] = ds[name].where(ds[name].isnull(), neutral)
    return ds.assign(changed)


def _with_names(mdp: MDP, chosen: Any) -> MDP:
    if "action_name" not in chosen:
        return mdp
    names = chosen["action_name"].transpose("stage", "action").values
    rows = names[: mdp.horizon, : mdp.num_actions].tolist()
    actions = tuple(map(tuple, rows)) if any(map(any, rows)) else ()
    unit, scale = str(chosen["reward_unit"].item()), float(chosen["reward_scale"])
    labels = Labels(unit, scale, actions, level=str(chosen["level_name"].item()))
    if "reward_offset" in chosen:
        offsets = chosen["reward_offset"].values[: mdp.horizon]
        labels = labels._replace(
            offsets=tuple(offsets.tolist()) if np.isfinite(offsets).all() else ()
        )
    return mdp if labels == Labels() else remember(mdp, labels)
