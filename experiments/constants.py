"""Theory against practical constants, and UCB-VI's regret against the scale of its bonus (Section
5).

The paper does not say which constants produced its figures. With those of the theorems nothing is
eliminated before the last stages at T = 2,000,000, so the regret of ExpRef and OrderedExpRef is
linear in T; the practical constants give the guarantee up. UCB-VI's bonus is c sqrt(L / N); its
regret depends on c more than the learners differ from each other, so "UCB-VI is lowest" is a
statement about c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxbandit.experiment import Experiment, Options

from .prophet import CONSTANTS, NUM_EPISODES, NUM_VALUES, PAPER_EXPLORATION, panel

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

BONUS_SCALES = (1 / 64, 1 / 32, 1 / 16, 0.125, 0.25, 0.5, 1.0, 2.0)
SIZE = (15, 2)
"""(H, k)."""


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """All learners with both kinds of constants, and UCB-VI over bonus scales with the others
    beside it."""
    import jaxbandit as jb

    from .prophet import learners

    instance = jb.make_instance(
        "prophet-uniform", horizon=SIZE[0], capacity=SIZE[1], num_values=NUM_VALUES
    )
    chosen = {constants: learners(constants) for constants in CONSTANTS}
    presets = {
        f"{name}, {constants}": chosen[constants][name]
        for name in chosen["theory"]
        for constants in CONSTANTS
    }
    bonus = {
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=BONUS_SCALES),
        **{
            f"{name} (practical)": chosen["practical"][name] for name in ("ExpRef", "OrderedExpRef")
        },
    }
    common = {
        "instances": {panel("I1", *SIZE): instance},
        "num_episodes": options.choose_episodes(200_000, full=NUM_EPISODES),
        "num_seeds": options.choose_seeds(8, full=32),
    }
    presets[f"{PAPER_EXPLORATION}, practical"] = chosen["practical"][PAPER_EXPLORATION]
    return {"presets": {**common, "learners": presets}, "bonus": {**common, "learners": bonus}}


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Regret with both kinds of constants on log-log axes, and UCB-VI against its bonus scale."""
    import jaxbandit as jb

    name = panel("I1", *SIZE)
    return {
        "constants": jb.plot_regret(
            datasets["presets"], scale="loglog", slope_guides=(0.5, 1), phases=False, size=(6.4, 4.0),
            title=f"{name}: theory and practical constants",
        ),
        "bonus_scale": jb.plot_parameter(
            datasets["bonus"], "bonus_scale", y_scale="log", title=f"{name}: the scale of UCB-VI's bonus"
        ),
    }  # fmt: skip


EXPERIMENT = Experiment(
    "constants",
    __doc__,
    sweeps,
    figures,
    outputs={
        "constants.png": "regret with both kinds of constants, on log-log axes",
        "bonus_scale.png": "final regret of UCB-VI against the scale of its bonus",
        "final_regret.txt": "final regrets with intervals",
    },
)
