"""The figure of the `price-of-horizon` experiment: episodes to the target against H, k and A."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.plotting.figures import (
    GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    Drawn,
    banner,
    new_figure,
    plain_axes,
    styles,
)

from .price_of_horizon import LEARNERS, TARGET, Measured, measure, simulated_times, size_name
from .scaling_figures import power_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_times(datasets: Mapping[str, Dataset]) -> Drawn:
    """Episodes to the target against H (k = 1 and 2), k and A."""
    figure, axes = new_figure((7.5, 4.7), 2, 3)
    style = styles(LEARNERS)
    panels: list[tuple[str, str, list[tuple[int, int, int]], bool]] = [
        ("against H, ordered, k=1, A=2", "horizon", [(H, 1, 2) for H in range(2, 13)], False),
        ("against H, ordered, k=2, A=2", "horizon", [(H, 2, 2) for H in range(2, 13)], False),
        ("against H, ordered, k=3, A=2", "horizon", [(H, 3, 2) for H in range(3, 13)], False),
        (
            "against H, general (M$^\\theta$), k=2, A=2",
            "horizon",
            [(H, 2, 2) for H in range(2, 13)],
            True,
        ),
        ("against k, ordered, H=6, A=2", "width", [(6, k, 2) for k in range(1, 7)], False),
        ("against A, ordered, H=4, k=1", "num_actions", [(4, 1, A) for A in range(2, 11)], False),
    ]
    data = {}
    for ax, (title, which, sizes, general) in zip(axes, panels, strict=True):
        lines = {name: measure(name, sizes, general) for name in LEARNERS[: 1 if general else 2]}
        data[title] = lines
        for name, points in lines.items():
            x = [getattr(p, which) for p in points]
            look: dict[str, Any] = {"color": style[name].color}
            ax.plot(
                x, [p.noiseless for p in points], ls=style[name].line, lw=1.2, label=name, **look
            )
            ax.plot(x, [p.bound for p in points], ls=(0, (1, 1.2)), lw=0.8, alpha=0.9, **look)
            _dots(
                ax,
                datasets["general" if general else "ordered"],
                name,
                points,
                which,
                style[name].color,
            )
        plain_axes(ax)
        power_axis(ax, "y", 1e5, 1e30)
        ax.axhline(2.0**53, color=GREY, lw=0.6)
        ax.set_xticks(range(min(x), max(x) + 1, 2 if len(x) > 6 else 1))
        ax.set_xlabel(
            {"horizon": "horizon H", "width": "width k", "num_actions": "actions A"}[which],
            fontsize=TICK_SIZE,
        )
        ax.set_title(title, loc="left", fontsize=TEXT_SIZE, pad=4)
    axes[0].annotate(
        "2$^{53}$: above, no run can count",
        (2, 2.0**53),
        (0, 3),
        textcoords="offset points",
        fontsize=NOTE_SIZE,
        color=GREY,
    )
    seeds = datasets["ordered"].sizes["seed"]
    title = (
        f"episodes until average regret stays below {TARGET}, theory constants. Lines: noiseless; dots: median of "
        f"{seeds} runs; dotted: T of the theorem"
    )
    banner(figure, axes[0], note=title, size=TEXT_SIZE)
    figure.supylabel("episodes", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, data)


def _dots(
    ax: Axes, ds: Dataset, learner: str, points: list[Measured], which: str, color: str
) -> None:
    times = simulated_times(ds, learner)
    for p in points:
        median, low, high = times.get(
            size_name(p.horizon, p.width, p.num_actions), (np.inf, np.inf, np.inf)
        )
        if np.isfinite(median):
            x = getattr(p, which)
            ax.plot([x, x], [max(low, 1.0), min(high, 1e30)], color=color, lw=0.8)
            ax.plot(x, median, "o", ms=3.6, color=color, mec="white", mew=0.5, zorder=4)
