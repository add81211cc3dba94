"""A race between settings: ask which runs are wanted, tell what they gave.

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.stats.intervals import FEW_TO_JUDGE, FLAT, Estimate, fewest_runs, standard_error

MEAN, WORST_RATIO = "mean", "worst-ratio"
SCORES = (MEAN, WORST_RATIO)
LEAST = 1e-9
"""A regret of 0 is possible, and then every ratio to it is large."""

Tasks = Sequence[Sequence[int]]
"""Each task's columns."""
STRIDE = 1_000_003
"""Between the root seeds of two rounds: a prime, far from the seeds that people choose."""


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
        self._settings: list[dict[str, float]] = []
        self._runs: list[list[np.ndarray]] = []
        self._dropped: list[int | None] = []
        self._sizes: list[int] = []

    def add(self, settings: Iterable[Mapping[str, float]]) -> list[int]:
        """Enters settings into the race, also later ones, and returns their indices."""
        added = [dict(setting) for setting in settings]
        first = len(self._settings)
        self._settings += added
        self._runs += [[] for _ in added]
        self._dropped += [None for _ in added]
        return list(range(first, first + len(added)))

    def ask(self) -> Round | None:
        """The next runs, or None: the budget cannot pay for more, or one candidate is left."""
        racing = [j for j, dropped in enumerate(self._dropped) if dropped is None]
        if not racing or (len(racing) == 1 and self._runs[racing[0]]):
            return None
        number = min(len(self._runs[j]) for j in racing) + 1
        late = tuple(j for j in racing if len(self._runs[j]) == number - 1)
        left = (self.budget - self.spent) // (len(late) * self.num_instances)
        if number > len(self._sizes):
            wanted = self._first * 2 ** max(0, number - 2)  # 2, 2, 4, 8, ...: the total doubles
            size = min(wanted, left)
        else:
            size = self._sizes[number - 1]
        if size > left or size < (self._first if number == 1 else 1):
            if not self.spent:
                least = len(late) * self.num_instances * self._first
                raise ValueError(
                    f"budget: {self.budget} runs; accepted: at least {least}, {self._first} seeds of "
                    f"{len(late)} settings on {self.num_instances} instances"
                )
            return None
        settings = tuple(dict(self._settings[j]) for j in late)
        return Round(
            number=number,
            candidates=late,
            settings=settings,
            num_seeds=size,
            seed=self.seed + STRIDE * (number - 1),
        )

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
            if len(self._runs[j]) != asked.number - 1:
                raise ValueError(
                    f"asked: round {asked.number} of candidate {j}, which has {len(self._runs[j])}; "
                    "accepted: the round that ask returned last, once"
                )
        if asked.number > len(self._sizes):
            self._sizes.append(asked.num_seeds)
        for j, of_one in zip(asked.candidates, values, strict=True):
            self._runs[j].append(of_one)
        for j in refused:
            self._dropped[j] = asked.number
        self.spent += values.size
        if not any(
            len(runs) < asked.number
            for runs, dropped in zip(self._runs, self._dropped, strict=True)
            if dropped is None
        ):
            self._drop(asked.number)

    def _drop(self, number: int) -> None:
        racing = [
            j
            for j, dropped in enumerate(self._dropped)
            if dropped is None and len(self._runs[j]) == number
        ]
        if len(racing) < 2:
            return
        alpha, rivals = (1 - self.level) / 2**number, len(self._settings) - 1
        if self.score != MEAN:
            scores = self.ratios.max(axis=1)
            told = [j for j, runs in enumerate(self._runs) if runs]
            runs = [np.concatenate(self._runs[j], axis=-1) for j in told]
            leader = told.index(min(racing, key=lambda j: scores[j]))
            worse = clearly_above(runs, leader, self.tasks, alpha, rivals)
            self._leave(racing, worse[[told.index(j) for j in racing]], number)
            return
        values = np.stack([np.concatenate(self._runs[j], axis=-1) for j in racing], axis=-1)
        best = int(values.mean(axis=(0, 1)).argmin())
        self._leave(racing, clearly_worse(list(values), best, alpha, rivals), number)

    def _leave(self, racing: list[int], worse: np.ndarray, number: int) -> None:
        for j, drop in zip(racing, worse, strict=True):
            if drop:
                self._dropped[j] = number

    @property
    def ratios(self) -> np.ndarray:
        """float [candidates, tasks]: mean regret over that of the best candidate of the task; nan if
        nothing was told of it."""
        found = np.full((len(self._runs), len(self.tasks)), np.nan)
        told = [j for j, runs in enumerate(self._runs) if runs]
        if told:
            strata = [_strata(self._runs[j], self.tasks) for j in told]
            means = np.array([[task.mean() for task in of_one] for of_one in strata])
            found[told] = ratios_to_best(means)
        return found

    @property
    def candidates(self) -> list[Candidate]:
        """All settings with what is known of them, in the order they were added."""
        estimates = [_estimate(runs, self.tasks, self.level) for runs in self._runs]
        scores = [estimate.value for estimate in estimates]
        if self.score != MEAN:
            scores = [float(worst) for worst in self.ratios.max(axis=1)]
        columns = (self._settings, estimates, self._dropped, scores)
        return [
            Candidate(settings=dict(settings), regret=regret, dropped=dropped, score=score)
            for settings, regret, dropped, score in zip(*columns, strict=True)
        ]

    @property
    def best(self) -> Candidate:
        """Of those in the race that have been through all rounds, the one of lowest score."""
        most = max((len(runs) for runs in self._runs), default=0)
        if not most:
            raise ValueError("best: nothing was told yet; accepted: after a round")
        complete = [
            c
            for c, runs in zip(self.candidates, self._runs, strict=True)
            if c.dropped is None and len(runs) == most
        ]
        return min(complete, key=lambda candidate: candidate.score)

    @property
    def tied(self) -> list[Candidate]:
        """Those still in the race: the budget could not tell them from the best."""
        return [candidate for candidate in self.candidates if candidate.dropped is None]


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
    """[candidates, n] of each task, from runs [candidates, columns, seeds].

    Example:
        >>> runs = np.arange(6.0).reshape(1, 3, 2)
        >>> [task.tolist() for task in replicates_of(runs, [[0], [1, 2]])]
        [[[0.0, 1.0]], [[2.5, 4.5]]]
    """
    return [
        runs[:, columns[0]] if len(columns) == 1 else runs[:, list(columns)].mean(-1)
        for columns in tasks
    ]


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


