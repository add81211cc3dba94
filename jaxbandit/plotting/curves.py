"""Figures of runs: regret and metrics over the episodes, final regret, regret against a parameter, decisions and profiles.

Every function draws into the axes it is given or makes a figure, needs no display, and returns a
`Drawn` with the figure, the axes, the bands that were drawn and a caption. `jaxbandit.stats.replication`
says what the replicates are; the figure names them, their number and the kind of band.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, some, typed
from jaxbandit.inspect import lai_robbins_of
from jaxbandit.plotting.figures import (
    GREY,
    LEAST_PANEL,
    LEGEND,
    LIGHT_GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    Drawn,
    End,
    Style,
    axes_of,
    banner,
    caption_of,
    figure_of,
    finish,
    grid_of,
    literal,
    name_axes,
    number_axis,
    panel_axes,
    plain_axes,
    ramp,
    readable,
    set_axes,
    styles,
)
from jaxbandit.results.axes import only_one, whole
from jaxbandit.results.dataset import instance_of
from jaxbandit.stats.decisions import Comparison, Profiles
from jaxbandit.stats.intervals import Band, band, method_of_all
from jaxbandit.stats.replication import (
    CurveName,
    Place,
    band_of_regrets,
    curve_names,
    families,
    final_runs,
    parameter_names,
    parameter_values,
    place_of,
    replicate_kind,
    replicates,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

LABELS = ("direct", "legend", "none")
Y_SCALES = {"linear": "linear", "loglog": "log", "symlog": "symlog"}
"""What the y axis is with a ``scale``; the x axis is logarithmic with "loglog", else linear."""
SHORTEST_RAMP = 3
"""From so many values of its parameters on, a learner's curves are tones of one colour."""
DASHES: tuple[Any, ...] = ((0, (1, 1.5)), (0, (3, 1.5)), (0, (6, 2)), (0, (3, 1, 1, 1)))
"""Of bounds and slope guides."""
FLAT = 0.15
"""Curves that end below this share of the y axis are shown again in an inset."""
MANY_ENTRIES = 5
"""From so many entries on, a legend inside the axes has two columns."""
MOST_TICKS = 7
"""Up to so many values of a parameter each get a tick."""
SPREAD = 0.28
"""Half the height of the strip in which a learner's dots lie; rows are 1 apart."""
LONGEST_LINE = 36
"""Letters of a row's name; a longer line would leave no room for the axes."""
RUN = ("learner", "instance", "parameter", "seed", "episode")
"""The dimensions that every metric has; further ones are its own."""
Bounds = Mapping[str, Callable[[np.ndarray], Any] | Any]


class Look(NamedTuple):
    """What to draw in a panel, as `plot_regret` and `plot_panels` take it."""

    learners: Sequence[str] | None
    kind: str
    level: float | None
    scale: str
    inset: bool
    bound: str | None
    bounds: Bounds | None
    slope_guides: Sequence[float] | None
    phases: bool
    parameters: Sequence[int] | None
    key: Any
    colors: Mapping[str, str] | None
    names: Mapping[str, str] | None


class Panel(NamedTuple):
    """What was drawn."""

    bands: dict[str, Band]
    ends: list[End]
    """Line ends, for labels."""
    notes: list[str]
    """What marks mean, and which lines lie outside the axes."""
    flat: dict[str, Style]
    """Curves that an inset shows again."""
    limits: tuple[float, float]
    """Of the y axis, as `number_axis` takes them."""


