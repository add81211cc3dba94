"""Where do the paper's claims hold? One map over the constants of the three learners (Section 5).

The paper reports that UCB-VI has the lowest regret and that OrderedExpRef's is below ExpRef's, and
does not say with which constants. Here UCB-VI's bonus scale, the threshold of both others and the
exploration of OrderedExpRef are lanes of one sweep over panels of the paper, and each claim is decided
at every combination: it holds on a panel if the paired difference of final regrets is on the
claim's side, with intervals that hold jointly over the panels (Bonferroni). The map shows the share
of panels on which a claim holds, and the table the combinations under which all of them do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment.contract import Experiment, Options

from .prophet import NUM_EPISODES, NUM_VALUES, panel, random_instances

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.curves import Drawn

BONUS_SCALES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
THRESHOLDS = (0.03, 0.045, 0.064, 0.09, 0.125, 0.18)
EXPLORATIONS = (0.5, 1.25, 2.5, 5.0)
"""c of OrderedExpRef's exploration min(1, c k / H); the paper's is 1/2."""
QUICK, FULL = ((15, 2), (15, 4)), tuple((h, k) for h in (15, 20) for k in (2, 3, 4))
"""(H, k) of the panels, without and with --full."""
LEVEL = 0.95


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """All constants of all three learners, on I1 with seeds and I2 with instances as replicates."""
    import jaxbandit as jb

    sizes = FULL if options.full else QUICK
    seeds = options.choose_seeds(6, full=24)
    learners = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=BONUS_SCALES),
        "ExpRef": jb.grid(jb.make_learner("expref", preset="practical"), threshold=THRESHOLDS),
        "OrderedExpRef": jb.grid(
            jb.make_learner("ordered-expref", preset="practical"),
            threshold=THRESHOLDS,
            exploration_scale=EXPLORATIONS,
        ),
    }
    uniform = {
        panel("I1", h, k): jb.make_instance(
            "prophet-uniform", horizon=h, capacity=k, num_values=NUM_VALUES
        )
        for h, k in sizes
    }
    drawn = {panel("I2", h, k): random_instances(h, k, seeds) for h, k in sizes}
    common = {
        "learners": learners,
        "num_episodes": options.choose_episodes(20_000, full=NUM_EPISODES),
        "record": jb.record.linear(2),
    }
    return {
        "I1": {**common, "instances": uniform, "num_seeds": seeds},
        "I2": {**common, "instances": drawn, "num_seeds": 1},
    }


class Finding(NamedTuple):
    """One claim over the panels, as arrays over constants."""

    holds: np.ndarray
    """Share of panels on which it holds, jointly at 95 %."""
    fails: np.ndarray
    """Share of panels on which its contrary holds."""


def differences(
    datasets: dict[str, Dataset], first: str, second: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Low and high of the mean of first - second per panel, as [P first, P second] each.

    Student's t intervals of paired replicates, at a level that holds jointly over the panels.
    """
    from scipy.stats import t as student

    from jaxbandit import stats

    found = []
    panels = sum(len(stats.families(ds)) for ds in datasets.values())
    for ds in datasets.values():
        for names in stats.families(ds).values():
            final = ds["regret"].isel(episode=-1).sel(instance=names)
            one, two = (
                _replicates(
                    final.sel(learner=label).transpose("parameter", "instance", "seed").values
                )
                for label in (first, second)
            )
            paired = one[:, None] - two[None]
            n = paired.shape[-1]
            mean, error = paired.mean(-1), paired.std(-1, ddof=1) / np.sqrt(n)
            reach = student.isf((1 - LEVEL) / (2 * panels), n - 1) * error
            found.append((mean - reach, mean + reach))
    return found


def _replicates(runs: np.ndarray) -> np.ndarray:
    """[P, n] from runs [P, instances, seeds]: seeds of one instance, or means of several."""
    existing = runs[~np.isnan(runs).all(axis=(1, 2))]
    return existing[:, 0] if existing.shape[1] == 1 else existing.mean(-1)


def below(datasets: dict[str, Dataset], first: str, second: str) -> Finding:
    """The claim that ``first`` has lower regret than ``second``, at all their constants."""
    pairs = differences(datasets, first, second)
    return Finding(
        np.mean([high < 0 for _, high in pairs], axis=0),
        np.mean([low > 0 for low, _ in pairs], axis=0),
    )


class Claims(NamedTuple):
    """The shares of panels, [bonus scales, thresholds, explorations]: one threshold for both."""

    ucbvi_lowest: np.ndarray
    ordered_below: np.ndarray


