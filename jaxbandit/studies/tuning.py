"""A learner's best parameters: a race on training instances, then a check on others.

    tuned = jb.tune(jb.make_learner("ucbvi"), {"bonus_scale": jb.Range(0.003, 1.0)},
                    {"I2": jb.family("prophet-random", count=8, key=key, **sizes)},
                    budget=1000, num_episodes=20_000)
    tuned.learner        # the learner at the settings found
    print(tuned)         # the settings, those that are as good as far as one can tell, and the check

Candidates are lanes of one sweep (`jaxbandit.points`), so a hundred of them compile once. The regret
that chose a setting flatters it; the check on instances that the race never saw does not.

**The race**: ask which runs are wanted, tell what they gave.

All candidates of a round run side by side on the same instances and seeds. Rounds double the number
of seeds; after each, a candidate is dropped if it is *clearly* worse than the one of lowest mean:
if the one-sided paired t-test (seeds within instances, Satterthwaite's degrees of freedom; no p-value is below 2^-N with
N runs, as `jaxbandit.stats.intervals` says) rejects at

    (1 - level) / (2^r (c - 1))           in round r = 1, 2, ...; c candidates so far.

The levels of all rounds and rivals sum to at most 1 - level, so the candidate that is truly best on
the training instances is dropped with at most that probability, up to how well Student's t fits. A
lucky seed drops nobody: with few seeds the quantile is wide. What is left at the end may be several
candidates that the budget could not tell apart, and they are named. What is minimised may also be the
worst ratio to the best over several tasks.

A task is a set of columns (an instance at one T each) whose mean regret counts once: a family of
instances at one T, say. With M_cj for the mean regret of candidate c on task j, the **worst ratio** is

    S_c = max_j  M_cj / min_i M_ij,

so that a candidate that is best in one place and poor elsewhere loses against one that is good
everywhere, and tasks of large regret count no more than others. The replicates of a task are the seeds
of its one instance, or its instances if it has several; candidates are paired in them.

A candidate c is *clearly* worse than the one of smallest worst ratio, b, if a lower bound on some
M_cj / M_ij is above the largest of the upper bounds on b's ratios. Bounds on a ratio of paired means
are Fieller's: the numbers R at which Student's t-test does not tell M_cj from R M_ij.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.checks import accept
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, digest
from jaxbandit.record import explicit
from jaxbandit.stats.decisions import Comparison, compare
from jaxbandit.stats.intervals import (
    FEW_TO_JUDGE,
    FLAT,
    Estimate,
    fewest_runs,
    generator,
    standard_error,
)
from jaxbandit.stats.replication import CurveName, final_runs
from jaxbandit.sweeps.arguments import expand_instances, points
from jaxbandit.sweeps.loop import sweep
from jaxbandit.tabular import write_table

__all__ = ["Candidate", "Range", "Round", "Tuned", "Tuner", "tune"]
SCORES = MEAN, WORST_RATIO = "mean", "worst-ratio"
METHODS = GRID, RANDOM = "grid", "random"
LEAST = 1e-9
"""A regret of 0 is possible, and then every ratio to it is large."""
STRIDE = 1_000_003
"""Between the root seeds of two rounds: a prime, far from the seeds that people choose."""
MOST_CANDIDATES = 64
"""How many a random search tries unless it is told."""
CHECK_SEEDS = 8
CHECK_ROUND = 1000
"""As if the check were this round of the race, which no race reaches: its seeds are new."""
CHOSEN, GIVEN = "chosen", "given"
Instances = Mapping[str, MDP | Iterable[MDP]]
Tasks = Sequence[Sequence[int]]
"""Each task's columns."""


class Round(NamedTuple):
    """Runs that are wanted: every setting on every training instance with every seed."""

    number: int
    """1, 2, ...; candidates that come late go through the earlier rounds too."""
    candidates: tuple[int, ...]
    """Which ones, as indices in the order they were added."""
    settings: tuple[dict[str, float], ...]
    """Their parameters, for `jaxbandit.points`."""
    num_seeds: int
    seed: int
    """The root key: another one in every round, the same for all candidates of a round."""