def plot_regret(
    ds: Dataset,
    learners: Sequence[str] | None = None,
    instance: str | Sequence[str] | None = None,
    family: str | None = None,
    *,
    kind: str = "t",
    level: float | None = None,
    scale: str = "linear",
    inset: bool = False,
    bound: str | None = None,
    bounds: Bounds | None = None,
    slope_guides: Sequence[float] | None = None,
    phases: bool = True,
    parameters: Sequence[int] | None = None,
    key: Any = 0,
    colors: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    labels: str = "direct",
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] | None = None,
    columns: int | None = None,
    ax: Axes | None = None,
) -> Drawn:
    """Cumulative regret of several learners with bands, in one panel.

    Args:
        ds: the Dataset of a sweep or a part of it, such as ``ds.sel(learner="UCB-VI")``. If it has
            several families and none is chosen, `plot_panels` draws them all.
        learners: names, default all.
        instance: one instance (its seeds are the replicates) or the name of a family; several of
            them are drawn by `plot_panels`.
        family: a family (with several instances, these are the replicates).
        kind: "t", "skewed", "bootstrap", "simultaneous" or "quantile"; see `jaxbandit.stats.intervals`.
        level: default 0.95, and 0.8 for "quantile".
        scale: "linear", "loglog", or "symlog" (the y axis is linear near 0 and logarithmic above).
        inset: show curves that lie close to 0 once more, enlarged, where the panel is empty.
        bound: "lai-robbins", the asymptotic lower bound C ln T of K-armed bandits (`jaxbandit.theory.lai_robbins`; the mean of C
            over the instances of a family), drawn in grey.
        bounds: label -> function of the episodes, or array over ``ds.episode``; drawn in grey.
        slope_guides: exponents such as (0.5, 1), only with "loglog".
        phases: circles on the curves where phases of ExpRef end (median over runs).
        parameters: indices along the parameter grid, default all.
        key: seeds bootstrap bands.
        colors: learner or label -> colour, in place of the usual ones.
        names: learner or label -> what is written instead.
        labels: "direct" (at the line ends), "legend" (above a new figure, else inside the axes) or "none".
        title: default the name of the instance or family.
        subtitle: whether the figure says what bands and marks mean; ``.caption`` always does.
        size: width and height of a new figure in inches, default 4.6 x 3.1 (and what a legend above it needs).
        columns: panels in a row, if there are several.
        ax: axes to draw into instead; make their figure with ``layout="constrained"`` so that the
            title fits.

    Returns:
        `Drawn` with ``data``: label -> `Band` over ``ds.episode``.

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.linspace(0.9, 1.1, 4)[:, None] * np.sqrt(np.arange(1, 101))
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs[None, None])},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I1"], "episode": np.arange(1, 101)})
        >>> plot_regret(ds, subtitle=False).caption
        'mean and 95 % t-interval (few runs: covers less if skewed), 4 seeds'
    """
    accept("labels", labels, LABELS)
    look = Look(
        learners=learners, kind=kind, level=level, scale=scale, inset=inset, bound=bound, bounds=bounds,
        slope_guides=slope_guides, phases=phases, parameters=parameters, key=key, colors=colors, names=names,
    )  # fmt: skip
    ds = whole(ds)
    several = list(instance) if isinstance(instance, list | tuple) else None
    if several is not None and len(several) == 1:
        instance, several = several[0], None
    if instance is None and family is None and ax is None and len(families(ds)) > 1:
        several = list(families(ds))
    if several is not None:
        if family is not None or ax is not None:
            raise ValueError(
                f"instance: {several} with family or ax; accepted: one name, or neither of the two"
            )
        about: dict[str, Any] = {"title": title, "subtitle": subtitle, "size": size}
        return plot_panels(ds, several, columns=columns, **about, **look._asdict())
    place = place_of(ds, instance, family, either=True)  # type: ignore[arg-type]
    over = labels == "legend" and ax is None
    ax = axes_of(ax, size or (4.6, 3.1))
    panel = draw_panel(ax, ds, place, look)
    notes = [caption(ds, panel.bands, place.name), *panel.notes]
    name_axes(ax, "episode", regret_text(ds))
    ends = panel.ends if labels == "direct" else []
    shown, noted = "" if over else title, subtitle and not over
    drawn = finish(ax, panel.bands, notes, place.name, shown, noted, ends)
    if over:
        head = literal(place.name) if title is None else title
        banner(drawn.figure, ax, head, drawn.caption if subtitle else "", grow=not size)
    elif labels == "legend":
        columns = 1 if len(panel.ends) < MANY_ENTRIES else 2
        ax.legend(fontsize=TICK_SIZE, ncols=columns, **LEGEND)
    _draw_inset(ax, ds, panel)
    return drawn


