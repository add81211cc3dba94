"""Where do the paper's claims hold? One map over the constants of the three learners (Section 5).

The paper reports that UCB-VI has the lowest regret, that OrderedExpRef's is below ExpRef's and that it
is of UCB-VI's order of magnitude (at most ten times as large), and does not say with which constants.
Here UCB-VI's bonus scale, the threshold of both others and the exploration of OrderedExpRef are lanes
of one sweep over panels of the paper at its T, and each claim is decided at every combination: it
holds on a panel if the paired difference of final regrets is on the claim's side, with intervals that
hold jointly over the panels and the differences (Bonferroni). The maps show the share of panels, and
the table the combinations under which most of the claims hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options

from .prophet import NUM_EPISODES, NUM_VALUES, panel, random_instances
from .verdict import SAME_ORDER

if TYPE_CHECKING:
    import numpy as np
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

BONUS_SCALES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
THRESHOLDS = (0.03, 0.045, 0.064, 0.09, 0.125, 0.18)
EXPLORATIONS = (0.5, 1.25, 2.5, 5.0)
"""c of OrderedExpRef's exploration min(1, c k / H); the paper's is 1/2."""
QUICK, FULL = ((15, 2), (15, 4)), tuple((h, k) for h in (15, 20) for k in (2, 3, 4))
"""(H, k) of the panels, without and with --full."""
LEVEL, DIFFERENCES = 0.95, 4
"""UCB-VI against each of the others, these two, and ten times UCB-VI against OrderedExpRef."""


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """All constants of all three learners, on I1 with seeds and I2 with instances as replicates."""
    import jaxbandit as jb

    sizes = FULL if options.full else QUICK
    seeds = options.choose_seeds(8, full=24)
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
        "num_episodes": options.choose_episodes(NUM_EPISODES, full=NUM_EPISODES),
        "record": jb.record.linear(2),
    }
    return {
        "I1": {**common, "instances": uniform, "num_seeds": seeds},
        "I2": {**common, "instances": drawn, "num_seeds": 1},
    }


def differences(
    datasets: dict[str, Dataset], first: str, second: str, factor: float = 1.0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Low and high of the mean of first - factor x second per panel, as [P first, P second] each.

    Student's t intervals of paired replicates, at a level that holds jointly over the panels and
    all differences that the claims look at.
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
            paired = one[:, None] - factor * two[None]
            n = paired.shape[-1]
            mean, error = paired.mean(-1), paired.std(-1, ddof=1) / np.sqrt(n)
            reach = student.isf((1 - LEVEL) / (2 * panels * DIFFERENCES), n - 1) * error
            found.append((mean - reach, mean + reach))
    return found


def _replicates(runs: np.ndarray) -> np.ndarray:
    """[P, n] from runs [P, instances, seeds]: seeds of one instance, or means of several."""
    existing = runs[~np.isnan(runs).all(axis=(1, 2))]
    return existing[:, 0] if existing.shape[1] == 1 else existing.mean(-1)


class Claims(NamedTuple):
    """Whether each claim holds, bool [panels, bonus scales, thresholds, explorations]: one
    threshold for both learners that have one."""

    ucbvi_lowest: np.ndarray
    ordered_below: np.ndarray
    same_order: np.ndarray

    @property
    def together(self) -> np.ndarray:
        """Share of the panels on which all claims hold, [bonus scales, thresholds, explorations]."""
        return np.asarray(np.mean(np.all(self, axis=0), axis=0))


TITLES = ("UCB-VI is lowest", "OrderedExpRef is below ExpRef", "OrderedExpRef is below 10 x UCB-VI")


def decide(datasets: dict[str, Dataset]) -> Claims:
    """The claims at every combination of constants; UCB-VI is lowest if it is below both others."""
    shape = (len(THRESHOLDS), len(EXPLORATIONS))
    lowest, below, same = [], [], []
    for general, ordered, between, order in zip(
        differences(datasets, "UCB-VI", "ExpRef"),
        differences(datasets, "UCB-VI", "OrderedExpRef"),
        differences(datasets, "OrderedExpRef", "ExpRef"),
        differences(datasets, "OrderedExpRef", "UCB-VI", SAME_ORDER),
        strict=True,
    ):
        lowest.append((general[1] < 0)[:, :, None] & (ordered[1] < 0).reshape(-1, *shape))
        both = (between[1] < 0).reshape(*shape, len(THRESHOLDS))
        one_threshold = np.stack([both[j, :, j] for j in range(len(THRESHOLDS))])
        below.append(np.broadcast_to(one_threshold, (len(BONUS_SCALES), *shape)))
        same.append(np.moveaxis((order[1] < 0).reshape(*shape, -1), -1, 0))
    return Claims(np.stack(lowest), np.stack(below), np.stack(same))


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """The share of panels on which all claims hold; and one row of maps for each claim."""
    del options
    claims = decide(datasets)
    count = f"{len(claims.ucbvi_lowest)} panels, T = {int(datasets['I1']['episode'].values[-1]):,}"
    shares = {title: each.mean(axis=0) for title, each in zip(TITLES, claims, strict=True)}
    return {
        "claims_map": maps(
            {"": claims.together}, f"All three claims of the paper at once: {count}"
        ),
        "claims_map_each": maps(shares, f"The claims of the paper one by one: {count}"),
    }


def fraction(value: float) -> str:
    """A bonus scale as it is written.

    Example:
        >>> fraction(1 / 32), fraction(1.0)
        ('1/32', '1')
    """
    return f"1/{round(1 / value)}" if value < 1 else f"{value:g}"


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """A sentence on whether one choice makes all claims hold, and the best combinations."""
    from jaxbandit.experiment import markdown_table

    del options
    claims = decide(datasets)
    together, panels = claims.together, len(claims.ucbvi_lowest)
    paper = together[:, :, EXPLORATIONS.index(0.5)]
    sentence = (
        f"All three claims hold on all {panels} panels at {int((together == 1).sum())} of {together.size} combinations of "
        f"constants, and at most on {together.max() * panels:.0f} panels anywhere; with the paper's exploration (c = 1/2) at "
        f"{int((paper == 1).sum())} of {paper.size}, and at most on {paper.max() * panels:.0f} panels."
    )
    alone = [
        f"{title}: on all panels at {int(each.all(axis=0).sum())} combinations"
        for title, each in zip(TITLES, claims, strict=True)
    ]
    order = np.argsort(-together, axis=None, kind="stable")[:12]
    rows = [
        [
            fraction(BONUS_SCALES[b]),
            f"{THRESHOLDS[t]:g}",
            f"{EXPLORATIONS[e]:g}",
            *(f"{each[:, b, t, e].sum():.0f}" for each in claims),
            f"{together[b, t, e] * panels:.0f}",
        ]
        for b, t, e in zip(*np.unravel_index(order, together.shape), strict=True)
    ]
    head = ["bonus scale", "threshold", "exploration c", *TITLES, "all three"]
    note = f"Panels of {panels} on which the claims hold, the best twelve combinations:"
    return {
        "claims_map.md": "\n\n".join(
            [sentence, "; ".join(alone) + ".", note, markdown_table(head, rows)]
        )
    }


def maps(shares: dict[str, np.ndarray], title: str) -> Drawn:
    """A row of maps per claim, a column per exploration: bonus scale against threshold.

    ``shares`` are float [bonus scales, thresholds, explorations]; a cell with all panels has a dot.
    """
    from jaxbandit.plotting.figures import NOTE_SIZE, TEXT_SIZE, TICK_SIZE, Drawn, new_figure

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


EXPERIMENT = Experiment(
    name="claims-map",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    outputs={
        "claims_map.png": "the share of panels on which all claims hold, against the constants",
        "claims_map_each.png": "the same for each claim alone",
        "claims_map.md": "whether one choice makes all claims hold, and the best choices",
    },
    takes="about six minutes on two cores; with --full an hour",
)
