"""Maps of the experiment `claims-map`: shares of panels against the constants of the learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from jaxbandit.plotting.figures import Drawn


def maps(shares: dict[str, np.ndarray], title: str) -> Drawn:
    """A row of maps per claim, a column per exploration: bonus scale against threshold.

    ``shares`` are float [bonus scales, thresholds, explorations]; a cell with all panels has a dot.
    """
    from jaxbandit.plotting.figures import NOTE_SIZE, TEXT_SIZE, TICK_SIZE, Drawn, new_figure

    from .claims_map import BONUS_SCALES, EXPLORATIONS, THRESHOLDS, fraction

    columns = len(EXPLORATIONS)
    size = (2.0 * columns + 1.1, 1.9 * len(shares) + 0.9)
    figure, axes = new_figure(size, len(shares), columns)
    image = None
    for place, ax in enumerate(axes):
        row, column = divmod(place, columns)
        claim = list(shares)[row]
        values = shares[claim][:, :, column]
        image = ax.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto", origin="lower")
        for b, t in zip(*(values == 1).nonzero(), strict=True):
            ax.plot(t, b, "o", ms=3, color="black")
        ax.set_xticks(range(len(THRESHOLDS)), [""] * len(THRESHOLDS))
        ax.set_yticks(range(len(BONUS_SCALES)), [""] * len(BONUS_SCALES))
        ax.tick_params(length=2)
        if row == 0:
            paper = " (the paper's)" if EXPLORATIONS[column] == 0.5 else ""
            ax.set_title(f"exploration {EXPLORATIONS[column]:g} k/H{paper}", fontsize=TICK_SIZE)
        if column == 0:
            ax.set_yticklabels([fraction(x) for x in BONUS_SCALES], fontsize=NOTE_SIZE)
            label = "bonus scale of UCB-VI"
            ax.set_ylabel(f"{claim}\n{label}" if claim else label, fontsize=NOTE_SIZE)
        if row == len(shares) - 1:
            labels = [f"{x:g}" for x in THRESHOLDS]
            ax.set_xticklabels(labels, fontsize=NOTE_SIZE, rotation=60)
            ax.set_xlabel("threshold of the others", fontsize=NOTE_SIZE)
    assert image is not None
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("share of panels (dot: all of them)", fontsize=NOTE_SIZE)
    bar.ax.tick_params(labelsize=NOTE_SIZE)
    figure.suptitle(title, fontsize=TEXT_SIZE)
    return Drawn(figure, axes, shares)
