"""The replicates of a sweep's Dataset, and the band of their curves.

**What is a replicate.** For one instance, its seeds are independent runs: n = number of seeds. For
a *family* of drawn instances (those given to the sweep under one name; the coordinate "family" says
so, and it is never guessed from names), runs on the same instance share that instance: they are averaged first, and the instances are the replicates: n = number of instances. A
family with a single instance is that instance. Every estimate says its n and which of the two it
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, some
from jaxbandit.results.axes import parameter_names, parameter_table, whole
from jaxbandit.stats.intervals import OF_DIFFERENCES, Band, as_curves, band

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = [
    "CurveName", "curve_names", "families", "parameter_names", "parameter_values", "regret_band",
    "regret_difference", "replicate_kind", "replicates",
]  # fmt: skip


def families(ds: Dataset) -> dict[str, list[str]]:
    """The families of a sweep, each with the names of its instances, in the order of the sweep.

    Only the coordinate "family" counts: without it every instance is a family of its own.

    Example:
        >>> import xarray as xr
        >>> of = ("instance", ["I1", "I2", "I2"])
        >>> families(xr.Dataset(coords={"instance": ["I1", "I2/0", "I2/1"], "family": of}))
        {'I1': ['I1'], 'I2': ['I2/0', 'I2/1']}
    """
    ds = whole(ds)
    names = [str(name) for name in ds["instance"].values]
    labels = ds["family"].values if "family" in ds.coords else names
    groups: dict[str, list[str]] = {}
    for name, label in zip(names, labels, strict=True):
        groups.setdefault(str(label), []).append(name)
    return groups


def replicates(
    ds: Dataset,
    learner: str,
    instance: str | None = None,
    family: str | None = None,
    parameter: int | None = None,
    variable: str = "regret",
) -> np.ndarray:
    """The independent replicates of a learner on an instance or a family, as [n, points].

    Rows are seeds for one instance, and averages over the seeds of each instance for a family of
    several (see the top of this module; `replicate_kind` says which). Runs that do not exist (nan
    throughout) are left out.

    Args:
        ds: the Dataset of a sweep.
        learner: its name in the sweep.
        instance: one instance, or
        family: all instances of a family; neither is needed if the sweep has a single family.
        parameter: index along the parameter grid, if the sweep has one of more than one value.
        variable: "regret" or another variable over seeds; without an episode axis the answer is [n,
        1].

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> ds = xr.Dataset({"regret": (dims, np.zeros((1, 2, 3, 4)))},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I2/0", "I2/1"],
        ...                         "family": ("instance", ["I2", "I2"])})
        >>> replicates(ds, "ExpRef", family="I2").shape, replicates(ds, "ExpRef", instance="I2/0").shape
        ((2, 4), (3, 4))
    """
    return _independent(_runs(ds, learner, instance, family, parameter, variable))


def replicate_kind(ds: Dataset, instance: str | None = None, family: str | None = None) -> str:
    """What the rows of `replicates` are: "seeds" or "instances"."""
    return "instances" if len(place_of(ds, instance, family).members) > 1 else "seeds"


class Place(NamedTuple):
    """An instance, or a family of them: what a panel shows."""

    instance: str | None
    family: str | None
    """One of the two is None."""
    members: list[str]
    """The names of its instances."""

    @property
    def name(self) -> str:
        """Of the instance or the family."""
        return str(self.instance or self.family)


def place_of(
    ds: Dataset, instance: str | None, family: str | None, *, either: bool = False
) -> Place:
    """The instance or family that is meant; with ``either`` a family may be given in the instance's place.

    Example:
        >>> import xarray as xr
        >>> of = ("instance", ["I1", "I2", "I2"])
        >>> ds = xr.Dataset(coords={"instance": ["I1", "I2/0", "I2/1"], "family": of})
        >>> place_of(ds, "I2", None, either=True).members
        ['I2/0', 'I2/1']
    """
    groups = families(ds)
    if either and isinstance(instance, str) and instance in groups and family is None:
        instance, family = None, instance
    if instance is not None and family is not None:
        raise ValueError(f"instance, family: {instance!r} and {family!r}; accepted: one of the two")
    if instance is not None:
        accept("instance", instance, [name for names in groups.values() for name in names])
        return Place(instance, None, [instance])
    if family is None:
        if len(groups) > 1:
            shown = ", ".join(groups)
            raise ValueError(
                f"family: not given; accepted: one of {shown} (jaxbandit plot: --instance)"
            )
        family = next(iter(groups))
    accept("family", family, list(groups))
    return Place(None, family, groups[family])


def _runs(
    ds: Dataset,
    learner: str,
    instance: str | None,
    family: str | None,
    parameter: int | None,
    variable: str = "regret",
) -> np.ndarray:
    """All runs as [instances, seeds, points]."""
    ds = whole(ds)
    accept("learner", learner, [str(name) for name in ds["learner"].values])
    accept("variable", variable, [str(name) for name in ds.data_vars if "seed" in ds[name].dims])
    array = ds[variable].sel(learner=learner, instance=place_of(ds, instance, family).members)
    if "parameter" in array.dims:
        size = array.sizes["parameter"]
        chosen = 0 if parameter is None and size == 1 else parameter
        if not _is_index(chosen, size):
            raise ValueError(
                f"parameter: {chosen}; accepted: an index 0..{size - 1} of the parameter grid"
            )
        array = array.isel(parameter=chosen)
    values = np.asarray(array.transpose("instance", "seed", ...).values, np.float64)
    return values.reshape(*values.shape[:2], -1)


def _is_index(value: Any, size: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= value < size


def _independent(runs: np.ndarray) -> np.ndarray:
    """[n, points] from runs [instances, seeds, points]: seeds of one instance, or means of
    several."""
    existing = [as_curves(of_one, gaps=True) for of_one in runs]
    if len(existing) == 1:
        return existing[0]
    return as_curves(
        [of.mean(axis=0) if len(of) else np.full(of.shape[1], np.nan) for of in existing], gaps=True
    )


def regret_band(
    ds: Dataset,
    learner: str,
    instance: str | None = None,
    family: str | None = None,
    parameter: int | None = None,
    *,
    kind: str = "t",
    level: float | None = None,
    key: Any = 0,
) -> Band:
    """The band of a learner's regret curve over its replicates, one point per entry of
    ``ds.episode``; as regret is never negative, no interval reaches below 0.

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> names = [f"I2/{j}" for j in range(8)]
        >>> ds = xr.Dataset({"regret": (dims, np.ones((1, 8, 32, 4)))},
        ...                 coords={"learner": ["ExpRef"], "instance": names, "family": ("instance", ["I2"] * 8)})
        >>> regret_band(ds, "ExpRef").describe(), regret_band(ds, "ExpRef", "I2/0").describe()
        ('mean and 95 % t-interval, 8 instances', 'mean and 95 % t-interval, 32 seeds')
    """
    curves = replicates(ds, learner, instance, family, parameter)
    of = replicate_kind(ds, instance, family)
    return band_of_regrets(curves, kind, level, key=key, replicates=of)


def band_of_regrets(curves: np.ndarray, kind: str = "t", level: float | None = None, *, key: Any = 0, replicates: str = "seeds") -> Band:  # fmt: skip
    """The band of curves of regret [n, points], which does not reach below 0.

    Example:
        >>> b = band_of_regrets(np.array([[0.0], [0.1], [2.0]]))
        >>> float(b.low[0]), round(float(b.high[0]), 2)
        (0.0, 3.5)
    """
    b = band(curves, kind, level, key=key, replicates=replicates)
    # Regret is at least 0, and so is its mean: less than that is not in question.
    low = np.where((b.low < 0) & (b.center >= 0), 0.0, b.low)
    return b._replace(low=low)


def regret_difference(
    ds: Dataset,
    first: str,
    second: str,
    instance: str | None = None,
    family: str | None = None,
    parameters: tuple[int | None, int | None] = (None, None),
    *,
    kind: str = "t",
    level: float = 0.95,
    key: Any = 0,
) -> Band:
    """The regret of ``first`` minus that of ``second`` with its band, paired by instance and seed.

    ``parameters`` are the indices of the two along the parameter grid, if the sweep has one.

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.array([[[[1.0], [5.0], [9.0]]], [[[3.0], [7.0], [11.0]]]])
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs)},
        ...                 coords={"learner": ["ExpRef", "UCB-VI"], "instance": ["I1"]})
        >>> b = regret_difference(ds, "UCB-VI", "ExpRef")
        >>> float(b.low[0]), float(b.high[0]), b.n
        (nan, nan, 3)
    """
    accept("kind", kind, OF_DIFFERENCES)
    if not isinstance(parameters, tuple | list) or len(parameters) != 2:
        raise ValueError(f"parameters: {parameters!r}; accepted: two indices, each may be None")
    pair = zip((first, second), parameters, strict=True)
    one, other = (_runs(ds, learner, instance, family, parameter) for learner, parameter in pair)
    of = replicate_kind(ds, instance, family)
    return band(_independent(one - other), kind, level, key=key, replicates=of)


class CurveName(NamedTuple):
    """One curve of a sweep: a learner, or a learner with one point of the parameter grid."""

    label: str
    learner: str
    parameter: int | None


def parameter_values(ds: Dataset, learner: str, parameter: int) -> dict[str, float]:
    """The values of a learner's parameters at a point of the grid; those it does not vary are left
    out."""
    ds = whole(ds, "regret")
    known = [str(name) for name in ds["learner"].values]
    accept("learner", learner, known)
    row, size = known.index(learner), ds.sizes.get("parameter", 1)
    if not _is_index(parameter, size):
        raise ValueError(
            f"parameter: {parameter!r}; accepted: an index 0..{size - 1} of the parameter grid"
        )
    found = {name: float(parameter_table(ds, name)[row, parameter]) for name in parameter_names(ds)}
    return {name: value for name, value in found.items() if np.isfinite(value)}


def curve_names(
    ds: Dataset, learners: Iterable[str] | None = None, parameters: Sequence[int] | None = None
) -> list[CurveName]:
    """The curves of a sweep in order: its learners, once per point of their parameter grid.

    Points of the grid that a learner does not have (all its runs nan) are left out; a learner that
    varies nothing is the same at every point and comes once.

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "parameter", "seed", "episode")
        >>> scales = (("learner", "parameter"), [[0.5, 1.0]])
        >>> ds = xr.Dataset({"regret": (dims, np.ones((1, 1, 2, 3, 4)))},
        ...                 coords={"learner": ["UCB-VI"], "instance": ["I1"], "bonus_scale": scales})
        >>> [name.label for name in curve_names(ds)]
        ['UCB-VI, bonus_scale = 0.5', 'UCB-VI, bonus_scale = 1']
    """
    ds = whole(ds, "regret")
    known = [str(name) for name in ds["learner"].values]
    chosen = some("learners", learners, known, each="learner")
    if "parameter" not in ds["regret"].dims:
        return [CurveName(learner, learner, None) for learner in chosen]
    size = ds.sizes["parameter"]
    for p in parameters or ():
        if not _is_index(p, size):
            raise ValueError(
                f"parameters: {p}; accepted: indices 0..{size - 1} along the parameter grid"
            )
    names = []
    for learner in chosen:
        runs = ds["regret"].sel(learner=learner)
        own = size if "varied" not in ds.coords or ds["varied"].sel(learner=learner) else 1
        for p in range(own) if parameters is None else parameters:
            if not bool(runs.isel(parameter=p).isnull().all()):
                values = parameter_values(ds, learner, p)
                label = ", ".join(
                    [learner, *(f"{name} = {value:.4g}" for name, value in values.items())]
                )
                names.append(CurveName(label, learner, p))
    return names
