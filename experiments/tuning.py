"""The sweep that chose the practical constants: several families and T at once, the worst ratio counts (Section 5).

Every setting of a learner plays the same instances with the same seeds, at three T: one round of the
race that `jaxbandit.tune` with score "worst-ratio" runs. A setting's ratio on a family at one T is its
mean regret over that of the best setting there; chosen is the setting whose largest ratio over the
families of training is smallest. What the race does not know is growth: a setting whose regret still grows
linearly at the longest T is refused, if any other is not. The families of the check were not used for this: the table says how far the chosen
setting, and the shipped preset, are from the best setting on each of them. --full has the T of the presets: 20,000, 200,000 and 2,000,000.

The slack in standard errors of shared ExpRef was devised after its constant had failed on random ordered
MDPs, so for the shared learners these count as training. Prophet bandit plays families with k = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options
from jaxbandit.studies import Tuner
from jaxbandit.studies.tuning import grid_settings, words
from jaxbandit.tabular import write_table

from .families import random_laws, uniform_laws
from .prophet import NUM_EPISODES, NUM_VALUES, PAPER_EXPLORATION, random_instances

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

LINEAR = 1.9
"""Growth of the regret from T/2 to T above which it counts as linear (exactly linear is 2)."""
LEAST = 1e-9
"""A regret of 0 is possible."""
INSTANCE_KEY = 7001
"""Root of the instances; not that of the reported ones."""
CHECK = "check: "
"""Before the names of families that nothing is chosen on."""
SHORTER = (100, 10, 1)
"""The T of the sweeps are the longest divided by these."""
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ExpRef": ("expref", {"preset": "practical"}),
    "OrderedExpRef": ("ordered-expref", {"preset": "practical"}),
    PAPER_EXPLORATION: ("ordered-expref", {"preset": "practical-paper-exploration"}),
    "shared ExpRef": ("expref-shared", {"preset": "practical"}),
    "shared OrderedExpRef": ("expref-shared", {"preset": "practical", "ordered": True}),
    "UCB-VI": ("ucbvi", {"preset": "practical"}),
    "UCB-VI, Bernstein": ("ucbvi", {"preset": "practical-bernstein"}),
    "prophet bandit": ("prophet-bandit", {"preset": "practical"}),
}
"""Name -> learner and what is not tuned; OrderedExpRef also with the exploration of the paper left
alone."""
EPSILONS, THRESHOLDS, PHASES = (0.2, 0.3, 0.42), (0.045, 0.064, 0.09, 0.125), (4, 5, 7)
EXPLORATIONS = (1.25, 2.5, 5.0)
SCHEDULE = {"first_epsilon": EPSILONS, "threshold": THRESHOLDS, "num_phases": PHASES}
SHARED = {
    "first_epsilon": EPSILONS,
    "deviations": (2.0, 2.5, 3.0, 4.0),
    "greedy_share": (0.9, 0.97, 0.99),
}
SETTINGS: dict[str, dict[str, tuple[float, ...]]] = {
    "ExpRef": SCHEDULE,
    "OrderedExpRef": {
        "first_epsilon": EPSILONS,
        "threshold": (0.03, *THRESHOLDS[:3]),
        "exploration_scale": EXPLORATIONS,
    },
    PAPER_EXPLORATION: SCHEDULE,
    "shared ExpRef": SHARED,
    "shared OrderedExpRef": {**SHARED, "exploration_scale": EXPLORATIONS[:2]},
    "UCB-VI": {"bonus_scale": tuple(2.0**power for power in range(-7, -1))},
    "UCB-VI, Bernstein": {"bonus_scale": tuple(2.0**power for power in range(-10, -4))},
    "prophet bandit": {
        "first_epsilon": (0.15, 0.21, 0.3, 0.42),
        "threshold_scale": (0.005, 0.01, 0.02, 0.04, 0.08),
    },
}
"""The values tried, all combinations of them."""
SINGLE, ONE_PICK = ("prophet bandit",), " k=1"
"""Who plays MDPs with k = 1 alone, and the end of their families' names."""
EPISODE_BY_EPISODE = ("UCB-VI", "UCB-VI, Bernstein")
"""Who is simulated so; the others run in blocks, a thousand times as fast, and have more seeds."""
SINGLE_END, BLOCKS_END = "-single", "-blocks"
"""The ends of the names of sweeps."""
RANDOM = "random ordered H=6 k=3"
ALSO_TRAINING = {"shared ExpRef": RANDOM, "shared OrderedExpRef": RANDOM}
"""Families of the check that are training for some."""


