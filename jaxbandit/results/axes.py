"""The axes of a result: what is no result, parts of one, and the values of parameters.

A part that xarray selects (``ds.sel(learner="UCB-VI")``, ``ds.isel(seed=0)``, ``ds["regret"]``) has lost dimensions;
`whole` gives them back, so that statistics and figures take parts as well.

If all learners of a sweep that vary parameters go through the same points, each parameter is a coordinate of the axis
"parameter" alone and has an index: ``ds.sel(bonus_scale=0.1)``. If they differ, it is a coordinate of (learner,
parameter), by which xarray cannot select, but `jaxbandit.select` can. Learners that vary nothing are the same at every
point, and ``varied`` [learner] says which these are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept

if TYPE_CHECKING:
    import xarray

OF_INSTANCES = ("optimal_", "mdp_", "action_name", "reward_", "level_name")
"""Variables whose names begin so belong to instances, not to runs."""
RUNS = ("learner", "instance", "parameter", "seed", "episode")
"""The axes of regret."""
NAMED = ("learner", "instance")
OF_AXES = {"instance": ("family",), "learner": ("varied",)}
"""Coordinates that go with an axis."""


def whole(part: Any, *needed: str) -> xarray.Dataset:
    """A part of a result with all the dimensions of a sweep, and with the ``needed`` variables; a Dataset that has them is
    returned as it is. What is no result is an error.

    Example:
        >>> import numpy as np, xarray
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> ds = xarray.Dataset({"regret": (dims, np.ones((2, 1, 3, 4)))},
        ...                     coords={"learner": ["A", "B"], "instance": ["I1"]})
        >>> whole(ds.sel(learner="B", instance="I1")).sizes == ds.sel(learner=["B"]).sizes
        True
    """
    if not hasattr(part, "data_vars") and not hasattr(part, "to_dataset"):
        raise TypeError(
            f"ds: {type(part).__name__}; accepted: the Dataset of a sweep, or a part of it"
        )
    dataset = part if hasattr(part, "data_vars") else part.to_dataset(name="regret")
    for name in needed:
        if name not in dataset.data_vars:
            raise ValueError(f"ds: no variable {name!r}; accepted: the Dataset of a sweep")
    if "regret" in dataset and "episode" not in dataset["regret"].dims:
        raise ValueError("ds: regret without an episode axis; accepted: curves over episodes")
    check_axes(dataset)
    for axis in ("learner", "instance", "seed"):
        if axis in dataset.dims:
            continue
        found = {
            name: dataset.coords[name].item()
            for name in (axis, *OF_AXES.get(axis, ()))
            if name in dataset.coords and dataset.coords[name].ndim == 0
        }
        found = {axis: 0 if axis == "seed" else axis} | found
        dataset = dataset.drop_vars(found, errors="ignore")
        grown = {
            name: variable.expand_dims({axis: [found[axis]]})
            for name, variable in dataset.data_vars.items()
            if _has_axis(str(name), axis)
        }
        coordinates = {name: (axis, [value]) for name, value in found.items()}
        dataset = dataset.assign(grown).assign_coords(coordinates)
    return dataset


def only_one(argument: str, value: Any, known: list[str], without: str = "none") -> str:
    """One of the ``known`` names: ``value``, which need not be given if there is one; ``without`` is accepted if there is none.

    Example:
        >>> only_one("instance", None, ["I1"])
        'I1'
        >>> only_one("instance", None, ["I1", "I2"])
        Traceback (most recent call last):
        ...
        ValueError: instance: not given; accepted: one of I1, I2
    """
    if value is None and len(known) != 1:
        listed = f"one of {', '.join(known)}" if known else without
        raise ValueError(f"{argument}: not given; accepted: {listed}")
    accept(argument, known[0] if value is None else value, known)
    return known[0] if value is None else value


def check_axes(ds: xarray.Dataset) -> xarray.Dataset:
    """The Dataset, if every run is there once and under a name; else an error.

    Put together by hand, a result may have a seed twice (and so intervals that are too narrow), episodes in another
    order (and so another last one), or further axes, which nothing here would look at.

    Example:
        >>> import numpy as np, xarray
        >>> ds = xarray.Dataset({"regret": (("seed", "episode"), np.ones((2, 3)))}, coords={"seed": [0, 1]})
        >>> check_axes(xarray.concat([ds, ds], "seed"))
        Traceback (most recent call last):
        ...
        ValueError: ds: seed 0 twice; accepted: each once
    """
    regret = ds.get("regret")
    if regret is not None and regret.dtype.kind not in "fiu":
        raise ValueError(f"ds: regret of dtype {regret.dtype}; accepted: real numbers")
    for axis in () if regret is None else regret.dims:
        if axis not in RUNS:
            raise ValueError(
                f"ds: regret along {axis!r}; accepted: {', '.join(RUNS)} (one of it: ds.isel({axis}=0))"
            )
    for axis in (axis for axis in RUNS if axis in ds.dims):
        values = ds[axis].values.tolist()
        if not values:
            raise ValueError(f"ds: no {axis}; accepted: at least one")
        if axis in NAMED and axis not in ds.coords:
            raise ValueError(f"ds: {axis}s without names; accepted: a coordinate {axis!r}")
        if axis in NAMED and not all(isinstance(value, str) for value in values):
            raise ValueError(f"ds: {axis} {values[0]!r}; accepted: names")
        if axis == "episode" and axis in ds.coords:
            for last, value in itertools.pairwise([0, *values]):
                if not isinstance(value, int | float) or not value > last:  # nan is not, either
                    raise ValueError(
                        f"ds: episode {value!r} after {last!r}; accepted: numbers above 0 that increase"
                    )
        elif axis != "parameter" and len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise ValueError(f"ds: {axis} {twice!r} twice; accepted: each once")
    return ds


def _has_axis(variable: str, axis: str) -> bool:
    if variable.startswith(OF_INSTANCES):
        return axis == "instance"
    return axis != "seed" or not variable.endswith(("_seconds", "_per_second"))


def described(dataset: xarray.Dataset, name: str) -> dict[str, Any]:
    """The JSON object in an attribute of a result, {} without it; ValueError if it is none.

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