def plot_panels(
    ds: Dataset,
    panels: Sequence[str] | None = None,
    *,
    learners: Sequence[str] | None = None,
    kind: str = "t",
    level: float | None = None,
    scale: str = "linear",
    inset: bool = False,
    bound: str | None = None,
    bounds: Bounds | None = None,
    slope_guides: Sequence[float] | None = None,
    phases: bool = True,
    parameters: Sequence[int] | None = None,
    key: Any = 0,
    colors: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    columns: int | None = None,
    share_y: bool = False,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] | None = None,
    panel_size: tuple[float, float] = (2.7, 1.9),
    ax: Sequence[Axes] | None = None,
) -> Drawn:
    """Cumulative regret, one panel per family, with one legend for all.

    Args:
        ds: the Dataset of a sweep or a part of it.
        panels: families or instances, chosen and in this order; default all families.
        columns: panels in a row; by default three, and two for four panels.
        share_y: whether all panels have the same y axis.
        title: above the legend.
        size: width and height of the figure in inches; default what the panels need.
        panel_size: width and height of a panel in inches.
        ax: a sequence of axes to draw into instead, one per panel.
        learners, kind, level, scale, inset, bound, bounds, slope_guides, phases, parameters, key, colors, names, subtitle: as
            in `plot_regret`.

    Returns:
        `Drawn` with ``data``: family -> label -> `Band`, and the list of axes.

    Example:
        >>> import numpy as np, xarray as xr
        >>> regret = np.ones((1, 2, 4, 1)) * np.arange(1.0, 11.0)
        >>> names = {"learner": ["ExpRef"], "instance": ["I1", "I2"], "episode": np.arange(1, 11)}
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), regret)}, coords=names)
        >>> {family: list(bands) for family, bands in plot_panels(ds).data.items()}
        {'I1': ['ExpRef'], 'I2': ['ExpRef']}
    """
    look = Look(
        learners=learners, kind=kind, level=level, scale=scale, inset=inset, bound=bound, bounds=bounds,
        slope_guides=slope_guides, phases=phases, parameters=parameters, key=key, colors=colors, names=names,
    )  # fmt: skip
    ds = whole(ds)
    groups = list(families(ds))
    known = list(dict.fromkeys([*groups, *map(str, ds["instance"].values)]))
    chosen = some("panels", groups if panels is None else panels, known)
    number = len(chosen)
    rows, across = grid_of(number, (2 if number == 4 else 3) if columns is None else columns)
    wide, tall = LEAST_PANEL[0] * across, LEAST_PANEL[1] * rows
    if ax is None and size and number > 1 and (size[0] < wide or size[1] < tall):
        raise ValueError(
            f"size: {size[0]:g} x {size[1]:g} inches for {number} panels in {rows} x {across}; accepted: at least "
            f"{wide:.1f} x {tall:.1f}, other columns, or fewer panels (instances)"
        )
    given = None if ax is None else list(ax)[:number]
    new = size or (panel_size[0] * across, panel_size[1] * rows)
    axes = panel_axes(given, number, (rows, across), new)
    drawn = {
        name: draw_panel(a, ds, place_of(ds, name, None, either=True), look)
        for a, name in zip(axes, chosen, strict=True)
    }
    if share_y:
        lows, highs = zip(*(panel.limits for panel in drawn.values()), strict=True)
        for a in axes:
            number_axis(a, "y", min(lows), max(highs), Y_SCALES[scale])
    counts = {name: count(ds, panel.bands, name) for name, panel in drawn.items()}
    same = len(set(counts.values())) == 1
    for a, name in zip(axes, chosen, strict=True):
        a.set_title(literal(name), loc="left", fontsize=TEXT_SIZE, pad=4)
        if subtitle and not same:
            a.set_title(counts[name], loc="right", fontsize=NOTE_SIZE, color=GREY, pad=4)
    method = method_of_all(b for panel in drawn.values() for b in panel.bands.values())
    notes = dict.fromkeys(note for panel in drawn.values() for note in panel.notes)
    short = caption_of([f"{method}, {counts[chosen[0]]}" if same else method, *notes])
    each = "; ".join(
        f"{of}: {', '.join(name for name in chosen if counts[name] == of)}"
        for of in dict.fromkeys(counts.values())
    )
    entries: dict[str, Any] = {}
    for a in axes:
        handles, words = a.get_legend_handles_labels()
        entries |= dict(zip(words, handles, strict=True))
    figure = figure_of(axes[0])
    head, note = title or "", short if subtitle else ""
    if ax is None:
        figure.supxlabel("episode", fontsize=TEXT_SIZE)
        figure.supylabel(regret_text(ds), fontsize=TEXT_SIZE)
        banner(figure, list(entries.values()), head, note, grow=size is None, size=TEXT_SIZE)
        figure.draw_without_rendering()
    else:
        legend = axes[0].legend(
            entries.values(), entries, fontsize=TEXT_SIZE, **LEGEND,
            title="\n".join(filter(None, (readable("title", head), note))),
        )  # fmt: skip
        legend.get_title().set(fontsize=NOTE_SIZE, color=GREY, multialignment="center")
        for a in axes:
            name_axes(a, "episode", regret_text(ds))
    for a, panel in zip(axes, drawn.values(), strict=True):
        _draw_inset(a, ds, panel)
    data = {name: panel.bands for name, panel in drawn.items()}
    return Drawn(figure, axes, data, short if same else f"{short}; {each}")


