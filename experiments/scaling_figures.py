"""The two figures of the `scaling` experiment: fixed instances, and the worst case with both
bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit import theory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

    from .scaling import Shape
    from .scaling_worst_case import WorstCase


def bounds_of(shape: Shape, learner: str, horizons: np.ndarray) -> dict[str, np.ndarray]:
    """The bound expressions without their unknown constants: "upper", and "lower" where Section 4
    has one."""
    H, k, A = shape.horizon, shape.width, shape.num_actions
    upper = theory.upper_bound_ordered if learner == "OrderedExpRef" else theory.upper_bound_general
    found = {"upper": upper(H, k, A, horizons)}
    if not shape.ordered and k == 2:
        found["lower"] = theory.lower_bound_general(H, A, horizons)
    return found


def power_axis(ax: Axes, which: str, low: float, high: float, most: int = 6) -> None:
    """A log axis whose ticks are powers of ten, at most about ``most`` of them with a number."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(low, high)
    powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
    step = int(np.ceil(powers.size / most))
    axis.set_major_locator(FixedLocator((10.0 ** powers[::step]).tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{round(np.log10(value))}}}$"))
    axis.set_minor_locator(FixedLocator((10.0**powers).tolist()))
    axis.set_minor_formatter(NullFormatter())


def decades(values: np.ndarray) -> tuple[float, float]:
    """The powers of ten around positive values."""
    return 10.0 ** np.floor(np.log10(np.min(values))), 10.0 ** np.ceil(np.log10(np.max(values)))


def draw_fixed(datasets: Mapping[str, Dataset]) -> Drawn:
    """Log-log regret of the long runs; dots where active sets shrink, ticks at phase ends."""
    from jaxbandit.plotting.figures import TEXT_SIZE, Drawn, banner, plain_axes, styles
    from jaxbandit.stats.intervals import method_of_all
    from jaxbandit.stats.replication import band_of_regrets

    from .scaling import FIXED, label_of, shapes_in

    shapes = shapes_in(datasets)
    figure, axes = _panels(len(shapes), 2.05)
    style = styles(["ExpRef", "OrderedExpRef"])
    data: dict[str, Any] = {}
    for ax, shape in zip(axes, shapes, strict=True):
        drawn = {}
        for row, name in enumerate(shape.learners):
            ds = datasets[label_of(shape, name)].isel(learner=0, parameter=-1).sel(instance=FIXED)
            episodes = ds["episode"].values.astype(np.float64)
            b = drawn[name] = band_of_regrets(ds["regret"].transpose("seed", "episode").values)
            ax.fill_between(episodes, b.low, b.high, color=style[name].color, alpha=0.25, lw=0)
            ax.plot(
                episodes, b.center, color=style[name].color, ls=style[name].line, lw=1.3, label=name
            )
            _mark_phases(ax, ds, style[name].color, row)
        data[shape.title] = drawn
        plain_axes(ax)
        values = np.concatenate([b.center for b in drawn.values()])
        power_axis(ax, "x", episodes[0], episodes[-1])
        power_axis(ax, "y", *decades(values))
        which = "I1" if shape.ordered else "random"
        ax.set_title(f"{which}, {shape.title}", loc="left", fontsize=TEXT_SIZE, pad=4)
    every = [b for panel in data.values() for b in panel.values()]
    title = (
        f"theory constants, one run of T = $10^{{{np.log10(episodes[-1]):.3g}}}$ per seed; "
        f"{method_of_all(every)}, {every[0].n} seeds;\n"
        "dots: a phase ends in which actions fall; marks along the top: all phase ends (median)"
    )
    banner(figure, axes[-1], note=title, size=TEXT_SIZE)
    figure.supxlabel("episode", fontsize=TEXT_SIZE)
    figure.supylabel("cumulative regret", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, data)


