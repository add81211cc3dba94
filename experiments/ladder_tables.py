"""Tables of the feedback ladder: final regrets with paired comparisons and times, and what was tuned.

The experiment is `ladder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .ladder import TRAINING, judged
from .ladder_contestants import RUNGS, YARDSTICKS, rung_of, values_of

if TYPE_CHECKING:
    from xarray import Dataset


def final_table(ds: Dataset) -> str:
    """Final regret per family and learner, ordered by rung, paired with uniform play, and times."""
    from jaxbandit import stats
    from jaxbandit.experiment import markdown_table
    from jaxbandit.stats.intervals import warning_line

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
    from jaxbandit import stats
    from jaxbandit.experiment import markdown_table
    from jaxbandit.stats.intervals import warning_line

    found = stats.final_table(ds.isel(episode=[-1]))
    rows = [
        [row.family, row.learner, f"{row.mean:,.3g}", f"{row.low:,.3g} to {row.high:,.3g}"]
        for row in found
    ]
    table = markdown_table(["family", "shown", "final regret", "95 % interval"], rows)
    return f"{table}\n\n{warning_line(row.warning for row in found).strip()}".rstrip()


def chosen_table(datasets: dict[str, Dataset]) -> str:
    """The value of each learner's parameter that training chose, and all that were tried."""
    from jaxbandit.experiment import markdown_table

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