class Cell(NamedTuple):
    """Regrets of S settings on the instances of a family at one T, paired."""

    final: np.ndarray
    """float [S, instances, seeds]."""
    half: np.ndarray | None
    """The same at T/2; None if growth is not looked at."""


class Judged(NamedTuple):
    """Settings on some cells: S settings, C cells."""

    race: Tuner
    """The race, after one round on all instances of all cells."""
    growths: np.ndarray
    """float [S, C]: mean final regret over that at T/2; nan on cells where growth is not looked at."""

    @property
    def ratios(self) -> np.ndarray:
        """float [S, C]: mean final regret over that of the best setting of the cell."""
        return self.race.ratios

    @property
    def worst(self) -> np.ndarray:
        """float [S]: the largest ratio of each setting."""
        return np.asarray(self.ratios.max(axis=1))

    @property
    def linear(self) -> np.ndarray:
        """bool [S]: whether the regret is still linear on some cell."""
        return linear(self.growths)

    @property
    def choice(self) -> int:
        """The setting of smallest worst ratio that is not linear; the first of equals."""
        best = self.race.best.settings
        return [one.settings for one in self.race.candidates].index(best)

    @property
    def tied(self) -> int:
        """How many settings that are not linear cannot be told from the chosen one, itself included."""
        return len(self.race.tied)

    def is_tied(self, index: int) -> bool:
        """Whether a setting is one of those."""
        return self.race.candidates[index].dropped is None


def linear(growths: np.ndarray) -> np.ndarray:
    """Whether settings [S, C] grow too fast on some cell; nan is no growth."""
    return np.asarray((growths > LINEAR).any(axis=1))


def judge(settings: Sequence[Mapping[str, float]], cells: Sequence[Cell]) -> Judged:
    """The settings in a race on all cells.

    Example:
        >>> cells = [Cell(np.array([[[a, a]], [[b, b]]]), None) for a, b in [(1.0, 2.0), (9.0, 3.0)]]
        >>> found = judge([{"threshold": 0.1}, {"threshold": 0.2}], cells)
        >>> found.worst.tolist(), found.choice
        ([3.0, 2.0], 1)
    """
    growths = np.full((len(settings), len(cells)), np.nan)
    for column, cell in enumerate(cells):
        if cell.half is not None:
            ended, halved = cell.final.mean(axis=(1, 2)), cell.half.mean(axis=(1, 2))
            growths[:, column] = ended / np.maximum(halved, LEAST)
    refused = linear(growths) & ~linear(growths).all()
    finals = np.concatenate([cell.final for cell in cells], axis=1)
    ends = np.cumsum([cell.final.shape[1] for cell in cells])
    race = Tuner(
        finals.shape[1],
        finals.size,
        first_seeds=finals.shape[2],
        score="worst-ratio",
        tasks=[
            range(end - cell.final.shape[1], end) for end, cell in zip(ends, cells, strict=True)
        ],
    )
    race.add(settings)
    asked = race.ask()
    assert asked is not None  # the budget is what was run
    race.tell(asked, finals, np.flatnonzero(refused))
    return Judged(race, growths)


