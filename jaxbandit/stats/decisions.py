"""Which learner is better: all pairs at once, and over many instances.

**All pairs at once.** `compare` looks at the difference of every pair of learners, run by run (the same instance and
seed), and gives intervals that hold *together* with the stated probability (`jaxbandit.stats.intervals`): Student-t with
Bonferroni's correction, whose width in standard errors falls with every run that is added. A pair is
decided if its interval leaves 0 out and there are enough runs for a decision (`fewest_runs`); all statements of one
comparison, and the ranking made of them, are true together with probability ``level``. A learner's place runs from
1 + (those that are decided to be better) to the number of learners - (those that are decided to be worse).

Replicates are those of `jaxbandit.stats.replication`: seeds of one instance, or instances of a drawn
family. Several families are strata: the mean over families is compared, each counted once.

**Over many instances.** Performance profiles and the probability of improvement answer for *these* instances (each
counts once) and for new seeds on them, so the bootstrap is stratified: seeds are resampled within every instance, the
same ones for all learners, and instances are not. Both are shares p, and their intervals, point by point, are Wilson's
for p(1 - p)/m, with m from the bootstrap's variance but never more than the number of runs. The bootstrap's
percentiles, usual for these two, cover 73 % instead of 95 % at 3 seeds: where all runs agree they have no width.
The best learner's regret, to which profiles are ratios, is a guess from few seeds, and worse if they are skewed, so bands
of profiles cover 90 to 96 %, on lognormal runs 82 to 93 %: with few seeds they say so (``warning``).
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, real_array, share, whole
from jaxbandit.results import axes
from jaxbandit.stats.intervals import (
    FEW_TO_JUDGE,
    MOST_RESAMPLES,
    WARNINGS,
    Band,
    coverage_warning,
    generator,
    joint_intervals,
    joint_warning,
    resampled_counts,
)
from jaxbandit.stats.replication import curve_names, families, final_runs
from jaxbandit.tabular import records, write_table

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = [
    "Comparison", "Improvement", "Pair", "Profiles", "compare", "compare_values", "improvement_table",
    "performance_profiles", "probability_of_improvement",
]  # fmt: skip
FEWEST_SEEDS = 2


class Pair(NamedTuple):
    """Two learners, the one with the lower mean first."""

    better: str
    worse: str
    difference: float
    """Mean of (worse - better), 0 or more."""
    low: float
    high: float
    p_value: float
    """Adjusted for all pairs of the comparison; never below that of as many runs that all agree (`jaxbandit.stats.intervals`)."""
    enough: bool = True
    """Whether there are enough runs for any decision; see `jaxbandit.stats.intervals`."""

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out, and enough runs say so."""
        return self.enough and self.low > 0


