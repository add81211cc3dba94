"""Pictures of final regret and of decisions: every run a dot, regret against a parameter, all pairs with their intervals,
performance profiles.

Each function draws into the axes it is given or makes a figure, and
returns a `Drawn` with the figure, the axes and what was drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept, typed
from jaxbandit.plotting.curves import caption, curve_styles, draw_band, draw_bands, final_text
from jaxbandit.plotting.figures import (
    GREY,
    LIGHT_GREY,
    TICK_SIZE,
    Drawn,
    End,
    axes_of,
    figure_of,
    finish,
    literal,
    number_axis,
    plain_axes,
    set_axes,
    styles,
)
from jaxbandit.results.axes import only_one, whole
from jaxbandit.stats.decisions import Comparison, final_values
from jaxbandit.stats.intervals import Band
from jaxbandit.stats.profiles import Profiles
from jaxbandit.stats.replication import (
    Place,
    band_of_regrets,
    curve_names,
    parameter_names,
    parameter_values,
    place_of,
    regret_band,
    replicate_kind,
    replicates,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

MOST_TICKS = 7
"""Up to so many values of a parameter each get a tick."""
SPREAD = 0.28
"""Half the height of the strip in which a learner's dots lie; rows are 1 apart."""
LONGEST_LINE = 36
"""Letters of a row's name; a longer line would leave no room for the axes."""


def plot_final(
    ds: Dataset,
    learners: Sequence[str] | None = None,
    instance: str | None = None,
    family: str | None = None,
    *,
    kind: str = "t",
    level: float | None = None,
    x_scale: str = "linear",
    parameters: Sequence[int] | None = None,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] | None = None,
    key: Any = 0,
    ax: Axes | None = None,
) -> Drawn:
    """Regret after the last episode: every run a dot, and the mean with its interval.

    Runs are spread in height by their seed, the same for all learners, so that a seed can be
    followed from row to row. The interval counts replicates (`jaxbandit.stats.replication`), the
    dots are all runs.

    Args:
        x_scale: "linear" or "log".
        size: width and height of a new figure in inches; by default the height fits the rows.
        ds, learners, instance, family, kind, level, parameters, title, subtitle, key, ax: as in `plot_regret`;
            one family is drawn.

    Returns:
        `Drawn` with ``data``: label -> (the runs, float [runs], and the `Band` of one point).

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.random.default_rng(0).gamma(9.0, 1.0, (2, 1, 12, 1))
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs)},
        ...                 coords={"learner": ["ExpRef", "UCB-VI"], "instance": ["I1"], "episode": [100]})
        >>> {label: dots.size for label, (dots, band) in plot_final(ds).data.items()}
        {'ExpRef': 12, 'UCB-VI': 12}
    """
    accept("x_scale", x_scale, ("linear", "log"))
    ds = whole(ds, "regret")
    place = place_of(ds, instance, family, either=True)
    last = ds.isel(episode=[-1])
    drawn: dict[str, tuple[np.ndarray, Band]] = {}
    named = []
    for name in curve_names(ds, learners, parameters):
        where = (place.instance, place.family, name.parameter)
        band = regret_band(last, name.learner, *where, kind=kind, level=level, key=key)
        if band.n:
            drawn[name.label] = (final_values(ds, "regret", name, place.members), band)
            named.append(name)
    if not drawn:
        raise ValueError("ds: no runs here; accepted: at least one run of some learner")
    ax = axes_of(ax, (4.6, 1.1 + 0.34 * len(drawn)) if size is None else size)
    _draw_rows(ax, drawn, curve_styles(named))
    data = {label: (runs[np.isfinite(runs)], b) for label, (runs, b) in drawn.items()}
    every = np.concatenate([runs for runs, _ in data.values()])
    top = max(every.max(), np.nanmax([b.high[0] for _, b in drawn.values()] + [0.0]))
    log = x_scale == "log"
    if log and not every.min() > 0:
        raise ValueError("x_scale: 'log' with regret 0; accepted: 'linear'")
    number_axis(ax, "x", 0.8 * every.min() if log else 0.0, 1.05 * top if top > 0 else 1.0, log)
    notes = [caption(ds, {label: b for label, (_, b) in drawn.items()}, place.name)]
    notes.append("a dot is a run")
    return finish(ax, data, notes, place.name, title, subtitle, x=final_text(ds))


