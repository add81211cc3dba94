"""The feedback ladder: what each bit of feedback buys, from one bit an episode to semi-bandit (Section 5 and beyond).

Every rung shows what the rung below shows, and more; every rung has its learners, and all of them
play the same instances with the same randomness. Two sizes: tiny MDPs, where even UCB1 over all
policies runs, and the paper's. A third sweep cuts the stages into m segments whose totals are shown,
from m = 1 (trajectory feedback) to m = H (every reward).

Learners are tuned alike: one parameter each, five values, on instances that are not reported. Chosen
is the value of smallest worst ratio, over the families of training instances, to the best value
there; a value whose regret still grows linearly at the end is refused if any other is not
(`tuning.judge`). Practical constants give up the theorems' guarantees; the same learners with the
theorems' constants are beside them.

`ladder` does the same on one MDP of your own. Without training instances a learner has its preset or the middle of its
values; with them (other draws of the same family, never those reported), the best of its values there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options, load_instance
from jaxbandit.mdp import MDP, single

from .families import Size, drawn, random_laws, support, uniform_laws
from .prophet import NUM_EPISODES
from .tuning import Judged, cell_of, judge

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

RUNGS = ("one bit", "bandit", "trajectory", "semi-bandit", "semi-bandit and structure")
YARDSTICKS = ("uniform", "oracle")
TINY, SEGMENTED, PAPER = (3, 2, 3), (6, 2, 3), (15, 2, 5)
"""(H, k, A): of all learners, of the segments, and of the paper."""


class Contestant(NamedTuple):
    """A learner of the ladder: how it is made and what is tuned."""

    rung: str
    name: str
    """As in `make_learner`."""
    fixed: dict[str, Any]
    parameter: str
    values: tuple[float, ...]
    one_bit: bool = False


THRESHOLDS = (0.03, 0.064, 0.125, 0.25, 0.5)
DEVIATIONS = (1.0, 1.5, 2.0, 2.5, 3.0)
SCALES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
SMALLER_SCALES = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8)
PRACTICAL = {"preset": "practical"}
CONTESTANTS = {
    "ExpRef, one bit": Contestant("one bit", "expref", PRACTICAL, "threshold", THRESHOLDS, True),
    "OrderedExpRef, one bit": Contestant(
        "one bit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS, True
    ),
    "ExpRef": Contestant("bandit", "expref", PRACTICAL, "threshold", THRESHOLDS),
    "OrderedExpRef": Contestant("bandit", "ordered-expref", PRACTICAL, "threshold", THRESHOLDS),
    "shared ExpRef": Contestant("bandit", "expref-shared", PRACTICAL, "deviations", DEVIATIONS),
    "shared OrderedExpRef": Contestant(
        "bandit", "expref-shared", {**PRACTICAL, "ordered": True}, "deviations", DEVIATIONS
    ),
    "policy gradient": Contestant(
        "bandit", "policy-gradient", {}, "learning_rate", (0.006, 0.025, 0.1, 0.4, 1.5)
    ),
    "UCB1 over policies": Contestant(
        "bandit", "ucb-policies", {}, "bonus_scale", (0.01, 0.03, 0.1, 0.3, 1.0)
    ),
    "aggregate PO": Contestant(
        "trajectory", "aggregate-po", {}, "learning_rate", (4.0, 16.0, 64.0, 256.0, 1024.0)
    ),
    "trajectory TS": Contestant(
        "trajectory",
        "trajectory-ts",
        {"bonus_scale": 1 / 64},
        "noise_scale",
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    "Q-learning": Contestant(
        "semi-bandit", "q-learning", {}, "bonus_scale", (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16)
    ),
    "PSRL": Contestant("semi-bandit", "psrl", {}, "concentration", (0.3, 1.0, 3.0, 10.0, 30.0)),
    "UCB-VI": Contestant("semi-bandit", "ucbvi", {}, "bonus_scale", SCALES),
    "UCB-VI, Bernstein": Contestant(
        "semi-bandit",
        "ucbvi",
        {"bonus": "bernstein"},
        "bonus_scale",
        (1 / 1024, 1 / 512, 1 / 256, 1 / 128, 1 / 64),
    ),
    "UCB-VI, doubling": Contestant(
        "semi-bandit", "ucbvi-doubling", {}, "bonus_scale", SMALLER_SCALES
    ),
    "prophet optimism": Contestant(
        "semi-bandit and structure", "prophet-optimism", {}, "bonus_scale", SMALLER_SCALES
    ),
}
TINY_ONLY = ("UCB1 over policies", "trajectory TS", "PSRL")
"""The first has too many arms elsewhere, the second factors matrices of (H k A (k+1))^3 operations, and
the third draws H k A (k+3) gamma variates an episode: sixteen runs of two million take an hour."""
PROPHETS_ONLY = ("prophet optimism",)
POOLED = ("q-learning", "psrl", "ucbvi", "ucbvi-doubling")
"""They pool the counts of all stages on an MDP of one's own whose stages are alike."""