class Candidate(NamedTuple):
    """What is known of a setting."""

    settings: dict[str, float]
    regret: Estimate
    """Mean final regret over the training instances (or tasks), each counted once; n counts the runs."""
    dropped: int | None
    """The round after which it was clearly worse or refused, or None."""
    score: float
    """What is minimised: the mean regret, or the worst ratio to the best candidate of each task."""


class Tuner:
    """The race as an object with `ask` and `tell`, for loops of one's own and for other optimisers.

    Example:
        >>> import numpy as np
        >>> rng, tuner = np.random.default_rng(0), Tuner(num_instances=2, budget=120)
        >>> _ = tuner.add([{"bonus_scale": c} for c in (0.1, 1.0, 5.0)])
        >>> while (asked := tuner.ask()) is not None:           # jb.sweep would run these
        ...     means = np.array([[[s["bonus_scale"] * 10]] for s in asked.settings])
        ...     tuner.tell(asked, rng.normal(means, 1.0, (len(means), 2, asked.num_seeds)))
        >>> tuner.best.settings, [c.dropped is None for c in tuner.candidates]
        ({'bonus_scale': 0.1}, [True, False, False])
    """

    def __init__(
        self,
        num_instances: int,
        budget: int,
        *,
        first_seeds: int = 2,
        level: float = 0.95,
        seed: int = 0,
        score: str = MEAN,
        tasks: Tasks | None = None,
    ):
        """A race of at most ``budget`` runs (one setting, instance and seed each).

        With score "worst-ratio" ``tasks`` lists the instances of each task; by default each is one.
        """
        # each is run at least once, and the budget has this limit too
        self.num_instances = checks.whole("num_instances", num_instances, at_most=checks.MOST_SEEDS)
        self.score = checks.choice("score", score, SCORES)
        self.tasks = _tasks(tasks, score, self.num_instances)
        self.budget = checks.whole("budget", budget, at_most=checks.MOST_SEEDS)
        self.level, self.seed = checks.share("level", level), checks.seed("seed", seed)
        self.spent = 0
        # The replicates of a task of several instances are the instances; else two seeds are needed.
        least = 1 if score != MEAN and min(map(len, self.tasks)) > 1 else 2
        self._first = checks.whole("first_seeds", first_seeds, least, checks.MOST_SEEDS)
        self._entries: list[_Entry] = []
        self._sizes: list[int] = []

    def add(self, settings: Iterable[Mapping[str, float]]) -> list[int]:
        """Enters settings into the race, also later ones, and returns their indices."""
        first = len(self._entries)
        self._entries += [_Entry(dict(setting)) for setting in settings]
        return list(range(first, len(self._entries)))

    def ask(self) -> Round | None:
        """The next runs, or None: the budget cannot pay for more, or one candidate is left."""
        racing = {j: entry for j, entry in enumerate(self._entries) if entry.dropped is None}
        done = [len(entry.rounds) for entry in racing.values()]
        if not done or (len(done) == 1 and done[0]):
            return None
        number = min(done) + 1
        late = {j: dict(e.settings) for j, e in racing.items() if len(e.rounds) < number}
        left = (self.budget - self.spent) // (len(late) * self.num_instances)
        wanted = self._first * 2 ** max(0, number - 2)  # 2, 2, 4, 8, ...: the total doubles
        size = min(wanted, left) if number > len(self._sizes) else self._sizes[number - 1]
        if not (self._first if number == 1 else 1) <= size <= left:
            if self.spent:
                return None
            least = len(late) * self.num_instances * self._first
            raise ValueError(
                f"budget: {self.budget} runs; accepted: at least {least}, {self._first} seeds of "
                f"{len(late)} settings on {self.num_instances} instances"
            )
        root = self.seed + STRIDE * (number - 1)
        return Round(number, tuple(late), tuple(late.values()), size, seed=root)

    def tell(self, asked: Round, regret: Any, refused: Iterable[int] = ()) -> None:
        """Takes the final regrets of a round: [candidates, instances, seeds], the sweep's Dataset, or a
        list of Datasets whose instances follow each other (such as several T).

        Candidates that are ``refused`` leave the race for a reason of the caller's; ratios are still
        to the best of all.
        """
        values = _told(regret)
        wanted = (len(asked.candidates), self.num_instances, asked.num_seeds)
        if values.shape != wanted or not np.isfinite(values).all():
            raise ValueError(
                f"regret: shape {values.shape}, {int((~np.isfinite(values)).sum())} not finite; accepted: "
                f"finite numbers [candidates, instances, seeds] = {wanted}"
            )
        for j in asked.candidates:
            done = len(self._entries[j].rounds)
            if done != asked.number - 1:
                raise ValueError(
                    f"asked: round {asked.number} of candidate {j}, which has {done}; "
                    "accepted: the round that ask returned last, once"
                )
        if asked.number > len(self._sizes):
            self._sizes.append(asked.num_seeds)
        for j, of_one in zip(asked.candidates, values, strict=True):
            self._entries[j].rounds.append(of_one)
        for j in refused:
            self._entries[j].dropped = asked.number
        self.spent += values.size
        if all(len(entry.rounds) >= asked.number for entry in self._entries if entry.racing):
            self._drop(asked.number)

    def _drop(self, number: int) -> None:
        racing = [entry for entry in self._entries if entry.racing and len(entry.rounds) == number]
        if len(racing) < 2:
            return
        alpha, rivals = (1 - self.level) / 2**number, len(self._entries) - 1
        if self.score == MEAN:
            told = racing
            values = np.stack([entry.runs for entry in told], axis=-1)
            best = int(values.mean(axis=(0, 1)).argmin())
            worse = clearly_worse(list(values), best, alpha, rivals)
        else:
            told = [entry for entry in self._entries if entry.rounds]
            scores = self.ratios.max(axis=1)[[bool(entry.rounds) for entry in self._entries]]
            best = min(map(told.index, racing), key=lambda j: scores[j])
            worse = clearly_above([entry.runs for entry in told], best, self.tasks, alpha, rivals)
        for entry, drop in zip(told, worse, strict=True):
            if drop and entry in racing:
                entry.dropped = number

    @property
    def ratios(self) -> np.ndarray:
        """float [candidates, tasks]: mean regret over that of the best candidate of the task; nan if
        nothing was told of it."""
        found = np.full((len(self._entries), len(self.tasks)), np.nan)
        told = [j for j, entry in enumerate(self._entries) if entry.rounds]
        if told:
            strata = [replicates_of(self._entries[j].runs, self.tasks) for j in told]
            means = np.array([[task.mean() for task in of_one] for of_one in strata])
            found[told] = ratios_to_best(means)
        return found

    @property
    def candidates(self) -> list[Candidate]:
        """All settings with what is known of them, in the order they were added."""
        regrets = [_estimate(entry, self.tasks, self.level) for entry in self._entries]
        scores = [regret.value for regret in regrets]
        if self.score != MEAN:
            scores = self.ratios.max(axis=1).tolist()
        every = zip(self._entries, regrets, scores, strict=True)
        return [Candidate(dict(e.settings), regret, e.dropped, score) for e, regret, score in every]

    @property
    def best(self) -> Candidate:
        """Of those in the race that have been through all rounds, the one of lowest score."""
        most = max((len(entry.rounds) for entry in self._entries), default=0)
        if not most:
            raise ValueError("best: nothing was told yet; accepted: after a round")
        every = zip(self.candidates, self._entries, strict=True)
        complete = [candidate for candidate, e in every if e.racing and len(e.rounds) == most]
        return min(complete, key=lambda candidate: candidate.score)

    @property
    def tied(self) -> list[Candidate]:
        """Those still in the race: the budget could not tell them from the best."""
        return [candidate for candidate in self.candidates if candidate.dropped is None]


