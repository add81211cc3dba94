"""One panel of regret curves: bands, lines, bounds, slope guides and phase marks, drawn into given
axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept
from jaxbandit.plotting.figures import (
    GREY,
    End,
    Style,
    literal,
    number_axis,
    plain_axes,
    ramp,
    styles,
)
from jaxbandit.plotting.look import PanelLook
from jaxbandit.stats.intervals import Band, method_of_all
from jaxbandit.stats.replication import CurveName, curve_names, families, regret_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

SCALES = ("linear", "loglog")
SHORTEST_RAMP = 3
"""From so many values of its parameters on, a learner's curves are tones of one colour."""


class Panel(NamedTuple):
    """What was drawn."""

    bands: dict[str, Band]
    ends: list[End]
    """Line ends, for labels."""
    notes: list[str]
    """What a reader needs to be told about marks and about lines outside the axes."""


def draw_panel(
    ax: Axes, ds: Dataset, instance: str | None, family: str | None, look: PanelLook
) -> Panel:
    """Draws the curves of an instance or a family into ``ax`` and sets scales, limits and ticks."""
    accept("scale", look.scale, SCALES)
    log = look.scale == "loglog"
    if look.slope_guides and not log:
        raise ValueError(
            f"slope_guides: {look.slope_guides} with scale {look.scale!r}; accepted: with scale 'loglog'"
        )
    names = curve_names(ds, look.learners, look.parameters)
    every = curve_names(ds)
    style = curve_styles(every, look.colors)  # of all curves, so that subsets keep their colours
    shown_as = shown_names(every, look.names)
    episodes = np.asarray(ds["episode"].values, np.float64)
    bands = {}
    for label, learner, parameter in names:
        b = regret_band(
            ds, learner, instance, family, parameter, kind=look.kind, level=look.level, key=look.key
        )
        if b.n:
            bands[label] = b
    if not bands:
        raise ValueError(
            f"ds: no runs of {', '.join(n.label for n in names)} here; accepted: at least one curve"
        )
    low, high = _limits(bands.values(), log)
    ends = []
    for label, b in bands.items():
        _draw_band(ax, episodes, b, literal(shown_as[label]), style[label], low, log)
        ends.append(
            End(literal(shown_as[label]), episodes[-1], _last(b.center), style[label].color)
        )
    overlays = _overlay_curves(episodes, bands.values(), look)
    above = [label for label, y in overlays.items() if not log and _last(y) > 1.5 * high]
    shown = {label: y for label, y in overlays.items() if label not in above}
    if shown:
        tops = [np.nanmax(y) for y in shown.values()]
        high = max(high, 1.05 * max(tops))
        low = min([low, *(np.nanmin(y[y > 0]) for y in shown.values())]) if log else low
    for (label, y), line in zip(shown.items(), _overlay_lines(len(shown)), strict=True):
        ax.plot(
            episodes,
            np.where(y > 0, y, np.nan) if log else y,
            color=GREY,
            lw=0.8,
            ls=line,
            zorder=1.5,
        )
        ends.append(End(label, episodes[-1], _last(y), GREY))
    plain_axes(ax)
    number_axis(ax, "x", episodes[0] if log else 0.0, episodes[-1], log)
    number_axis(ax, "y", low, high, log)
    marked = look.phases and _draw_phases(ax, ds, instance, family, names, style)
    notes = ["ticks inside the x axis: phase ends (median)"] if marked else []
    notes += [f"above the axes: {', '.join(above)}"] if above else []
    return Panel(bands, ends, notes)


def curve_styles(
    curves: Sequence[CurveName], colors: Mapping[str, str] | None = None
) -> dict[str, Style]:
    """A style for every curve: a learner's own, or a ramp of its colour over many parameter values.

    ``colors`` are by label or by learner, and replace those that would be chosen.
    """
    _known("colors", colors, curves)
    labels = [curve.label for curve in curves]
    chosen = styles(labels)
    learners = list(dict.fromkeys(curve.learner for curve in curves))
    base = styles(learners)
    for learner in learners:
        own = [curve.label for curve in curves if curve.learner == learner]
        color = (colors or {}).get(learner)
        if len(own) >= SHORTEST_RAMP:
            tones = ramp(color or base[learner].color, len(own))
            chosen |= {label: Style(tone, "-") for label, tone in zip(own, tones, strict=True)}
        elif color is not None:
            tones = ramp(color, len(own))
            chosen |= {
                label: chosen[label]._replace(color=tone)
                for label, tone in zip(own, tones, strict=True)
            }
    for label, color in (colors or {}).items():
        if label in chosen:
            chosen[label] = chosen[label]._replace(color=color)
    return chosen


