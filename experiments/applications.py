"""Posted pricing and knapsack with the same three learners (the applications of Section 3.3).

Instances are drawn at random: valuations, or items with correlated rewards and costs. A panel
averages over several of them, and these are the replicates. The practical constants are those that
were tuned on prophet inequalities; nothing was tuned here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxbandit.experiment import Experiment, Options

from .prophet import CONSTANTS, NUM_EPISODES

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

INSTANCE_KEY = 331
SEEDS_PER_INSTANCE = 2


def instances(count: int) -> dict[str, Any]:
    """``count`` draws of each application: H = 15 customers or items."""
    import jax

    import jaxbandit as jb

    pricing, knapsack = (
        jax.random.fold_in(jax.random.key(INSTANCE_KEY), role) for role in range(2)
    )
    return {
        "posted pricing, H = 15, k = 2, 5 prices": jb.family(
            "posted-pricing-random", count=count, key=pricing, horizon=15, capacity=2, num_values=5
        ),
        "knapsack, 15 items, budget 3": jb.family(
            "knapsack-random", count=count, key=knapsack, horizon=15, budget=3, num_outcomes=4
        ),
    }


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """One sweep for each kind of constants, two seeds for each drawn instance."""
    from .prophet import learners

    common = {
        "instances": instances(options.choose_instances(8, full=16)),
        "num_episodes": options.choose_episodes(200_000, full=NUM_EPISODES),
        "num_seeds": options.choose_seeds(SEEDS_PER_INSTANCE, full=SEEDS_PER_INSTANCE),
    }
    return {constants: {**common, "learners": learners(constants)} for constants in CONSTANTS}


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Both applications side by side, for each kind of constants."""
    import jaxbandit as jb

    return {
        f"applications_{constants}": jb.plot_panels(
            datasets[constants],
            columns=2,
            panel_size=(3.4, 2.3),
            inset=True,
            title=f"Applications, {constants} constants",
        )
        for constants in CONSTANTS
    }


EXPERIMENT = Experiment(
    "applications",
    __doc__,
    sweeps,
    figures,
    outputs={
        "applications_practical.png": "regret with practical constants, pricing beside knapsack",
        "applications_theory.png": "the same with the constants of the theorems",
        "final_regret.txt": "final regrets with intervals",
    },
)