def _draw_rows(ax: Axes, drawn: dict[str, tuple[np.ndarray, Band]], style: dict[str, Any]) -> None:
    for row, (label, (runs, band)) in enumerate(drawn.items()):
        color = style[label].color
        heights = row + np.linspace(-SPREAD, SPREAD, runs.size).reshape(runs.shape)
        ax.plot(runs.ravel(), heights.ravel(), "o", ms=2.2, mew=0, color=color, alpha=0.45)
        ax.plot([band.center[0]] * 2, [row - 0.36, row + 0.36], color=color, lw=1.6)
        if np.isfinite(band.low[0]):
            ax.plot([band.low[0], band.high[0]], [row, row], color=color, lw=1.6)
    _name_rows(ax, list(drawn))


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    plain_axes(ax)
    ax.set_ylim(len(names) - 0.4, -0.6)
    shown = [literal(textwrap.fill(name, LONGEST_LINE)) for name in names]
    ax.set_yticks(range(len(names)), shown, fontsize=TICK_SIZE)
    ax.tick_params(axis="y", length=0)
    figure_of(ax).draw_without_rendering()  # the heading fits beside the names


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
    parameter = only_one("parameter", parameter, varied)
    accept("y_scale", y_scale, ("linear", "log"))
    place = place_of(ds, instance, family, either=True)
    of = replicate_kind(ds, place.instance, place.family)
    lines = {
        label: (np.array(list(runs)), _band(label, list(runs.values()), kind, level, key, of))
        for label, runs in _final_regret(ds, parameter, learners, place).items()
    }
    for argument, given in (("colors", colors), ("names", names)):
        for label in given or {}:
            accept(argument, label, list(lines))
    ax = axes_of(ax, size)
    ends = _draw_lines(ax, lines, y_scale == "log", colors or {}, names or {})
    notes = [caption(ds, {label: b for label, (_, b) in lines.items()}, place.name)]
    return finish(
        ax,
        lines,
        notes,
        place.name,
        title,
        subtitle,
        x=literal(parameter),
        y=final_text(ds),
        ends=ends,
    )


def _final_regret(
    ds: Dataset, parameter: str, learners: Sequence[str] | None, place: Place
) -> dict[str, dict[float, np.ndarray]]:
    """label -> value of the parameter (in increasing order; nan without it) -> final regret [n]."""
    last = ds.isel(episode=[-1])
    lines: dict[tuple[str, str], dict[float, np.ndarray]] = {}
    for _, learner, point in curve_names(ds, learners):
        values = parameter_values(ds, learner, point or 0)
        at = values.pop(parameter, np.nan)
        rest = ", ".join(f"{name} = {value:.4g}" for name, value in values.items())
        runs = replicates(last, learner, place.instance, place.family, point)
        lines.setdefault((learner, rest), {})[at] = runs[:, 0]
    variants = [learner for learner, _ in lines]
    found = {}
    for (learner, rest), of_line in lines.items():
        label = learner if variants.count(learner) == 1 else f"{learner}, {rest}"
        found[label] = dict(sorted(of_line.items()))
    return found


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


def _draw_lines(
    ax: Axes,
    lines: dict[str, tuple[np.ndarray, Band]],
    log_y: bool,
    colors: Mapping[str, str],
    names: Mapping[str, str],
) -> list[End]:
    """Draws the lines, sets the axes, and returns the line ends."""
    values = np.concatenate([x for x, _ in lines.values()])
    values = np.unique(values[np.isfinite(values)])
    if not (values.size and values[0] > 0):
        raise ValueError(
            f"parameter: values {values}; accepted: positive values, for a logarithmic axis"
        )
    first, last = values[0] / 1.08, values[-1] * 1.08
    ends = []
    usual = styles(list(lines))
    for line, (x, b) in lines.items():
        style = usual[line]._replace(color=colors.get(line, usual[line].color))
        label, end = literal(names.get(line, line)), float(x[-1])
        if np.isnan(x).all():  # a level line: the learner does not have the parameter
            ends_of = {name: getattr(b, name)[[0, 0]] for name in ("center", "low", "high")}
            level, end = b._replace(**ends_of), last
            draw_band(ax, np.array([first, last]), level, label, style)
        else:
            half = np.nan_to_num(np.abs([b.center - b.low, b.high - b.center]))
            ax.errorbar(
                x, b.center, half, color=style.color, ls=style.line, lw=1.4, marker="o", ms=3,
                elinewidth=0.9, capsize=2, label=label,
            )  # fmt: skip
        ends.append(End(label, end, float(b.center[-1]), style.color))
    top = max(float(np.nanmax(np.fmax(b.high, b.center))) for _, b in lines.values())
    bottom = min(float(np.nanmin(b.center)) for _, b in lines.values())
    if log_y and not bottom > 0:
        raise ValueError("y_scale: 'log' with regret 0; accepted: 'linear'")
    set_axes(
        ax, (first, last, True), (0.7 * bottom if log_y else 0.0, 1.05 * max(top, 1e-9), log_y)
    )
    if values.size <= MOST_TICKS:
        ax.set_xticks(values)
        ax.set_xticks([], minor=True)
    return ends


