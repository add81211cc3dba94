"""Running times, Tables 1 and 2 again: one seed alone, and per seed when 64 run together (Section
5).

The captions of the tables say A = 4, the text says A = 5: --full does both, with both horizons.
Seconds are of the run alone; compiling is listed apart. Three ways to run a learner:

* alone: one seed, one device, every episode simulated (what the paper timed);
* together: 64 seeds side by side on all devices, every episode simulated; seconds per seed;
* blocks: one seed of ExpRef or OrderedExpRef on the block engine, exact in law, no episode
  simulated.

The time of a simulated episode does not depend on T, so it is measured on shorter runs and scaled
up to T = 2,000,000, as the table says (``--episodes 2000000`` runs "alone" at full length); blocks
run all of it. ``--seeds`` is the number of repetitions of each timing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.stats.intervals import Estimate

NUM_EPISODES = 2_000_000
TOGETHER = 64
CAPACITIES = (2, 3, 4)
NAMES = {"ExpRef": "expref", "OrderedExpRef": "ordered-expref", "UCB-VI": "ucbvi"}
PAPER_SECONDS = {
    (15, "ExpRef"): (133, 137, 139),
    (15, "OrderedExpRef"): (134, 138, 139),
    (15, "UCB-VI"): (947, 1336, 1723),
    (20, "ExpRef"): (180, 179, 183),
    (20, "OrderedExpRef"): (179, 180, 181),
    (20, "UCB-VI"): (1161, 1683, 2246),
}
"""Printed in the paper for k = 2, 3, 4: I1, A = 4 by the captions, Apple M3, T = 2,000,000, one
run."""
WAYS = ("alone", "together", "blocks")


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """One sweep per size, way and repetition; repetitions differ in their root seed and share
    compilations."""
    import jaxbandit as jb

    sizes = [(h, a) for a in (4, 5) for h in (15, 20)] if options.full else [(15, 4)]
    instances = {
        (h, a): {
            f"H = {h}, k = {k}, A = {a}": jb.make_instance(
                "prophet-uniform", horizon=h, capacity=k, num_values=a
            )
            for k in CAPACITIES
        }
        for h, a in sizes
    }
    episodes = options.choose_episodes(51_200, full=102_400)  # whole chunks: one program each
    learners = {name: jb.make_learner(key) for name, key in NAMES.items()}
    in_blocks = {name: learner for name, learner in learners.items() if learner.blocks is not None}
    common = {"record": jb.record.linear(10)}
    simulated: dict[str, Any] = {"learners": learners, "engine": "episodes"}
    single = {"num_seeds": 1, "devices": 1}
    ways = {
        "alone": {**simulated, **single, "num_episodes": episodes},
        "together": {**simulated, "num_seeds": TOGETHER, "num_episodes": max(1, episodes // 10)},
        "blocks": {
            "learners": in_blocks,
            "engine": "blocks",
            **single,
            "num_episodes": NUM_EPISODES,
        },
    }
    return {
        f"{way}-H{h}-A{a}-{repetition}": {
            **common,
            **arguments,
            "instances": instances[h, a],
            "seed": options.seed + repetition,
        }
        for h, a in sizes
        for way, arguments in ways.items()
        for repetition in range(options.choose_seeds(3, full=5))
    }


class Times(NamedTuple):
    """Seconds per seed for T = 2,000,000, one number for each repetition."""

    run: np.ndarray
    """float [repetitions]."""
    compile: float
    """Seconds of compilation, once per process."""


def times(datasets: dict[str, Dataset], way: str, learner: str, instance: str) -> Times | None:
    """The timings of a learner on an instance; None if this way has none (UCB-VI has no block
    form)."""
    runs, compiles = [], []
    for label, dataset in datasets.items():
        here = learner in dataset["learner"].values and instance in dataset["instance"].values
        if here and label.split("/")[-1].startswith(f"{way}-"):
            cell = dataset.sel(learner=learner, instance=instance)
            scale = NUM_EPISODES / int(dataset["episode"].values[-1]) / dataset.sizes["seed"]
            runs.append(float(cell["run_seconds"]) * scale)
            compiles.append(float(cell["compile_seconds"]))
    return Times(np.array(runs), max(compiles)) if runs else None


def growth(
    datasets: dict[str, Dataset], way: str, learner: str, horizon: int, num_actions: int
) -> Estimate | None:
    """The factor from k = 2 to k = 4 in a learner's time, with a 95 % interval over repetitions."""
    from jaxbandit.stats.intervals import mean_interval

    ends = [
        times(datasets, way, learner, f"H = {horizon}, k = {k}, A = {num_actions}") for k in (2, 4)
    ]
    if ends[0] is None or ends[1] is None:
        return None
    return mean_interval(ends[1].run / ends[0].run, replicates="repetitions")