@dataclass(eq=False)
class _Entry:
    """A setting in the race."""

    settings: dict[str, float]
    rounds: list[np.ndarray] = field(default_factory=list)
    """Its final regrets in each round, [instances, seeds]."""
    dropped: int | None = None

    @property
    def racing(self) -> bool:
        return self.dropped is None

    @property
    def runs(self) -> np.ndarray:
        """All rounds, [instances, seeds]."""
        return np.concatenate(self.rounds, axis=-1)


def clearly_worse(strata: list[np.ndarray], best: int, alpha: float, rivals: int) -> np.ndarray:
    """Which columns of strata [seeds, candidates] are above column ``best``, tested at alpha / rivals."""
    from scipy import stats

    against = [values - values[:, [best]] for values in strata]
    mean = np.mean([values.mean(axis=0) for values in against], axis=0)
    error, freedom = standard_error(against)
    scale = np.max([np.abs(values).max(axis=0) for values in strata], axis=0)
    flat = error <= FLAT * np.maximum(scale, 1e-300)
    ratio = mean / np.where(flat, 1.0, error)
    tail = np.where(flat, np.where(mean > FLAT * scale, 0.0, 1.0), stats.t.sf(ratio, freedom))
    tail = np.maximum(tail, 2.0 ** -sum(map(len, strata)))
    return (tail < alpha / max(1, rivals)) & (np.arange(mean.size) != best)