def _panels(count: int, height: float) -> tuple[Any, list[Axes]]:
    """A figure of ``count`` panels, three in a row."""
    from jaxbandit.plotting.figures import new_figure

    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = new_figure((2.5 * columns, height * rows + 0.5), rows, columns)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def _mark_phases(ax: Axes, ds: Dataset, color: str, row: int) -> None:
    """Marks along the top at the phase ends (medians), and dots on the curve where active sets
    shrink."""
    active = (
        ds["active_actions"]
        .isel(level=slice(1, None))
        .sum(("stage", "level"), skipna=False)
        .median("seed")
        .values
    )
    ends = ds["phase_end"].median("seed").values
    before = np.concatenate([[active[0]], active[:-1]])
    fewer = np.isfinite(ends) & (active < before)
    mean = ds["regret"].mean("seed").values
    at = np.exp(
        np.interp(np.log(ends[fewer]), np.log(ds["episode"].values.astype(float)), np.log(mean))
    )
    ax.plot(ends[fewer], at, "o", ms=3.4, color=color, mec="white", mew=0.5, zorder=4)
    done = ends[np.isfinite(ends)]
    ax.plot(
        done,
        np.full(done.size, 0.985 - 0.035 * row),
        "|",
        ms=3.5,
        mew=0.7,
        color=color,
        transform=ax.get_xaxis_transform(),
    )


def draw_worst(cases: Mapping[Shape, Mapping[str, WorstCase]]) -> Drawn:
    """Log-log worst case with fitted slopes and both bounds, one panel per shape."""
    from jaxbandit.plotting.figures import (
        GREY,
        NOTE_SIZE,
        TEXT_SIZE,
        Drawn,
        banner,
        plain_axes,
        styles,
    )  # fmt: skip

    figure, axes = _panels(len(cases), 2.2)
    style = styles(["ExpRef", "OrderedExpRef"])
    for ax, (shape, learners) in zip(axes, cases.items(), strict=True):
        texts = []
        tops = []
        for name, case in learners.items():
            color = style[name].color
            ax.fill_between(case.horizons, case.low, case.high, color=color, alpha=0.25, lw=0)
            ax.plot(case.horizons, case.regret, "o", ms=2.4, color=color, zorder=3, clip_on=False)
            before = case.horizons <= case.horizons[case.fitted][0]
            ax.plot(case.horizons[before], case.regret[before], lw=0.6, color=color, alpha=0.6)
            x = case.horizons[case.fitted]
            if case.settled:
                middle = np.exp(np.mean(np.log(case.regret[case.fitted]) - case.slope * np.log(x)))
                ax.plot(x, middle * x**case.slope, color=color, lw=1, ls=style[name].line)
            for kind, bound in bounds_of(shape, name, case.horizons).items():
                ax.plot(
                    case.horizons,
                    bound,
                    lw=0.9,
                    ls=(0, (1, 1.2)),
                    color=color if kind == "upper" else GREY,
                )
                tops.append(bound)
            wide = max(case.slope - case.steps[0], case.slope - case.seeds[0])
            shown = (
                f"slope {case.slope:.2f} ± {wide:.2f}" if case.settled else "still linear, no slope"
            )
            texts.append((f"{name}: {shown}", color))
        values = np.concatenate([np.concatenate([c.regret for c in learners.values()]), *tops])
        plain_axes(ax)
        first = next(iter(learners.values()))
        power_axis(ax, "x", first.horizons[0], first.horizons[-1])
        power_axis(ax, "y", *decades(values))
        ax.set_title(shape.title, loc="left", fontsize=TEXT_SIZE, pad=4)
        for row, (text, color) in enumerate(texts):
            ax.annotate(
                text,
                (0.99, 0.03 + 0.09 * row),
                xycoords="axes fraction",
                ha="right",
                fontsize=NOTE_SIZE,
                color=color,
            )
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=style[name].color,
            ls=style[name].line,
            marker="o",
            ms=2.6,
            lw=1,
            label=name,
        )
        for name in ("ExpRef", "OrderedExpRef")
    ]
    handles += [
        Line2D(
            [],
            [],
            color=style["ExpRef"].color,
            ls=(0, (1, 1.2)),
            lw=0.9,
            label="upper bound (its colour)",
        ),
        Line2D([], [], color=GREY, ls=(0, (1, 1.2)), lw=0.9, label="lower bound"),
    ]
    title = (
        "largest mean regret over a family of gaps, a run of its own for every T; line: least squares where the\n"
        "worst gap is inside the family; ±: the wider of the 95 % intervals over seeds and from the residuals"
    )
    banner(figure, handles, note=title)
    figure.supxlabel("number of episodes T", fontsize=TEXT_SIZE)
    figure.supylabel("worst-case regret", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, {shape.title: dict(found) for shape, found in cases.items()})