def sizes_in(datasets: dict[str, Dataset]) -> list[tuple[int, int]]:
    """The (H, A) that were timed, as in the tables of the paper."""
    names = [str(name) for dataset in datasets.values() for name in dataset["instance"].values]
    parts = [[int(part.split(" = ")[1]) for part in name.split(", ")] for name in names]
    return sorted(
        {(horizon, actions) for horizon, _, actions in parts}, key=lambda size: (size[1], size[0])
    )


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """A table like the paper's for every (H, A), the paper's own rows beside it."""
    from jaxbandit.experiment import markdown_table

    parts = []
    for horizon, actions in sizes_in(datasets):
        rows = []
        for learner in NAMES:
            paper = PAPER_SECONDS[horizon, learner] if actions == 4 else None
            if paper is not None:
                rows.append([f"{learner}, paper (Apple M3)", *map(str, paper), "", ""])
            for way in WAYS:
                cells = [
                    times(datasets, way, learner, f"H = {horizon}, k = {k}, A = {actions}")
                    for k in CAPACITIES
                ]
                if all(cell is not None for cell in cells):
                    known = [cell for cell in cells if cell is not None]
                    factor = growth(datasets, way, learner, horizon, actions)
                    rows.append([
                        f"{learner}, {way}", *(_seconds(cell.run) for cell in known),
                        _factor(factor), f"{max(cell.compile for cell in known):.1f}",
                    ])  # fmt: skip
        head = [
            f"I1, H = {horizon}, A = {actions}",
            "k = 2",
            "k = 3",
            "k = 4",
            "k = 4 over k = 2",
            "compile",
        ]
        parts.append(markdown_table(head, rows))
    return {"runtimes.md": "\n\n".join([_note(datasets), *parts])}


def _note(datasets: dict[str, Dataset]) -> str:
    from jaxbandit.stats.intervals import FEW_TO_JUDGE, warning_line

    by_way = {label.split("-")[0]: dataset for label, dataset in datasets.items()}
    lengths = {way: int(dataset["episode"].values[-1]) for way, dataset in by_way.items()}
    measured = ", ".join(f"{way} on {length:,} episodes" for way, length in lengths.items())
    number = len({label.split("-")[-1] for label in datasets})
    return (
        f"Seconds per seed for T = {NUM_EPISODES:,} (mean and 95 % t-interval over {number} repetitions), "
        f"compiling apart (longest, once per process). Measured: {measured}, and scaled; "
        f"together = {TOGETHER} seeds at once.{warning_line(['few'] if number < FEW_TO_JUDGE else [])}"
    )


def _seconds(run: np.ndarray) -> str:
    from jaxbandit.stats.intervals import mean_interval

    estimate = mean_interval(run, replicates="repetitions")
    half = estimate.high - estimate.value
    return f"{estimate.value:.3g}" + ("" if np.isnan(half) else f" ± {half:.2g}")


def _factor(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    interval = "" if np.isnan(estimate.low) else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{interval}"


EXPERIMENT = Experiment(
    "runtimes",
    __doc__,
    sweeps,
    tables=tables,
    open_to_learners=False,
    outputs={
        "runtimes.md": "seconds per run beside those the paper printed",
    },
    takes="with --full about 12 minutes on two cores",
)
