"""What sharing episodes between levels buys: shared ExpRef beside ExpRef on the panels of I1 (Section 5).

ExpRef plays the actions of one level at a time; `expref-shared` lets one set of episodes serve all
levels of a stage, and repeats alpha-hat of the phase before in most of its exploration. Both with
practical constants, chosen alike by `tuning` on other instances, at the paper's T. The table has the
mean final regret over that of ExpRef, with intervals that hold jointly for all panels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxbandit.experiment import Experiment, Options

from .prophet import CAPACITIES, HORIZONS, NUM_EPISODES, NUM_VALUES, panel

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

BASE, SHARED = "ExpRef", ("shared ExpRef", "shared OrderedExpRef")
GOAL = 0.5
"""The share of ExpRef's regret that sharing is asked to reach."""


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """All learners on the six panels of I1, in block form."""
    import jaxbandit as jb

    return {
        "I1": {
            "learners": {
                BASE: jb.make_learner("expref", preset="practical"),
                "OrderedExpRef": jb.make_learner("ordered-expref", preset="practical"),
                SHARED[0]: jb.make_learner("expref-shared", preset="practical"),
                SHARED[1]: jb.make_learner("expref-shared", preset="practical", ordered=True),
            },
            "instances": {
                panel("I1", h, k): jb.make_instance(
                    "prophet-uniform", horizon=h, capacity=k, num_values=NUM_VALUES
                )
                for h in HORIZONS
                for k in CAPACITIES
            },
            "num_episodes": options.choose_episodes(NUM_EPISODES, full=NUM_EPISODES),
            "num_seeds": options.choose_seeds(32, full=128),
        }
    }


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """The curves of all panels."""
    import jaxbandit as jb

    return {"sharing": jb.plot_panels(datasets["I1"], title="Shared episodes, practical constants")}


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Regret over ExpRef's per panel, and on how many panels the goal is reached."""
    from jaxbandit import stats
    from jaxbandit.experiment import markdown_table
    from jaxbandit.stats.intervals import warning_line

    from .verdict import ratios

    ds = datasets["I1"]
    final = {(row.family, row.learner): row for row in stats.final_table(ds)}
    found = {name: ratios(ds, name, BASE) for name in SHARED}
    rows = [
        [
            at,
            *(f"{final[at, name].mean:,.0f}" for name in (BASE, *SHARED)),
            *(
                f"{one[j].value:.2f} ({one[j].low:.2f} to {one[j].high:.2f})"
                for one in found.values()
            ),
        ]
        for j, at in enumerate(stats.families(ds))
    ]
    reached = [
        f"{name}: at most {GOAL:g} of ExpRef's regret on {sum(one.value <= GOAL for one in each)} of {len(each)} panels "
        f"({sum(one.high <= GOAL for one in each)} with the whole interval)"
        for name, each in found.items()
    ]
    doubts = [one.doubt for each in found.values() for one in each]
    head = ["panel", BASE, *SHARED, *(f"{name} / {BASE}" for name in SHARED)]
    return {
        "sharing.md": f"{markdown_table(head, rows)}\n\n{'; '.join(reached)}.{warning_line(doubts)}"
    }


EXPERIMENT = Experiment(
    name="sharing",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    takes="about a minute on two cores",
)
