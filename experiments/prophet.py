"""The paper's regret figure: prophet inequalities I1 and I2, three learners (Section 5).

The paper: I1 and I2, H in {15, 20}, k in {2, 3, 4}, A = 5, T = 2,000,000, one curve per learner,
without saying how many runs or which constants. Here every panel has confidence bands, and there
are two figures: one with the constants of the theorems, one with the `practical` constants (chosen
by the `tuning` experiment on other instances), where OrderedExpRef also appears with the paper's
exploration probability k/(2H).

I1 is one instance, so its seeds are the replicates. I2 is drawn at random: a panel averages over
several drawn instances, and these are the replicates. Instances of the two kinds of constants, and
all learners, are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxbandit.experiment import Experiment, Options

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn
    from jaxbandit.stats import Row

HORIZONS, CAPACITIES, NUM_VALUES = (15, 20), (2, 3, 4), 5
NUM_EPISODES = 2_000_000
INSTANCE_KEY = 2026
"""Root of the reported I2 instances; the `tuning` experiment draws from other roots."""
QUICK = ((15, 2), (15, 3))
"""(H, k) of the panels without --full."""
CONSTANTS = ("theory", "practical")
PAPER_EXPLORATION = "OrderedExpRef, paper exploration"


def labelled(name: str, constants: str) -> str:
    """A learner's name in the sweeps, which hold both kinds of constants.

    Example:
        >>> labelled("ExpRef", "theory")
        'ExpRef (theory)'
    """
    return f"{name} ({constants})"


def learners(constants: str) -> dict[str, Any]:
    """The three learners with one kind of constants, and the fourth that only differs with
    practical ones.

    Example:
        >>> list(learners("practical"))
        ['ExpRef', 'OrderedExpRef', 'OrderedExpRef, paper exploration', 'UCB-VI']
    """
    import jaxbandit as jb

    chosen = {
        "ExpRef": jb.make_learner("expref", preset=constants),
        "OrderedExpRef": jb.make_learner("ordered-expref", preset=constants),
    }
    if constants == "practical":
        chosen[PAPER_EXPLORATION] = jb.make_learner(
            "ordered-expref", preset="practical-paper-exploration"
        )
    return {**chosen, "UCB-VI": jb.make_learner("ucbvi", preset=constants)}


def panel(kind: str, horizon: int, capacity: int) -> str:
    """The name of a panel.

    Example:
        >>> panel("I2", 15, 3)
        'I2 H=15 k=3'
    """
    return f"{kind} H={horizon} k={capacity}"


def random_instances(horizon: int, capacity: int, count: int, root: int = INSTANCE_KEY) -> Any:
    """I2 draws of one size, stacked; sizes have keys of their own."""
    import jax

    import jaxbandit as jb

    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(root), horizon), capacity)
    return jb.family(
        "prophet-random",
        count=count,
        key=key,
        horizon=horizon,
        capacity=capacity,
        num_values=NUM_VALUES,
    )


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """One sweep with both kinds of constants, or with --full two: I1 with many seeds, I2 with many
    instances.

    Without --full, I1 and I2 share tiles and so compilations: 6 seeds of everything, 6 instances
    of I2. With --full a panel of I2 has as many runs as one of I1, two for each instance: instances
    are the replicates, so there should be many of them.
    """
    import jaxbandit as jb

    sizes = [(h, k) for h in HORIZONS for k in CAPACITIES] if options.full else QUICK
    seeds = options.choose_seeds(6, full=32)
    count, each = options.choose_instances(6, full=16), options.choose_seeds(6, full=2)
    uniform = {
        panel("I1", h, k): jb.make_instance(
            "prophet-uniform", horizon=h, capacity=k, num_values=NUM_VALUES
        )
        for h, k in sizes
    }
    drawn = {panel("I2", h, k): random_instances(h, k, count) for h, k in sizes}
    parts = (
        {"I1": (uniform, seeds), "I2": (drawn, each)}
        if options.full
        else {"both": (uniform | drawn, seeds)}
    )
    episodes = options.choose_episodes(100_000, full=NUM_EPISODES)
    contestants = {
        labelled(name, constants): learner
        for constants in CONSTANTS
        for name, learner in learners(constants).items()
    }
    return {
        kind: {
            "learners": contestants,
            "instances": instances,
            "num_episodes": episodes,
            "num_seeds": number,
        }
        for kind, (instances, number) in parts.items()
    }


def joined(datasets: dict[str, Dataset], constants: str, added: bool = False) -> Dataset:
    """I1 and I2 with one kind of constants as one Dataset, with the user's learners if wanted."""
    from jaxbandit.experiment import join

    whole = join(*datasets.values())
    names = {labelled(name, constants): name for name in learners(constants)}
    ours = {labelled(name, kind) for kind in CONSTANTS for name in learners(kind)}
    if added:
        names |= {str(name): str(name) for name in whole["learner"].values if name not in ours}
    return whole.sel(learner=list(names)).assign_coords(learner=list(names.values()))


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """A grid of panels for each kind of constants: rows I1 and I2 (and H), columns k."""
    import jaxbandit as jb

    drawn = {}
    for constants in CONSTANTS:
        both = joined(datasets, constants, added=True)
        episodes = int(both["episode"].values[-1])
        panels = list(jb.stats.families(both))
        columns = len({name.split("k=")[1] for name in panels})
        size = "" if episodes >= NUM_EPISODES else f", not the paper's {NUM_EPISODES:,}"
        title = (
            f"Prophet inequality, A = {NUM_VALUES}, {constants} constants, T = {episodes:,}{size}"
        )
        drawn[f"prophet_{constants}"] = jb.plot_panels(
            both,
            columns=columns,
            title=title,
            panel_size=(7.2 / columns, 4.6 / columns),
            inset=True,
        )
    return drawn


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Final regrets, and the paper's claims about them."""
    from jaxbandit.experiment import final_table

    from .verdict import claims_about_regret

    both = {f"{c} constants": joined(datasets, c, added=True) for c in CONSTANTS}
    verdict = claims_about_regret(
        {constants: joined(datasets, constants) for constants in CONSTANTS}
    )
    return {
        "final_regret.txt": final_table(both),
        "claims.md": verdict,
        "summary.md": summary(datasets),
    }