def plot_comparison(
    comparison: Comparison,
    *,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Drawn:
    """All pairs of a `jaxbandit.stats.compare`, one row each: the difference and its interval.

    Decided pairs are dark and lie right of 0; the heading has the ranking.

    Returns:
        `Drawn` with ``data``: (better, worse) -> `Pair`.

    Example:
        >>> import numpy as np
        >>> from jaxbandit import stats
        >>> runs = np.random.default_rng(0).normal([10.0, 10.1, 14.0], 1.0, (16, 3))
        >>> drawn = plot_comparison(stats.compare_values(["A", "B", "C"], [runs]))
        >>> [pair for pair, found in drawn.data.items() if found.decided]
        [('A', 'C'), ('B', 'C')]
    """
    pairs = typed("comparison", comparison, Comparison, "what jb.stats.compare gives").pairs
    ax = axes_of(ax, (4.9, 1.25 + 0.24 * len(pairs)) if size is None else size)
    for row, pair in enumerate(pairs):
        color = "#0072B2" if pair.decided else LIGHT_GREY
        ax.plot([pair.low, pair.high], [row, row], color=color, lw=1.6, solid_capstyle="butt")
        ax.plot(pair.difference, row, "o", ms=3.5, color=color)
    ax.axvline(0, color=GREY, lw=0.8)
    _name_rows(ax, [f"{pair.worse} − {pair.better}" for pair in pairs])
    ends = [x for p in pairs for x in (p.difference, p.low, p.high) if np.isfinite(x)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = 0.04 * (high - low or 1.0)
    number_axis(ax, "x", low - room, high + room, False)
    notes = [
        literal(comparison.ranking()),
        f"{100 * comparison.level:g} % for all pairs together: {comparison.method}",
        literal(f"paired over {comparison.replicates}; grey: not decided"),
    ]
    data = {(pair.better, pair.worse): pair for pair in pairs}
    return finish(ax, data, notes, "All pairs", title, subtitle, x="difference of regret")


def plot_profiles(
    profiles: Profiles,
    *,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] = (4.6, 3.1),
    ax: Axes | None = None,
) -> Drawn:
    """Performance profiles with their bands: higher is better.

    Returns:
        `Drawn` with ``data``: learner -> `Band` over the ratios.

    Example:
        >>> import numpy as np, xarray as xr
        >>> from jaxbandit import stats
        >>> runs = np.random.default_rng(0).gamma(9.0, 1.0, (2, 3, 8, 1))
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs)},
        ...                 coords={"learner": ["A", "B"], "instance": ["I", "J", "K"], "episode": [9]})
        >>> list(plot_profiles(stats.performance_profiles(ds)).data)
        ['A', 'B']
    """
    typed("profiles", profiles, Profiles, "what jb.stats.performance_profiles gives")
    ax = axes_of(ax, size)
    draw_bands(ax, profiles.ratios, profiles.share, styles(list(profiles.share)))
    ends = (float(profiles.ratios[0]), float(profiles.ratios[-1]))
    set_axes(ax, (*ends, True), (0.0, 1.02, False))
    ax.legend(fontsize=TICK_SIZE, frameon=False, handlelength=3, loc="best")
    one = next(iter(profiles.share.values()))
    note = (
        f"{profiles.num_instances} instances x {profiles.num_seeds} seeds; "
        f"{100 * one.level:g} % score intervals, stratified by instance"
    ) + ("; few seeds: cover less if skewed" if one.warning else "")
    return finish(
        ax, dict(profiles.share), [note], "Performance profiles", title, subtitle,
        x="ratio to the regret of the instance's best learner", y="share of runs at or below",
    )  # fmt: skip
