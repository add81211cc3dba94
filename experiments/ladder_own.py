"""The feedback ladder on one MDP of your own: what each bit of feedback is worth there.

Every learner that fits plays with the same seeds. Without training instances it has its preset or the middle of the values
that the experiment `ladder` tunes over; with them (other draws of the same family, never those reported), the best of
these values there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.mdp import MDP, single
from jaxbandit.plotting.figures import Drawn

from .choosing import cell_of, judge
from .ladder_contestants import CONTESTANTS, PROPHETS_ONLY, YARDSTICKS, Contestant

if TYPE_CHECKING:
    from xarray import Dataset

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
        from .ladder_tables import final_table

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
    policies, trajectory TS, PSRL) only if it is small.

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
        grids = {label: player(label, mdp, grid=True) for label in fitting(mdp, learners)}
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
        label: player(label, mdp, (chosen or {}).get(label)) for label in fitting(mdp, learners)
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
    if A ** float(reached(mdp).sum()) > MOST_POLICIES:
        left_out.add("UCB1 over policies")
    if H * k * A * (k + 1) > MOST_UNKNOWN:
        left_out.add("trajectory TS")
    if H * k * A * (k + 3) > MOST_DRAWS:
        left_out.add("PSRL")
    found = [
        label
        for label in CONTESTANTS
        if label not in left_out
        and (mdp.rank is not None or "rank" not in player(label, mdp).requires)
    ]
    return some("learners", learners, found)


def reached(mdp: MDP) -> np.ndarray:
    """bool [H, k+1]: the states, level 0 not among them, that some policy visits."""
    here = np.zeros((mdp.horizon, mdp.width + 1), bool)
    here[0, int(mdp.start)] = True
    possible, following = np.asarray(mdp.prob) > 0, np.asarray(mdp.next_level)
    for i in range(mdp.horizon - 1):
        here[i + 1, np.unique(following[i, here[i]][possible[i, here[i]]])] = True
    here[:, 0] = False
    return here


def player(label: str, mdp: MDP, index: int | None = None, *, grid: bool = False) -> Any:
    """A contestant for an MDP: with the value of that index, with its preset, or as a grid over all its values."""
    import jaxbandit as jb

    one: Contestant = CONTESTANTS[label]
    fixed = dict(one.fixed)
    if one.name == "ucb-policies":
        fixed["reachable"] = reached(mdp)
    if index is None and "preset" not in fixed:
        index = len(one.values) // 2
    if index is not None:
        fixed[one.parameter] = one.values[index]
    learner = jb.make_learner(one.name, **fixed)
    learner = jb.one_bit(learner) if one.one_bit else learner
    return jb.grid(learner, **{one.parameter: one.values}) if grid else learner
