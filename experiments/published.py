"""Published regrets of K-armed bandits beside ours: every cell with its standard error and z.

The cells were chosen before anything was run, and all of them are shown. A cell is a number that somebody printed: mean regret of a
learner on given arms after T episodes. z is our mean minus theirs over the standard error of the difference, which has three
parts: ours, theirs (the printed standard deviation over the square root of their runs; where none is printed, ours stands for it), and the
rounding of the printed number. If both sides compute the same expectation, |z| exceeds 3.5 on any of the cells with probability
of about 1.5 %.

Sources:

BKM   D. Baudry, E. Kaufmann, O.-A. Maillard, "Sub-sampling for efficient non-parametric bandit exploration", NeurIPS 2020,
      arXiv 2010.14323; code at github.com/DBaudry/Sub-Sampling-Dueling-Algorithms-Neurips20. Table 6: Thompson sampling on Bernoulli arms, T = 20,000, 5,000
      runs, mean and standard deviation. Table 8: the same with the coin of Agrawal and Goyal on truncated normal arms (clipped to [0,
      1]). Table 9: Thompson sampling and IMED, averaged over 10,000 problems with 10 arms whose means are uniform on [0, 1]. Their
      programs play every arm once first (``warmup=1``) and break ties at random.
SMP   L. Besson, SMPyBandits, stored notebooks at github.com/SMPyBandits/SMPyBandits, T = 10,000, ties at random. "Do we even need UCB": the
      first problem, 100 runs. (The outputs of its second and third problem come from another execution, of an unknown number of
      runs: multiples of 0.005 and 0.01, where the mean of 100 runs is a multiple of 0.00005 and 0.0001. They are no cells.)
      "Example of a small single-player simulation": all three problems, 10 runs. UCB(alpha) is ``ucb1`` with bonus_scale = sqrt(alpha) / 2,
      and "EmpiricalMeans" is bonus_scale = 0.

Not used: banditbench (github.com/DataWraith/banditbench), whose arms have the same rewards in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options
from jaxbandit.tabular import write_table

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.curves import Drawn

LARGEST_Z = 3.5
LONG, SHORT = 20_000, 10_000
"""T of BKM and of SMP."""
TENTHS = tuple(k / 10 for k in range(1, 10))
BERNOULLI = {
    "(.8, .9)": (0.8, 0.9),
    "(.5, .6)": (0.5, 0.6),
    "(.1, 3 x .01, 3 x .03, 3 x .05)": (0.1, *[0.01] * 3, *[0.03] * 3, *[0.05] * 3),
    "(.9, 7 x .85)": (0.9, *[0.85] * 7),
}
CLIPPED = {
    "N(.5, .01), N(.6, .01)": ((0.5, 0.6), 0.1),
    "N(0, .09), N(.2, .09)": ((0.0, 0.2), 0.3),
    "N(1.5, 1), N(2, 1)": ((1.5, 2.0), 1.0),
    "N(.4, 1), ..., N(.7, 1)": ((0.4, 0.5, 0.6, 0.7), 1.0),
}
"""Means and standard deviation of normal arms that are clipped to [0, 1]."""
NINE = {
    "(.1, ..., .9)": TENTHS,
    "(.01, ..., .805)": (0.01, 0.02, 0.3, 0.4, 0.5, 0.6, 0.795, 0.8, 0.805),
    "(3 x .01, 3 x .02, .05, .05, .1)": (*[0.01] * 3, *[0.02] * 3, 0.05, 0.05, 0.1),
}
DRAWN = "10 uniform means"


class Cell(NamedTuple):
    """One printed number."""

    source: str
    learner: str
    arms: str
    episodes: int
    printed: str
    """As it is printed: its last digit says how it was rounded."""
    runs: int
    deviation: float | None = None
    """The printed standard deviation of one run; None if there is none."""

    @property
    def sweep(self) -> str:
        """The sweep that the cell is in."""
        return {"Table 6": "fixed", "Table 8": "fixed", "Table 9": "drawn"}.get(
            self.source[4:], "nine"
        )


def _column(source: str, learner: str, runs: int, rows: dict[tuple[str, int], Any]) -> list[Cell]:
    cells = []
    for (arms, episodes), printed in rows.items():
        mean, deviation = printed if isinstance(printed, tuple) else (printed, None)
        cells.append(
            Cell(
                source=source, learner=learner, arms=arms, episodes=episodes, printed=mean, runs=runs,
                deviation=deviation,
            )
        )  # fmt: skip
    return cells


CELLS = (
    *_column(
        "BKM Table 6", "Thompson", 5000,
        {(arms, LONG): row for arms, row in zip(BERNOULLI, [("11.2", 10.0), ("22.9", 29.2), ("94.2", 15.8), ("108.1", 45.1)], strict=True)},
    ),
    *_column(
        "BKM Table 8", "Thompson", 5000,
        {(arms, LONG): row for arms, row in zip(CLIPPED, [("21.9", 20.4), ("13.3", 7.0), ("9.7", 10.1), ("86.6", 57.8)], strict=True)},
    ),
    *_column("BKM Table 9", "Thompson", 10_000, {(DRAWN, 100): "13.8", (DRAWN, 1000): "27.8", (DRAWN, 10_000): "45.8", (DRAWN, LONG): "52.2"}),
    *_column("BKM Table 9", "IMED", 10_000, {(DRAWN, 100): "15.1", (DRAWN, 1000): "31.9", (DRAWN, 10_000): "51.2", (DRAWN, LONG): "57.6"}),
    *_column("SMP need UCB", "UCB", 100, {("(.1, ..., .9)", SHORT): "330.67"}),
    *_column("SMP need UCB", "UCB(1/2)", 100, {("(.1, ..., .9)", SHORT): "51.636"}),
    *_column("SMP need UCB", "greedy", 100, {("(.1, ..., .9)", SHORT): "384.94"}),
    *_column("SMP example", "UCB(1)", 10, dict(zip([(arms, SHORT) for arms in NINE], ["98.04", "96.174", "282.57"], strict=True))),
    *_column("SMP example", "UCB(1/2)", 10, dict(zip([(arms, SHORT) for arms in NINE], ["49.52", "65.017", "162.35"], strict=True))),
    *_column("SMP example", "Thompson", 10, dict(zip([(arms, SHORT) for arms in NINE], ["33.2", "83.188", "69.227"], strict=True))),
    *_column("SMP example", "kl-UCB", 10, dict(zip([(arms, SHORT) for arms in NINE], ["51.36", "84.505", "94.7"], strict=True))),
)  # fmt: skip


def clipped_normal(means: tuple[float, ...], deviation: float, cells: int = 14) -> Any:
    """Arms that pay min(1, max(0, X)), X normal: atoms at 0 and 1, and between them the conditional means of equal cells.

    The mean rewards are exact, and with the coin of Agrawal and Goyal the law of Thompson sampling depends on nothing else.
    """
    from scipy.stats import norm

    import jaxbandit as jb

    edges = np.linspace(0, 1, cells + 1)
    z = (edges - np.asarray(means)[:, None]) / deviation
    inside = np.diff(norm.cdf(z), axis=1)
    partial = np.asarray(means)[:, None] * inside - deviation * np.diff(norm.pdf(z), axis=1)
    values = np.clip(partial / np.maximum(inside, 1e-300), edges[:-1], edges[1:])
    chances = np.column_stack([norm.cdf(z[:, 0]), inside, norm.sf(z[:, -1])])
    values = np.column_stack([np.zeros(len(values)), values, np.ones(len(values))])
    return jb.make_instance(
        "bandit", values=values, probabilities=chances / chances.sum(axis=1, keepdims=True)
    )


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """Three sweeps: BKM's fixed problems, their drawn ones, SMP's three problems."""
    import jax

    import jaxbandit as jb

    seeds = options.choose_seeds(64, full=4096)
    count = options.choose_instances(256, full=10_000)
    once = jb.make_learner("thompson", warmup=1)
    fixed = {arms: jb.make_instance("bandit", means=means) for arms, means in BERNOULLI.items()}
    fixed |= {arms: clipped_normal(*how) for arms, how in CLIPPED.items()}
    drawn = jb.family("bandit-random", count=count, key=jax.random.key(options.seed), num_arms=10)
    ucb = {name: jb.make_learner("ucb1", bonus_scale=c, ties="random") for name, c in UCBS.items()}
    nine = {arms: jb.make_instance("bandit", means=means) for arms, means in NINE.items()}
    T = options.choose_episodes(LONG, full=LONG)
    points = [t for t in (100, 1000, SHORT, LONG) if t < T] + [T]
    return {
        "fixed": {
            "learners": {"Thompson": once}, "instances": fixed, "num_seeds": seeds, "num_episodes": T,
            "record": jb.record.explicit(points),
        },
        "drawn": {
            "learners": {"Thompson": once, "IMED": jb.make_learner("imed", ties="random")}, "instances": {DRAWN: drawn},
            "num_seeds": 1, "num_episodes": T, "record": jb.record.explicit(points),
        },
        "nine": {
            "learners": {**ucb, "Thompson": jb.make_learner("thompson"), "kl-UCB": jb.make_learner("kl-ucb", ties="random")},
            "instances": nine, "num_seeds": seeds, "num_episodes": min(T, SHORT),
            "record": jb.record.explicit([t for t in points if t < min(T, SHORT)] + [min(T, SHORT)]),
        },
    }  # fmt: skip


UCBS = {"UCB": 1.0, "UCB(1)": 0.5, "UCB(1/2)": 0.5**1.5, "greedy": 0.0}
"""bonus_scale of SMPyBandits' UCB and UCB(alpha): sqrt(alpha) / 2."""


