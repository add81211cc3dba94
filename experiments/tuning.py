"""The sweep that chose the practical constants: equal budgets, checked on other instances (Section
5).

Each learner starts with the same number of settings, and every setting with the same instances,
seeds and episodes. Settings that are clearly worse than the best are dropped, the others run with as
many seeds again (`jaxbandit.Tuner`), and the one of lowest mean regret is chosen. The instances are I2
draws that no other experiment uses; the chosen setting is checked on further draws, beside the
shipped preset, which is what --full chose (T = 2,000,000); at the T of a quick run another setting
may be best.

    ExpRef, OrderedExpRef   3 first accuracies x 3 thresholds x 3 numbers of phases or exploration
                            scales
    UCB-VI                  27 bonus scales
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.experiment.contract import Experiment, Options
from jaxbandit.studies.racing import STRIDE, Tuner
from jaxbandit.studies.spaces import grid_settings
from jaxbandit.studies.tuning import words
from jaxbandit.tabular import write_table

from .prophet import NUM_EPISODES, PAPER_EXPLORATION, panel, random_instances

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.curves import Drawn

TRAINING_KEY, CHECKING_KEY = 7001, 7002
"""Roots of instances; neither is that of the reported ones."""
FACTORS = (0.7, 1.0, 1.4)
QUICK, FULL = ((15, 2), (15, 4)), ((15, 2), (15, 4), (20, 3))
"""(H, k) of the instances, without and with --full."""
SEEDS_PER_INSTANCE = 2
ROUNDS = ("training", "second")
"""The sweeps of the race."""
UNLIMITED = 10**9
"""The race is limited by its rounds, not by a number of runs."""
LEARNERS = {
    "ExpRef": ("expref", "practical"),
    "OrderedExpRef": ("ordered-expref", "practical"),
    PAPER_EXPLORATION: ("ordered-expref", "practical-paper-exploration"),
    "UCB-VI": ("ucbvi", "practical"),
}
"""Name -> learner and preset; OrderedExpRef is also tuned with the exploration of the paper left
alone."""
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
    tried = {
        name: [centre[name] * factor for factor in FACTORS]
        for name in ("first_epsilon", "threshold")
    }
    if learner != "OrderedExpRef":
        return {**tried, "num_phases": [centre["num_phases"] + step for step in (-1, 0, 1)]}
    return {
        **tried,
        "exploration_scale": [centre["exploration_scale"] * f for f in (0.5, 1.0, 2.0)],
    }


def sweeps(
    options: Options,
) -> dict[str, dict[str, Any] | Callable[[dict[str, Dataset]], dict[str, Any]]]:
    """The race over all settings in two rounds, then the check of the chosen ones and of the presets."""
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

    def second(datasets: dict[str, Dataset]) -> dict[str, Any]:
        racing = {name: race(datasets, name, options) for name in LEARNERS}
        left = {name: [found.settings for found in tuner.tied] for name, tuner in racing.items()}
        return {
            **common,
            "learners": {name: jb.points(make(name), tried) for name, tried in left.items()},
            "instances": drawn(TRAINING_KEY, count),
            "seed": options.seed + STRIDE,
        }

    def check(datasets: dict[str, Dataset]) -> dict[str, Any]:
        learners = {}
        for name in LEARNERS:
            learners[f"{name}, chosen"] = make(name, **chosen(datasets, name, options))
            learners[f"{name}, preset"] = make(name)
        return {**common, "learners": learners, "instances": drawn(CHECKING_KEY, 2 * count)}

    grids = {name: jb.points(make(name), grid_settings(settings(name))) for name in LEARNERS}
    training = {**common, "learners": grids, "instances": drawn(TRAINING_KEY, count)}
    return {"training": training, "second": second, "check": check}


def race(datasets: dict[str, Dataset], learner: str, options: Options) -> Tuner:
    """The race of a learner's settings after the rounds that are there."""
    rounds = [datasets[label] for label in ROUNDS if label in datasets]
    tuner = Tuner(rounds[0].sizes["instance"], UNLIMITED, first_seeds=SEEDS_PER_INSTANCE, seed=options.seed)  # fmt: skip
    tuner.add(grid_settings(settings(learner)))
    for dataset in rounds:
        asked = tuner.ask()
        if asked is not None:  # one setting was left: its further runs change nothing
            tuner.tell(asked, final_regrets(dataset, learner)[: len(asked.candidates)])
    return tuner


