"""The figure of the `lower-bounds` experiment: ratios to the expressions, and needles found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

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

from .lower_bounds import (
    GAP_HORIZON,
    HORIZONS,
    MULTIPLES,
    found_shares,
    proof_gap,
    proven,
    ratios,
    relative_regrets,
)

if TYPE_CHECKING:
    from xarray import Dataset


def draw_ratios(datasets: Mapping[str, Dataset]) -> Drawn:
    """Ratio against H; regret relative to gap x T and share of needles found against the gap; both
    families."""
    figure, axes = new_figure((7.5, 4.9), 2, 3)
    names = list(datasets["ordered"]["learner"].values)
    look = styles([str(name) for name in names])
    for row, kind in enumerate(("general", "ordered")):
        ds, ordered = datasets[kind], kind == "ordered"
        T = int(ds["episode"].values[-1])
        left, middle, right = axes[3 * row : 3 * row + 3]
        table = ratios(ds, ordered)
        horizons = [int(name[2:]) for name in next(iter(table.values()))]
        for learner, by_family in table.items():
            center = [e.value for e in by_family.values()]
            low, high = ([getattr(e, end) for e in by_family.values()] for end in ("low", "high"))
            style = {
                "color": look[learner].color,
                "ls": look[learner].line,
                "lw": 1.2,
                "marker": "o",
                "ms": 2.5,
            }
            left.fill_between(horizons, low, high, color=look[learner].color, alpha=0.15, lw=0)
            left.plot(horizons, center, label=learner, **style)
            for ax, values in ((middle, relative_regrets(ds, ordered)), (right, found_shares(ds))):
                ax.plot(list(values[learner]), list(values[learner].values()), **style)
        left.plot(
            horizons,
            [proven(ordered, H, T) for H in horizons],
            color=GREY,
            lw=0.9,
            ls=(0, (1, 1.2)),
        )
        left.annotate(
            "proved", (horizons[-1], proven(ordered, horizons[-1], T)), (0, -9), textcoords="offset points", ha="right",
            fontsize=NOTE_SIZE, color=GREY,
        )  # fmt: skip
        left.set_ylim(0, 1.12 * max(e.high for row in table.values() for e in row.values()))
        left.set_xticks(horizons)
        left.set_xlabel("horizon H", fontsize=TICK_SIZE)
        left.set_title(
            f"{kind}: regret / $\\sqrt{{{'L' if ordered else 'A^H'} T}}$",
            loc="left",
            fontsize=TEXT_SIZE,
            pad=4,
        )
        H = GAP_HORIZON
        middle.set_title(f"{kind}, H={H}: regret / (gap T)", loc="left", fontsize=TEXT_SIZE, pad=4)
        right.set_title(
            f"{kind}, H={H}: share that found it", loc="left", fontsize=TEXT_SIZE, pad=4
        )
        for ax in (left, middle, right):
            plain_axes(ax)
        for ax in (middle, right):
            ax.set_ylim(-0.03, 1.05)
            ax.set_xscale("log", base=2)
            ax.set_xticks(list(MULTIPLES), [str(m) for m in MULTIPLES])
            ax.set_xlabel(f"gap / proof's gap ({proof_gap(ordered, H, T):.2g})", fontsize=TICK_SIZE)
    count = int((datasets["general"]["family"] == f"H={HORIZONS[0]}").sum())
    title = (
        f"hard families, T = {T:,}, mean and 95 % t-interval over {count} instances drawn from the family; "
        "UCB-VI sees trajectories, all others only total rewards"
    )
    banner(figure, axes[3], note=title)
    shown = {kind: ratios(datasets[kind], kind == "ordered") for kind in datasets}
    return Drawn(figure, axes, shown)
