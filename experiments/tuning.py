"""The sweep that chose the practical constants: equal budgets, checked on other instances (Section 5).

Each learner gets the same number of settings, and every setting the same instances, seeds and episodes.
The instances are I2 draws that no other experiment uses; the setting of lowest mean regret over them is
checked on further draws, beside the shipped preset, which is what --full chose (T = 2,000,000); at the T of
a quick run another setting may be best.

    ExpRef, OrderedExpRef   3 first accuracies x 3 thresholds x 3 numbers of phases or exploration scales
    UCB-VI                  27 bonus scales
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxbandit.experiments.base import Experiment, Options
from jaxbandit.experiments.prophet import NUM_EPISODES, PAPER_EXPLORATION, panel, random_instances

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plots import Drawn

TRAINING_KEY, CHECKING_KEY = 7001, 7002
"""Roots of instances; neither is that of the reported ones."""
FACTORS = (0.7, 1.0, 1.4)
QUICK, FULL = ((15, 2), (15, 4)), ((15, 2), (15, 4), (20, 3))
"""(H, k) of the instances, without and with --full."""
SEEDS_PER_INSTANCE = 2
LEARNERS = {
    "ExpRef": ("expref", "practical"),
    "OrderedExpRef": ("ordered-expref", "practical"),
    PAPER_EXPLORATION: ("ordered-expref", "practical-paper-exploration"),
    "UCB-VI": ("ucbvi", "practical"),
}
"""Name -> learner and preset; OrderedExpRef is also tuned with the exploration of the paper left alone."""
CENTRES: dict[str, dict[str, float]] = {
    "ExpRef": {"first_epsilon": 0.213, "threshold": 0.064, "num_phases": 4},
    "OrderedExpRef": {"first_epsilon": 0.204, "threshold": 0.055, "exploration_scale": 2.5},
    PAPER_EXPLORATION: {"first_epsilon": 0.235, "threshold": 0.069, "num_phases": 6},
    "UCB-VI": {"bonus_scale": 0.25},
}
"""Where the search starts: values that an earlier, coarser search had found."""


def make(learner: str, **parameters: Any) -> Any:
    """The learner with its preset, some parameters of which may be replaced."""
    import jaxbandit as jb

    key, preset = LEARNERS[learner]
    return jb.make_learner(key, preset=preset, **parameters)


def settings(learner: str) -> dict[str, list[float]]:
    """The values tried for a learner, 27 combinations around its centre.

    Example:
        >>> {name: len(values) for name, values in settings("OrderedExpRef").items()}
        {'first_epsilon': 3, 'threshold': 3, 'exploration_scale': 3}
    """
    centre = CENTRES[learner]
    if learner == "UCB-VI":
        return {"bonus_scale": (centre["bonus_scale"] * 2.0 ** np.linspace(-4.5, 2, 27)).tolist()}
    tried = {name: [centre[name] * factor for factor in FACTORS] for name in ("first_epsilon", "threshold")}
    if learner != "OrderedExpRef":
        return {**tried, "num_phases": [centre["num_phases"] + step for step in (-1, 0, 1)]}
    return {**tried, "exploration_scale": [centre["exploration_scale"] * f for f in (0.5, 1.0, 2.0)]}


def sweeps(options: Options) -> dict[str, dict[str, Any] | Callable[[dict[str, Dataset]], dict[str, Any]]]:
    """The training over all settings, then the check of the chosen ones and of the presets."""
    import jaxbandit as jb

    sizes = FULL if options.full else QUICK
    count = -(-options.choose_seeds(4, full=4) // SEEDS_PER_INSTANCE)
    common = {
        "num_episodes": options.choose_episodes(100_000, full=NUM_EPISODES),
        "num_seeds": SEEDS_PER_INSTANCE,
        "record": jb.record.linear(20),
    }

    def drawn(root: int, number: int) -> dict[str, Any]:
        return {panel("I2", h, k): random_instances(h, k, number, root) for h, k in sizes}

    def check(datasets: dict[str, Dataset]) -> dict[str, Any]:
        learners = {}
        for name in LEARNERS:
            learners[f"{name}, chosen"] = make(name, **chosen(datasets["training"], name))
            learners[f"{name}, preset"] = make(name)
        return {**common, "learners": learners, "instances": drawn(CHECKING_KEY, 2 * count)}

    grids = {name: jb.grid(make(name), **settings(name)) for name in LEARNERS}
    training = {**common, "learners": grids, "instances": drawn(TRAINING_KEY, count)}
    return {"training": training, "check": check}


def mean_regret(training: Dataset, learner: str) -> np.ndarray:
    """Mean final regret over all training runs, per setting [parameter]; nan for those it has not."""
    final = training["regret"].sel(learner=learner).isel(episode=-1)
    return np.asarray(final.mean(["instance", "seed"]).values)


def chosen(training: Dataset, learner: str) -> dict[str, Any]:
    """The parameters of the setting with the lowest mean regret."""
    from jaxbandit import stats

    values = stats.parameter_values(training, learner, int(np.nanargmin(mean_regret(training, learner))))
    found: dict[str, Any] = {name: values[name] for name in settings(learner)}
    return {name: int(value) if name == "num_phases" else value for name, value in found.items()}


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Budgets and chosen settings, the check, and the best ten settings of each learner."""
    from jaxbandit import stats
    from jaxbandit.report import markdown_table

    training, check = datasets["training"], datasets["check"]
    last = check.isel(episode=[-1])
    rows, best = [], []
    for name in LEARNERS:
        regrets = mean_regret(training, name)
        runs = training.sizes["instance"] * training.sizes["seed"]
        budget = (
            f"{np.isfinite(regrets).sum()} settings x {runs} runs x {int(training['episode'].values[-1]):,}"
        )
        pair = [_overall(last, f"{name}, {which}") for which in ("chosen", "preset")]
        gain = _interval(pair[1] - pair[0])
        rows.append([name, budget, _words(chosen(training, name)), *map(_interval, pair), gain])
        for index in np.argsort(regrets)[:10]:
            values = stats.parameter_values(training, name, int(index))
            best.append(
                [name, _words({key: values[key] for key in settings(name)}), f"{regrets[index]:,.0f}"]
            )
    head = ["learner", "budget (episodes)", "chosen", "its regret", "the preset's", "preset minus chosen"]
    note = (
        f"Chosen on {training.sizes['instance']} training instances, checked on {check.sizes['instance']} "
        "others: mean final regret with a 95 % t-interval over the checking instances."
    )
    ranking = markdown_table(["learner", "setting", "mean regret in training"], best)
    return {
        "tuning.md": "\n\n".join(
            [note, markdown_table(head, rows), "The ten best settings of each:", ranking]
        )
    }


def _overall(last: Dataset, learner: str) -> np.ndarray:
    """Final regret of each checking instance, averaged over its seeds, [instances]."""
    return np.asarray(last["regret"].sel(learner=learner).isel(episode=0).mean("seed").values)


def _interval(values: np.ndarray) -> str:
    from jaxbandit.intervals import mean_interval

    found = mean_interval(values, replicates="instances")
    return f"{found.value:,.0f}" + (
        "" if np.isnan(found.low) else f" [{found.low:,.0f} to {found.high:,.0f}]"
    )


def _words(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in parameters.items())


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """UCB-VI's mean regret against its bonus scale, in training."""
    import jaxbandit as jb

    training = datasets["training"].sel(learner=["UCB-VI"])
    first = next(iter(jb.stats.families(training)))
    return {"tuning_ucbvi": jb.plot_parameter(training, "bonus_scale", family=first, y_scale="log")}


EXPERIMENT = Experiment("tuning", __doc__, sweeps, figures, tables)
