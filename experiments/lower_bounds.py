"""The hard families of Section 4: regret of every learner against the lower-bound expressions
(Theorems 4.1, 4.2).

M^theta (general) and M_{tau,a} (ordered) hide one sequence of actions among N = A^H, or L =
binom(H-1, k) A^k, behind Bernoulli(1/2) noise. With the proof's gap (1/4 sqrt(N/T) and 1/8
sqrt(L/T)) no learner that sees only total rewards can, *on average over the family*, have regret
below a constant times sqrt(NT). `proven` computes the constants of the
proofs: 0.13 to 0.19 for the general sizes here, about 0.1 for the ordered ones. Instances are drawn
from the family, so a learner that likes action 0 gains nothing from it. Three questions:

horizon  Regret over sqrt(NT) against H, all learners, the proof's gap. Bandit learners stay up;
UCB-VI sees the
         trajectory (semi-bandit feedback), is not bound, and on the general family falls below as N
         grows.
gaps     The same with multiples of the proof's gap: from where on do bandit learners find the
needle, and how often is
         the policy that would be played next exactly optimal (final_gap = 0)?
table    The smallest ratio that any bandit learner reached on any family.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit import theory
from jaxbandit.experiment import Experiment, Options
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
from jaxbandit.tabular import write_table

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn
    from jaxbandit.stats.intervals import Estimate

HORIZONS = (2, 4, 12)
ORDERED_HORIZONS = (4, 10)
NUM_DOWNS = 2
NUM_ACTIONS = 2
MULTIPLES = (1, 2, 4, 8, 16)
GAP_HORIZON = 4
LARGEST_GAP = 0.49
NOT_BOUND = "UCB-VI"
"""The only learner here that sees more than total rewards."""


def learners_for(ordered: bool) -> dict[str, Any]:
    """Every bandit learner, and UCB-VI. Practical constants, since the theorems' eliminate nothing
    here."""
    import jaxbandit as jb

    found = {
        "ExpRef": jb.make_learner("expref"),
        "ExpRef (practical)": jb.make_learner("expref", preset="practical"),
        "policy gradient": jb.make_learner("policy-gradient"),
        "uniform": jb.make_learner("uniform"),
        NOT_BOUND: jb.make_learner("ucbvi", bonus_scale=0.1),
    }
    if ordered:
        found["OrderedExpRef"] = jb.make_learner("ordered-expref")
        found["OrderedExpRef (practical)"] = jb.make_learner("ordered-expref", preset="practical")
    return found


def proof_gap(ordered: bool, horizon: int, num_episodes: int) -> float:
    """The gap of the proof."""
    if ordered:
        return float(theory.hard_gap_ordered(horizon, NUM_DOWNS, NUM_ACTIONS, num_episodes))
    return float(theory.hard_gap_general(horizon, NUM_ACTIONS, num_episodes))


def expression(ordered: bool, horizon: int, num_episodes: int) -> float:
    """min(sqrt(NT), T), or min(sqrt(LT), T)."""
    if ordered:
        return float(theory.lower_bound_ordered(horizon, NUM_DOWNS, NUM_ACTIONS, num_episodes))
    return float(theory.lower_bound_general(horizon, NUM_ACTIONS, num_episodes))


def proven(ordered: bool, horizon: int, num_episodes: int) -> float:
    """What the proof shows for the average over the family, as a multiple of the expression.

    With N instances, gap g and T episodes: g (T - T/N - T sqrt(-(T/N) ln(1 - 4 g^2)) / 2).

    Example:
        >>> bool(proven(False, 4, 100_000) > 0.05)
        True
    """
    g = proof_gap(ordered, horizon, num_episodes)
    T = float(num_episodes)
    arms = expression(ordered, horizon, 10**12) ** 2 / 1e12
    told_apart = np.sqrt(-(T / arms) * np.log1p(-4 * g * g)) / 2
    return g * T * (1 - 1 / arms - told_apart) / expression(ordered, horizon, num_episodes)


def draw(
    ordered: bool, horizon: int, num_episodes: int, count: int, multiple: float, seed: int
) -> Any:
    """``count`` instances of the family, with a multiple of the proof's gap (at most 0.49)."""
    import jax

    import jaxbandit as jb

    key = jax.random.fold_in(jax.random.key(seed), horizon)
    common: dict[str, Any] = {
        "count": count, "key": key, "horizon": horizon, "num_actions": NUM_ACTIONS,
        "gap": min(LARGEST_GAP, multiple * proof_gap(ordered, horizon, num_episodes)),
    }  # fmt: skip
    return (
        jb.family("hard-ordered", num_downs=NUM_DOWNS, **common)
        if ordered
        else jb.family("hard-general", **common)
    )


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """Both families against H and against the gap."""
    import jaxbandit as jb

    T = options.choose_episodes(20_000, full=1_000_000)
    count = options.choose_instances(32, full=128)  # the replicates
    plan = {}
    for ordered, horizons in ((False, HORIZONS), (True, ORDERED_HORIZONS)):
        kind = "ordered" if ordered else "general"
        common: dict[str, Any] = {
            "learners": learners_for(ordered), "num_episodes": T, "num_seeds": options.choose_seeds(1, full=1), "record": jb.record.linear(1),
        }  # fmt: skip
        against_h = {f"H={H}": draw(ordered, H, T, count, 1, options.seed) for H in horizons}
        against_gap = {
            f"gap x {m}": draw(ordered, GAP_HORIZON, T, count, m, options.seed)
            for m in MULTIPLES[1:]
        }
        plan[kind] = {**common, "instances": against_h | against_gap}
    return plan