class Comparison(NamedTuple):
    """All pairs of some learners; made by `compare`."""

    learners: tuple[str, ...]
    """By mean, the lowest first."""
    means: tuple[float, ...]
    """Of each learner, over the mean of the families."""
    pairs: tuple[Pair, ...]
    """All of them, in the order of ``learners``."""
    level: float
    """The probability with which all intervals, and the ranking, are right together."""
    replicates: str
    """How many replicates of what, in words."""
    method: str
    """How the common width of the intervals was found."""
    strata: tuple[np.ndarray, ...] = ()
    """The values compared: float [n, learners] per family, columns as in ``learners``."""

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Best and worst place of each learner that no decided pair speaks against."""
        decided, last = [pair for pair in self.pairs if pair.decided], len(self.learners)
        above = collections.Counter(pair.worse for pair in decided)
        below = collections.Counter(pair.better for pair in decided)
        return {name: (1 + above[name], last - below[name]) for name in self.learners}

    @property
    def decided(self) -> bool:
        """Whether every pair is decided."""
        return all(pair.decided for pair in self.pairs)

    def ranking(self) -> str:
        """The ranking in one line; learners that may share places are tied.

        Example: see `compare`.
        """
        return "; ".join(
            f"{low if low == high else f'{low}-{high}'}. {name}"
            for name, (low, high) in self.places.items()
        )

    def table(self, format: str = "text") -> str:
        """All pairs as "text", "markdown", "latex" or "csv"."""
        percent = f"{100 * self.level:g} % interval (all pairs)"
        head = ["lower regret", "higher regret", "difference", percent, "p", "decided"]
        rows = []
        for pair in self.pairs:
            interval = f"{pair.low:.4g} to {pair.high:.4g}" if np.isfinite(pair.high) else "none"
            p = "< 0.001" if pair.p_value < 0.001 else f"{pair.p_value:.3f}"
            cells = [f"{pair.difference:.4g}", interval, p, "yes" if pair.decided else "no"]
            rows.append([pair.better, pair.worse, *cells])
        return write_table(head, rows, format, right=[2])

    def __str__(self) -> str:
        """Ranking, pairs and method."""
        return f"{self.ranking()}\n{self.table()}\n{self.method}, paired over {self.replicates}"


def compare(
    ds: Dataset,
    learners: Iterable[str] | None = None,
    family: str | None = None,
    *,
    level: float = 0.95,
    variable: str = "regret",
    key: Any = 0,
    num_resamples: int = 5000,
) -> Comparison:
    """Compares all pairs of learners by their final regret, paired, at one family-wise level.

    Args:
        ds: the Dataset of a sweep; parameter points count as learners of their own.
        learners: names, default all.
        family: one family; by default the mean over all of them.
        level: the probability with which all statements are right together.
        variable: "regret" (its last value), or another variable with one number per run.
        key: not used: the intervals are not resampled any more.
        num_resamples: not used.

    Example:
        >>> import numpy as np, xarray as xr
        >>> rng = np.random.default_rng(0)
        >>> runs = rng.normal([[10.0], [10.1], [14.0]], 1.0, (3, 16)) + rng.normal(0, 5, 16)
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs[:, None, :, None])},
        ...                 coords={"learner": ["A", "B", "C"], "instance": ["I1"], "episode": [100]})
        >>> compare(ds).ranking()
        '1-2. A; 1-2. B; 3. C'
    """
    labels, groups = complete_runs(ds, learners, family, variable)
    if len(labels) < 2:
        raise ValueError(f"learners: {labels}; accepted: at least two to compare")
    strata, counts = [], []
    for name, runs in groups.items():
        rows, *others = runs.values()
        if others:
            rows = np.array([seeds.mean(axis=0) for seeds in runs.values() if len(seeds)])
        if len(rows) < 2:
            raise ValueError(
                f"ds: {len(rows)} complete replicates in family {name!r}; accepted: at least 2 "
                "(seeds of one instance, or drawn instances)"
            )
        strata.append(rows)
        counts.append(f"{len(rows)} {'instances' if others else 'seeds'} of {name}")
    answer = compare_values(labels, strata, level, key=key, num_resamples=num_resamples)
    return answer._replace(replicates=", ".join(counts))


def complete_runs(
    ds: Dataset, learners: Iterable[str] | None, family: str | None, variable: str = "regret"
) -> tuple[list[str], dict[str, dict[str, np.ndarray]]]:
    """Labels of the curves, and family -> instance -> last values [seeds, curves]; a seed that some curve lacks is left
    out for all.

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 2.0]])[:, None, :, None]
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs)},
        ...                 coords={"learner": ["A", "B"], "instance": ["I1"]})
        >>> complete_runs(ds, None, None)[1]["I1"]["I1"].tolist()
        [[1.0, 1.0], [3.0, 2.0]]
    """
    ds = axes.whole(ds, "regret")
    curves, groups = curve_names(ds, learners), families(ds)
    if family is not None:
        accept("family", family, list(groups))
        groups = {family: groups[family]}
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, members in groups.items():
        runs = zip(members, final_runs(ds, curves, members, variable), strict=True)
        found[name] = {member: of[np.isfinite(of).all(axis=1)] for member, of in runs}
    return [curve.label for curve in curves], found


def compare_values(
    learners: Sequence[str],
    strata: Sequence[np.ndarray],
    level: float = 0.95,
    *,
    key: Any = 0,
    num_resamples: int = 5000,
) -> Comparison:
    """As `compare`, for plain arrays: one [n, learners] per stratum, rows are paired replicates.

    Example:
        >>> import numpy as np
        >>> seeds = np.arange(8.0)[:, None]
        >>> values = np.hstack([seeds, seeds + 1 + 0.1 * np.sin(seeds)])
        >>> compare_values(["A", "B"], [values]).decided, compare_values(["A", "B"], [values[:5]]).decided
        (True, False)
    """
    level = share("level", level)
    generator(key)
    whole("num_resamples", num_resamples, at_most=MOST_RESAMPLES)
    several = isinstance(learners, Sequence) and len(learners) > 1
    if not several or not all(isinstance(name, str) for name in learners):
        raise ValueError(f"learners: {learners!r}; accepted: a list of two names or more")
    strata = _strata(strata, len(learners))
    differences = paired_differences(strata)
    found = joint_intervals(differences, level)
    moving = [x for values in differences for x in values.T if np.ptp(x) > 0]
    warning = joint_warning(coverage_warning(x) for x in moving)
    doubt = f"; {found.too_few}" if found.too_few else f" ({WARNINGS[warning]})" if warning else ""
    about: dict[str, Any] = {
        "level": level,
        "replicates": f"{' + '.join(str(len(values)) for values in strata)} replicates",
        "method": f"Student-t, Bonferroni's correction{doubt}",
    }
    return compare_intervals(learners, strata, found[:4], enough=not found.too_few, **about)


def compare_intervals(
    learners: Sequence[str],
    strata: Sequence[np.ndarray],
    intervals: Sequence[np.ndarray],
    *,
    enough: bool = True,
    **about: Any,
) -> Comparison:
    """The `Comparison` of learners whose values are strata [n, learners].

    Args:
        learners: names.
        strata: the values.
        intervals: of the pairs in the order of `paired_differences`: differences, low and high ends, p-values.
        enough: whether there are enough runs for any decision.
        about: level, replicates and method.

    Example:
        >>> one = [np.array([number]) for number in (-2.0, -3.0, -1.0, 0.01)]       # A - B
        >>> how = {"level": 0.95, "replicates": "8 seeds", "method": "by hand"}
        >>> compare_intervals(["A", "B"], [np.array([[5.0, 3.0]] * 8)], one, **how).ranking()
        '1. B; 2. A'
    """
    means = np.mean([values.mean(axis=0) for values in strata], axis=0)
    order = np.argsort(means, kind="stable")
    place = np.argsort(order)
    pairs = {}
    columns = [*np.triu_indices(len(means), 1), *map(np.ndarray.tolist, intervals)]
    for a, b, difference, low, high, p in zip(*columns, strict=True):
        if high < 0 or (low <= 0 and place[b] < place[a]):
            a, b, difference, low, high = b, a, -difference, -high, -low  # noqa: PLW2901
        rest: dict[str, Any] = {"high": high, "p_value": p, "enough": enough}
        pairs[place[a], place[b]] = Pair(learners[a], learners[b], difference, low, **rest)
    return Comparison(
        learners=tuple(learners[j] for j in order),
        means=tuple(means[order].tolist()),
        pairs=tuple(pairs[places] for places in sorted(pairs)),
        strata=tuple(values[:, order] for values in strata),
        **about,
    )


def paired_differences(strata: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Of strata [n, learners] the second minus the first of every pair, [n, pairs].

    Example:
        >>> paired_differences([np.array([[1.0, 2.0, 4.0]])])[0].tolist()       # B - A, C - A, C - B
        [[1.0, 3.0, 2.0]]
    """
    found = []
    for values in strata:
        first, second = np.triu_indices(values.shape[1], 1)
        found.append(values[:, second] - values[:, first])
    return found


