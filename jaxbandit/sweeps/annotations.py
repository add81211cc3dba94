"""What a result needs to be read and drawn by itself: names and units of its variables, and the
instances that it is about.

    mdp_prob, mdp_reward, mdp_next_level  [instance, stage, level, action, outcome]
    mdp_rank        [instance, stage, level, action], nan without an order;  mdp_start [instance]
    action_name     [instance, stage, action];  reward_unit, reward_scale, level_name [instance]
    reward_offset   [instance, stage]: added to rewards in the unit; nan if the instance has none

Instances of different sizes are padded: with nan, and names with "". `jaxbandit.instance_of` turns
them back into an MDP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, labels_of

if TYPE_CHECKING:
    import xarray

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
    added: dict[str, Any] = {}
    for name in TABLES:
        padded = np.full((len(mdps), *sizes), np.nan, np.float32)
        for row, mdp in enumerate(mdps):
            table = np.asarray(getattr(mdp, name))
            padded[row][corner(table)] = table
        added[f"mdp_{name}"] = ((*states, "outcome"), padded)
    ranks = np.full((len(mdps), *sizes[:3]), np.nan, np.float32)
    for row, mdp in enumerate(mdps):
        if mdp.rank is not None:
            ranks[row][corner(mdp.rank)] = np.asarray(mdp.rank)
    added["mdp_rank"] = (states, ranks)
    added["mdp_start"] = (("instance",), np.array([int(mdp.start) for mdp in mdps], np.int32))
    added |= _names([labels_of(mdp) for mdp in mdps], sizes)
    # coordinates, so that results of different sizes can be joined
    return dataset.assign(added).assign_coords(
        action=np.arange(sizes[2]), outcome=np.arange(sizes[3])
    )


def corner(table: Any) -> tuple[slice, ...]:
    """Where a table lies in a padded one."""
    return tuple(slice(0, size) for size in np.shape(table))


def _names(words: list[Labels], sizes: tuple[int, ...]) -> dict[str, Any]:
    """Names and units; empty ones where an instance has none, so that all results join."""
    names = np.full((len(words), sizes[0], sizes[2]), "", object)
    for row, each in enumerate(words):
        for i, actions in enumerate(each.actions):
            names[row, i, : len(actions)] = actions
    offsets = np.full((len(words), sizes[0]), np.nan)
    for row, each in enumerate(words):
        offsets[row, : len(each.offsets)] = each.offsets
    return {
        "action_name": (("instance", "stage", "action"), names.astype(str)),
        "reward_unit": (("instance",), np.array([each.unit for each in words], str)),
        "reward_scale": (("instance",), np.array([each.scale for each in words])),
        "reward_offset": (("instance", "stage"), offsets),
        "level_name": (("instance",), np.array([each.level for each in words], str)),
    }