def _strata(runs: list[np.ndarray], tasks: Tasks) -> list[np.ndarray]:
    """The replicates [n] of each task."""
    return [task[0] for task in replicates_of(np.concatenate(runs, axis=-1)[None], tasks)]


def _estimate(runs: list[np.ndarray], tasks: Tasks, level: float) -> Estimate:
    """Mean over tasks with a t-interval over the replicates within them."""
    from scipy import stats

    if not runs:
        return Estimate(value=np.nan, low=np.nan, high=np.nan, n=0, level=level, replicates="runs")
    strata = _strata(runs, tasks)
    error, freedom = standard_error([task[:, None] for task in strata])
    half = float(stats.t.ppf((1 + level) / 2, freedom[0]) * error[0])
    if not half and sum(map(len, strata)) < fewest_runs(level):
        half = np.nan  # too few runs that all agree
    mean = float(np.mean([task.mean() for task in strata]))
    count = sum(part.size for part in runs)
    low = max(mean - half, min(mean, 0.0))  # regret is at least 0, and so is its mean
    warning = "few" if half and min(map(len, strata)) < FEW_TO_JUDGE else ""
    return Estimate(value=mean, low=low, high=mean + half, n=count, level=level, replicates="runs", warning=warning)  # fmt: skip


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
    if hasattr(regret, "data_vars"):
        return _final(regret)
    if isinstance(regret, list | tuple) and regret and hasattr(regret[0], "data_vars"):
        return np.concatenate([_final(part) for part in regret], axis=1)
    return np.asarray(regret, np.float64)


def _final(dataset: Any) -> np.ndarray:
    """Final regrets [candidates, instances, seeds] of a sweep of one learner's points."""
    if dataset.sizes["learner"] != 1:
        raise ValueError(
            f"regret: a sweep of {dataset.sizes['learner']} learners; accepted: one, at its points"
        )
    last = dataset["regret"].isel(learner=0, episode=-1)
    last = last if "parameter" in last.dims else last.expand_dims("parameter")
    return np.asarray(last.transpose("parameter", "instance", "seed").values, np.float64)