def regret_text(ds: Dataset, after: str = "") -> str:
    """What stands beside the y axis, with the unit if regret has one (`jaxbandit.in_units`)."""
    units = ds["regret"].attrs.get("units", "reward")
    return f"cumulative regret{after}" + (
        "" if units in ("reward", "1", "") else f" ({literal(units)})"
    )


def final_text(ds: Dataset) -> str:
    """The same of the last episode."""
    return regret_text(ds, f" after {int(ds['episode'].values[-1]):,} episodes")


def draw_panel(ax: Axes, ds: Dataset, place: Place, look: Look) -> Panel:
    """Draws the curves of an instance or a family into ``ax`` and sets scales, limits and ticks."""
    accept("scale", look.scale, Y_SCALES)
    log, linear = look.scale == "loglog", look.scale == "linear"
    if look.slope_guides and not log:
        raise ValueError(
            f"slope_guides: {look.slope_guides} with scale {look.scale!r}; accepted: with scale 'loglog'"
        )
    names = curve_names(ds, look.learners, look.parameters)
    style, shown_as = looks_of(names, curve_names(ds), look.colors, look.names)
    episodes = np.asarray(ds["episode"].values, np.float64)
    bands = bands_of(ds, place, names, look.kind, look.level, look.key)
    if not bands:
        raise ValueError(
            f"ds: no runs of {', '.join(n.label for n in names)} here; accepted: at least one curve"
        )
    low, high = _limits(bands.values(), look.scale)
    ends = draw_bands(ax, episodes, bands, style, shown_as, low if log else None)
    overlays = _overlay_curves(ds, place, episodes, bands.values(), look)
    above = [label for label, y in overlays.items() if linear and _last(y) > 1.5 * high]
    shown = {label: y for label, y in overlays.items() if label not in above}
    if shown:
        high = max(high, *(1.05 * np.nanmax(y) for y in shown.values()))
        low = min([low, *(np.nanmin(y[y > 0]) for y in shown.values())]) if log else low
    for (label, y), dash in zip(shown.items(), itertools.cycle(DASHES), strict=False):
        seen = np.where(y > 0, y, np.nan) if log else y
        ax.plot(episodes, seen, color=GREY, lw=0.8, ls=dash, zorder=1.5, label=label)
        ends.append(End(label, episodes[-1], _last(y), GREY))
    _episode_axes(ax, episodes, (low, high, Y_SCALES[look.scale]))
    marked = False
    for curve in names if look.phases and "phase_end" in ds else ():
        if curve.label in bands:
            at = _phase_ends(ds, place, curve)
            at = at[(at >= episodes[0]) & (at < episodes[-1])]
            height, color = (
                np.interp(at, episodes, bands[curve.label].center),
                style[curve.label].color,
            )
            ax.scatter(at, height, 9, "white", edgecolors=color, zorder=4, lw=0.9)
            marked |= bool(at.size)
    flat = [label for label, b in bands.items() if linear and _last(b.center) < FLAT * high]
    flat = flat if look.inset and len(flat) < len(bands) else []
    notes = ["circles: phase ends (median)"] if marked else []
    notes += [f"above the axes: {', '.join(above)}"] if above else []
    notes += [f"inset: {', '.join(shown_as[label] for label in flat)}"] if flat else []
    inset = {label: style[label] for label in flat}
    return Panel(bands=bands, ends=ends, notes=notes, flat=inset, limits=(low, high))