def replicates_of(runs: np.ndarray, tasks: Tasks) -> list[np.ndarray]:
    """[..., n] of each task, from runs [..., columns, seeds].

    Example:
        >>> runs = np.arange(6.0).reshape(1, 3, 2)
        >>> [task.tolist() for task in replicates_of(runs, [[0], [1, 2]])]
        [[[0.0, 1.0]], [[2.5, 4.5]]]
    """
    parts = [runs[..., list(columns), :] for columns in tasks]
    return [part.mean(-1) if part.shape[-2] > 1 else part[..., 0, :] for part in parts]


def ratios_to_best(means: np.ndarray) -> np.ndarray:
    """Mean regrets [candidates, tasks] over that of the best candidate of each task.

    Example:
        >>> ratios_to_best(np.array([[1.0, 9.0], [2.0, 3.0]])).tolist()
        [[1.0, 3.0], [2.0, 1.0]]
    """
    return np.maximum(means, LEAST) / np.maximum(means.min(axis=0), LEAST)


def ratio_bounds(ours: np.ndarray, theirs: np.ndarray, tail: float, upper: bool) -> np.ndarray:
    """One-sided bounds [C, D] on the ratios of means of paired replicates [C, n] and [D, n].

    Each is wrong with probability ``tail``. Where the mean below the line cannot be told from 0 they
    are 0 and infinity.

    Example:
        >>> one, two = np.array([[2.0, 4.2, 6.1]]), np.array([[1.0, 2.0, 3.0]])
        >>> low, high = (float(ratio_bounds(one, two, 0.05, upper)[0, 0]) for upper in (False, True))
        >>> 1.9 < low < one.mean() / two.mean() < high < 2.2
        True
    """
    from scipy import stats

    n = ours.shape[1]
    factor = float(stats.t.isf(tail, n - 1)) ** 2 / (n * (n - 1))
    mean, below = ours.mean(axis=1), theirs.mean(axis=1)
    one, two = ours - mean[:, None], theirs - below[:, None]
    # The bounds are the roots of a R^2 - 2 b R + c.
    a = (below**2 - factor * (two**2).sum(axis=1))[None, :]
    b = mean[:, None] * below[None, :] - factor * one @ two.T
    c = (mean**2 - factor * (one**2).sum(axis=1))[:, None]
    known = a > 0
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    sign = 1 if upper else -1
    return np.where(known, (b + sign * root) / np.where(known, a, 1.0), np.inf if upper else 0.0)