class Compared(NamedTuple):
    """A cell and our mean beside it."""

    cell: Cell
    ours: float
    error: float
    """Standard error of our mean."""
    their_error: float
    """Theirs, with the rounding."""
    z: float


def compare(datasets: dict[str, Dataset]) -> list[Compared]:
    """Every cell that was run (all, unless --episodes is below its T)."""
    found = []
    for cell in CELLS:
        ds = datasets[cell.sweep]
        if cell.episodes not in ds["episode"].values:
            continue
        here = (
            ds["family"].values == cell.arms
            if "family" in ds
            else ds["instance"].values == cell.arms
        )
        runs = ds["regret"].sel(learner=cell.learner, episode=cell.episodes).values[here].ravel()
        deviation = float(runs.std(ddof=1))
        error = deviation / np.sqrt(runs.size)
        rounding = 10.0 ** -len(cell.printed.partition(".")[2]) / np.sqrt(12)
        theirs = np.hypot((cell.deviation or deviation) / np.sqrt(cell.runs), rounding)
        difference = float(runs.mean()) - float(cell.printed)
        found.append(
            Compared(
                cell=cell,
                ours=float(runs.mean()),
                error=error,
                their_error=float(theirs),
                z=difference / np.hypot(error, theirs),
            )
        )
    return found


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """All cells."""
    del options
    rows = [
        [
            c.cell.source, c.cell.learner, c.cell.arms, f"{c.cell.episodes:,}", c.cell.printed, f"{c.their_error:.2f}",
            f"{c.ours:.2f}", f"{c.error:.2f}", f"{c.z:+.2f}",
        ]
        for c in compare(datasets)
    ]  # fmt: skip
    heads = ["source", "learner", "arms", "T", "theirs", "s.e.", "ours", "s.e.", "z"]
    return {"published.md": write_table(heads, rows, "markdown") + "\n"}