def _episode_axes(ax: Axes, episodes: np.ndarray, y: tuple[float, float, str]) -> None:
    """The x axis begins at 0, unless the y axis (low, high, scale) is logarithmic: then both are."""
    log = y[2] == "log"
    set_axes(ax, (float(episodes[0]) if log else 0.0, float(episodes[-1]), log), y)


def bands_of(
    ds: Dataset,
    place: Place,
    curves: Sequence[CurveName],
    kind: str,
    level: float | None,
    key: Any,
    variable: str = "regret",
) -> dict[str, Band]:
    """The bands of those curves that have runs here, by label."""
    of = replicate_kind(ds, place.instance, place.family)
    make = band_of_regrets if variable == "regret" else band
    found = {}
    for label, learner, parameter in curves:
        runs = replicates(ds, learner, place.instance, place.family, parameter, variable)
        if not np.isnan(runs).all():
            found[label] = make(runs, kind, level, key=key, replicates=of)
    return found


def curve_styles(
    curves: Sequence[CurveName], colors: Mapping[str, str] | None = None
) -> dict[str, Style]:
    """A style for every curve that is drawn: a learner's own, or a ramp of its colour over many
    parameter values. ``colors`` are by label or by learner, and replace those that would be chosen.
    """
    given = colors or {}
    chosen = styles([curve.label for curve in curves])
    for learner, style in styles(list(dict.fromkeys(curve.learner for curve in curves))).items():
        own = [curve.label for curve in curves if curve.learner == learner]
        ramped = len(own) >= SHORTEST_RAMP
        if ramped or learner in given:
            tones = ramp(given.get(learner, style.color), len(own))
            for label, tone in zip(own, tones, strict=True):
                chosen[label] = Style(tone, "-" if ramped else chosen[label].line)
    return {
        label: style._replace(color=given.get(label, style.color))
        for label, style in chosen.items()
    }


def looks_of(
    curves: Sequence[CurveName],
    every: Sequence[CurveName],
    colors: Mapping[str, str] | None,
    names: Mapping[str, str] | None,
) -> tuple[dict[str, Style], dict[str, str]]:
    """Styles and names of curves, by label; ``colors`` and ``names`` are by label or learner of one of ``every`` curve."""
    known = list(dict.fromkeys([*(c.learner for c in every), *(c.label for c in every)]))
    for argument, given in (("colors", colors), ("names", names)):
        for name in given or {}:
            accept(argument, name, known)
    written = names or {}
    shown = {}
    for label, learner, _ in curves:
        of_learner = written.get(learner, learner) + label.removeprefix(learner)
        shown[label] = written.get(label, of_learner)
    return curve_styles(curves, colors), shown


def caption(ds: Dataset, bands: Mapping[str, Band], name: str) -> str:
    """Kind of band and number of replicates, as printed on the figure."""
    return f"{method_of_all(bands.values())}, {count(ds, bands, name)}"


def count(ds: Dataset, bands: Mapping[str, Band], name: str) -> str:
    """Number of replicates ("32 seeds", "8 instances x 4 seeds") of an instance or a family."""
    kind = next(iter(bands.values())).replicates
    counts = sorted({b.n for b in bands.values()})
    number = "-".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
    text = f"{number} {kind if number != '1' else kind.removesuffix('s')}"
    members = families(ds).get(name, [])
    if kind != "instances" or len(members) < 2:
        return text
    # sweeps that were joined may differ in their seeds
    runs = ds["regret"].sel(instance=members).notnull()
    seeds = int(runs.any([dim for dim in runs.dims if dim != "seed"]).sum())
    return f"{text} x {seeds} seed{'s' if seeds > 1 else ''}"