def contestant(label: str) -> Contestant | None:
    """The contestant of a label, also of "m segments"; None for the yardsticks.

    Example:
        >>> contestant("2 segments").fixed["segments"]
        2
    """
    if "segment" not in label:
        return CONTESTANTS.get(label)
    one = CONTESTANTS["trajectory TS"]
    return one._replace(fixed={**one.fixed, "segments": int(label.split(maxsplit=1)[0])})


def make(label: str, sizes: MDP | Size, index: int | None = None, *, grid: bool = False) -> Any:
    """A contestant for MDPs of a size, or for one MDP: with the value of that index, or without one its preset or the middle
    value; or as a grid over all values of its tuned parameter.

    Example:
        >>> make("PSRL", TINY, grid=True).size, make("UCB-VI", TINY, 0).feedback
        (5, 'semi-bandit')
    """
    import jaxbandit as jb

    one = contestant(label)
    assert one is not None
    fixed = dict(one.fixed)
    if one.name == "prophet-optimism":
        size = (sizes.horizon, sizes.width, sizes.num_actions) if isinstance(sizes, MDP) else sizes
        fixed["values"] = support(size)
    if one.name in POOLED and isinstance(sizes, MDP) and same_stages(sizes):
        fixed["stationary"] = True
    if one.name == "ucb-policies":
        fixed["reachable"] = reached(
            sizes if isinstance(sizes, MDP) else random_laws(sizes, 1, 0)[0]
        )
    if index is None and "preset" not in fixed:
        index = len(one.values) // 2
    if index is not None:
        fixed[one.parameter] = one.values[index]
    learner = jb.make_learner(one.name, **fixed)
    learner = jb.one_bit(learner) if one.one_bit else learner
    return jb.grid(learner, **{one.parameter: one.values}) if grid else learner


def values_of(label: str) -> tuple[float, ...]:
    """The values tried of a learner's parameter; one, whatever it is, for the yardsticks."""
    known = contestant(label)
    return (np.nan,) if known is None else known.values


def contestants(size: Size, prophets: bool) -> list[str]:
    """Who plays at a size: the learners for all families, or those for prophets alone.

    Example:
        >>> contestants(PAPER, prophets=True)
        ['prophet optimism']
    """
    left_out = () if size == TINY else TINY_ONLY
    return [
        label
        for label in CONTESTANTS
        if label not in left_out and (label in PROPHETS_ONLY) == prophets
    ]


def yardsticks() -> dict[str, Any]:
    """Learners that learn nothing, and those of the paper with the theorems' constants."""
    import jaxbandit as jb

    theory = {
        f"{label} (theory)": jb.make_learner(name)
        for label, name in (("ExpRef", "expref"), ("OrderedExpRef", "ordered-expref"))
    }
    return {name: jb.make_learner(name) for name in YARDSTICKS} | theory


def segmented() -> list[str]:
    """Trajectory TS shown the totals of m segments, from one to H."""
    return [f"{m} segment{'s' if m > 1 else ''}" for m in (1, 2, 3, 6)]


def rung_of(label: str) -> str:
    """The rung on which a learner of the results stands; "" for the yardsticks.

    Example:
        >>> rung_of("PSRL"), rung_of("ExpRef (theory)"), rung_of("oracle")
        ('semi-bandit', 'bandit', '')
    """
    known = CONTESTANTS.get(label.removesuffix(" (theory)"))
    return "" if known is None else known.rung


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
        grids = {label: make(label, size, grid=True) for label in labels}
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


MOST_POLICIES = 4096
"""Of UCB1 over policies: arms that a short run can try at all."""
MOST_UNKNOWN = 500
"""Of trajectory TS, which factors matrices of (H k A (k+1))^3 operations."""
MOST_DRAWS = 5_000
"""Of PSRL: the gamma variates of an episode."""


@dataclass(frozen=True)
class Ladder:
    """What `ladder` found."""

    dataset: Dataset
    """Of the sweep, in the units of the MDP."""

    @property
    def table(self) -> str:
        """Final regret of every learner with its interval, by feedback, and against uniform play; markdown."""
        from .ladder_figures import final_table

        return final_table(self.dataset)

    def plot(self) -> Drawn:
        """Final regret of every learner against its feedback."""
        from .ladder_figures import summary

        return summary(self.dataset, str(self.dataset["instance"].values[0]), over="seeds")

    def __repr__(self) -> str:
        """The table."""
        return self.table

    def _repr_markdown_(self) -> str:
        """The table, for notebooks."""
        return self.table


