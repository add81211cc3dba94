"""Panels of states: one cell per level and stage, with its number, and one colour bar for all
panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.plotting.figures import (
    GREY,
    NOTE_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    figure_of,
    literal,
    new_figure,
)
from jaxbandit.plotting.look import readable
from jaxbandit.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

DIFFERENT = "#CC2200"
SMALLEST_TEXT = 4.0
"""Points, in a cell."""


def crop(values: np.ndarray) -> np.ndarray:
    """Without the stages and levels that are nan throughout: padding of smaller instances."""
    values = np.asarray(values, np.float64)
    known = np.isfinite(values)
    stages, levels = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    return values[: stages[-1] + 1, : levels[-1] + 1] if stages.size else values


def upright(values: Array) -> np.ndarray:
    """[H, k+1] -> [levels 1..k, stages]."""
    return np.asarray(values, np.float64)[:, 1:].T


def state_axes(ax: Any, number: int, columns: int, stages: int, levels: int) -> list[Axes]:
    """The given axes, or those of a new figure with room for cells of stages x levels."""
    if ax is not None:
        given = list(ax) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
        if len(given) != number:
            raise ValueError(f"ax: {len(given)} axes; accepted: {number}, one per panel")
        return given
    if columns < 1:
        raise ValueError(f"columns: {columns}; accepted: an integer >= 1")
    across = min(columns, number)
    rows = -(-number // across)
    cell = min(0.32, 3.4 / stages)
    size = (
        across * (max(cell * stages, 1.75) + 0.35) + 0.9,
        rows * (max(cell, 0.19) * levels + 0.42) + 0.65,
    )
    axes = new_figure((max(size[0], 3.3), max(size[1], 1.7)), rows, across)[1]
    for spare in axes[number:]:
        spare.remove()
    return axes[:number]


def draw_cells(
    ax: Axes,
    values: np.ndarray,
    low: float,
    high: float,
    form: str,
    grey: np.ndarray | None = None,
    words: np.ndarray | None = None,
) -> AxesImage:
    """Coloured cells with their numbers, or ``words``; nan cells are blank, ``grey`` ones grey."""
    levels, stages = values.shape
    frame = (0.5, stages + 0.5, 0.5, levels + 0.5)
    image = ax.imshow(
        values, cmap="viridis", vmin=low, vmax=high, origin="lower", aspect="auto", extent=frame
    )
    if grey is not None and grey.any():
        ax.imshow(
            np.where(grey, 0.5, np.nan),
            cmap="Greys",
            vmin=0,
            vmax=1.6,
            origin="lower",
            aspect="auto",
            extent=frame,
        )
    wide = 72 * figure_of(ax).get_figwidth() * ax.get_position().width / stages
    for level, stage in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = values[level, stage]
        dark = (value - low) / (high - low) < 0.55
        shown = form.format(value + 0.0) if words is None else literal(words[level, stage])
        ax.text(
            stage + 1, level + 1, shown, ha="center", va="center", color="white" if dark else "black",
            # a digit is about 0.6 of its size wide
            fontsize=float(np.clip(1.4 * wide / max(1, len(shown)), SMALLEST_TEXT, TICK_SIZE)),
        )  # fmt: skip
    step = max(1, round(stages / 8))
    ax.set_xticks(range(1, stages + 1, step))
    ax.set_yticks(range(1, levels + 1, max(1, levels // 6)))
    ax.tick_params(labelsize=TICK_SIZE, length=2, width=0.5, color=GREY)
    ax.spines[:].set_linewidth(0.5)
    return image


def frame_cells(ax: Axes, different: np.ndarray) -> None:
    """A frame around each True cell."""
    from matplotlib.patches import Rectangle

    for level, stage in zip(*np.nonzero(different), strict=True):
        ax.add_patch(
            Rectangle(
                (stage + 0.56, level + 0.56),
                0.88,
                0.88,
                fill=False,
                edgecolor=DIFFERENT,
                linewidth=1.2,
            )
        )


def finish(
    axes: list[Axes],
    image: AxesImage | None,
    meaning: str,
    title: str | None,
    own: bool,
    names: Sequence[str] = (),
    level: str = "level",
) -> None:
    """Axis names, one colour bar for all panels (whole numbers, or ``names`` of 0, 1, ...), and the
    heading of an own figure."""
    for j, a in enumerate(axes):
        place = a.get_subplotspec() if own else None
        across = place.get_gridspec().ncols if place is not None else 1
        if place is None or j + across >= len(axes):  # no panel below
            a.set_xlabel("stage", fontsize=TICK_SIZE, labelpad=1)
        else:
            a.tick_params(labelbottom=False)
        if place is None or j % across == 0:
            a.set_ylabel(literal(level), fontsize=TICK_SIZE, labelpad=1)
        else:
            a.tick_params(labelleft=False)
    figure = axes[0].figure
    if own and image is not None:
        bar = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.04, aspect=18)
        bar.set_label(meaning, fontsize=NOTE_SIZE)
        bar.ax.tick_params(labelsize=NOTE_SIZE, length=2, width=0.5)
        bar.outline.set_linewidth(0.5)
        if names:
            bar.set_ticks(range(len(names)), labels=list(map(literal, names)))
        else:
            bar.locator = _whole_numbers()
            bar.update_ticks()
    if own and title is not None:
        figure.suptitle(readable("title", title), fontsize=TITLE_SIZE, x=0.01, ha="left")


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, integer=True)
