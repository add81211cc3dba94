"""A learner's best parameters: a race on training instances, then a check on others.

    tuned = jb.tune(jb.make_learner("ucbvi"), {"bonus_scale": jb.Range(0.003, 1.0)},
                    {"I2": jb.family("prophet-random", count=8, key=key, **sizes)},
                    budget=1000, num_episodes=20_000)
    tuned.learner        # the learner at the settings found
    print(tuned)         # the settings, those that are as good as far as one can tell, and the check

Candidates are lanes of one sweep (`jaxbandit.points`), so a hundred of them compile once. The regret
that chose a setting flatters it; the check on instances that the race never saw does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.checks import accept
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, digest
from jaxbandit.record import explicit
from jaxbandit.stats.decisions import Comparison, compare
from jaxbandit.stats.intervals import generator
from jaxbandit.studies.race import MEAN, STRIDE, Candidate, Tuner
from jaxbandit.sweeps.arguments import expand_instances, points
from jaxbandit.sweeps.loop import sweep
from jaxbandit.tabular import write_table

METHODS = ("grid", "random")
MOST_CANDIDATES = 64
"""How many a random search tries unless it is told."""
CHECK_SEEDS = 8
CHECK_ROUND = 1000
"""As if the check were this round of the race, which no race reaches: its seeds are new."""
CHOSEN, GIVEN = "chosen", "given"
Instances = Mapping[str, MDP | Iterable[MDP]]


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
        if not low < high:
            raise ValueError(f"Range: low {low}, high {high}; accepted: low < high")
        if self.log and not low > 0:
            raise ValueError(f"Range: low {self.low} with log=True; accepted: low > 0")

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
    check_space(space)
    for name, values in space.items():
        if isinstance(values, Range):
            raise ValueError(
                f"space[{name!r}]: {values}; accepted: a list of values with method 'grid'"
            )
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
    check_space(space)
    count = checks.whole(
        "count", count, at_most=checks.MOST_SEEDS, what="a whole number of settings"
    )
    rng = generator(key)
    if not any(isinstance(values, Range) for values in space.values()):
        every = grid_settings(space)
        if len(every) <= count:
            return every
        return [every[j] for j in np.sort(rng.choice(len(every), count, replace=False))]
    columns: dict[str, list[float]] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            shares = (rng.permutation(count) + rng.random(count)) / count
            columns[name] = [values.at(float(share)) for share in shares]
        else:
            columns[name] = [values[j] for j in rng.integers(0, len(values), count)]
    return [{name: columns[name][j] for name in space} for j in range(count)]


def check_space(space: Space) -> None:
    """An error unless the space names at least one parameter with values to try."""
    if not isinstance(space, Mapping) or not space:
        raise ValueError(f"space: {space!r}; accepted: a non-empty dictionary, parameter -> values")
    for name, values in space.items():
        listed = isinstance(values, list | tuple | np.ndarray) and len(values) > 0
        if not listed and not isinstance(values, Range):
            raise ValueError(
                f"space[{name!r}]: {values!r}; accepted: a non-empty list of values, or a Range"
            )


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
        plain = all(c.score == c.regret.value for c in self.candidates)
        rows = [
            [
                words(candidate.settings),
                *([] if plain else [f"{candidate.score:.4g}"]),
                f"{candidate.regret.value:.4g}",
                f"{candidate.regret.low:.4g} to {candidate.regret.high:.4g}".replace(
                    "nan to nan", "none"
                ),
                str(candidate.regret.n),
                "" if candidate.dropped is None else f"after round {candidate.dropped}",
            ]
            for candidate in sorted(self.candidates, key=lambda c: c.score)
        ]
        head = ["regret in training", "interval", "runs", "dropped"]
        if plain:
            return write_table(["setting", *head], rows, format, right=[1, 3])
        return write_table(["setting", "worst ratio", *head], rows, format, right=[1, 2, 4])

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
            a candidate's mean regret to that of the best candidate there (`jaxbandit.studies.race`).
        method: "grid" (every combination of lists) or "random"; by default grid if all are lists.
        num_candidates: of a random search; by default half the budget pays for the first round,
            with at most 64 candidates.
        check: other instances to check on. By default every second instance of ``instances`` is kept
            back for it; a single one is checked with other seeds, and the answer says so.
        check_seeds: seeds per checking instance.
        first_seeds: of the first round; rounds double the seeds (`jaxbandit.studies.race`).
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
    tasks = _tasks(training, len(totals))
    count = sum(map(len, tasks))
    race = Tuner(
        count,
        budget,
        first_seeds=first_seeds,
        level=level,
        seed=seed,
        score=score,
        tasks=None if score == MEAN else tasks,
    )
    settings = _settings(space, method, num_candidates, budget, count * first_seeds, seed)
    points(learner, settings)  # unknown parameters are refused before anything runs
    race.add(settings)
    run = _runner(arguments)
    while (asked := race.ask()) is not None:
        candidates = {learner.name: points(learner, asked.settings)}
        how = (training, asked.num_seeds, asked.seed)
        race.tell(asked, [run(candidates, total, *how) for total in totals])
    best = race.best.settings
    chosen = with_settings(learner, best)
    contest = {CHOSEN: chosen, GIVEN: learner}
    fresh = seed + STRIDE * CHECK_ROUND
    last = run(contest, max(totals), checking, check_seeds, fresh)
    verdict = compare(last, level=level, key=seed)
    return Tuned(
        settings=best,
        learner=chosen,
        candidates=tuple(race.candidates),
        tied=tuple(race.tied),
        check=verdict,
        checked_on=checked_on if len(totals) == 1 else f"{checked_on}, T = {max(totals):,}",
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
    expand_instances(instances)  # refuses what are none
    every = {
        (name, member): mdp
        for name, given in instances.items()
        for member, mdp in expand_instances({name: given}).items()
    }
    if check is None and len(every) == 1:
        return dict(instances), dict(instances), "the same instances with other seeds"
    if check is None:
        places = list(every)
        training = _grouped({place: every[place] for place in places[::2]}, "")
        kept = _grouped({place: every[place] for place in places[1::2]}, " (kept back)")
        return training, kept, f"{len(places[1::2])} instances kept back"
    checking = expand_instances(check)
    seen = {digest(mdp): member for (_, member), mdp in every.items()}
    for name, mdp in checking.items():
        if digest(mdp) in seen:
            raise ValueError(
                f"check[{name!r}]: the same as instances[{seen[digest(mdp)]!r}]; accepted: instances "
                "that training does not see"
            )
    return dict(instances), dict(check), f"{len(checking)} other instances"


def _grouped(members: Mapping[tuple[str, str], MDP], mark: str) -> dict[str, Any]:
    """Instances under the names they were given; those given together stay a list, hence a family."""
    groups: dict[str, Any] = {}
    for (name, member), mdp in members.items():
        if name == member:
            groups[f"{name}{mark}"] = mdp
        else:
            groups.setdefault(f"{name}{mark}", []).append(mdp)
    return groups


def _settings(
    space: Space,
    method: str | None,
    num_candidates: int | None,
    budget: int,
    cost: int,
    seed: int,
) -> list[dict[str, float]]:
    check_space(space)
    if method is None:
        method = "random" if any(isinstance(v, Range) for v in space.values()) else "grid"
    accept("method", method, METHODS)
    if method == "grid":
        if num_candidates is not None:
            raise ValueError(
                f"num_candidates: {num_candidates} with method 'grid'; accepted: with 'random'"
            )
        return grid_settings(space)
    affordable = max(2, min(MOST_CANDIDATES, budget // (2 * cost)))
    return random_settings(
        space, affordable if num_candidates is None else num_candidates, key=seed
    )


def _totals(num_episodes: int | Sequence[int], score: str) -> list[int]:
    """Every T."""
    several = isinstance(num_episodes, list | tuple)
    if several and score == MEAN:
        raise ValueError(
            f"num_episodes: {num_episodes!r} with score 'mean'; accepted: a whole number, or a list with "
            "score 'worst-ratio'"
        )
    given: Any = num_episodes if several else [num_episodes]
    if not given or len(set(given)) < len(given):
        raise ValueError(f"num_episodes: {num_episodes!r}; accepted: different whole numbers")
    return [checks.whole("num_episodes", each, at_most=checks.MOST_EPISODES) for each in given]


def _tasks(instances: Instances, times: int) -> list[list[int]]:
    """The columns of each family at each T, the families of the first T first."""
    sizes = [len(expand_instances({name: given})) for name, given in instances.items()] * times
    ends = list(itertools.accumulate(sizes))
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def _runner(arguments: Mapping[str, Any]) -> Callable[..., Any]:
    """A sweep that keeps the last point only."""

    def run(
        learners: Any, num_episodes: int, instances: Instances, num_seeds: int, seed: int
    ) -> Any:
        how = {"record": explicit([num_episodes]), **arguments}
        return sweep(learners, instances, num_episodes, num_seeds, seed=seed, **how)

    return run