def cell_of(ds: Dataset, learner: str, names: Sequence[str], count: int, grows: bool) -> Cell:
    """The first ``count`` settings of a learner on the instances of a family."""
    runs = ds["regret"].sel(learner=learner, instance=names)
    curves = runs.transpose("parameter", "instance", "seed", "episode").values[:count]
    middle = curves[..., curves.shape[-1] // 2 - 1]
    return Cell(curves[..., -1], middle if grows else None)


def make(learner: str) -> Any:
    """The learner with its preset."""
    import jaxbandit as jb

    key, fixed = LEARNERS[learner]
    return jb.make_learner(key, **fixed)


def instances(count: int, single: bool = False) -> dict[str, Any]:
    """``count`` draws of every family, for training and for the check; ``single``: with k = 1."""
    import jax

    import jaxbandit as jb

    keys = jax.random.split(jax.random.key(INSTANCE_KEY), 3)
    if single:
        sizes = {"horizon": 15, "capacity": 1, "num_values": NUM_VALUES}
        small = {"horizon": 6, "width": 1, "num_actions": NUM_VALUES}
        laws = random_laws((10, 1, NUM_VALUES), count, INSTANCE_KEY)
        return {
            "I2 H=15" + ONE_PICK: random_instances(15, 1, count, INSTANCE_KEY),
            "I2 H=6" + ONE_PICK: random_instances(6, 1, count, INSTANCE_KEY),
            "posted pricing H=15" + ONE_PICK: jb.family(
                "posted-pricing-random", count=count, key=keys[0], **sizes
            ),
            CHECK + "I1 H=15" + ONE_PICK: uniform_laws((15, 1, NUM_VALUES), count),
            CHECK + "prophet, random laws H=10" + ONE_PICK: laws,
            CHECK + "random ordered H=6" + ONE_PICK: jb.family(
                "random-ordered", count=count, key=keys[2], **small
            ),
        }
    sizes = {"horizon": 15, "capacity": 2, "num_values": NUM_VALUES}
    items = {"horizon": 15, "budget": 3, "num_outcomes": 4}
    small = {"horizon": 6, "width": 3, "num_actions": NUM_VALUES}
    return {
        "I2 H=15 k=2": random_instances(15, 2, count, INSTANCE_KEY),
        "I2 H=6 k=3": random_instances(6, 3, count, INSTANCE_KEY),
        "posted pricing H=15 k=2": jb.family(
            "posted-pricing-random", count=count, key=keys[0], **sizes
        ),
        CHECK + "I1 H=15 k=2": uniform_laws((15, 2, NUM_VALUES), count),
        CHECK + "knapsack, 15 items, budget 3": jb.family(
            "knapsack-random", count=count, key=keys[1], **items
        ),
        CHECK + RANDOM: jb.family("random-ordered", count=count, key=keys[2], **small),
    }


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """For each T all settings of all learners on all families; those with k = 1, in blocks and episode
    by episode apart."""
    import jaxbandit as jb

    longest = options.choose_episodes(100_000, full=NUM_EPISODES)
    count = options.choose_instances(4, full=8)
    in_blocks = [name for name in LEARNERS if name not in (*SINGLE, *EPISODE_BY_EPISODE)]
    found = {}
    for end, names, full_seeds in (
        (SINGLE_END, SINGLE, 4),
        (BLOCKS_END, in_blocks, 4),
        ("", EPISODE_BY_EPISODE, 1),
    ):
        seeds = options.choose_seeds(1, full=full_seeds)
        if count == seeds == 1:
            raise ValueError("instances: 1 with 1 seed; accepted: at least 2 of either, to compare")
        for shorter in SHORTER:
            found[f"T{longest // shorter}{end}"] = {
                "learners": {
                    name: jb.points(make(name), grid_settings(SETTINGS[name])) for name in names
                },
                "instances": instances(count, single=end == SINGLE_END),
                "num_episodes": longest // shorter,
                "num_seeds": seeds,
                "record": jb.record.linear(2),
            }
    return found


def places(
    datasets: dict[str, Dataset], learner: str, check: bool = False
) -> list[tuple[Dataset, str, list[str]]]:
    """The cells of a learner, for training or for the check: results, family and its instances."""
    from jaxbandit import stats

    found = []
    for ds in datasets.values():
        if learner in ds["learner"].values:
            for family, names in stats.families(ds).items():
                unused = family.startswith(CHECK)
                unused = unused and family.removeprefix(CHECK) != ALSO_TRAINING.get(learner)
                if unused == check:
                    found.append((ds, family.removeprefix(CHECK), names))
    return found


def judged(datasets: dict[str, Dataset], learner: str, check: bool = False) -> Judged:
    """The settings of a learner on the cells of training or of the check, T by T."""
    settings = grid_settings(SETTINGS[learner])
    longest = max(int(ds["episode"].values[-1]) for ds in datasets.values())
    return judge(
        settings,
        [
            cell_of(
                ds, learner, names, len(settings), grows=int(ds["episode"].values[-1]) == longest
            )
            for ds, _, names in places(datasets, learner, check)
        ],
    )


def cells(datasets: dict[str, Dataset], learner: str, check: bool = False) -> tuple[str, ...]:
    """The names of the cells of `judged`."""
    return tuple(
        f"{family}, T = {int(ds['episode'].values[-1]):,}"
        for ds, family, _ in places(datasets, learner, check)
    )


def preset_of(learner: str) -> int | None:
    """The index of the shipped preset among the settings; None if it was not tried."""
    params = make(learner).params
    for index, setting in enumerate(grid_settings(SETTINGS[learner])):
        if all(np.isclose(float(params[name]), value) for name, value in setting.items()):
            return index
    return None


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """What was chosen, how far it is from the best everywhere, and the best settings of each learner."""
    rows, best = [], []
    far: dict[tuple[str, ...], list[list[str]]] = {}
    for name in LEARNERS:
        settings = grid_settings(SETTINGS[name])
        training, check = judged(datasets, name), judged(datasets, name, check=True)
        preset = preset_of(name)
        for word, index in (("chosen", training.choice), ("preset", preset)):
            if index is None:
                rows.append(
                    [name, f"{word}: not among the {len(settings)} tried", "", "", "", "", ""]
                )
                continue
            growth = [np.nanmax(part.growths[index]) for part in (training, check)]
            told = f"{training.tied} of {len(settings)}"
            if word == "preset":
                told = "one of them" if training.is_tied(index) else "told"
            rows.append(
                [
                    name,
                    f"{word}: {words(settings[index])}",
                    f"{training.worst[index]:.2f}",
                    f"{check.worst[index]:.2f}",
                    f"{growth[0]:.2f}",
                    f"{growth[1]:.2f}",
                    told,
                ]
            )
        elsewhere = [f"{ratio:.2f}" for ratio in check.ratios[training.choice]]
        far.setdefault(cells(datasets, name, check=True), []).append([name, *elsewhere])
        ranked = np.argsort(np.where(training.linear, np.inf, training.worst), kind="stable")
        for index in ranked[:6]:
            shown = (training.worst, check.worst, np.nanmax(training.growths, axis=1))
            best.append(
                [name, words(settings[index]), *(f"{column[index]:.2f}" for column in shown)]
            )
    counts = {name: ds.sizes["seed"] for ds in datasets.values() for name in ds["learner"].values}
    instances_each = next(iter(datasets.values())).sizes["instance"] // 6
    few = ", ".join(f"{name} {counts[name]}" for name in EPISODE_BY_EPISODE)
    note = (
        f"Ratios are mean final regret over that of the best setting of the same family and T, the largest over "
        f"{len(cells(datasets, 'ExpRef'))} cells of training and {len(cells(datasets, 'ExpRef', check=True))} of the check (the "
        f"shared learners have {RANDOM} among the former); growth is from T/2 to T at the longest T, "
        f"the largest over its families. {instances_each} instances a family, {counts['ExpRef']} run(s) "
        f"on each ({few}): the best of many settings is lower by chance, so ratios are rather too large. Not told from the "
        "chosen one, itself included: those "
        "that the race does not drop (95 % for all of them together), which says how much these runs can decide."
    )
    head = [
        "learner",
        "setting",
        "worst ratio",
        "in the check",
        "growth",
        "in the check",
        "not told",
    ]
    ranking = ["learner", "setting", "worst ratio", "in the check", "growth"]
    parts = [
        note,
        write_table(head, rows, "markdown"),
        "Ratios of the chosen setting on the families that were not used:",
        *(write_table(["learner", *where], found, "markdown") for where, found in far.items()),
        "The six best settings of each that are not linear:",
        write_table(ranking, best, "markdown"),
    ]
    return {"tuning.md": "\n\n".join(parts)}


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """UCB-VI's mean regret against its bonus scale at the longest T, on the first family."""
    import jaxbandit as jb

    longest = list(datasets.values())[-1].sel(learner=["UCB-VI"])
    first = next(iter(jb.stats.families(longest)))
    return {"tuning_ucbvi": jb.plot_parameter(longest, "bonus_scale", family=first, y_scale="log")}


EXPERIMENT = Experiment(
    name="tuning", description=__doc__, sweeps=sweeps, figures=figures, tables=tables
)