def clearly_above(
    runs: Sequence[np.ndarray], leader: int, tasks: Tasks, alpha: float, rivals: int
) -> np.ndarray:
    """Which candidates have a worst ratio above the leader's; runs are [columns, seeds] of each.

    A candidate that left early is compared on the seeds that it has seen. The truly best is among the
    answer with probability at most ``alpha``: half of it is shared by the lower bounds on its ratios,
    one for each rival and task, and half by the candidates that could lead, as the upper bounds of one
    fail together only where its own largest ratio is missed.
    """
    lengths = np.array([each.shape[1] for each in runs])
    count = len(runs)
    low, high = np.zeros(count), np.zeros(count)
    tails = alpha / 2 / (max(1, rivals) * len(tasks)), alpha / 2 / (rivals + 1)
    for length in np.unique(lengths):
        long = np.flatnonzero(lengths >= length)
        against = np.flatnonzero(lengths[long] == length)
        values = np.stack([runs[j][:, :length] for j in long.tolist()])
        for task in replicates_of(values, tasks):
            for bound, tail, upper in zip((low, high), tails, (False, True), strict=True):
                found = ratio_bounds(task, task[against], tail, upper).max(axis=1)
                bound[long] = np.maximum(bound[long], found)
    return (low > high[leader]) & (np.arange(count) != leader)


def _estimate(entry: _Entry, tasks: Tasks, level: float) -> Estimate:
    """Mean over tasks with a t-interval over the replicates within them."""
    from scipy import stats

    about: dict[str, Any] = {"level": level, "replicates": "runs"}
    if not entry.rounds:
        return Estimate(np.nan, np.nan, np.nan, 0, **about)
    strata = replicates_of(entry.runs, tasks)
    error, freedom = standard_error([task[:, None] for task in strata])
    half = float(stats.t.ppf((1 + level) / 2, freedom[0]) * error[0])
    if not half and sum(map(len, strata)) < fewest_runs(level):
        half = np.nan  # too few runs that all agree
    mean = float(np.mean([task.mean() for task in strata]))
    low = max(mean - half, min(mean, 0.0))  # regret is at least 0, and so is its mean
    about["warning"] = "few" if half and min(map(len, strata)) < FEW_TO_JUDGE else ""
    return Estimate(mean, low, mean + half, entry.runs.size, **about)


def _tasks(given: Tasks | None, score: str, num_instances: int) -> tuple[tuple[int, ...], ...]:
    """Every instance is in one task; by default in its own."""
    if given is None:
        return tuple((column,) for column in range(num_instances))
    if score == MEAN:
        raise ValueError(f"tasks: given with score {MEAN!r}; accepted: with 'worst-ratio'")
    found = tuple(tuple(int(column) for column in task) for task in given)
    if sorted(column for task in found for column in task) != list(range(num_instances)):
        raise ValueError(
            f"tasks: {given!r}; accepted: lists that hold each of 0..{num_instances - 1} once"
        )
    return found


def _told(regret: Any) -> np.ndarray:
    """Final regrets [candidates, instances, seeds] of arrays or of Datasets."""
    sweeps = regret if isinstance(regret, list | tuple) else [regret]
    if not sweeps or not hasattr(sweeps[0], "data_vars"):
        return np.asarray(regret, np.float64)
    finals = []
    for ds in sweeps:
        learner, *others = ds["learner"].values.tolist()
        if others:
            seen = f"a sweep of {1 + len(others)} learners"
            raise ValueError(f"regret: {seen}; accepted: one, at its points")
        at = [CurveName(learner, learner, p) for p in range(ds.sizes.get("parameter", 1))]
        finals.append(np.moveaxis(final_runs(ds, at, ds["instance"].values), -1, 0))
    return np.concatenate(finals, axis=1)


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``, drawn evenly on the log scale unless told otherwise.

    Example:
        >>> Range(0.01, 1.0).at(0.5)
        0.1
    """

    low: float
    high: float
    log: bool = True
    """Whether ratios, not differences, are what matters."""

    def __post_init__(self) -> None:
        """Refuses what is not a range."""
        checks.choice("log", self.log, (True, False))
        low, high = checks.number("low", self.low), checks.number("high", self.high)
        if not low < high or (self.log and not low > 0):
            seen = f"low {self.low}, high {self.high}, log={self.log}"
            raise ValueError(f"Range: {seen}; accepted: low < high, and low > 0 with log=True")

    def at(self, share: float) -> float:
        """The number at a share 0..1 of the way."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return float(self.low + (self.high - self.low) * share)