def expect(datasets: dict[str, Dataset], options: Options) -> str:
    """How many cells agree, and the largest z."""
    del options
    found = compare(datasets)
    worst = max(found, key=lambda c: abs(c.z))
    apart = [c for c in found if abs(c.z) >= LARGEST_Z]
    squares = sum(c.z**2 for c in found)
    return (
        f"{len(found) - len(apart)} of {len(found)} cells have |z| < {LARGEST_Z}; the largest is {worst.z:+.2f} ({worst.cell.learner} on "
        f"{worst.cell.arms}, T = {worst.cell.episodes:,}, {worst.cell.source}); the sum of z^2 is {squares:.1f}."
    )


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Ours minus theirs in standard errors, a row for each cell."""
    from jaxbandit.plotting.figures import (
        GREY,
        LIGHT_GREY,
        Drawn,
        heading,
        new_figure,
        plain_axes,
        styles,
    )

    del options
    found = compare(datasets)
    figure, (ax,) = new_figure((6.4, 1.1 + 0.165 * len(found)))
    style = styles(list(dict.fromkeys(c.cell.source for c in found)))
    rows = np.arange(len(found))[::-1]
    ax.axvspan(-LARGEST_Z, LARGEST_Z, color=LIGHT_GREY, alpha=0.25, lw=0)
    ax.axvline(0, color=GREY, lw=0.8)
    for row, c in zip(rows, found, strict=True):
        color = style[c.cell.source].color
        ax.plot([0, c.z], [row, row], color=color, lw=1)
        ax.plot([c.z], [row], "o", ms=4, color=color)
    ax.set_yticks(
        rows,
        [f"{c.cell.learner}, {c.cell.arms}, T = {c.cell.episodes:,}" for c in found],
        fontsize=6.5,
    )
    plain_axes(ax)
    for label, c in zip(ax.get_yticklabels(), found, strict=True):
        label.set_color(style[c.cell.source].color)
    reach = max(4.0, 1.1 * max(abs(c.z) for c in found))
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-0.8, len(found) - 0.2)
    ax.set_xlabel("ours minus theirs, in standard errors of the difference", fontsize=8)
    for source, each in style.items():
        ax.plot([], [], "o", ms=4, color=each.color, label=source)
    figure.legend(fontsize=6.5, frameon=False, loc="outside lower center", ncols=len(style))
    heading(ax, "Published regrets of K-armed bandits", [f"grey: |z| < {LARGEST_Z}"])
    return {"published": Drawn(figure, ax, {str(c.cell): c.z for c in found})}


EXPERIMENT = Experiment(
    name="published",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    open_to_learners=False,
    outputs={
        "published.md": "every published number with its standard error, ours and z",
        "published.png": "ours minus theirs in standard errors",
    },
    takes="two to three minutes on two cores",
    expect=expect,
)