def ratios(ds: Dataset, ordered: bool) -> dict[str, dict[str, Estimate]]:
    """Mean regret over the expression at the proof's gap: learner -> "H=..." -> mean and interval
    over instances."""
    from jaxbandit.stats import mean_interval

    T = int(ds["episode"].values[-1])
    found: dict[str, dict[str, Estimate]] = {}
    for family in dict.fromkeys(str(name) for name in ds["family"].values):
        if family.startswith("H="):
            scale = expression(ordered, int(family[2:]), T)
            chosen = ds["regret"].isel(episode=-1).where(ds["family"] == family, drop=True)
            for learner in chosen["learner"].values:
                values = chosen.sel(learner=learner).mean("seed").values / scale
                mean = mean_interval(values, replicates="instances")
                # no regret is below 0
                found.setdefault(str(learner), {})[family] = mean._replace(low=max(mean.low, 0.0))
    return found


def _multiples(ds: Dataset) -> dict[int, str]:
    """Multiple of the proof's gap -> family."""
    return {1: f"H={GAP_HORIZON}"} | {
        m: f"gap x {m}" for m in MULTIPLES[1:] if f"gap x {m}" in ds["family"].values
    }


def found_shares(ds: Dataset) -> dict[str, dict[int, float]]:
    """Share of runs whose next policy is exactly optimal: learner -> multiple of the gap ->
    share."""
    shares: dict[str, dict[int, float]] = {}
    for multiple, family in _multiples(ds).items():
        chosen = ds["final_gap"].where(ds["family"] == family, drop=True)
        for learner in chosen["learner"].values:
            shares.setdefault(str(learner), {})[multiple] = float(
                np.mean(chosen.sel(learner=learner).values == 0)
            )
    return shares


def relative_regrets(ds: Dataset, ordered: bool) -> dict[str, dict[int, float]]:
    """Mean regret over gap x T (1: the needle is never played): learner -> multiple of the gap ->
    ratio."""
    T = int(ds["episode"].values[-1])
    shares: dict[str, dict[int, float]] = {}
    for multiple, family in _multiples(ds).items():
        gap = min(LARGEST_GAP, multiple * proof_gap(ordered, GAP_HORIZON, T))
        chosen = ds["regret"].isel(episode=-1).where(ds["family"] == family, drop=True)
        for learner in chosen["learner"].values:
            shares.setdefault(str(learner), {})[multiple] = float(
                chosen.sel(learner=learner).mean() / (gap * T)
            )
    return shares


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Ratio against H; regret relative to gap x T and share of needles found against the gap; both
    families."""
    del options
    return {"lower-bounds": draw_ratios(datasets)}


def smallest_ratio(datasets: Mapping[str, Dataset]) -> dict[str, tuple[str, str, Estimate]]:
    """Per family, where a bandit learner came closest to the expression: learner, H, ratio with
    interval."""
    found = {}
    for kind, ds in datasets.items():
        table = ratios(ds, kind == "ordered")
        cells = [
            (name, H, e) for name, row in table.items() if name != NOT_BOUND for H, e in row.items()
        ]
        found[kind] = min(cells, key=lambda cell: cell[2].value)
    return found


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """All ratios, the smallest of a bandit learner, and the shares of needles found."""
    from jaxbandit.stats.intervals import warning_line

    del options
    parts: list[str] = []
    doubts: list[str] = []
    for kind, ds in datasets.items():
        ordered, T = kind == "ordered", int(ds["episode"].values[-1])
        table = ratios(ds, ordered)
        heads = list(next(iter(table.values())))
        rows = [
            [learner, *(f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in row.values())]
            for learner, row in table.items()
        ]
        doubts += [e.warning for row in table.values() for e in row.values()]
        rows.append(["proved", *(f"{proven(ordered, int(h[2:]), T):.3f}" for h in heads)])
        parts.append(write_table([f"{kind}: regret / expression", *heads], rows, "markdown"))
        found = [
            [learner, *(f"{share:.2f}" for share in shares.values())]
            for learner, shares in found_shares(ds).items()
        ]
        head = [f"{kind}: share that found the needle, gap x", *map(str, MULTIPLES)]
        parts.append(write_table(head, found, "markdown"))
        name, H, e = smallest_ratio({kind: ds})[kind]
        interval = f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})"
        parts.append(f"smallest ratio of a bandit learner, {kind}: {interval}, {name}, {H}")
    note = warning_line(doubts).strip()
    return {"lower-bounds.md": "\n\n".join([*parts, note] if note else parts) + "\n"}


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


EXPERIMENT = Experiment(
    name="lower-bounds",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    open_to_learners=False,
    outputs={
        "lower-bounds.png": "regret over the theorems' expressions, and needles found",
        "lower-bounds.md": "all ratios with intervals",
    },
    takes="about 2 minutes on two cores",
)
