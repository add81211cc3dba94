"""Regret against a parameter: the figure of a tuning sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept
from jaxbandit.plotting.curves import caption
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
from jaxbandit.results.axes import whole
from jaxbandit.stats.intervals import Band
from jaxbandit.stats.replication import (
    band_of_regrets,
    curve_names,
    families,
    one_of,
    parameter_names,
    parameter_values,
    replicate_kind,
    replicates,
)

MOST_TICKS = 7
"""Up to so many values of a parameter each get a tick."""

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def plot_parameter(
    ds: Dataset,
    parameter: str | None = None,
    learners: Sequence[str] | None = None,
    instance: str | None = None,
    family: str | None = None,
    *,
    kind: str = "t",
    level: float | None = None,
    y_scale: str = "linear",
    colors: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] = (4.6, 3.1),
    key: Any = 0,
    ax: Axes | None = None,
) -> Drawn:
    """Final regret against a parameter on a logarithmic axis, with an interval at each value.

    Learners without the parameter are drawn as level lines to compare with. If the sweep varies
    further parameters, each combination of these is a line of its own.

    Args:
        ds: the Dataset of a sweep with a parameter grid.
        parameter: name of the parameter; not needed if the sweep varies one.
        y_scale: "linear" or "log".
        colors, names: label of a line -> colour, and -> what is written instead.
        learners, instance, family, kind, level, title, subtitle, size, key, ax: as in `plot_regret`.

    Returns:
        `Drawn` with ``data``: label -> (parameter values, `Band` over them).

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "parameter", "seed", "episode")
        >>> scales = (("learner", "parameter"), [[0.5, 1.0]])
        >>> ds = xr.Dataset({"regret": (dims, np.ones((1, 1, 2, 3, 4)))},
        ...                 coords={"learner": ["UCB-VI"], "instance": ["I1"], "bonus_scale": scales})
        >>> values, band = plot_parameter(ds, "bonus_scale").data["UCB-VI"]
        >>> values.tolist(), band.n
        ([0.5, 1.0], 3)
    """
    ds = whole(ds)
    varied = parameter_names(ds)
    if not varied:
        raise ValueError("ds: no parameter grid; accepted: a sweep over parameters")
    if parameter is None and len(varied) > 1:
        raise ValueError(f"parameter: not given; accepted: {', '.join(varied)}")
    parameter = varied[0] if parameter is None else parameter
    accept("parameter", parameter, varied)
    accept("y_scale", y_scale, ("linear", "log"))
    groups = families(ds)
    instance, family = one_of(groups, instance, family)
    of = replicate_kind(ds, instance, family)
    lines = {
        label: (np.array(list(runs)), _band(label, list(runs.values()), kind, level, key, of))
        for label, runs in _final_regret(ds, parameter, learners, instance, family).items()
    }
    ax = new_figure(size)[1][0] if ax is None else ax
    for argument, given in (("colors", colors), ("names", names)):
        for label in given or {}:
            accept(argument, label, list(lines))
    ends = _draw(ax, lines, y_scale == "log", colors or {}, names or {})
    ax.set_xlabel(literal(parameter), fontsize=TEXT_SIZE)
    ax.set_ylabel(
        f"cumulative regret after {int(ds['episode'].values[-1]):,} episodes", fontsize=TEXT_SIZE
    )
    name = instance or family or next(iter(groups))
    notes = [caption(ds, {label: b for label, (_, b) in lines.items()}, name)]
    text = heading(ax, literal(name) if title is None else title, notes, subtitle)
    label_ends(ax, ends)
    return Drawn(figure_of(ax), ax, lines, text)


def _final_regret(
    ds: Dataset,
    parameter: str,
    learners: Sequence[str] | None,
    instance: str | None,
    family: str | None,
) -> dict[str, dict[float, np.ndarray]]:
    """label -> value of the parameter (in increasing order; nan without it) -> final regret [n]."""
    last = ds.isel(episode=[-1])
    lines: dict[tuple[str, str], dict[float, np.ndarray]] = {}
    for _, learner, point in curve_names(ds, learners):
        values = parameter_values(ds, learner, point or 0)
        at = values.pop(parameter, np.nan)
        rest = ", ".join(f"{name} = {value:.4g}" for name, value in values.items())
        lines.setdefault((learner, rest), {})[at] = replicates(
            last, learner, instance, family, point
        )[:, 0]
    variants = [learner for learner, _ in lines]
    return {
        learner if variants.count(learner) == 1 else f"{learner}, {rest}": dict(
            sorted(runs.items())
        )
        for (learner, rest), runs in lines.items()
    }


def _band(
    label: str, runs: list[np.ndarray], kind: str, level: float | None, key: Any, of: str
) -> Band:
    if len({len(r) for r in runs}) > 1:
        counts = ", ".join(str(len(r)) for r in runs)
        raise ValueError(
            f"ds: {label} has {counts} replicates; accepted: the same number at every value"
        )
    values = np.stack(runs, axis=1)
    b = band_of_regrets(values, kind, level, key=key, replicates=of)
    # every point is a number of its own here: one warning is enough
    each = (band_of_regrets(values[:, [j]], kind, level, key=key).warning for j in range(len(runs)))
    return b._replace(warning=max(each))


def _draw(
    ax: Axes,
    lines: dict[str, tuple[np.ndarray, Band]],
    log_y: bool,
    colors: Mapping[str, str],
    names: Mapping[str, str],
) -> list[End]:
    """Draws the lines, sets the axes, and returns the line ends."""
    values = np.concatenate([x for x, _ in lines.values()])
    values = values[np.isfinite(values)]
    if not (values.size and values.min() > 0):
        raise ValueError(
            f"parameter: values {np.unique(values)}; accepted: positive values, for a logarithmic axis"
        )
    first, last = values.min() / 1.08, values.max() * 1.08
    ends = []
    usual = styles(list(lines))
    for line, (x, b) in lines.items():
        style = usual[line]._replace(color=colors.get(line, usual[line].color))
        label = names.get(line, line)
        if np.isnan(x).all():  # a level line: the learner does not have the parameter
            ax.fill_between(
                [first, last], b.low[[0, 0]], b.high[[0, 0]], color=style.color, alpha=0.18, lw=0
            )
            ax.plot(
                [first, last],
                b.center[[0, 0]],
                color=style.color,
                ls=style.line,
                lw=1.2,
                label=literal(label),
            )
        else:
            half = np.nan_to_num(np.abs([b.center - b.low, b.high - b.center]))
            look = {
                "color": style.color,
                "ls": style.line,
                "lw": 1.4,
                "marker": "o",
                "ms": 3,
                "elinewidth": 0.9,
            }
            ax.errorbar(x, b.center, half, capsize=2, label=literal(label), **look)
        ends.append(
            End(
                literal(label),
                last if np.isnan(x).all() else float(x[-1]),
                float(b.center[-1]),
                style.color,
            )
        )
    tops = np.concatenate([np.fmax(b.high, b.center) for _, b in lines.values()])
    bottoms = np.concatenate([b.center for _, b in lines.values()])
    plain_axes(ax)
    number_axis(ax, "x", first, last, True)
    if np.unique(values).size <= MOST_TICKS:
        ax.set_xticks(np.unique(values))
        ax.set_xticks([], minor=True)
    if log_y and not np.nanmin(bottoms) > 0:
        raise ValueError("y_scale: 'log' with regret 0; accepted: 'linear'")
    number_axis(
        ax,
        "y",
        0.7 * np.nanmin(bottoms) if log_y else 0.0,
        1.05 * max(np.nanmax(tops), 1e-9),
        log_y,
    )
    return ends