def _strata(strata: Any, columns: int) -> list[np.ndarray]:
    """Arrays [n, columns] of finite numbers, at least one, each with two rows or more."""
    accepted = f"a list of arrays [n, {columns}] of finite numbers, a row per replicate, n >= 2"
    several = isinstance(strata, Sequence | np.ndarray) and getattr(strata, "shape", None) != ()
    if not several or not len(strata):
        raise ValueError(f"strata: {type(strata).__name__}; accepted: {accepted}")
    found = [np.asarray(real_array("strata", values, accepted), np.float64) for values in strata]
    for values in found:
        wrong = int((~np.isfinite(values)).sum())
        if values.shape[1:] != (columns,) or len(values) < 2 or wrong:
            seen = f"one of shape {values.shape}, {wrong} not finite"
            raise ValueError(f"strata: {seen}; accepted: {accepted}")
    return found


class Profiles(NamedTuple):
    """Performance profiles; made by `performance_profiles`."""

    ratios: np.ndarray
    """float [points]: regret over that of the best learner on the instance."""
    share: dict[str, Band]
    """Learner -> share of the runs at or below each ratio, with its band."""
    num_instances: int
    num_seeds: int
    """The fewest on any instance."""


class Improvement(NamedTuple):
    """How often a run of one learner has less regret than a run of another."""

    first: str
    second: str
    probability: float
    """P(regret of first < regret of second) + half of the ties, mean over instances."""
    low: float
    high: float
    level: float