def _last(values: np.ndarray) -> float:
    """The last finite value, or nan."""
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if finite.size else np.nan


def _limits(bands: Iterable[Band], scale: str) -> tuple[float, float]:
    centers = np.array([b.center for b in bands])
    top = max(float(np.nanmax(np.fmax(b.high, b.center))) for b in bands)
    positive = centers[centers > 0]
    if scale == "linear":
        return 0.0, 1.05 * top if top > 0 else 1.0
    if not positive.size:
        raise ValueError(
            f"scale: {scale!r} with no positive regret; accepted: 'linear' for these curves"
        )
    if scale == "symlog":  # the smallest curve ends in the logarithmic part
        ends = [last for last in map(_last, centers) if last > 0]
        return 10.0 ** np.floor(np.log10(min(ends, default=top) / 2)), 1.3 * top
    return 0.7 * float(positive.min()), 1.3 * top


def draw_band(
    ax: Axes, x: np.ndarray, b: Band, label: str, style: Style, floor: float | None = None
) -> None:
    """A line with its band; on a logarithmic axis that begins at ``floor``, what is not positive is
    left out and bands are cut there."""
    center, low = b.center, np.where(np.isfinite(b.low), b.low, b.center)
    high = np.where(np.isfinite(b.high), b.high, b.center)
    if floor is not None:
        center, low = np.where(center > 0, center, np.nan), np.where(low > 0, low, floor / 10)
    if np.isfinite(b.low).any():
        ax.fill_between(x, low, high, color=style.color, alpha=0.18, lw=0, zorder=2)
    ax.plot(x, center, color=style.color, ls=style.line, lw=1.4, label=label, zorder=3)


def draw_bands(
    ax: Axes,
    x: np.ndarray,
    bands: Mapping[str, Band],
    style: Mapping[str, Style],
    names: Mapping[str, str] | None = None,
    floor: float | None = None,
) -> list[End]:
    """Draws every band, under its label or what ``names`` have instead, and returns the line ends."""
    ends = []
    for label, b in bands.items():
        shown = literal((names or {}).get(label, label))
        draw_band(ax, x, b, shown, style[label], floor)
        ends.append(End(shown, float(x[-1]), _last(b.center), style[label].color))
    return ends


def _overlay_curves(
    ds: Dataset, place: Place, episodes: np.ndarray, bands: Any, look: Look
) -> dict[str, np.ndarray]:
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
    if look.bound is not None:
        accept("bound", look.bound, ["lai-robbins"])
        curves["Lai-Robbins (asymptotic)"] = lai_robbins_constant(ds, place) * np.log(episodes)
    return curves


def lai_robbins_constant(ds: Dataset, place: Place) -> float:
    """C of the K-armed bandits that a panel shows, their mean; in the units of the regret."""
    found = np.array([lai_robbins_of(instance_of(ds, name)) for name in place.members])
    if np.isnan(found).any():
        raise ValueError(
            f"bound: 'lai-robbins' on {place.members[0]}; accepted: K-armed bandits (H = k = 1)"
        )
    if "regret_scale" in ds:
        found *= ds["regret_scale"].sel(instance=place.members).values
    return float(np.mean(found))


def _phase_ends(ds: Dataset, place: Place, name: CurveName) -> np.ndarray:
    """The episodes at which the median run ended its phases; an unfinished phase counts as later."""
    ended = ds["phase_end"].sel(learner=name.learner, instance=place.members)
    ended = ended.isel(parameter=name.parameter) if "parameter" in ended.dims else ended
    runs = ended.transpose(..., "phase").values.reshape(-1, ended.sizes["phase"])
    runs = runs[~np.isnan(runs).all(axis=1)]
    if not runs.size:
        return np.zeros(0)
    middle = np.median(np.where(np.isnan(runs), np.inf, runs), axis=0)
    return middle[np.isfinite(middle)]