def ladder(
    mdp: MDP,
    num_episodes: int = 5_000,
    num_seeds: int = 8,
    *,
    seed: int = 0,
    training: Sequence[MDP] = (),
    learners: Sequence[str] | None = None,
    name: str = "mine",
    progress: bool = True,
) -> Ladder:
    """What each bit of feedback is worth on an MDP: every learner that fits, from one bit an episode to semi-bandit.

    Learners that know the order of the actions play only if the MDP has one, and those whose cost explodes (UCB1 over all
    policies, trajectory TS, PSRL) only if it is small. Those that learn a model, and Q-learning, pool the counts of all stages
    if the stages are alike.

    Args:
        mdp: of `jaxbandit.make_instance`, `from_arrays` or `from_gymnasium`.
        num_episodes: T.
        num_seeds: runs of every learner; seeds are paired.
        seed: the root key.
        training: other instances of the same sizes on which the learners are tuned first; without them they have presets.
        learners: only these, by their names in the table.
        name: of the MDP, in table and figure.
        progress: whether to show progress bars.

    Returns:
        `Ladder` with ``table``, ``plot()`` and ``dataset``.

    Example:
        >>> import jaxbandit as jb
        >>> found = jb.ladder(jb.make_instance("riverswim", num_states=3, horizon=4), num_episodes=50, num_seeds=2,
        ...                   learners=["ExpRef", "Q-learning"], progress=False)
        >>> [str(name) for name in found.dataset["learner"].values]
        ['ExpRef', 'Q-learning', 'uniform', 'oracle']
        >>> "| semi-bandit | Q-learning |" in " ".join(found.table.split())
        True
    """
    import jaxbandit as jb

    common = {"num_episodes": num_episodes, "num_seeds": num_seeds, "progress": progress}
    chosen: dict[str, int] = {}
    if len(training):
        grids = {label: make(label, mdp, grid=True) for label in fitting(mdp, learners)}
        ds = jb.sweep(
            grids,
            {"training": list(training)},
            seed=seed + 1,
            record=jb.record.linear(20),
            **common,
        )
        names = [str(each) for each in ds["instance"].values]
        for label in grids:
            values = CONTESTANTS[label].values
            cell = cell_of(ds, label, names, len(values), grows=False)
            chosen[label] = judge([{"value": value} for value in values], [cell]).choice
    how = sweep_of(mdp, name, learners, chosen)
    return Ladder(jb.in_units(jb.sweep(**how, seed=seed, **common)))


def sweep_of(
    mdp: MDP,
    name: str,
    learners: Sequence[str] | None = None,
    chosen: dict[str, int] | None = None,
) -> dict[str, Any]:
    """The arguments of the sweep that is reported; ``chosen``: which of its values a learner has, if it was tuned."""
    import jaxbandit as jb

    players = {
        label: make(label, mdp, (chosen or {}).get(label)) for label in fitting(mdp, learners)
    }
    players |= {label: jb.make_learner(label) for label in YARDSTICKS}
    return {"learners": players, "instances": {name: mdp}, "record": jb.record.linear(20)}


def fitting(mdp: MDP, learners: Sequence[str] | None = None) -> list[str]:
    """The contestants that fit an MDP, or those of them that are asked for.

    Example:
        >>> import jaxbandit as jb
        >>> fitting(jb.make_instance("riverswim"))[:3]
        ['ExpRef, one bit', 'ExpRef', 'shared ExpRef']
    """
    from jaxbandit.checks import some

    H, k, A = single(mdp).horizon, mdp.width, mdp.num_actions
    left_out = set(PROPHETS_ONLY)
    if reached(mdp).sum() * np.log(A) > np.log(MOST_POLICIES):
        left_out.add("UCB1 over policies")
    if H * k * A * (k + 1) > MOST_UNKNOWN:
        left_out.add("trajectory TS")
    if (1 if same_stages(mdp) else H) * k * A * (k + 3) > MOST_DRAWS:
        left_out.add("PSRL")
    found = [
        label
        for label in CONTESTANTS
        if label not in left_out
        and (mdp.rank is not None or "rank" not in make(label, mdp).requires)
    ]
    return some("learners", learners, found)


def same_stages(mdp: MDP) -> bool:
    """Whether all stages have the same outcomes.

    Example:
        >>> import jaxbandit as jb
        >>> same_stages(jb.make_instance("riverswim")), same_stages(random_laws(TINY, 1, 0)[0])
        (True, False)
    """
    tables = (np.asarray(table) for table in (mdp.prob, mdp.reward, mdp.next_level))
    return all(bool((table == table[:1]).all()) for table in tables)


def reached(mdp: MDP) -> np.ndarray:
    """bool [H, k+1]: the states, level 0 not among them, that some policy visits."""
    here = np.zeros((mdp.horizon, mdp.width + 1), bool)
    here[0, int(mdp.start)] = True
    possible, following = np.asarray(mdp.prob) > 0, np.asarray(mdp.next_level)
    for i in range(mdp.horizon - 1):
        here[i + 1, np.unique(following[i, here[i]][possible[i, here[i]]])] = True
    here[:, 0] = False
    return here


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Curves by rung, final regret against feedback, and regret against segments."""
    import jaxbandit as jb

    from . import ladder_figures

    if options.instance is not None:
        return {"ladder_own": Ladder(jb.in_units(datasets[OWN])).plot()}
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
    import jaxbandit as jb

    from .ladder_figures import chosen_table, final_table, segments_table

    if options.instance is not None:
        return {"ladder_own.md": Ladder(jb.in_units(datasets[OWN])).table}
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
