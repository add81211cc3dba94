"""The replicates of a sweep's Dataset, the band of their curves, and the table of final regrets.

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

from jaxbandit import checks
from jaxbandit.checks import accept, some
from jaxbandit.results.axes import parameter_names, parameter_table, whole
from jaxbandit.stats.intervals import (
    MAY_COVER_LESS,
    OF_DIFFERENCES,
    Band,
    as_curves,
    band,
    last_point,
)
from jaxbandit.tabular import FORMATS, records, write_table

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

__all__ = [
    "CurveName", "Row", "curve_names", "families", "final_table", "format_table", "parameter_names",
    "parameter_values", "regret_band", "regret_difference", "replicate_kind", "replicates",
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
    members = place_of(ds, instance, family).members
    return _independent(read_runs(whole(ds), learner, members, parameter, variable).values)


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
    if family is None and len(groups) > 1:
        accepted = f"one of {', '.join(groups)} (jaxbandit plot: --instance)"
        raise ValueError(f"family: not given; accepted: {accepted}")
    family = next(iter(groups)) if family is None else family
    accept("family", family, list(groups))
    return Place(None, family, groups[family])


def read_runs(
    ds: Dataset,
    learner: str,
    members: Sequence[str],
    parameter: int | None = None,
    variable: str = "regret",
) -> DataArray:
    """All runs of a learner on some instances, (instance, seed, and what the variable has besides).

    Example:
        >>> import xarray as xr
        >>> runs = xr.DataArray([[[1.0, 2.0]]], dims=("learner", "instance", "seed"))
        >>> ds = xr.Dataset({"final": runs}, coords={"learner": ["ExpRef"], "instance": ["I1"]})
        >>> read_runs(ds, "ExpRef", ["I1"], variable="final").values.tolist()
        [[1.0, 2.0]]
    """
    accept("learner", learner, [str(name) for name in ds["learner"].values])
    accept("variable", variable, [str(name) for name in ds.data_vars if "seed" in ds[name].dims])
    runs = ds[variable].sel(learner=learner, instance=members)
    if "parameter" in runs.dims:
        size = runs.sizes["parameter"]
        chosen = 0 if parameter is None and size == 1 else parameter
        runs = runs.isel(parameter=_grid_index("parameter", chosen, size))
    return runs.transpose("instance", "seed", ...).astype(np.float64)


def final_runs(
    ds: Dataset, curves: Iterable[CurveName], members: Sequence[str], variable: str = "regret"
) -> np.ndarray:
    """The last value of each run, float [instances, seeds, curves].

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.arange(6.0).reshape(1, 1, 2, 3)
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs)},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I1"]})
        >>> final_runs(ds, curve_names(ds), ["I1"]).tolist()
        [[[2.0], [5.0]]]
    """
    columns = []
    for curve in curves:
        runs = read_runs(ds, curve.learner, members, curve.parameter or 0, variable)
        last = runs.isel(episode=-1) if "episode" in runs.dims else runs
        if last.ndim > 2:
            raise ValueError(
                f"variable: {variable!r} has dimensions {last.dims} per run; accepted: one number per run"
            )
        columns.append(last.values)
    return np.stack(columns, axis=-1)


def _grid_index(argument: str, value: Any, size: int) -> int:
    what = "an index of the parameter grid"
    return checks.whole(argument, value, at_least=0, at_most=size - 1, what=what)


def _independent(runs: np.ndarray) -> np.ndarray:
    """[n, points] from runs [instances, seeds, ...]: seeds of one instance, or means of several."""
    existing = [as_curves(of_one.reshape(len(of_one), -1), gaps=True) for of_one in runs]
    if len(existing) == 1:
        return existing[0]
    means = [seeds.mean(axis=0) for seeds in existing if len(seeds)]
    return as_curves(np.reshape(means, (-1, existing[0].shape[1])), gaps=True)


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


def band_of_regrets(
    curves: np.ndarray, kind: str = "t", level: float | None = None, **how: Any
) -> Band:
    """The band of curves of regret [n, points], which does not reach below 0; arguments as for `band`.

    Example:
        >>> b = band_of_regrets(np.array([[0.0], [0.1], [2.0]]))
        >>> float(b.low[0]), round(float(b.high[0]), 2)
        (0.0, 3.5)
    """
    b = band(curves, kind, level, **how)
    # Regret is at least 0, and so is its mean: less than that is not in question.
    return b._replace(low=np.where((b.low < 0) & (b.center >= 0), 0.0, b.low))


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
    ds, members = whole(ds), place_of(ds, instance, family).members
    pair = zip((first, second), parameters, strict=True)
    one, other = (read_runs(ds, learner, members, p).values for learner, p in pair)
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
    point = known.index(learner), _grid_index("parameter", parameter, ds.sizes.get("parameter", 1))
    found = {name: float(parameter_table(ds, name)[point]) for name in parameter_names(ds)}
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
    points = (
        None if parameters is None else [_grid_index("parameters", p, size) for p in parameters]
    )
    names = []
    for learner in chosen:
        runs = ds["regret"].sel(learner=learner)
        own = size if "varied" not in ds.coords or ds["varied"].sel(learner=learner) else 1
        for p in range(own) if points is None else points:
            if not bool(runs.isel(parameter=p).isnull().all()):
                values = parameter_values(ds, learner, p).items()
                label = ", ".join([learner, *(f"{name} = {value:.4g}" for name, value in values)])
                names.append(CurveName(label, learner, p))
    return names


NOTE = f'{MAY_COVER_LESS}; kind="skewed" covers more'
"""A line under the table where it is so."""


class Row(NamedTuple):
    """One line of `final_table`."""

    family: str
    learner: str
    parameter: int | None
    label: str
    """The learner, with its parameters if the sweep varies them."""
    mean: float
    """Mean regret at the last recorded episode."""
    low: float
    high: float
    n: int
    replicates: str
    """What n counts: "seeds" or "instances"."""
    level: float
    warning: str = ""
    """Why the interval may cover less than its level: "few", "skewed" or ""."""

    @property
    def doubt(self) -> str:
        """The former name of ``warning``."""
        return self.warning


def final_table(
    ds: Dataset,
    learners: Iterable[str] | None = None,
    panels: Iterable[str] | None = None,
    level: float = 0.95,
    *,
    kind: str = "t",
) -> list[Row]:
    """Regret after the last episode, per family and learner, with its interval over replicates.

    ``panels`` chooses families (default all).

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> ds = xr.Dataset({"regret": (dims, np.full((1, 1, 8, 2), 1500.0))},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I1"], "episode": [5000, 10000]})
        >>> print(format_table(final_table(ds)))
        family  learner  final regret  95 % interval   replicates
        I1      ExpRef          1,500  1,500 to 1,500  8 seeds
    """
    ds = whole(ds, "regret")
    chosen = some("panels", panels, list(families(ds)))
    last = ds.isel(episode=[-1])
    rows = []
    for family in chosen:
        for label, learner, parameter in curve_names(ds, learners):
            of: dict[str, Any] = {"learner": learner, "family": family, "parameter": parameter}
            b = regret_band(last, **of, kind=kind, level=level)
            if b.n:
                found = last_point(b)._asdict()
                rows.append(Row(label=label, mean=found.pop("value"), **of, **found))
    return rows


def format_table(rows: Sequence[Row], format: str = "text") -> str:
    """The rows of `final_table` as "text", "markdown", "latex" or "csv"; see there for an example.

    In "csv" mean, low and high are columns of their own with all digits, for other programs, and so is ``warning``; the
    other formats have a line under the table where some interval may cover less than it says (in LaTeX a comment).
    """
    rows = records("rows", rows, Row, "what jb.stats.final_table gives")
    accept("format", format, FORMATS)
    if format == "csv":
        columns = ("family", "label", "mean", "low", "high", "level", "n", "replicates", "warning")
        plain = [[str(getattr(row, name)) for name in columns] for row in rows]
        return write_table(["family", "learner", *columns[2:]], plain, format)
    if not rows:
        return "no runs"
    percent = f"{100 * rows[0].level:g} % interval"
    head = ("family", "learner", "final regret", percent, "replicates")
    cells = []
    for row in rows:
        mean, low, high = map(_number, row[4:7])
        of = row.replicates if row.n > 1 else row.replicates.removesuffix("s")
        interval = "none" if np.isnan(row.low) else f"{low} to {high}"
        cells.append((row.family, row.label, mean, interval, f"{row.n} {of}"))
    note = NOTE if any(row.warning for row in rows) else ""
    return write_table(head, cells, format, right=[2], note=note)


def _number(value: float) -> str:
    """Whole numbers with thousands separators from 100 on, three significant digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
