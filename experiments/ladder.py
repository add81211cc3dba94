"""The feedback ladder: what each bit of feedback buys, from one bit an episode to semi-bandit (Section 5 and beyond).

Every rung shows what the rung below shows, and more; every rung has its learners, and all of them
play the same instances with the same randomness. Two sizes: tiny MDPs, where even UCB1 over all
policies runs, and the paper's. A third sweep cuts the stages into m segments whose totals are shown,
from m = 1 (trajectory feedback) to m = H (every reward).

Learners are tuned alike: one parameter each, five values, on instances that are not reported. Chosen
is the value of smallest worst ratio, over the families of training instances, to the best value
there; a value whose regret still grows linearly at the end is refused if any other is not
(`choosing`). Practical constants give up the theorems' guarantees; the same learners with the
theorems' constants are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxbandit.experiment import Experiment, Options, load_instance

from .choosing import Judged, cell_of, judge
from .families import Size, drawn, random_laws, uniform_laws
from .ladder_contestants import (
    PAPER,
    SEGMENTED,
    TINY,
    contestants,
    make,
    segmented,
    values_of,
    yardsticks,
)
from .prophet import NUM_EPISODES

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

    from .ladder_own import Ladder

TRAINING_KEY, REPORTED_KEY = 8001, 8002
"""Roots of the instances; neither is that of another experiment."""
SIZES = {"tiny": TINY, "paper": PAPER}
OWN = "own"
"""The sweep on an instance of the user's."""
TRAINING, PROPHETS = "-training", "-prophets"
"""After the name of a size: the sweep that chooses, and that of learners for prophets alone."""
Sweep = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


def training_instances(size: Size, count: int, prophets: bool = False) -> dict[str, Any]:
    """What is tuned on: prophets with random laws, I2 and posted pricing, or the first alone."""
    found = {"prophet, random laws": random_laws(size, count, TRAINING_KEY)}
    return found if prophets else found | _others(size, count, TRAINING_KEY)


def reported_instances(size: Size, count: int, prophets: bool = False) -> dict[str, Any]:
    """What is reported: other draws; at the paper's size I1 itself, and knapsacks, which no learner
    was tuned on."""
    if size == PAPER:
        found: dict[str, Any] = {"I1": uniform_laws(size, count)}
    else:
        found = {"prophet, random laws": random_laws(size, count, REPORTED_KEY)}
    if prophets:
        return found
    found |= _others(size, count, REPORTED_KEY)
    if size == PAPER:
        found["knapsack"] = drawn("knapsack-random", size, count, REPORTED_KEY)
    return found


def _others(size: Size, count: int, root: int) -> dict[str, Any]:
    return {
        "I2": drawn("prophet-random", size, count, root),
        "posted pricing": drawn("posted-pricing-random", size, count, root),
    }


def judged(ds: Dataset, label: str) -> Judged:
    """The values of a learner's parameter on the families of a training sweep."""
    from jaxbandit import stats

    values = values_of(label)
    return judge(
        [{"value": value} for value in values],
        [
            cell_of(ds, label, names, len(values), grows=True)
            for names in stats.families(ds).values()
        ],
    )