def decide(datasets: dict[str, Dataset]) -> Claims:
    """Both claims at every combination of constants; UCB-VI is lowest if it is below both others."""
    shape = (len(THRESHOLDS), len(EXPLORATIONS))
    ordered = below(datasets, "OrderedExpRef", "ExpRef").holds.reshape(*shape, len(THRESHOLDS))
    same = np.stack([ordered[j, :, j] for j in range(len(THRESHOLDS))])
    general = [high < 0 for _, high in differences(datasets, "UCB-VI", "ExpRef")]
    other = [
        (high < 0).reshape(-1, *shape)
        for _, high in differences(datasets, "UCB-VI", "OrderedExpRef")
    ]
    lowest = [a[:, :, None] & b for a, b in zip(general, other, strict=True)]
    return Claims(np.mean(lowest, axis=0), np.broadcast_to(same[None], (len(BONUS_SCALES), *shape)))


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """One panel per exploration: bonus scale against threshold, the share of panels for all claims."""
    from jaxbandit.plotting.figures import NOTE_SIZE, TEXT_SIZE, TICK_SIZE, Drawn, new_figure

    del options
    claims = decide(datasets)
    rows = {
        "UCB-VI is lowest": claims.ucbvi_lowest,
        "OrderedExpRef is below ExpRef": claims.ordered_below,
    }
    figure, axes = new_figure((2.1 * len(EXPLORATIONS) + 0.8, 4.4), 2, len(EXPLORATIONS))
    image = None
    for place, ax in enumerate(axes):
        (title, shares), column = (
            list(rows.items())[place // len(EXPLORATIONS)],
            place % len(EXPLORATIONS),
        )
        image = ax.imshow(
            shares[:, :, column], vmin=0, vmax=1, cmap="cividis", aspect="auto", origin="lower"
        )
        ax.set_xticks(
            range(len(THRESHOLDS)), [f"{x:g}" for x in THRESHOLDS], fontsize=NOTE_SIZE, rotation=60
        )
        ax.set_yticks(
            range(len(BONUS_SCALES)), [_fraction(x) for x in BONUS_SCALES], fontsize=NOTE_SIZE
        )
        ax.set_title(f"exploration {EXPLORATIONS[column]:g} k/H", fontsize=TICK_SIZE)
        if column == 0:
            ax.set_ylabel(f"{title}\nbonus scale", fontsize=TICK_SIZE)
        if place >= len(EXPLORATIONS):
            ax.set_xlabel("threshold", fontsize=TICK_SIZE)
    assert image is not None
    bar = figure.colorbar(image, ax=axes, shrink=0.7)
    bar.set_label("share of panels on which the claim holds", fontsize=TICK_SIZE)
    bar.ax.tick_params(labelsize=NOTE_SIZE)
    episodes = int(datasets["I1"]["episode"].values[-1])
    figure.suptitle(f"Where the paper's claims hold, T = {episodes:,}", fontsize=TEXT_SIZE)
    return {"claims_map": Drawn(figure, axes, rows)}


def _fraction(value: float) -> str:
    return f"1/{round(1 / value)}" if value < 1 else f"{value:g}"


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """A sentence on whether one choice makes all claims hold, and the best combinations."""
    from jaxbandit.experiment.report import markdown_table

    del options
    claims = decide(datasets)
    worst = np.minimum(claims.ucbvi_lowest, claims.ordered_below)
    all_hold = int((worst == 1).sum())
    paper = worst[:, :, EXPLORATIONS.index(0.5)]
    sentence = (
        f"Both claims hold on all panels at {all_hold} of {worst.size} combinations of constants; with the paper's "
        f"exploration (c = 1/2) at {int((paper == 1).sum())} of {paper.size}, where the best share of panels is "
        f"{paper.max():.2f}."
    )
    order = np.argsort(-worst, axis=None, kind="stable")[:12]
    rows = []
    for b, t, e in zip(*np.unravel_index(order, worst.shape), strict=True):
        rows.append(
            [
                _fraction(BONUS_SCALES[b]),
                f"{THRESHOLDS[t]:g}",
                f"{EXPLORATIONS[e]:g}",
                f"{claims.ucbvi_lowest[b, t, e]:.2f}",
                f"{claims.ordered_below[b, t, e]:.2f}",
            ]
        )
    head = [
        "bonus scale",
        "threshold",
        "exploration c",
        "UCB-VI is lowest",
        "OrderedExpRef is below ExpRef",
    ]
    return {"claims_map.md": f"{sentence}\n\n{markdown_table(head, rows)}"}


EXPERIMENT = Experiment("claims-map", __doc__, sweeps, figures, tables)
