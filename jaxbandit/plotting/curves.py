"""Regret figures: one panel, a grid of panels, and regret against a parameter.

Every function draws into the axes it is given or makes a figure, needs no display, and returns a
`Drawn` with the figure, the axes and the bands that were drawn. `jaxbandit.stats.replication` says
what the replicates are; the figure names them, their number and the kind of band.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from jaxbandit.checks import accept
from jaxbandit.options import known, spelled_out
from jaxbandit.plotting.figures import (
    GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    Drawn,
    figure_of,
    heading,
    label_ends,
    literal,
    new_figure,
    number_axis,
)
from jaxbandit.plotting.files import FORMATS, save_figure
from jaxbandit.plotting.look import USUAL, LookOptions, PanelLook, readable
from jaxbandit.plotting.panel import caption, count, draw_panel, shown_names
from jaxbandit.plotting.parameter import plot_parameter
from jaxbandit.result_axes import whole
from jaxbandit.stats.intervals import method_of_all
from jaxbandit.stats.replication import curve_names, families, one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

__all__ = ["FORMATS", "Drawn", "plot_panels", "plot_parameter", "plot_regret", "save_figure"]

CAPTION_SIZE = 7.0
LABELS = ("direct", "legend", "none")


@spelled_out(LookOptions, **USUAL)
def plot_regret(
    ds: Dataset,
    learners: Sequence[str] | None = None,
    instance: str | None = None,
    family: str | None = None,
    *,
    labels: str = "direct",
    title: str | None = None,
    size: tuple[float, float] = (4.6, 3.1),
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Drawn:
    """Cumulative regret of several learners with bands, in one panel.

    Args:
        ds: the Dataset of a sweep or a part of it, such as ``ds.sel(learner="UCB-VI")``. If it has
            several families and none is chosen, `plot_panels` draws them all.
        learners: names, default all.
        instance: one instance (its seeds are the replicates) or the name of a family, or
        family: a family (with several instances, these are the replicates).
        labels: "direct" (at the line ends), "legend" or "none".
        title: default the name of the instance or family.
        size: width and height of a new figure in inches.
        ax: axes to draw into instead; make their figure with ``layout="constrained"`` so that the
        title fits.

    Returns:
        `Drawn` with ``data``: label -> `Band` over ``ds.episode``.

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.linspace(0.9, 1.1, 4)[:, None] * np.sqrt(np.arange(1, 101))
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs[None, None])},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I1"], "episode": np.arange(1, 101)})
        >>> plot_regret(ds).data["ExpRef"].describe()
        'mean and 95 % t-interval (few runs: covers less if skewed), 4 seeds'
    """
    accept("labels", labels, LABELS)
    known(plot_regret, look)
    ds = whole(ds)
    groups = families(ds)
    instance, family = one_of(groups, instance, family)
    if instance is None and family is None and len(groups) > 1 and ax is None:
        return plot_panels(ds, learners=learners, title=title, **look)
    ax = new_figure(size)[1][0] if ax is None else ax
    panel = draw_panel(ax, ds, instance, family, PanelLook(learners=learners, **look))
    ax.set_xlabel("episode", fontsize=TEXT_SIZE)
    ax.set_ylabel(regret_text(ds), fontsize=TEXT_SIZE)
    name = instance or family or next(iter(groups))
    heading(
        ax,
        literal(name) if title is None else title,
        [caption(ds, panel.bands, name), *panel.notes],
    )
    if labels == "direct":
        label_ends(ax, panel.ends)
    elif labels == "legend":
        ax.legend(fontsize=TICK_SIZE, frameon=False, handlelength=3)
    return Drawn(figure_of(ax), ax, panel.bands)


@spelled_out(LookOptions, **USUAL)
def plot_panels(
    ds: Dataset,
    panels: Sequence[str] | None = None,
    *,
    learners: Sequence[str] | None = None,
    columns: int | None = None,
    share_y: bool = False,
    title: str | None = None,
    panel_size: tuple[float, float] = (2.35, 1.7),
    ax: Sequence[Axes] | None = None,
    **look: Unpack[LookOptions],
) -> Drawn:
    """Cumulative regret, one panel per family, with one legend for all.

    Args:
        ds: the Dataset of a sweep or a part of it.
        panels: families, chosen and in this order; default all.
        learners: names, default all.
        columns: panels in a row; by default three, and two for four panels.
        share_y: whether all panels have the same y axis.
        title: above the legend.
        panel_size: width and height of a panel in inches.
        ax: a sequence of axes to draw into instead, one per panel.

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
    known(plot_panels, look)
    chosen_look = PanelLook(learners=learners, **look)
    ds = whole(ds)
    every_family = list(families(ds))
    chosen = every_family if panels is None else list(panels)
    for family in chosen:
        accept("panels", family, every_family)
    if columns is not None and columns < 1:
        raise ValueError(f"columns: {columns}; accepted: an integer >= 1")
    if ax is not None and len(ax) < len(chosen):
        raise ValueError(
            f"ax: {len(ax)} axes; accepted: a sequence of at least {len(chosen)}, one per panel"
        )
    across = min(columns or (2 if len(chosen) == 4 else 3), len(chosen))
    rows = -(-len(chosen) // across)
    shown = shown_names(curve_names(ds), chosen_look.names)
    labels = [shown[curve.label] for curve in curve_names(ds, learners, chosen_look.parameters)]
    width = panel_size[0] * across
    entries = max(
        1, min(len(labels), int(width / (0.55 + 0.068 * max(map(len, labels)))))
    )  # per legend row
    height = panel_size[1] * rows + 0.45 + 0.17 * -(-len(labels) // entries)
    every = new_figure((width, height), rows, across)[1] if ax is None else list(ax)
    for spare in every[len(chosen) :] if ax is None else ():
        spare.remove()
    axes = every[: len(chosen)]
    drawn = {
        family: draw_panel(a, ds, None, family, chosen_look)
        for a, family in zip(axes, chosen, strict=True)
    }
    if share_y:
        low, high = min(a.get_ylim()[0] for a in axes), max(a.get_ylim()[1] for a in axes)
        for a in axes:
            number_axis(a, "y", low, high, chosen_look.scale == "loglog")
    counts = [count(ds, panel.bands, family) for family, panel in drawn.items()]
    same = len(set(counts)) == 1
    for a, family, number in zip(axes, chosen, counts, strict=True):
        a.set_title(literal(family), loc="left", fontsize=TEXT_SIZE, pad=4)
        a.set_title("" if same else number, loc="right", fontsize=NOTE_SIZE, color=GREY, pad=4)
    method = method_of_all(b for panel in drawn.values() for b in panel.bands.values())
    notes = dict.fromkeys(note for panel in drawn.values() for note in panel.notes)
    text = "; ".join([f"{method}, {counts[0]}" if same else method, *notes])
    text = textwrap.fill(text, max(20, int(width * 72 / (0.56 * CAPTION_SIZE))))
    legend = f"{readable('title', title)}\n{text}" if title else text
    _shared_legend(axes, legend, entries if ax is None else None, regret_text(ds))
    return Drawn(figure_of(axes[0]), axes, {family: panel.bands for family, panel in drawn.items()})


def regret_text(ds: Dataset) -> str:
    """What stands beside the y axis, with the unit if regret has one (`jaxbandit.in_units`)."""
    units = ds["regret"].attrs.get("units", "reward")
    return (
        "cumulative regret"
        if units in ("reward", "1", "")
        else f"cumulative regret ({literal(units)})"
    )


def _shared_legend(axes: list[Axes], text: str, columns: int | None, meaning: str) -> None:
    """One legend with a caption, and axis names; in a caller's figure it goes into the first
    panel."""
    entries: dict[str, Any] = {}
    for a in axes:
        entries |= {
            name: handle for handle, name in zip(*a.get_legend_handles_labels(), strict=True)
        }
    looks: dict[str, Any] = {
        "fontsize": TEXT_SIZE,
        "frameon": False,
        "handlelength": 3,
        "title": text,
    }
    if columns is None:
        legend = axes[0].legend(entries.values(), entries, **looks)
        for a in axes:
            a.set_xlabel("episode", fontsize=TEXT_SIZE)
            a.set_ylabel(meaning, fontsize=TEXT_SIZE)
    else:
        figure = figure_of(axes[0])
        legend = figure.legend(
            entries.values(), entries, loc="outside upper center", ncols=columns, **looks
        )
        figure.supxlabel("episode", fontsize=TEXT_SIZE)
        figure.supylabel(meaning, fontsize=TEXT_SIZE)
    legend.get_title().set(fontsize=CAPTION_SIZE, color=GREY, multialignment="center")
