"""The axis "parameter" of results: the values of parameters as coordinates by which xarray selects.

If all learners of a sweep that vary parameters go through the same points, each parameter is a coordinate of that axis
alone and has an index: ``ds.sel(bonus_scale=0.1)``. If they differ, it is a coordinate of (learner, parameter), by which
xarray cannot select, but `jaxbandit.select` can. Learners that vary nothing are the same at every point, and ``varied``
[learner] says which these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray


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
        if names
    }
    size = max(len(values) for of_one in varying.values() for values in of_one.values())
    first, *others = varying.values()
    coordinates: dict[str, Any] = {
        "parameter": np.arange(size),
        "varied": ("learner", np.array([bool(names) for names, _ in grids.values()])),
    }
    for name in dict.fromkeys(name for of_one in varying.values() for name in of_one):
        alike = name in first and all(
            of_one.keys() == first.keys() and np.array_equal(of_one[name], first[name], True)
            for of_one in others
        )
        table = np.full((len(grids), size), np.nan)
        for row, learner in enumerate(grids):
            values = varying.get(learner, {}).get(name)
            if values is not None:
                table[row, : len(values)] = values
        coordinates[name] = (
            ("parameter", first[name]) if alike else (("learner", "parameter"), table)
        )
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