Space = Mapping[str, "Sequence[float] | Range"]
"""Parameter -> the values to try, or the range to draw from."""


def grid_settings(space: Space) -> list[dict[str, float]]:
    """Every combination of the listed values, the last parameter varying fastest.

    Example:
        >>> grid_settings({"threshold": [0.1, 0.2], "ratio": [0.5]})
        [{'threshold': 0.1, 'ratio': 0.5}, {'threshold': 0.2, 'ratio': 0.5}]
    """
    if ranges := ranges_in(space):
        name = ranges[0]
        values = f"a list of values with method {GRID!r}"
        raise ValueError(f"space[{name!r}]: {space[name]}; accepted: {values}")
    listed: list[Any] = list(space.values())
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*listed)]


def random_settings(space: Space, count: int, key: Any = 0) -> list[dict[str, float]]:
    """``count`` different settings: listed values evenly at random, ranges in strata of equal size.

    Each range is cut into ``count`` equal parts and every part gets one draw (a Latin hypercube), so
    that few draws do not leave a part of it out. Asks for more than the listed values have give all
    combinations.

    Example:
        >>> settings = random_settings({"bonus_scale": Range(0.01, 1.0)}, 4)
        >>> [0.01 * 10 ** (j / 2) <= s["bonus_scale"] <= 0.01 * 10 ** ((j + 1) / 2)
        ...  for j, s in enumerate(sorted(settings, key=lambda s: s["bonus_scale"]))]
        [True, True, True, True]
    """
    ranges = ranges_in(space)
    what = "a whole number of settings"
    count, rng = checks.whole("count", count, 1, checks.MOST_SEEDS, what), generator(key)
    if not ranges:
        every = grid_settings(space)
        if len(every) <= count:
            return every
        return [every[j] for j in np.sort(rng.choice(len(every), count, replace=False))]
    columns: list[list[float]] = []
    for values in space.values():
        if isinstance(values, Range):
            shares = (rng.permutation(count) + rng.random(count)) / count
            columns.append([values.at(float(share)) for share in shares])
        else:
            columns.append([values[j] for j in rng.integers(0, len(values), count)])
    return [dict(zip(space, point, strict=True)) for point in zip(*columns, strict=True)]


def ranges_in(space: Space) -> list[str]:
    """Names of the parameters that have a `Range`; an error unless all have something to try.

    Example:
        >>> ranges_in({"threshold": [0.1, 0.2], "bonus_scale": Range(0.01, 1.0)})
        ['bonus_scale']
    """
    if not isinstance(space, Mapping) or not space:
        raise ValueError(f"space: {space!r}; accepted: a non-empty dictionary, parameter -> values")
    for name, values in space.items():
        listed = isinstance(values, list | tuple | np.ndarray) and len(values) > 0
        if not listed and not isinstance(values, Range):
            what = "a non-empty list of values, or a Range"
            raise ValueError(f"space[{name!r}]: {values!r}; accepted: {what}")
    return [name for name, values in space.items() if isinstance(values, Range)]