def performance_profiles(
    ds: Dataset,
    learners: Iterable[str] | None = None,
    ratios: Sequence[float] | None = None,
    family: str | None = None,
    *,
    level: float = 0.95,
    key: Any = 0,
    num_resamples: int = 2000,
) -> Profiles:
    """The share of runs whose final regret is at most tau times that of the instance's best learner.

    The best learner of an instance is the one of lowest mean regret there; an instance on which it
    has none (0) is refused, since no ratio exists. A profile that is higher everywhere is better.

    Args:
        ds: the Dataset of a sweep with at least two seeds per instance.
        learners: names, default all; the best is among these.
        ratios: values of tau, default 61 from 1/2 to the largest ratio seen, log-spaced.
        family: one family, default all.
        level: of the bands, point by point.
        key: seeds the bootstrap.
        num_resamples: bootstrap resamples.

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.array([1.0, 2.0])[:, None, None] * np.ones((2, 3, 8))
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs[..., None])},
        ...                 coords={"learner": ["A", "B"], "instance": ["I", "J", "K"], "episode": [9]})
        >>> found = performance_profiles(ds, ratios=[1.0, 1.5, 2.0])
        >>> found.share["A"].center.tolist(), found.share["B"].center.tolist()
        ([1.0, 1.0, 1.0], [0.0, 0.0, 1.0])
    """
    level = share("level", level)
    labels, runs, counts = _resampled(ds, learners, family, key, num_resamples)
    scaled = [values / _best(values.mean(axis=0)) for values in runs]
    top = max(float(values.max()) for values in scaled)
    usual = np.geomspace(0.5, max(top, 1.0) * 1.001, 61)
    taus = usual if ratios is None else np.asarray(real_array("ratios", ratios), np.float64)
    if taus.ndim != 1 or not taus.size or not ((taus > 0) & (taus < np.inf)).all():
        raise ValueError(f"ratios: {ratios!r}; accepted: a list of numbers > 0")
    center = np.zeros((len(labels), taus.size))
    drawn = np.zeros((len(counts[0]), *center.shape))
    for values, ratio, times in zip(runs, scaled, counts, strict=True):
        center += np.mean(ratio[:, :, None] <= taus, axis=0) / len(runs)
        # the best learner and its mean are found anew in every resample
        best = _best((times @ values / len(values)).T)
        for j in range(len(labels)):
            order = np.argsort(values[:, j])
            below = np.cumsum(times[:, order], axis=1) / len(values)
            below = np.pad(below, ((0, 0), (1, 0)))
            cut = np.searchsorted(values[order, j], taus * best[:, None], side="right")
            drawn[:, j] += np.take_along_axis(below, cut, axis=1) / len(runs)
    sides = zip(
        labels, center, *share_interval(center, drawn.var(axis=0), runs, level), strict=True
    )
    seeds = min(map(len, runs))
    warning = "few" if seeds < FEW_TO_JUDGE else ""
    about: dict[str, Any] = {"n": seeds, "level": level, "kind": "score", "warning": warning}
    bands = {label: Band(middle, low, high, **about) for label, middle, low, high in sides}
    return Profiles(taus, bands, len(runs), seeds)


