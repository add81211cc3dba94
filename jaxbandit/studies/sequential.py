"""Adds seeds until every pair is decided, with error rates that stay valid under repeated looks.

Looking again and again at the same comparison and stopping when it is decided is wrong more often
than each look says. Here the error rate 1 - level is *spent*: with looks at n_1 < ... < n_K = max_seeds
seeds, look k tests at

    alpha_k = (1 - level) (n_k - n_{k-1}) / n_K,        sum_k alpha_k = 1 - level,

each look for all pairs together (`jaxbandit.stats.intervals`). A look at fewer runs than can decide anything at its alpha
(`fewest_runs`) tests nothing and leaves its part to the next. By the union bound all intervals of all
looks are right together with probability ``level``, whatever the rule that stops, so a pair's
interval is the part that all looks have in common, and a pair that was decided stays decided.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.stats.decisions import Comparison, compare_intervals, paired_differences
from jaxbandit.stats.intervals import joint_intervals
from jaxbandit.stats.replication import curve_names, final_runs
from jaxbandit.sweeps.arguments import LearnerGrid
from jaxbandit.sweeps.loop import sweep

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["Decided", "Judge", "Look", "until_decided"]
FIRST_SEEDS = 8
"""Fewer can decide little: `fewest_runs` says how many a look needs."""


class Look(NamedTuple):
    """One look at the results."""

    num_seeds: int
    alpha: float
    """The part of the error rate that it spent; 0 if it had too few runs to decide anything."""
    open_pairs: int
    """Pairs that were still undecided after it."""


class Decided(NamedTuple):
    """What `until_decided` found."""

    comparison: Comparison
    """All pairs; intervals and p-values hold over all looks together."""
    looks: tuple[Look, ...]
    dataset: Dataset
    """The sweep with all seeds that were run."""
    stopped: str
    """Why no more seeds were added, in words."""

    def __str__(self) -> str:
        """The comparison and why it stopped."""
        count = len(self.looks)
        return f"{self.comparison}\n{count} look{'s' if count > 1 else ''}; {self.stopped}"


class Judge:
    """All pairs of some learners over several looks; knows numbers only.

    Example:
        >>> import numpy as np
        >>> judge = Judge(["A", "B"], counts=[8, 16])
        >>> seeds = np.random.default_rng(0).normal([1.0, 9.0], 1.0, (8, 2))
        >>> judge.look([seeds]), judge.settled
        (0, True)
    """

    def __init__(
        self,
        learners: Sequence[str],
        counts: Sequence[int],
        level: float = 0.95,
        indifference: float = 0.0,
        *,
        key: int = 0,
        num_resamples: int = 5000,
    ):
        """``counts`` are the numbers of seeds of the looks; ``key`` and ``num_resamples`` are not used any more (nothing
        is resampled); the others are as in `until_decided`."""
        del key, num_resamples
        if len(learners) < 2:
            raise ValueError(f"learners: {list(learners)}; accepted: at least two to compare")
        self.learners = [str(name) for name in learners]
        self.level = checks.share("level", level)
        self.indifference = checks.number("indifference", indifference, low=0)
        self.looks: list[Look] = []
        self.too_few = ""
        """How many runs the last look would have needed to decide anything, if it had too few."""
        self._alphas, self._counts, self._saved = spending(counts, level), list(counts), 0.0
        self._p = np.ones(len(learners) * (len(learners) - 1) // 2)
        self._low, self._high = -np.inf * self._p, np.inf * self._p
        self._strata: list[np.ndarray] = []

    @property
    def open(self) -> np.ndarray:
        """bool [pairs]: neither decided nor known to differ by less than the indifference."""
        equal = np.maximum(np.abs(self._low), np.abs(self._high)) <= self.indifference
        return (self._low <= 0) & (self._high >= 0) & ~(equal & (self.indifference > 0))

    @property
    def settled(self) -> bool:
        """Whether no pair is open."""
        return not self.open.any()

    def look(self, strata: Sequence[np.ndarray]) -> int:
        """Takes the values so far, [seeds, learners] per instance; how many pairs are still open."""
        number = len(self.looks)
        if number == len(self._alphas):
            raise ValueError(f"look: all {number} were used; accepted: no further one")
        self._strata = [np.asarray(values, np.float64) for values in strata]
        self._saved += self._alphas[number]
        found = joint_intervals(paired_differences(self._strata), 1 - self._saved)
        self.too_few, alpha = found.too_few, 0.0
        if not found.too_few:
            alpha, self._saved = self._saved, 0.0
            low, high = np.maximum(self._low, found.low), np.minimum(self._high, found.high)
            agree = low <= high  # looks that contradict each other leave the earlier one standing
            self._low, self._high = np.where(agree, [low, high], [self._low, self._high])
            self._p = np.minimum(self._p, found.p_value * (1 - self.level) / alpha)
        still = int(self.open.sum())
        self.looks.append(Look(self._counts[number], alpha, still))
        return still

    def comparison(self) -> Comparison:
        """All pairs after the looks so far."""
        means = np.mean([values.mean(axis=0) for values in self._strata], axis=0)
        (differences,) = paired_differences([means[None]])
        count, instances = len(self._strata[0]), len(self._strata)
        each = f" of each of {instances} instances" if instances > 1 else ""
        nothing = "" if any(look.alpha for look in self.looks) else f"; {self.too_few}"
        return compare_intervals(
            self.learners,
            self._strata,
            (differences[0], self._low, self._high, self._p),
            level=self.level,
            replicates=f"{count} seeds{each}",
            method=f"Student-t at every look, level spent in proportion to the seeds{nothing}",
        )


def spending(counts: Sequence[int], level: float) -> list[float]:
    """The error rate that each look may spend; together 1 - level.

    Example:
        >>> [round(alpha, 5) for alpha in spending([8, 16, 32], 0.95)]
        [0.0125, 0.0125, 0.025]
    """
    counts = list(counts)
    if not counts or counts[0] < 2 or any(b <= a for a, b in itertools.pairwise(counts)):
        raise ValueError(f"counts: {counts}; accepted: increasing numbers of seeds, at least 2")
    steps = np.diff([0, *counts]) / counts[-1]
    return [float((1 - level) * step) for step in steps]


def seed_counts(first: int, most: int) -> list[int]:
    """Numbers of seeds that double from ``first``, and ``most`` at last.

    Example:
        >>> seed_counts(8, 50)
        [8, 16, 32, 50]
    """
    most = checks.whole("max_seeds", most, 2, checks.MOST_SEEDS)
    first = checks.whole("first_seeds", first, 2, at_most=most)
    counts = [first]
    while 2 * counts[-1] < most:
        counts.append(2 * counts[-1])
    return counts + ([most] if counts[-1] < most else [])


def until_decided(
    learners: Mapping[str, Learner | LearnerGrid],
    instances: Mapping[str, MDP | Iterable[MDP]],
    num_episodes: int,
    max_seeds: int,
    *,
    first_seeds: int = FIRST_SEEDS,
    level: float = 0.95,
    indifference: float = 0.0,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Decided:
    """Adds seeds until every pair of learners is decided or ``max_seeds`` are used up.

    What is compared is final regret on the given instances, each counted once; the replicates are
    seeds, also on drawn instances. Looks are taken at first_seeds, 2 first_seeds, 4 first_seeds, ...
    and max_seeds; those with too few runs to decide anything spend nothing. Wrong statements about any pair at any look have probability at most 1 - level in
    all (`jaxbandit.studies.sequential` says how).

    Args:
        learners: as for `sweep`; parameter points count as learners of their own.
        instances: as for `sweep`.
        num_episodes: T.
        max_seeds: the budget, in seeds per learner and instance.
        first_seeds: of the first look.
        level: the probability with which all that is said is right.
        indifference: a pair is also settled, as equal, when its whole interval lies within this
            difference of regret around 0.
        seed: the root key of everything.
        checkpoint: a directory that keeps the runs; by default one that is deleted afterwards.
        arguments: further ones of `sweep`, such as ``engine`` or ``progress``.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> learners = {"oracle": jb.make_learner("oracle"), "uniform": jb.make_learner("uniform")}
        >>> found = jb.until_decided(learners, {"I1": mdp}, num_episodes=50, max_seeds=32)
        >>> found.comparison.ranking(), found.looks[-1].num_seeds
        ('1. oracle; 2. uniform', 8)
    """
    counts = seed_counts(first_seeds, max_seeds)
    checks.share("level", level)
    checks.number("indifference", indifference, low=0)
    judge = None
    with contextlib.ExitStack() as stack:
        if checkpoint is None:  # one that lives as long as the study
            checkpoint = stack.enter_context(tempfile.TemporaryDirectory(prefix="jaxbandit-"))
        arguments |= {"seed": seed, "checkpoint": checkpoint}
        for count in counts:
            dataset: Any = sweep(learners, instances, num_episodes, count, **arguments)
            curves = curve_names(dataset)
            judge = judge or Judge([c.label for c in curves], counts, level, indifference)
            judge.look(list(final_runs(dataset, curves, dataset["instance"].values)))
            if judge.settled:
                break
    assert judge is not None
    left, budget = int(judge.open.sum()), f"the budget of {counts[-1]} seeds"
    stopped = "every pair is settled"
    if left:
        why = f"; {judge.too_few}" if judge.too_few else ""
        stopped = f"{left} of {len(judge.open)} pairs are open after {budget}{why}"
    return Decided(judge.comparison(), tuple(judge.looks), dataset, stopped)