class Tuned(NamedTuple):
    """What `tune` found."""

    settings: dict[str, float]
    """The candidate of lowest score in training: mean regret, or worst ratio."""
    learner: Learner
    """The learner with these parameters."""
    candidates: tuple[Candidate, ...]
    """All that were tried."""
    tied: tuple[Candidate, ...]
    """Those that were not clearly worse than the best, itself included."""
    check: Comparison
    """The chosen settings ("chosen") against the learner as it was given ("given")."""
    checked_on: str
    """On what, in words."""
    runs: int
    """How many runs the training took."""

    def table(self, format: str = "text") -> str:
        """All candidates by score, as "text", "markdown", "latex" or "csv"."""
        head = ["setting", "worst ratio", "regret in training", "interval", "runs", "dropped"]
        right, rows = [1, 2, 4], []
        for one in sorted(self.candidates, key=lambda candidate: candidate.score):
            value, low, high, count = one.regret[:4]
            interval = "none" if np.isnan(low) else f"{low:.4g} to {high:.4g}"
            dropped = "" if one.dropped is None else f"after round {one.dropped}"
            regret = [f"{value:.4g}", interval, str(count), dropped]
            rows.append([words(one.settings), f"{one.score:.4g}", *regret])
        if all(one.score == one.regret.value for one in self.candidates):
            head, *rows = [[setting, *others] for setting, _, *others in (head, *rows)]
            right = [1, 3]
        return write_table(head, rows, format, right=right)

    def __str__(self) -> str:
        """The settings, their ties and the check."""
        others = len(self.tied) - 1
        ties = f"; {others} others are not clearly worse" if others else ""
        return (
            f"{words(self.settings)} ({self.runs} runs{ties})\n"
            f"check on {self.checked_on}: {self.check}"
        )


