"""Figures and tables of the feedback ladder: curves by rung, final regret against feedback, segments, and what was tuned.

Nothing is computed here but intervals; the experiment is `ladder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandit import stats
from jaxbandit.experiment import markdown_table
from jaxbandit.plotting.figures import (
    GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    Drawn,
    new_figure,
    number_axis,
    plain_axes,
    styles,
)
from jaxbandit.stats.intervals import WARNINGS, method_of_all, warning_line

from .ladder import RUNGS, TRAINING, YARDSTICKS, judged, rung_of, values_of

if TYPE_CHECKING:
    from xarray import Dataset


def _players(ds: Dataset, family: str) -> dict[str, list[str]]:
    """The learners of every rung that played a family, without those that are only beside it."""
    found: dict[str, list[str]] = {rung: [] for rung in RUNGS}
    for label in map(str, ds["learner"].values):
        if rung_of(label) and len(stats.replicates(ds, label, family=family)):
            found[rung_of(label)].append(label)
    return {rung: labels for rung, labels in found.items() if labels}


def _final_rows(ds: Dataset) -> dict[tuple[str, str], stats.Row]:
    """Final regret by (family, learner)."""
    return {(row.family, row.learner): row for row in stats.final_table(ds)}


def curves(ds: Dataset, sizes: str) -> Drawn:
    """Regret curves with bands: a row per family, a column per rung, the yardstick in grey."""
    families = list(stats.families(ds))
    figure, axes = new_figure((9.0, 1.9 * len(families) + 0.4), len(families), len(RUNGS))
    episodes = ds["episode"].values
    data = {}
    for row, family in enumerate(families):
        players = _players(ds, family)
        level = stats.regret_band(ds, "uniform", family=family)
        for column, rung in enumerate(RUNGS):
            ax = axes[row * len(RUNGS) + column]
            plain_axes(ax)
            number_axis(ax, "x", episodes[0], episodes[-1], log=True)
            number_axis(ax, "y", level.center[-1] / 30000, 1.5 * level.center[-1], log=True)
            ax.plot(episodes, level.center, color=GREY, lw=0.8)
            labels = players.get(rung, [])
            ax.set_visible(bool(labels))
            for label, style in styles(labels).items() if labels else ():
                band = stats.regret_band(ds, label, family=family)
                ax.plot(
                    episodes, band.center, color=style.color, ls=style.line, lw=1.2, label=label
                )
                ax.fill_between(
                    episodes,
                    np.maximum(band.low, 1e-3),
                    band.high,
                    color=style.color,
                    alpha=0.15,
                    lw=0,
                )
                data[family, label] = band
            if row == 0:  # the players of a rung are the same everywhere
                ax.legend(
                    fontsize=NOTE_SIZE - 1, frameon=False, handlelength=1.8, loc="lower right"
                )
            if row == 0:
                ax.set_title(rung.replace(" and ", "\nand "), fontsize=TICK_SIZE, loc="left")
            if column == 0:
                ax.set_ylabel(family, fontsize=TICK_SIZE)
            if labels and row == len(families) - 1:
                ax.set_xlabel("episodes", fontsize=TICK_SIZE)
    figure.suptitle(
        f"Regret by feedback, {sizes} (grey: uniform play)\n{method_of_all(data.values())} over instances",
        fontsize=TEXT_SIZE,
    )
    return Drawn(figure, axes, data)


def summary(ds: Dataset, sizes: str, over: str = "instances") -> Drawn:
    """Final regret of every learner with its interval over instances or seeds, against the feedback."""
    families = list(stats.families(ds))
    figure, axes = new_figure((max(4.6, 3.1 * len(families)), 4.2), 1, len(families))
    rows = _final_rows(ds)
    colors = ("#882255", "#0072B2", "#E69F00", "#009E73", "#000000")
    for ax, family in zip(axes, families, strict=True):
        plain_axes(ax)
        shown = [rows[key] for key in rows if key[0] == family and rung_of(key[1])]
        top = max(row.mean for row in shown)
        # A log axis has no place for a regret of 0: it is drawn at the left end, as an arrow.
        ends = (min(row.mean for row in shown if row.mean > 1e-6 * top) / 3, 3 * top)
        number_axis(ax, "x", *ends, log=True)
        place = 0
        ticks: list[tuple[int, str]] = []
        for rung, color in zip(RUNGS, colors, strict=True):
            labels = _players(ds, family).get(rung, [])
            for label in sorted(labels, key=lambda name: -rows[family, name].mean):
                row = rows[family, label]
                faded = 0.45 if label.endswith("(theory)") else 1.0
                inside = row.mean > ends[0]
                ax.plot(
                    max(row.mean, 1.1 * ends[0]),
                    place,
                    "o" if inside else "<",
                    ms=4,
                    color=color,
                    alpha=faded,
                )
                ax.plot(
                    [max(row.low, ends[0]), max(row.high, ends[0])],
                    [place] * 2,
                    color=color,
                    lw=1.2,
                    alpha=faded,
                )
                ticks.append((place, label))
                place -= 1
            if labels:
                ax.annotate(
                    rung, (0.02, place + len(labels) + 0.95), xycoords=("axes fraction", "data"), ha="left",
                    va="center", fontsize=NOTE_SIZE, color=color, fontweight="bold",
                )  # fmt: skip
                place -= 1
        level = rows[family, YARDSTICKS[0]].mean
        ax.axvline(level, color=GREY, lw=0.8, ls=(0, (4, 2)))
        ax.annotate(
            "uniform ", (level, 0.01), xycoords=("data", "axes fraction"), ha="right", va="bottom",
            fontsize=NOTE_SIZE, color=GREY,
        )  # fmt: skip
        ax.set_ylim(place + 0.3, 1.5)  # room for the name of the first rung
        ax.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=NOTE_SIZE)
        if len(families) > 1:
            ax.set_title(family, fontsize=TEXT_SIZE, loc="left")
        unit = ds["regret"].attrs.get("units", "reward")
        unit = "" if unit in ("reward", "own units") else f" ({unit})"
        ax.set_xlabel(f"final regret{unit}", fontsize=TICK_SIZE)
    episodes = int(ds["episode"].values[-1])
    doubts = {WARNINGS[row.warning] for row in rows.values() if row.warning}
    doubt = f"\n{'; '.join(sorted(doubts))}" if doubts else ""
    apart = ", " if len(families) > 1 else "\n"
    figure.suptitle(
        f"What feedback buys: {sizes}, T = {episodes:,}{apart}mean and 95 % interval over {over}{doubt}",
        fontsize=TEXT_SIZE,
    )
    return Drawn(figure, axes, rows)


def segments(ds: Dataset, sizes: str) -> Drawn:
    """Final regret of trajectory TS against the number of segments whose totals are shown."""
    families = list(stats.families(ds))
    figure, (ax,) = new_figure((4.2, 3.0))
    plain_axes(ax)
    labels = [str(label) for label in ds["learner"].values]
    number = [int(label.split()[0]) for label in labels]
    rows = _final_rows(ds)
    for shift, (family, style) in enumerate(styles(families).items()):
        found = [rows[family, label] for label in labels]
        x = np.asarray(number) + 0.05 * (shift - (len(families) - 1) / 2)
        mean = np.asarray([row.mean for row in found])
        reach = [mean - [row.low for row in found], [row.high for row in found] - mean]
        ax.errorbar(
            x,
            mean,
            np.maximum(reach, 0),
            fmt="o",
            ls=style.line,
            color=style.color,
            ms=3.5,
            lw=1,
            label=family,
        )
    ax.set_xticks(number)
    top = max(row.mean if np.isnan(row.high) else row.high for row in rows.values())
    number_axis(ax, "y", 0, 1.1 * top, log=False)
    ax.set_xlabel("segments whose totals are shown (m)", fontsize=TICK_SIZE)
    ax.set_ylabel("final regret of trajectory TS", fontsize=TICK_SIZE)
    ax.legend(fontsize=TICK_SIZE, frameon=False)
    ax.set_title(f"{sizes}, T = {int(ds['episode'].values[-1]):,}", fontsize=TEXT_SIZE, loc="left")
    return Drawn(figure, ax, rows)


def final_table(ds: Dataset) -> str:
    """Final regret per family and learner, ordered by rung, paired with uniform play, and times."""
    last = ds.isel(episode=[-1])
    order = {rung: place for place, rung in enumerate((*RUNGS, ""))}
    rows, doubts = [], []
    for row in sorted(
        stats.final_table(last), key=lambda row: (row.family, order[rung_of(row.learner)])
    ):
        gap = stats.regret_difference(last, row.learner, YARDSTICKS[0], family=row.family)
        low, high = float(gap.low[0]), float(gap.high[0])
        doubts += [row.warning, gap.warning]
        word = "below" if high < 0 else "above" if low > 0 else "not decided"
        cell = ds["run_seconds"].sel(learner=row.learner, instance=stats.families(ds)[row.family])
        rows.append(
            [
                row.family,
                rung_of(row.learner) or "yardstick",
                row.learner,
                f"{row.mean:,.3g}",
                "" if np.isnan(row.low) else f"{row.low:,.3g} to {row.high:,.3g}",
                "" if row.learner in YARDSTICKS else f"{word} ({low:,.0f} to {high:,.0f})",
                f"{float(np.nansum(cell.values)):.2g}",
            ]
        )
    head = [
        "family",
        "feedback",
        "learner",
        "final regret",
        "95 % interval",
        "against uniform, paired",
        "seconds",
    ]
    return f"{markdown_table(head, rows)}\n\n{warning_line(doubts).strip()}".rstrip()


def segments_table(ds: Dataset) -> str:
    """Final regret of trajectory TS by the number of segments."""
    found = stats.final_table(ds.isel(episode=[-1]))
    rows = [
        [row.family, row.learner, f"{row.mean:,.3g}", f"{row.low:,.3g} to {row.high:,.3g}"]
        for row in found
    ]
    table = markdown_table(["family", "shown", "final regret", "95 % interval"], rows)
    return f"{table}\n\n{warning_line(row.warning for row in found).strip()}".rstrip()


def chosen_table(datasets: dict[str, Dataset]) -> str:
    """The value of each learner's parameter that training chose, and all that were tried."""
    rows = []
    for name, ds in datasets.items():
        if not name.endswith(TRAINING):
            continue
        for label in map(str, ds["learner"].values):
            values, found = values_of(label), judged(ds, label)
            tried = [
                f"{value:.3g}: {worst:.2f}{' (linear)' if linear else ''}"
                for value, worst, linear in zip(values, found.worst, found.linear, strict=True)
            ]
            size = name.removesuffix(TRAINING)
            rows.append([size, label, f"{values[found.choice]:.3g}", "; ".join(tried)])
    note = (
        "Tried: value of the parameter and its worst ratio, over the families of training, of mean final regret to that of "
        "the best value there. Chosen: the smallest, among values whose regret is not linear at the end."
    )
    return f"{note}\n\n{markdown_table(['size', 'learner', 'chosen', 'tried'], rows)}"
