"""A metric against the episodes: the figure of `jaxbandit.sweep(..., metrics=...)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept
from jaxbandit.plotting.figures import (
    TEXT_SIZE,
    Drawn,
    End,
    figure_of,
    heading,
    label_ends,
    literal,
    new_figure,
    number_axis,
    plain_axes,
    styles,
)
from jaxbandit.plotting.panel import caption
from jaxbandit.result_axes import whole
from jaxbandit.stats.intervals import Band, band
from jaxbandit.stats.replication import curve_names, families, one_of, replicate_kind, replicates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

RUN = ("learner", "instance", "parameter", "seed", "episode")
"""The dimensions that every metric has; further ones are its own."""


def plot_metric(
    ds: Dataset,
    name: str,
    learners: Sequence[str] | None = None,
    instance: str | None = None,
    family: str | None = None,
    *,
    at: Mapping[str, int] | None = None,
    kind: str = "t",
    level: float | None = None,
    scale: str = "linear",
    parameters: Sequence[int] | None = None,
    title: str | None = None,
    size: tuple[float, float] = (4.6, 3.1),
    key: Any = 0,
    ax: Axes | None = None,
) -> Drawn:
    """A metric of several learners over the episodes, with bands; learners without it are left out.

    Args:
        ds: the Dataset of a sweep with ``metrics``.
        name: of the metric.
        at: where to read a metric that has axes of its own, such as {"stage": 1, "level": 2}; axes
            that it does not name are averaged over (what is nan there is left out).
        scale: "linear", or "log" for both axes.
        learners, instance, family, kind, level, parameters, title, size, key, ax: as in `plot_regret`;
            one family is drawn.

    Returns:
        `Drawn` with ``data``: label -> `Band` over ``ds.episode``.

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> curves = np.ones((1, 1, 4, 1)) * np.linspace(1.0, 0.1, 9)
        >>> ds = xr.Dataset({"regret": (dims, curves), "optimism": (dims, curves)},
        ...                 coords={"learner": ["UCB-VI"], "instance": ["I1"], "episode": np.arange(1, 10)})
        >>> plot_metric(ds, "optimism").data["UCB-VI"].n
        4
    """
    ds = whole(ds)
    accept("name", name, metric_names(ds))
    accept("scale", scale, ("linear", "log"))
    groups = families(ds)
    instance, family = one_of(groups, instance, family)
    flat = ds.assign({name: _along_episodes(ds, name, at or {})})
    log = scale == "log"
    bands: dict[str, Band] = {}
    for label, learner, parameter in curve_names(ds, learners, parameters):
        curves = replicates(flat, learner, instance, family, parameter, name)
        if curves.size and np.isfinite(curves).any():
            of = replicate_kind(ds, instance, family)
            bands[label] = band(curves, kind, level, key=key, replicates=of)
    if not bands:
        raise ValueError(f"name: {name!r} is nan for these learners; accepted: one that they have")
    ax = new_figure(size)[1][0] if ax is None else ax
    episodes = np.asarray(ds["episode"].values, np.float64)
    ends = _draw(ax, episodes, bands, styles([n.label for n in curve_names(ds)]), log)
    ax.set_xlabel("episode", fontsize=TEXT_SIZE)
    where = ", ".join(f"{dim} {value}" for dim, value in (at or {}).items())
    ax.set_ylabel(literal(f"{name} at {where}" if where else name), fontsize=TEXT_SIZE)
    shown = instance or family or next(iter(groups))
    heading(ax, literal(shown) if title is None else title, [caption(ds, bands, shown)])
    label_ends(ax, ends)
    return Drawn(figure_of(ax), ax, bands)


def metric_names(ds: Dataset) -> list[str]:
    """The variables that have a value for every run and recorded episode, besides regret.

    Example:
        >>> import numpy as np, xarray as xr
        >>> curves = (("seed", "episode"), np.ones((2, 3)))
        >>> metric_names(xr.Dataset({"regret": curves, "entropy": curves, "final_gap": ("seed", [1, 2])}))
        ['entropy']
    """
    return [
        str(name)
        for name, values in ds.data_vars.items()
        if {"seed", "episode"} <= set(values.dims) and name != "regret"
    ]


def _along_episodes(ds: Dataset, name: str, at: Mapping[str, int]) -> Any:
    """The metric without axes of its own."""
    values = ds[name]
    own = [str(dim) for dim in values.dims if dim not in RUN]
    for dim, place in at.items():
        accept("at", dim, own)
        known = values[dim].values.tolist() if dim in values.coords else range(values.sizes[dim])
        accept(f"at[{dim!r}]", place, list(known))
        values = values.isel({dim: list(known).index(place)}, drop=True)
    rest = [dim for dim in own if dim not in at]
    return values.mean(rest, skipna=True) if rest else values


def _draw(
    ax: Axes, episodes: np.ndarray, bands: Mapping[str, Band], style: Mapping[str, Any], log: bool
) -> list[End]:
    ends, lows, highs = [], [], []
    for label, b in bands.items():
        color = style[label].color
        low, high = (np.where(np.isfinite(side), side, b.center) for side in (b.low, b.high))
        floor = b.center if log else low  # what is not positive has no place on a log axis
        ax.fill_between(
            episodes, np.where(low > 0, low, floor) if log else low, high, color=color, alpha=0.18, lw=0
        )  # fmt: skip
        ax.plot(episodes, b.center, color=color, ls=style[label].line, lw=1.4, label=literal(label))
        seen = b.center[np.isfinite(b.center)]
        ends.append(End(literal(label), float(episodes[-1]), float(seen[-1]), color))
        lows.append(np.nanmin(np.where(b.center > 0, b.center, np.nan) if log else low))
        highs.append(np.nanmax(high))
    plain_axes(ax)
    bottom, top = float(np.nanmin(lows)), float(np.nanmax(highs))
    if log and not bottom > 0:
        raise ValueError("scale: 'log' with no positive value; accepted: 'linear'")
    room = 0.05 * (top - bottom or abs(top) or 1.0)
    number_axis(ax, "x", float(episodes[0]) if log else 0.0, float(episodes[-1]), log)
    if log:
        number_axis(ax, "y", 0.7 * bottom, 1.3 * top, True)
    else:
        number_axis(ax, "y", bottom - room if bottom < 0 else min(bottom, 0.0), top + room, False)
    return ends