def tune(
    learner: Learner,
    space: Space,
    instances: Instances,
    budget: int,
    num_episodes: int | Sequence[int],
    *,
    score: str = MEAN,
    method: str | None = None,
    num_candidates: int | None = None,
    check: Instances | None = None,
    check_seeds: int = CHECK_SEEDS,
    first_seeds: int = 2,
    level: float = 0.95,
    seed: int = 0,
    **arguments: Any,
) -> Tuned:
    """Looks for the parameters of lowest mean final regret or worst ratio, by a race of candidates.

    Args:
        learner: what is tuned; parameters that ``space`` does not name stay as they are.
        space: parameter -> list of values, or `Range`.
        instances: as for `sweep`; the mean over them, each counted once, is what is minimised.
        budget: training runs in all (one candidate, instance, T and seed each).
        num_episodes: T; with score "worst-ratio" also a list of several.
        score: "mean", or "worst-ratio": the largest ratio, over the families of ``instances`` and the T, of
            a candidate's mean regret to that of the best candidate there (`jaxbandit.studies.tuning`).
        method: "grid" (every combination of lists) or "random"; by default grid if all are lists.
        num_candidates: of a random search; by default half the budget pays for the first round,
            with at most 64 candidates.
        check: other instances to check on. By default every second instance of ``instances`` is kept
            back for it; a single one is checked with other seeds, and the answer says so.
        check_seeds: seeds per checking instance.
        first_seeds: of the first round; rounds double the seeds (`jaxbandit.studies.tuning`).
        level: the truly best candidate is dropped with probability at most 1 - level.
        seed: the root key of everything.
        arguments: further ones of `sweep`, such as ``engine`` or ``progress``.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> space = {"bonus_scale": [0.01, 5.0]}
        >>> tuned = jb.tune(jb.make_learner("ucbvi"), space, {"I1": mdp}, budget=32, num_episodes=300)
        >>> tuned.settings, tuned.checked_on
        ({'bonus_scale': 0.01}, 'the same instances with other seeds')
    """
    checks.typed("learner", learner, Learner, "a Learner, as make_learner gives it")
    checks.whole("check_seeds", check_seeds, 2, checks.MOST_SEEDS)
    totals = _totals(num_episodes, score)
    training, checking, checked_on = split(instances, check)
    tasks = columns_of(training, len(totals))
    count = sum(map(len, tasks))
    how: dict[str, Any] = {"first_seeds": first_seeds, "level": level, "seed": seed, "score": score}
    race = Tuner(count, budget, tasks=None if score == MEAN else tasks, **how)
    usual = RANDOM if ranges_in(space) else GRID
    method = usual if method is None else method
    accept("method", method, METHODS)
    if method == GRID and num_candidates is not None:
        seen = f"{num_candidates} with method {GRID!r}"
        raise ValueError(f"num_candidates: {seen}; accepted: with {RANDOM!r}")
    if num_candidates is None:
        num_candidates = max(2, min(MOST_CANDIDATES, budget // (2 * count * first_seeds)))
    drawn = method == RANDOM
    settings = random_settings(space, num_candidates, seed) if drawn else grid_settings(space)
    points(learner, settings)  # unknown parameters are refused before anything runs
    race.add(settings)

    def run(learners: Any, instances: Instances, total: int, num_seeds: int, root: int) -> Any:
        """Keeps the last point only."""
        how = {"record": explicit([total]), "seed": root, **arguments}
        return sweep(learners, instances, total, num_seeds, **how)

    while (asked := race.ask()) is not None:
        candidates = {learner.name: points(learner, asked.settings)}
        size, root = asked.num_seeds, asked.seed
        race.tell(asked, [run(candidates, training, total, size, root) for total in totals])
    best = race.best.settings
    chosen, last = with_settings(learner, best), max(totals)
    contest, root = {CHOSEN: chosen, GIVEN: learner}, seed + STRIDE * CHECK_ROUND
    verdict = compare(run(contest, checking, last, check_seeds, root), level=level)
    return Tuned(
        settings=best,
        learner=chosen,
        candidates=tuple(race.candidates),
        tied=tuple(race.tied),
        check=verdict,
        checked_on=checked_on if len(totals) == 1 else f"{checked_on}, T = {last:,}",
        runs=race.spent,
    )


def with_settings(learner: Learner, settings: Mapping[str, float]) -> Learner:
    """The learner with some of its parameters replaced.

    Example:
        >>> import jaxbandit as jb
        >>> float(with_settings(jb.make_learner("ucbvi"), {"bonus_scale": 0.5}).params["bonus_scale"])
        0.5
    """
    params = points(learner, [settings]).learner.params
    return learner._replace(params={name: values[0] for name, values in params.items()})


def words(settings: Mapping[str, float]) -> str:
    """Settings in one line.

    Example:
        >>> words({"threshold": 0.064, "num_phases": 5})
        'threshold 0.064, num_phases 5'
    """
    return ", ".join(f"{name} {value:.4g}" for name, value in settings.items())


def split(
    instances: Instances, check: Instances | None
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Training instances, checking instances, and what the latter are; an instance in both is an error."""
    every = expand_instances(instances)
    if check is None and len(every) == 1:
        return dict(instances), dict(instances), "the same instances with other seeds"
    if check is None:
        halves: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for j, (member, mdp) in enumerate(every.items()):
            half, name = halves[j % 2], every.families[member]
            label = f"{name} (kept back)" if j % 2 else name
            if name == member:
                half[label] = mdp
            else:  # those given together stay a list, hence a family
                half.setdefault(label, []).append(mdp)
        return *halves, f"{len(every) // 2} instances kept back"
    checking = expand_instances(check)
    seen = {digest(mdp): member for member, mdp in every.items()}
    for name, mdp in checking.items():
        if digest(mdp) in seen:
            what = f"the same as instances[{seen[digest(mdp)]!r}]"
            raise ValueError(
                f"check[{name!r}]: {what}; accepted: instances that training does not see"
            )
    return dict(instances), dict(check), f"{len(checking)} other instances"


def _totals(num_episodes: int | Sequence[int], score: str) -> list[int]:
    """Every T."""
    if not isinstance(num_episodes, list | tuple):
        return [checks.whole("num_episodes", num_episodes, at_most=checks.MOST_EPISODES)]
    if score == MEAN:
        raise ValueError(
            f"num_episodes: {num_episodes!r} with score 'mean'; accepted: a whole number, or a list with "
            "score 'worst-ratio'"
        )
    found = [checks.whole("num_episodes", T, at_most=checks.MOST_EPISODES) for T in num_episodes]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"num_episodes: {num_episodes!r}; accepted: different whole numbers")
    return found


def columns_of(instances: Instances, times: int) -> list[list[int]]:
    """The columns of each family at each T, the families of the first T first."""
    sizes = [*Counter(expand_instances(instances).families.values()).values()] * times
    ends = itertools.accumulate(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
