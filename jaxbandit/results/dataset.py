"""The Dataset of a sweep: labelled arrays from the results of finished tiles.

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
into an MDP. Instances of different sizes are padded with nan (names with ""), and so are learners without phases or with
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
from jaxbandit.engines.tables import optimal_policy, optimal_value
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, labels_of
from jaxbandit.metrics import METRICS
from jaxbandit.results.axes import index_parameters, parameter_coordinates

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
    "learner": ("learner", "1"),
    "instance": ("instance", "1"),
    "family": ("family of the instance", "1"),
    "seed": ("seed", "1"),
    "episode": ("episode", "episodes"),
    "phase": ("phase", "1"),
    "stage": ("stage", "1"),
    "level": ("level", "1"),
    "action": ("action", "1"),
    "outcome": ("outcome", "1"),
    "parameter": ("point of the parameter grid", "1"),
    "varied": ("whether the learner varies parameters", "1"),
}
"""Variable -> long_name and units; "reward" is the reward of the MDP, at most 1 in an episode."""


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

    with_points = any(grid.names for grid in learners.values())
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
    _cut_phases(variables)
    phases = variables["active_actions"][1].shape[4]
    if not with_points:
        variables = {
            name: (tuple(dim for dim in dims if dim != "parameter"), values[:, :, 0])
            for name, (dims, values) in variables.items()
        }
    variables |= _seconds(results, list(learners), list(instances), config["num_episodes"])
    policies = stack_padded([optimal_policy(mdp) for mdp in instances.values()])
    variables["optimal_policy"] = (("instance", "stage", "level"), policies)
    variables["optimal_value"] = ("instance", np.array([*map(optimal_value, instances.values())]))
    coords: dict[str, Any] = {
        "learner": list(learners),
        "instance": list(instances),
        "seed": np.asarray(seeds, np.int64),
        "episode": points,
        "phase": np.arange(1, phases + 1),
        "stage": np.arange(1, sizes["stage"] + 1),
        "level": np.arange(sizes["level"]),
        "family": ("instance", [instances.families[name] for name in instances]),
    }
    if with_points:
        grids = {name: (grid.names, grid.learner.params) for name, grid in learners.items()}
        coords |= parameter_coordinates(grids)
    dataset = xarray.Dataset(variables, coords=coords, attrs=_attributes(config))
    return annotate(store_instances(index_parameters(dataset), instances))


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


def _cut_phases(variables: dict[str, Any]) -> None:
    """Drops the phases that no lane finished (at least one stays)."""
    finished = np.isfinite(variables["phase_end"][1]).any(axis=(0, 1, 2, 3))
    count = max(1, int(np.flatnonzero(finished)[-1]) + 1 if finished.any() else 1)
    for name in ("phase_end", "active_actions"):
        dims, values = variables[name]
        variables[name] = (dims, values[:, :, :, :, :count])


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
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "xarray": xarray.__version__,
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