def summary(datasets: dict[str, Dataset]) -> str:
    """All final regrets on one page: a row per panel, a column per learner, in thousands."""
    from jaxbandit import stats
    from jaxbandit.experiment import markdown_table
    from jaxbandit.stats.intervals import warning_line

    columns: dict[str, dict[str, str]] = {}
    doubts = []
    for constants in CONSTANTS:
        for row in stats.final_table(joined(datasets, constants)):
            doubts.append(row.warning)
            cell = _in_thousands(row)
            columns.setdefault(labelled(row.learner, constants), {})[row.family] = cell
    panels = list(next(iter(columns.values())))
    rows = [[name, *(column.get(name, "") for column in columns.values())] for name in panels]
    note = (
        "Final regret in thousands, mean ± half of the 95 % t-interval over seeds (I1) or instances (I2); "
        f"both ends where it would reach below 0.{warning_line(doubts)}"
    )
    return f"{note}\n\n{markdown_table(['panel', *columns], rows)}"


def _in_thousands(row: Row) -> str:
    """Mean and interval; one that was cut off at 0 lies not evenly about the mean."""
    mean, low, high = (x / 1000 for x in (row.mean, row.low, row.high))
    return (
        f"{mean:.3g} ({low:.2g} to {high:.2g})"
        if low == 0 < high
        else f"{mean:.3g} ± {high - mean:.2g}"
    )


def expect(datasets: dict[str, Dataset], options: Options) -> str:
    """What to make of curves that are shorter than the paper's."""
    import numpy as np

    episodes = max(int(ds["episode"].values[-1]) for ds in datasets.values())
    if episodes >= NUM_EPISODES:
        return ""
    finished = []
    for constants in CONSTANTS:
        both = joined(datasets, constants)
        for name in ("ExpRef", "OrderedExpRef") if "phase_end" in both else ():
            ends = both["phase_end"].sel(learner=name).notnull().sum("phase")
            ran = both["regret"].sel(learner=name).isel(episode=-1).notnull()
            count = int(np.median(ends.values[ran.transpose(*ends.dims).values]))
            finished.append(f"{labelled(name, constants)} {count}")
    phases = f" Phases finished so far, in the median run: {', '.join(finished)}."
    return (
        f"What to expect at T = {episodes:,}: ExpRef and OrderedExpRef work in phases, whose ends are the "
        "circles on their curves. A phase refines the last stage first and the first stage last, so its "
        "arc is steep at first and flat at its end; the next phase explores again and starts another arc."
        f"{phases if finished else ''} With the constants of the theorems no action is eliminated before "
        "the paper's T of 2,000,000: every arc has the average slope of the one before, so regret grows "
        "linearly from phase to phase. OrderedExpRef above ExpRef is expected at this size: ordered exploration "
        "tends to reject early offers, which earns less than random play and pays off only after elimination "
        "starts. For a paper, take the practical constants and state them. The paper's size: --full."
    )


EXPERIMENT = Experiment(
    name="prophet",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    outputs={
        "prophet_practical.png": "the figure with practical constants (also .svg, .pdf)",
        "prophet_theory.png": "the figure with the constants of the theorems",
        "final_regret.txt": "final regrets with intervals, per panel and learner",
        "summary.md": "the same on one page",
        "claims.md": "the paper's claims about regret, each with a verdict",
        "both.nc (I1.nc, I2.nc)": "the results, to be read with jaxbandit.load",
    },
    takes="about half a minute on two cores; with --full (12 panels, T = 2,000,000) about 6 minutes",
    expect=expect,
)