def shown_names(
    curves: Sequence[CurveName], names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What is written for every curve: ``names`` by label or by learner, else its label."""
    _known("names", names, curves)
    given = names or {}
    return {
        curve.label: given.get(
            curve.label,
            given.get(curve.learner, curve.learner) + curve.label.removeprefix(curve.learner),
        )
        for curve in curves
    }


def _known(argument: str, given: Mapping[str, str] | None, curves: Sequence[CurveName]) -> None:
    accepted = list(dict.fromkeys([*(c.learner for c in curves), *(c.label for c in curves)]))
    for name in given or {}:
        accept(argument, name, accepted)


def caption(ds: Dataset, bands: Mapping[str, Band], name: str) -> str:
    """Kind of band and number of replicates, as printed on the figure."""
    return f"{method_of_all(bands.values())}, {count(ds, bands, name)}"


def count(ds: Dataset, bands: Mapping[str, Band], name: str) -> str:
    """Number of replicates in words ("32 seeds", "8 instances x 4 seeds") of an instance or a
    family."""
    kind = next(iter(bands.values())).replicates
    counts = sorted({b.n for b in bands.values()})
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    words = f"{number} {kind if number != '1' else kind.removesuffix('s')}"
    members = families(ds).get(name, [])
    if kind != "instances" or len(members) < 2:
        return words
    runs = (
        ds["regret"].sel(instance=members).notnull()
    )  # sweeps that were joined may differ in their seeds
    seeds = int(runs.any([dim for dim in runs.dims if dim != "seed"]).sum())
    return f"{words} x {seeds} seed{'s' if seeds > 1 else ''}"


def _last(values: np.ndarray) -> float:
    """The last finite value, or nan."""
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if finite.size else np.nan


def _limits(bands: Any, log: bool) -> tuple[float, float]:
    centers = np.concatenate([b.center for b in bands])
    highs = np.concatenate([np.where(np.isfinite(b.high), b.high, b.center) for b in bands])
    if log:
        positive = centers[centers > 0]
        if not positive.size:
            raise ValueError(
                "scale: 'loglog' with no positive regret; accepted: 'linear' for these curves"
            )
        return 0.7 * float(positive.min()), 1.3 * float(np.nanmax(highs))
    top = float(np.nanmax(highs))
    return 0.0, 1.05 * top if top > 0 else 1.0


def _draw_band(
    ax: Axes, x: np.ndarray, b: Band, label: str, style: Style, floor: float, log: bool
) -> None:
    center, low = b.center, b.low
    if (
        log
    ):  # what is not positive has no place on the axis: cut bands at the floor, leave lines out
        center, low = np.where(center > 0, center, np.nan), np.where(low > 0, low, floor / 10)
    if np.isfinite(b.low).any():
        ax.fill_between(x, low, b.high, color=style.color, alpha=0.18, lw=0, zorder=2)
    ax.plot(x, center, color=style.color, ls=style.line, lw=1.4, label=label, zorder=3)


def _overlay_curves(episodes: np.ndarray, bands: Any, look: PanelLook) -> dict[str, np.ndarray]:
    """Bounds and slope guides, label -> [points]."""
    curves = {}
    for label, bound in (look.bounds or {}).items():
        y = np.asarray(bound(episodes) if callable(bound) else bound, np.float64)
        if y.shape != episodes.shape:
            raise ValueError(
                f"bounds[{label!r}]: shape {y.shape}; accepted: one value per episode, {episodes.shape}"
            )
        curves[label] = y
    for slope in look.slope_guides or ():
        # All guides start from one point above the curves, two decades before the end at most.
        start = max(episodes[0], episodes[-1] / 100)
        tops = [np.interp(start, episodes, b.center) for b in bands]
        exponent = Fraction(slope).limit_denominator(12)
        guide = 1.8 * np.nanmax(tops) * (episodes / start) ** slope
        curves[f"slope {exponent}"] = np.where(episodes >= start, guide, np.nan)
    return curves


def _overlay_lines(number: int) -> list[Any]:
    lines: list[Any] = [(0, (1, 1.5)), (0, (3, 1.5)), (0, (6, 2)), (0, (3, 1, 1, 1))]
    return [lines[j % len(lines)] for j in range(number)]


def _draw_phases(
    ax: Axes,
    ds: Dataset,
    instance: str | None,
    family: str | None,
    names: list[CurveName],
    style: dict[str, Style],
) -> bool:
    """Short marks where phases end, one row per learner that has phases; whether any was drawn."""
    if "phase_end" not in ds:
        return False
    groups = families(ds)
    where = [instance] if instance is not None else groups[family or next(iter(groups))]
    first, last = ax.get_xlim()
    rows = {}
    for label, learner, parameter in names:
        ended = ds["phase_end"].sel(learner=learner, instance=where)
        ended = ended.isel(parameter=parameter) if "parameter" in ended.dims else ended
        runs = ended.transpose(..., "phase").values.reshape(-1, ended.sizes["phase"])
        runs = runs[~np.isnan(runs).all(axis=1)]
        if runs.size:
            middle = np.median(
                np.where(np.isnan(runs), np.inf, runs), axis=0
            )  # unfinished counts as later
            rows[label] = middle[np.isfinite(middle) & (middle >= first) & (middle < last)]
    rows = {label: middle for label, middle in rows.items() if middle.size}
    step = min(0.045, 0.12 / max(1, len(rows)))
    for row, (label, middle) in enumerate(rows.items()):
        low, high = 0.012 + step * row, 0.012 + step * (row + 0.78)
        where_on_axis = ax.get_xaxis_transform()
        ax.vlines(
            middle,
            low,
            high,
            transform=where_on_axis,
            color=style[label].color,
            lw=0.9,
            alpha=0.75,
            zorder=4,
        )
    return bool(rows)