def sweeps(options: Options) -> dict[str, Sweep]:
    """For each size: all settings on training instances, then the chosen ones on those reported.

    Learners of prophets alone have sweeps of their own. With ``--instance`` there is one sweep, on that instance.
    """
    import jaxbandit as jb

    if options.instance is not None:
        from .ladder_own import sweep_of

        how = sweep_of(load_instance(options.instance), options.instance)
        sizes = {
            "num_episodes": options.choose_episodes(5_000, full=100_000),
            "num_seeds": options.choose_seeds(8, full=32),
        }
        return {OWN: {**how, **sizes}}
    count = options.choose_instances(6, full=16)
    common = {
        "num_seeds": options.choose_seeds(1, full=2),
        "record": jb.record.linear(20),
    }
    episodes = {
        "tiny": options.choose_episodes(20_000, full=200_000),
        "paper": options.choose_episodes(NUM_EPISODES, full=NUM_EPISODES),
    }
    found: dict[str, Sweep] = {}

    def pair(name: str, size: Size, labels: list[str], beside: dict[str, Any], prophets: bool) -> None:  # fmt: skip
        """The sweep that chooses and, after it, the one that is reported."""
        lasting = {**common, "num_episodes": episodes["paper" if size == PAPER else "tiny"]}

        def chosen(datasets: dict[str, Any]) -> dict[str, Any]:
            training = datasets[name + TRAINING]
            picked = {label: make(label, size, judged(training, label).choice) for label in labels}
            instances = reported_instances(size, count, prophets)
            return {**lasting, "learners": picked | beside, "instances": instances}

        instances = training_instances(size, max(2, count // 2), prophets)
        grids = {label: make(label, size) for label in labels}
        found[name + TRAINING] = {**lasting, "learners": grids, "instances": instances}
        found[name] = chosen

    for name, size in SIZES.items():
        for suffix, prophets in (("", False), (PROPHETS, True)):
            labels = contestants(size, prophets)
            pair(name + suffix, size, labels, {} if prophets else yardsticks(), prophets)
    pair("segments", SEGMENTED, segmented(), {}, False)
    return found


def joined(datasets: dict[str, Dataset], name: str) -> Dataset:
    """All learners of a size with their chosen settings; nan where a learner did not play."""
    import xarray as xr

    kept = {"learner", "instance", "seed", "episode", "family"}
    parts = [datasets[label][["regret", "run_seconds"]] for label in (name, name + PROPHETS)]
    parts = [part.drop_vars([x for x in part.coords if x not in kept]) for part in parts]
    parts[1] = parts[1].reindex(instance=parts[0]["instance"].values)
    parts[1] = parts[1].assign_coords(family=("instance", parts[0]["family"].values))
    return xr.concat(parts, "learner", coords="minimal", compat="override")


def _own(datasets: dict[str, Dataset]) -> Ladder:
    import jaxbandit as jb

    from .ladder_own import Ladder

    return Ladder(jb.in_units(datasets[OWN]))


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Curves by rung, final regret against feedback, and regret against segments."""
    from . import ladder_figures

    if options.instance is not None:
        return {"ladder_own": _own(datasets).plot()}
    found = {}
    for name, size in SIZES.items():
        ds = joined(datasets, name)
        found[f"ladder_{name}"] = ladder_figures.curves(ds, title_of(size))
        found[f"ladder_{name}_summary"] = ladder_figures.summary(ds, title_of(size))
    found["ladder_segments"] = ladder_figures.segments(datasets["segments"], title_of(SEGMENTED))
    return found


def title_of(size: Size) -> str:
    """The sizes in words."""
    return "H = {}, k = {}, A = {}".format(*size)


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Chosen settings, final regrets with intervals and times, and whether each beats uniform."""
    from .ladder_tables import chosen_table, final_table, segments_table

    if options.instance is not None:
        return {"ladder_own.md": _own(datasets).table}
    parts = []
    for name, size in SIZES.items():
        parts += [f"## {title_of(size)}", final_table(joined(datasets, name))]
    parts += [f"## Segments, {title_of(SEGMENTED)}", segments_table(datasets["segments"])]
    return {"ladder.md": "\n\n".join(parts), "ladder_tuning.md": chosen_table(datasets)}


EXPERIMENT = Experiment(
    name="ladder",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    outputs={
        "ladder_paper_summary.png": "final regret of every learner against its feedback, at the paper's size",
        "ladder_tiny_summary.png": "the same on tiny MDPs, with UCB1 over all policies",
        "ladder_paper.png": "curves by rung with bands",
        "ladder_tiny.png": "the same on tiny MDPs",
        "ladder_segments.png": "regret against the number of segments whose totals are shown",
        "ladder.md": "final regrets with intervals, against uniform play, and times",
        "ladder_tuning.md": "what was tried and chosen",
        "ladder_own.png": "with --instance: every learner that fits, on that instance alone",
        "ladder_own.md": "the same as a table",
    },
    open_to_instance=True,
    takes="about ten minutes on two idle cores; with --full hours",
)
