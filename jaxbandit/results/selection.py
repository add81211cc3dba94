"""Parts of a result: by the value of a parameter, the policy of a run, the instance itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, remember
from jaxbandit.results.axes import check_axes, parameter_names, parameter_table, whole

if TYPE_CHECKING:
    import xarray


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

    def masked(variables: Any) -> dict[Any, xarray.DataArray]:
        return {
            name: variable.where(chosen).transpose(*variable.dims)
            for name, variable in variables.items()
            if {"learner", "parameter"} <= set(variable.dims)
        }

    found = ds.assign(masked(ds.data_vars)).assign_coords(masked(ds.coords))
    found = found.dropna("learner", how="all", subset=["regret"])
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
    where = _one_instance(ds, instance)
    checks.accept("learner", learner, [str(name) for name in ds["learner"].values])
    checks.accept(
        "seed", seed, ds["seed"].values.tolist() if "seed" in ds.coords else range(ds.sizes["seed"])
    )
    table = ds["final_policy"].sel(learner=learner, instance=where)
    table = table.sel(seed=seed) if "seed" in ds.coords else table.isel(seed=seed)
    if "parameter" in table.dims:
        checks.accept("parameter", parameter, range(table.sizes["parameter"]))
        table = table.isel(parameter=parameter)
    values = table.transpose("stage", "level").values
    if (
        "optimal_policy" in ds
    ):  # has the instance's own sizes: what is random is nan, too, but not beyond them
        best = ds["optimal_policy"].sel(instance=where).transpose("stage", "level").values
        own = np.isfinite(best)
        values = values[own.any(axis=1)][:, own.any(axis=0)]
    if not values.size or not np.isfinite(values).all():
        raise ValueError(
            f"learner: {learner!r} ends with no policy of plain actions; accepted: a learner whose "
            "last policy is not random"
        )
    return values.astype(np.int32)


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
    where = _one_instance(ds, instance)
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
    changed["reward_scale"] = (ds["reward_scale"] * 0 + 1).assign_attrs(ds["reward_scale"].attrs)
    if "reward_offset" in ds:
        nothing = ds["reward_offset"] * 0
        changed["reward_offset"] = nothing.assign_attrs(ds["reward_offset"].attrs)
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


def _one_instance(ds: Any, instance: str | None) -> str:
    names = [str(name) for name in ds["instance"].values]
    if instance is None and len(names) > 1:
        raise ValueError(f"instance: not given; accepted: one of {', '.join(names)}")
    chosen = names[0] if instance is None else instance
    checks.accept("instance", chosen, names)
    return chosen