def probability_of_improvement(
    ds: Dataset,
    learners: Iterable[str] | None = None,
    family: str | None = None,
    *,
    level: float = 0.95,
    key: Any = 0,
    num_resamples: int = 2000,
) -> list[Improvement]:
    """P(a run of one learner has less final regret than a run of another), for every ordered pair.

    The two runs have different seeds of the same instance: runs of one seed share the world's
    randomness, so their pairing would answer another question (which `compare` does).

    Example:
        >>> import numpy as np, xarray as xr
        >>> runs = np.stack([np.arange(8.0), np.arange(8.0) + 4])[:, None]
        >>> ds = xr.Dataset({"regret": (("learner", "instance", "seed", "episode"), runs[..., None])},
        ...                 coords={"learner": ["A", "B"], "instance": ["I1"], "episode": [9]})
        >>> one, other = probability_of_improvement(ds)
        >>> (one.first, one.second), round(one.probability, 3), round(other.probability, 3)
        (('A', 'B'), 0.857, 0.143)
    """
    level = share("level", level)
    labels, runs, counts = _resampled(ds, learners, family, key, num_resamples)
    found = []
    for a, b in itertools.permutations(range(len(labels)), 2):
        value, drawn = 0.0, np.zeros(len(counts[0]))
        for values, times in zip(runs, counts, strict=True):
            others = 1.0 - np.eye(len(values))
            ours, theirs = values[:, [a]], values[:, b]
            wins = others * ((ours < theirs) + 0.5 * (ours == theirs))
            value += wins.sum() / others.sum() / len(runs)
            weight = np.sum(times @ others * times, axis=1)
            won = np.sum(times @ wins * times, axis=1)
            # a resample of one seed alone has no pair of different seeds: it says nothing
            won = np.divide(won, weight, out=np.full(won.shape, 0.5), where=weight > 0)
            drawn += won / len(runs)
        low, high = map(float, share_interval(np.float64(value), drawn.var(), runs, level))
        ends: dict[str, float] = {"low": low, "high": high, "level": level}
        found.append(Improvement(labels[a], labels[b], float(value), **ends))
    return found


def improvement_table(rows: Sequence[Improvement], format: str = "text") -> str:
    """The rows of `probability_of_improvement` as "text", "markdown", "latex" or "csv".

    Example:
        >>> print(improvement_table([Improvement("A", "B", 0.9, 0.8, 0.95, 0.95)]))
        learner  has less regret than  probability  95 % interval
        A        B                           0.900  0.800 to 0.950
    """
    rows = records("rows", rows, Improvement, "what jb.stats.probability_of_improvement gives")
    percent = f"{100 * rows[0].level:g} % interval" if rows else "interval"
    cells = [
        [row.first, row.second, f"{row.probability:.3f}", f"{row.low:.3f} to {row.high:.3f}"]
        for row in rows
    ]
    return write_table(
        ["learner", "has less regret than", "probability", percent], cells, format, right=[2]
    )


def share_interval(
    share: Any, variance: Any, runs: Sequence[np.ndarray], level: float
) -> tuple[Any, Any]:
    """Wilson's interval for a share whose estimate has this variance (the bootstrap's).

    Example:
        >>> import numpy as np
        >>> low, high = share_interval(np.array(1.0), np.array(0.0), [np.zeros((4, 2))], 0.95)
        >>> round(float(low), 2), float(high)       # 4 of 4
        (0.51, 1.0)
    """
    from scipy import stats

    most, seeds = sum(map(len, runs)), min(map(len, runs))
    spread = share * (1 - share)
    variance = variance * seeds / (seeds - 1)  # resampling n of n is short by that
    known = (variance > 0) & (spread > 0)
    m = np.minimum(most, np.divide(spread, variance, out=np.full(np.shape(share), np.inf), where=known))  # fmt: skip
    q = stats.norm.ppf((1 + level) / 2)
    middle = (share + q**2 / (2 * m)) / (1 + q**2 / m)
    half = q * np.sqrt(spread / m + q**2 / (4 * m**2)) / (1 + q**2 / m)
    # the ends are 0 and 1 where all runs agree, not 1e-17 from them
    return np.where(share > 0, middle - half, 0.0), np.where(share < 1, middle + half, 1.0)


def _resampled(
    ds: Dataset, learners: Iterable[str] | None, family: str | None, key: Any, num_resamples: int
) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    """Labels of the curves; of every instance final regrets [seeds, curves], and the counts of its seeds in resamples."""
    size, rng = whole("num_resamples", num_resamples, at_most=MOST_RESAMPLES), generator(key)
    labels, groups = complete_runs(ds, learners, family)
    found = {instance: runs for members in groups.values() for instance, runs in members.items()}
    for instance, runs in found.items():
        if len(runs) < FEWEST_SEEDS:
            seen = f"{len(runs)} seeds that all learners have on {instance!r}"
            raise ValueError(f"ds: {seen}; accepted: at least {FEWEST_SEEDS}")
    counts = [resampled_counts(rng, len(runs), size) for runs in found.values()]
    return labels, list(found.values()), counts


def _best(means: np.ndarray) -> Any:
    """The lowest of means [learners, ...], which must be positive."""
    best = means.min(axis=0)
    if not (best > 0).all():
        raise ValueError(
            "ds: the best learner has no regret on some instance, so ratios to it do not exist; "
            "accepted: learners with positive regret (leave out the oracle)"
        )
    return best