def parameter_names(dataset: xarray.Dataset) -> list[str]:
    """Names of the parameters that a sweep varies: its coordinates along the axis "parameter"."""
    if not hasattr(dataset, "coords"):
        raise TypeError(f"dataset: {type(dataset).__name__}; accepted: the Dataset of a sweep")
    coordinates = dataset.coords.items()
    return [str(name) for name, c in coordinates if name != "parameter" and "parameter" in c.dims]


def index_parameters(dataset: xarray.Dataset) -> xarray.Dataset:
    """The Dataset with an index for every parameter that has one value at each point.

    Files hold no indexes, so whoever reads one makes them again.

    Example:
        >>> import xarray
        >>> regret, scales = ("parameter", [3.0, 1.0]), ("parameter", [0.1, 0.5])
        >>> ds = xarray.Dataset({"regret": regret}, coords={"bonus_scale": scales})
        >>> index_parameters(ds).sel(bonus_scale=0.5)["regret"].item()
        1.0
    """
    for name in parameter_names(dataset):
        if dataset.coords[name].dims == ("parameter",) and name not in dataset.xindexes:
            dataset = dataset.set_xindex(name)
    return dataset


def parameter_coordinates(
    grids: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]],
) -> dict[str, Any]:
    """Coordinates of the axis from learner -> (names that vary, name -> values [P]).

    Example:
        >>> grids = {"UCB-VI": (("scale",), {"scale": np.float32([0.1, 0.5])}), "uniform": ((), {})}
        >>> found = parameter_coordinates(grids)
        >>> found["scale"][1].tolist(), found["varied"][1].tolist()
        ([0.1, 0.5], [True, False])
    """
    varying = {
        learner: {name: readable(params[name]) for name in names}
        for learner, (names, params) in grids.items()
    }
    first, *others = filter(None, varying.values())
    size = max(len(values) for of_one in varying.values() for values in of_one.values())
    coordinates: dict[str, Any] = {
        "parameter": np.arange(size),
        "varied": ("learner", np.array([bool(of_one) for of_one in varying.values()])),
    }
    for name in dict.fromkeys(name for of_one in varying.values() for name in of_one):
        alike = name in first and all(
            of_one.keys() == first.keys() and np.array_equal(of_one[name], first[name], True)
            for of_one in others
        )
        table = np.full((len(grids), size), np.nan)
        for row, of_one in zip(table, varying.values(), strict=True):
            row[: len(of_one.get(name, ()))] = of_one.get(name, ())
        shared = ("parameter", first[name]) if alike else None
        coordinates[name] = shared or (("learner", "parameter"), table)
    return coordinates


def readable(values: Any) -> np.ndarray:
    """Values as float64, those of 32 bits as people write them: 0.1, not 0.10000000149.

    Example:
        >>> readable(np.float32([0.1, 1 / 64])).tolist()
        [0.1, 0.015625]
    """
    array = np.asarray(values)
    if array.dtype == np.float32:
        return np.array([float(str(value)) for value in array.ravel()]).reshape(array.shape)
    return array.astype(np.float64)


def parameter_table(dataset: xarray.Dataset, name: str) -> np.ndarray:
    """The values of a parameter, [learner, parameter]; nan for learners that do not vary it."""
    coordinate = dataset.coords[name]
    if "learner" in coordinate.dims:
        return np.asarray(coordinate.transpose("learner", "parameter").values, np.float64)
    rows = np.tile(np.asarray(coordinate.values, np.float64), (dataset.sizes["learner"], 1))
    if "varied" in dataset.coords:
        rows[~np.asarray(dataset.coords["varied"].values, bool)] = np.nan
    return rows