def _draw_inset(ax: Axes, ds: Dataset, panel: Panel) -> None:
    """The flat curves once more, enlarged, where the fewest points of other curves are."""
    if not panel.flat:
        return
    episodes = np.asarray(ds["episode"].values, np.float64)
    sides = np.array([b[:3] for b in panel.bands.values()])  # [curves, 3, points]
    points = np.stack(np.broadcast_arrays(episodes, sides), axis=-1).reshape(-1, 2)
    share = ax.transData - ax.transAxes  # of the width and the height of the axes
    points = share.transform(points[np.isfinite(points).all(axis=1)])
    right = float(share.transform((episodes[-1], 0))[0])
    wide, tall = 0.36 * right, 0.27
    margin = np.array([0.13, 0.11])  # for the numbers on its axes

    def crowd(corner: tuple[float, float]) -> tuple[int, float]:
        end = (corner[0] + wide + 0.06, corner[1] + tall + 0.02)
        inside = (points > corner - margin) & (points < end)
        return int(inside.all(axis=1).sum()), -corner[1]

    across, up = np.linspace(0.16, right - wide - 0.01, 8), np.linspace(0.17, 0.97 - tall, 9)
    corner = min(itertools.product(across.tolist(), up.tolist()), key=crowd)
    small = ax.inset_axes((*corner, wide, tall))
    flat = {label: panel.bands[label] for label in panel.flat}
    draw_bands(small, episodes, flat, panel.flat)
    top = max(float(np.nanmax(np.fmax(b.high, b.center))) for b in flat.values())
    _episode_axes(small, episodes, (0.0, 1.08 * top or 1.0, "linear"))
    small.tick_params(labelsize=NOTE_SIZE - 1, pad=1.5)
    small.set_xticks([0.0, float(episodes[-1])])
    ticks = small.get_yticks()
    small.set_yticks(ticks[:: max(1, len(ticks) // 3)])
    small.patch.set_alpha(0.85)


def plot_metric(
    ds: Dataset,
    name: str | None = None,
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
    subtitle: bool = True,
    size: tuple[float, float] = (4.6, 3.1),
    key: Any = 0,
    ax: Axes | None = None,
) -> Drawn:
    """A metric of several learners over the episodes, with bands; learners without it are left out.

    Args:
        ds: the Dataset of a sweep with ``metrics``.
        name: of the metric; not needed if there is one.
        at: where to read a metric that has axes of its own, such as {"stage": 1, "level": 2}; axes
            that it does not name are averaged over (what is nan there is left out).
        scale: "linear", or "log" for both axes.
        learners, instance, family, kind, level, parameters, title, subtitle, size, key, ax: as in
            `plot_regret`; one family is drawn.

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
    known = metric_names(ds)
    name = only_one("name", name, known, "a sweep with metrics")
    accept("scale", scale, ("linear", "log"))
    place = place_of(ds, instance, family, either=True)
    flat = ds.assign({name: _along_episodes(ds, name, at or {})})
    chosen = curve_names(ds, learners, parameters)
    bands = bands_of(flat, place, chosen, kind, level, key, name)
    if not bands:
        raise ValueError(f"name: {name!r} is nan for these learners; accepted: one that they have")
    ax = axes_of(ax, size)
    episodes = np.asarray(ds["episode"].values, np.float64)
    log = scale == "log"
    sides = np.concatenate([side for b in bands.values() for side in b[:3]])
    centers = np.concatenate([b.center for b in bands.values()])
    bottom = float(np.nanmin(np.where(centers > 0, centers, np.nan) if log else sides))
    top = float(np.nanmax(sides))
    if log and not bottom > 0:
        raise ValueError("scale: 'log' with no positive value; accepted: 'linear'")
    style = curve_styles([one for one in chosen if one.label in bands])
    ends = draw_bands(ax, episodes, bands, style, floor=0.7 * bottom if log else None)
    room = 0.05 * (top - bottom or abs(top) or 1.0)
    low = 0.7 * bottom if log else bottom - room if bottom < 0 else 0.0
    _episode_axes(ax, episodes, (low, 1.3 * top if log else top + room, scale))
    where = ", ".join(f"{dim} {value}" for dim, value in (at or {}).items())
    name_axes(ax, "episode", literal(f"{name} at {where}" if where else name))
    notes = [caption(ds, bands, place.name)]
    return finish(ax, bands, notes, place.name, title, subtitle, ends)


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
    curves = curve_names(ds, learners, parameters)
    bands = bands_of(ds.isel(episode=[-1]), place, curves, kind, level, key)
    curves = [curve for curve in curves if curve.label in bands]
    if not curves:
        raise ValueError("ds: no runs here; accepted: at least one run of some learner")
    ax = axes_of(ax, (4.6, 1.1 + 0.34 * len(curves)) if size is None else size)
    style, data = curve_styles(curves), {}
    for row, curve in enumerate(curves):
        b, color = bands[curve.label], style[curve.label].color
        runs = final_runs(ds, [curve], place.members)[..., 0]
        data[curve.label] = (runs[np.isfinite(runs)], b)
        heights = row + np.linspace(-SPREAD, SPREAD, runs.size).reshape(runs.shape)
        ax.plot(runs.ravel(), heights.ravel(), "o", ms=2.2, mew=0, color=color, alpha=0.45)
        ax.plot([b.center[0]] * 2, [row - 0.36, row + 0.36], color=color, lw=1.6)
        if np.isfinite(b.low[0]):
            ax.plot([b.low[0], b.high[0]], [row, row], color=color, lw=1.6)
    _name_rows(ax, list(data))
    every = np.concatenate([runs for runs, _ in data.values()])
    top = max(every.max(), np.nanmax([b.high[0] for b in bands.values()] + [0.0]))
    log = x_scale == "log"
    if log and not every.min() > 0:
        raise ValueError("x_scale: 'log' with regret 0; accepted: 'linear'")
    number_axis(ax, "x", 0.8 * every.min() if log else 0.0, 1.05 * top if top > 0 else 1.0, log)
    notes = [caption(ds, bands, place.name), "a dot is a run"]
    name_axes(ax, final_text(ds), "")
    return finish(ax, data, notes, place.name, title, subtitle)


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
    curves = [CurveName(label, label, None) for label in lines]
    style, shown_as = looks_of(curves, curves, colors, names)
    ax = axes_of(ax, size)
    ends = _draw_lines(ax, lines, y_scale == "log", style, shown_as)
    notes = [caption(ds, {label: b for label, (_, b) in lines.items()}, place.name)]
    name_axes(ax, literal(parameter), final_text(ds))
    return finish(ax, lines, notes, place.name, title, subtitle, ends)


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
    style: Mapping[str, Style],
    shown_as: Mapping[str, str],
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
    for line, (x, b) in lines.items():
        (color, dash), label, end = style[line], literal(shown_as[line]), float(x[-1])
        if np.isnan(x).all():  # a level line: the learner does not have the parameter
            ends_of = {name: getattr(b, name)[[0, 0]] for name in ("center", "low", "high")}
            level, end = b._replace(**ends_of), last
            draw_band(ax, np.array([first, last]), level, label, style[line])
        else:
            half = np.nan_to_num(np.abs([b.center - b.low, b.high - b.center]))
            ax.errorbar(
                x, b.center, half, color=color, ls=dash, lw=1.4, marker="o", ms=3,
                elinewidth=0.9, capsize=2, label=label,
            )  # fmt: skip
        ends.append(End(label, end, float(b.center[-1]), color))
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
    name_axes(ax, "difference of regret", "")
    return finish(ax, data, notes, "All pairs", title, subtitle)


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
    ax.legend(fontsize=TICK_SIZE, loc="best", **LEGEND)
    one = next(iter(profiles.share.values()))
    note = (
        f"{profiles.num_instances} instances x {profiles.num_seeds} seeds; "
        f"{100 * one.level:g} % score intervals, stratified by instance"
    ) + ("; few seeds: cover less if skewed" if one.warning else "")
    x = "ratio to the regret of the instance's best learner"
    name_axes(ax, x, "share of runs at or below")
    return finish(ax, dict(profiles.share), [note], "Performance profiles", title, subtitle)