def final_regrets(dataset: Dataset, learner: str) -> np.ndarray:
    """Final regret of every run of a learner, [settings, instances, seeds]."""
    last = dataset["regret"].sel(learner=learner).isel(episode=-1)
    last = last if "parameter" in last.dims else last.expand_dims("parameter")
    return np.asarray(last.transpose("parameter", "instance", "seed").values)


def chosen(datasets: dict[str, Dataset], learner: str, options: Options) -> dict[str, Any]:
    """The parameters of the setting with the lowest mean regret among those still in the race."""
    found: dict[str, Any] = race(datasets, learner, options).best.settings
    return {name: int(value) if name == "num_phases" else value for name, value in found.items()}


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Budgets and chosen settings, the check, and the best ten settings of each learner."""
    training, check = datasets["training"], datasets["check"]
    last = check.isel(episode=[-1])
    rows, best = [], []
    for name in LEARNERS:
        tuner = race(datasets, name, options)
        runs = training.sizes["instance"] * training.sizes["seed"]
        tried, left = len(tuner.candidates), tuner.spent // runs - len(tuner.candidates)
        budget = f"{tried} settings x {runs} runs x {int(training['episode'].values[-1]):,}"
        budget += f", then {left}" if left else ""
        pair = [_overall(last, f"{name}, {which}") for which in ("chosen", "preset")]
        gain = _interval(pair[1] - pair[0])
        rows.append(
            [name, budget, words(chosen(datasets, name, options)), *map(_interval, pair), gain]
        )
        ranked = sorted(tuner.candidates, key=lambda found: found.regret.value)
        for found in ranked[:10]:
            dropped = "" if found.dropped is None else f"after round {found.dropped}"
            best.append([name, words(found.settings), f"{found.regret.value:,.0f}", dropped])
    head = [
        "learner",
        "budget (episodes)",
        "chosen",
        "its regret",
        "the preset's",
        "preset minus chosen",
    ]
    note = (
        f"Chosen on {training.sizes['instance']} training instances, checked on {check.sizes['instance']} "
        "others: mean final regret with a 95 % t-interval over the checking instances. Settings that were "
        "clearly worse after the first round (95 % for all of a learner's settings) did not run again."
    )
    columns = ["learner", "setting", "mean regret in training", "dropped"]
    ranking = write_table(columns, best, "markdown")
    choice = write_table(head, rows, "markdown")
    return {"tuning.md": "\n\n".join([note, choice, "The ten best settings of each:", ranking])}


def _overall(last: Dataset, learner: str) -> np.ndarray:
    """Final regret of each checking instance, averaged over its seeds, [instances]."""
    return np.asarray(last["regret"].sel(learner=learner).isel(episode=0).mean("seed").values)


def _interval(values: np.ndarray) -> str:
    from jaxbandit.stats.intervals import mean_interval

    found = mean_interval(values, replicates="instances")
    return f"{found.value:,.0f}" + (
        "" if np.isnan(found.low) else f" [{found.low:,.0f} to {found.high:,.0f}]"
    )


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """UCB-VI's mean regret against its bonus scale, in the first round."""
    import jaxbandit as jb

    training = datasets["training"].sel(learner=["UCB-VI"])
    first = next(iter(jb.stats.families(training)))
    return {"tuning_ucbvi": jb.plot_parameter(training, "bonus_scale", family=first, y_scale="log")}


EXPERIMENT = Experiment("tuning", __doc__, sweeps, figures, tables)
