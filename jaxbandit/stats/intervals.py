"""Intervals over replicates: for a number, for a curve point by point or as a whole, for growth rates and times to a
target, and for several means together.

Curves are arrays [n, points] with one row per *independent* replicate (a seed, or a drawn
instance); the points of one curve are dependent and are never counted as replicates. Every answer
carries its n and the name of its kind:

* ``"t"``: mean +- t_{n-1} s / sqrt(n) at each point;
* ``"bootstrap"``: mean +- q s / sqrt(n) at each point, q the bootstrap quantile of |t*| (symmetric
  bootstrap-t; the percentile bootstrap is not offered: it covers 87-88 % instead of 95 % at n = 8);
* ``"simultaneous"``: mean +- q s / sqrt(n) with one q for all points, so that the *whole* mean
  curve lies inside with the stated probability. q is the larger of the two one-sided bootstrap
  quantiles of the largest t* along the curve (regret is skewed, so one tail does most of the
  missing; a two-sided quantile covers only 93-94 % then);
* ``"skewed"``: for quantities >= 0 such as regret. With h = t_{n-1} s / sqrt(n), from mean - h (not
  below 0) to mean exp(h / mean): the lower end of Student-t, and the upper end that Student-t has
  for the logarithm of the mean. A few skewed runs mostly miss what the large values would add, so
  it is the upper end that "t" has too low;
* ``"quantile"``: the median and the central share of the *runs*; it says where runs lie, not where
  the mean is.

**No interval widens because runs are added.** The bootstrap's q is at most Student's quantile for half the error rate (for a
whole curve with Bonferroni's correction for its points), and is that quantile below 8 runs, where the bootstrap is too coarse.

**Several means together** (`joint_intervals`). A stratum is a set of independent replicates (the seeds of an instance, or the
instances of a family), an array [n, P] with one column per quantity. What is estimated is the mean over strata of the stratum
means, each stratum counted once. With S strata of variances v_f and sizes n_f the standard error is
e = sqrt(sum_f v_f / n_f) / S, and the intervals are

    estimate +- q e,      q = Student's quantile of 1 - (1 - level) / (2 P)      (Bonferroni),

with Satterthwaite's degrees of freedom (n - 1 for one stratum). So q depends on the number of runs and of quantities alone,
and falls as runs are added.

**The fewest runs that can decide** (`fewest_runs`). If a difference is as likely to be x as -x, all N runs have the same sign
with probability 2^(1-N), however large the difference looks beside its spread. A decision about P quantities at this level
therefore needs P 2^(1-N) <= 1 - level, or

    N >= 1 + log2(P / (1 - level))        (6 runs for one pair at 95 %, 8 for the six pairs of four learners).

No p-value is below P 2^(1-N). Fewer runs that all agree have no interval at all (nan), because coins fall alike that often by
chance; from so many on, the interval of runs that agree is the point.

**What "95 %" is worth** was measured; ``python -m jaxbandit.experiments.bench.coverage`` prints the tables, and
`jaxbandit/README.md` has them. Student-t is right for runs that are not skewed. Regret often is: a few runs settle on a
suboptimal policy, and decide the mean. With many runs that shows in them; with few it mostly does not, because those that
miss the mean miss the large values. A band whose runs are too few to look skewed, or look so, says that it may cover less
(`coverage_warning`).

Replicates that are nan throughout (runs that do not exist) are left out of n. A point at which some
other replicate is nan (sweeps joined that were recorded at other episodes) has the band nan, which
figures leave out. Infinite numbers are an error, and so is nan wherever the answer is one number.
Everything is seeded: the same key gives the same band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, number, real_array, share, whole
from jaxbandit.types import Array

__all__ = [
    "KINDS", "Band", "Estimate", "TimeToTarget", "band", "fewest_runs", "loglog_slope", "mean_interval",
    "paired_difference", "time_to_average_regret",
]  # fmt: skip
KINDS = ("t", "bootstrap", "simultaneous", "quantile", "skewed")
OF_DIFFERENCES = ("t", "bootstrap", "simultaneous")
MOST_RESAMPLES = 10**6
_NAMES = {
    "t": "t-interval",
    "bootstrap": "bootstrap-t interval",
    "simultaneous": "simultaneous band",
    "skewed": "interval for skewed runs",
    "score": "score interval",
}
FLAT = 1e-12
"""Relative to the largest value: a spread below this is rounding."""
FEW = 8
"""With fewer replicates the bootstrap is too coarse, and nobody can see whether they are skewed."""
FEW_TO_JUDGE = 30
"""With fewer replicates, skewed ones look even too often for silence: of 8 exponential runs (12, 24) 49 % (40, 25)
have a sample skewness below 1, and where they do "t" covers 87 % (88, 89)."""
MUCH_SKEW = 1.0
"""Sample skewness from which on Student-t loses more than a percent or two (exponential data: 2). At 32 runs 82 % of
exponential samples are beyond it, 96 % of lognormal ones and 2 % of normal ones."""
WARNINGS = {
    "few": "few runs: covers less if skewed",
    "skewed": "skewed runs: covers less",
    "both": "few or skewed runs: may cover less",
}
"""Code of a warning -> its text."""
MAY_COVER_LESS = "intervals of few or skewed runs may cover less than they say"
"""The same for a line under a table."""


class Band(NamedTuple):
    """A curve with an interval at each point."""

    center: np.ndarray
    """float [points]: the mean (the median for "quantile")."""
    low: np.ndarray
    """float [points]; nan where there is no interval (fewer than two replicates, or too few that all agree)."""
    high: np.ndarray
    """float [points]."""
    n: int
    """Number of replicates."""
    level: float
    """Confidence level, or the central share of the runs for "quantile"."""
    kind: str
    """One of `KINDS`, or "score" for the shares of `jaxbandit.stats.decisions`."""
    replicates: str = "seeds"
    """What the replicates are: "seeds" or "instances"."""
    warning: str = ""
    """Why the interval may cover less than its level: "few", "skewed" or ""."""

    @property
    def doubt(self) -> str:
        """The former name of ``warning``."""
        return self.warning

    @property
    def method(self) -> str:
        """What center and interval are, in words, for a figure."""
        percent = f"{100 * self.level:g} %"
        if self.kind == "quantile":
            return f"median and central {percent} of the runs"
        warning = f" ({WARNINGS[self.warning]})" if self.warning else ""
        return f"mean and {percent} {_NAMES[self.kind]}{warning}"

    def describe(self) -> str:
        """Method and number of replicates, as printed on figures.

        Example:
            >>> import numpy as np
            >>> band(np.ones((8, 3))).describe()
            'mean and 95 % t-interval, 8 seeds'
        """
        if self.n < 2:
            return f"one of the {self.replicates}, no interval" if self.n else "no data"
        return f"{self.method}, {self.n} {self.replicates}"

    def __repr__(self) -> str:
        """One line: what it is, and its last point.

        Example:
            >>> import numpy as np
            >>> band(np.array([[1.0, 10.0], [2.0, 14.0], [3.0, 12.0]]))
            Band(mean and 95 % t-interval (few runs: covers less if skewed), 3 seeds; 2 points, ...)
        """
        points = np.size(self.center)
        last = f"{np.ravel(self.center)[-1]:.4g}" if points else "none"
        ends = [np.ravel(x)[-1] for x in (self.low, self.high)] if points else [np.nan]
        inside = f" in {ends[0]:.4g} to {ends[1]:.4g}" if np.isfinite(ends).all() else ""
        return f"Band({self.describe()}; {points} points, the last {last}{inside})"


class Estimate(NamedTuple):
    """A number with an interval."""

    value: float
    low: float
    high: float
    n: int
    """Number of replicates."""
    level: float
    """Confidence level."""
    replicates: str = "seeds"
    """What the replicates are: "seeds" or "instances"."""
    warning: str = ""
    """Why the interval may cover less than its level: "few", "skewed" or ""."""

    @property
    def doubt(self) -> str:
        """The former name of ``warning``."""
        return self.warning

    def __str__(self) -> str:
        """The number, its interval and what it rests on.

        Example:
            >>> print(mean_interval([1.0, 2.0, 3.0]))
            2 (95 % interval -0.4841 to 4.484; few runs: covers less if skewed; 3 seeds)
        """
        if not np.isfinite([self.low, self.high]).all():
            return f"{self.value:.4g} (no interval; {self.n} {self.replicates})"
        warning = f"; {WARNINGS[self.warning]}" if self.warning else ""
        percent = f"{100 * self.level:g} % interval {self.low:.4g} to {self.high:.4g}"
        return f"{self.value:.4g} ({percent}{warning}; {self.n} {self.replicates})"


def band(
    curves: Array,
    kind: str = "t",
    level: float | None = None,
    *,
    key: Any = 0,
    num_resamples: int = 2000,
    replicates: str = "seeds",
) -> Band:
    """The band of some curves [n, points]; see the top of this module for the kinds.

    Args:
        curves: float [n, points], one row per independent replicate.
        kind: "t", "bootstrap", "simultaneous", "quantile" or "skewed" (which needs numbers >= 0).
        level: confidence level, default 0.95; for "quantile" the central share of the runs, default
        0.8.
        key: an integer or a jax key that seeds the bootstrap; the same key gives the same band.
        num_resamples: bootstrap resamples.
        replicates: what the rows are, for labels.

    Example:
        >>> import numpy as np
        >>> b = band(np.array([[1.0, 10.0], [2.0, 14.0], [3.0, 12.0]]))
        >>> b.center.tolist(), b.n, b.kind
        ([2.0, 12.0], 3, 't')
        >>> (b.high - b.low).round(2).tolist()
        [4.97, 9.94]
    """
    accept("kind", kind, KINDS)
    level = (0.8 if kind == "quantile" else 0.95) if level is None else share("level", level)
    num_resamples = whole("num_resamples", num_resamples, at_most=MOST_RESAMPLES)
    random = generator(key)
    curves = as_curves(curves, gaps=True, kind=kind)
    count, warning = len(curves), ""
    low = high = np.full(curves.shape[1], np.nan)
    center = curves.mean(axis=0) if count else low
    if kind == "quantile" and count:
        low, center, high = np.quantile(curves, [(1 - level) / 2, 0.5, 1 - (1 - level) / 2], axis=0)
    elif count > 1:
        error = curves.std(axis=0, ddof=1) / np.sqrt(count)
        half = multiplier(curves, kind, level, random, num_resamples) * error
        low, high = center - half, center + half
        if kind == "skewed":
            share_of_mean = np.divide(half, center, out=np.zeros_like(half), where=center > 0)
            low, high = np.maximum(low, 0.0), center * np.exp(share_of_mean)
        elif half.any():
            warning = coverage_warning(curves[:, -1])
        if count < fewest_runs(level):
            flat = error <= FLAT * np.abs(curves).max(axis=0)
            low, high = np.where(flat, np.nan, [low, high])
    about: dict[str, Any] = {"n": count, "level": level, "kind": kind, "replicates": replicates}
    return Band(center=center, low=low, high=high, warning=warning, **about)


def last_point(b: Band) -> Estimate:
    """The last point of a band as a number.

    Example:
        >>> import numpy as np
        >>> last_point(band(np.array([[1.0, 10.0], [2.0, 14.0], [3.0, 12.0]]))).value
        12.0
    """
    value, low, high = (float(side[-1]) for side in b[:3])
    about: dict[str, Any] = {"n": b.n, "replicates": b.replicates, "warning": b.warning}
    return Estimate(value=value, low=low, high=high, level=b.level, **about)


def method_of_all(bands: Iterable[Band]) -> str:
    """What the bands of a figure are, with the warnings of all of them.

    Example:
        >>> even, far = np.arange(32.0)[:, None], np.arange(32.0)[:, None] ** 6
        >>> method_of_all([band(even), band(far)])
        'mean and 95 % t-interval (skewed runs: covers less)'
    """
    some = [b for b in bands if b.n > 1]
    if not some:
        return "no intervals"
    return some[0]._replace(warning=joint_warning(b.warning for b in some)).method


def mean_interval(
    values: Array, level: float = 0.95, *, kind: str = "t", replicates: str = "seeds"
) -> Estimate:
    """The mean of values [n] with its Student-t interval; nan values (runs that do not exist) are
    left out.

    With ``kind="skewed"`` the interval for quantities >= 0 of few or skewed runs.

    Example:
        >>> estimate = mean_interval([1.0, 2.0, 3.0])
        >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2), estimate.n
        (2.0, -0.48, 4.48, 3)
    """
    values = np.asarray(real_array("values", values), np.float64)
    if values.ndim != 1:
        raise ValueError(f"values: shape {values.shape}; accepted: [n], one value per replicate")
    accept("kind", kind, ("t", "skewed"))
    curves = as_curves(values[:, None], gaps=True, name="values", kind=kind)
    return last_point(band(curves, kind, level, replicates=replicates))


def paired_difference(
    first: Array,
    second: Array,
    kind: str = "t",
    level: float = 0.95,
    *,
    key: Any = 0,
    replicates: str = "seeds",
) -> Band:
    """The mean of first - second [n, points] (or [n]) with its band, replicate by replicate.

    Row j of both must be the same replicate (the same seed and instance), as in every sweep: what
    the two have in common then cancels, and the band is narrower than those of the two curves. A
    pair with a missing run is left out.

    Example:
        >>> import numpy as np
        >>> easy_and_hard = np.arange(8.0)[:, None]
        >>> b = paired_difference(easy_and_hard + 2.0, easy_and_hard)
        >>> float(b.low[0]), float(b.high[0])
        (2.0, 2.0)
    """
    first = np.asarray(real_array("first", first), np.float64)
    second = np.asarray(real_array("second", second), np.float64)
    if first.shape != second.shape or first.ndim not in (1, 2):
        raise ValueError(
            f"first, second: shapes {first.shape}, {second.shape}; accepted: equal shapes [n, points] or [n]"
        )
    accept("kind", kind, OF_DIFFERENCES)
    for name, runs in (("first", first), ("second", second)):
        as_curves(runs.reshape(len(runs), -1), gaps=True, name=name)
    difference = (first - second).reshape(first.shape[0], -1)
    return band(difference, kind, level, key=key, replicates=replicates)


def as_curves(
    curves: Array, *, gaps: bool = False, name: str = "curves", kind: str = "t"
) -> np.ndarray:
    """Float64 [n, points] without the replicates that are nan throughout; all else is finite, but
    for single points if ``gaps``, and fit for a band of this ``kind``. Errors call the argument ``name``."""
    curves = np.asarray(real_array(name, curves), np.float64)
    if curves.ndim != 2 or curves.shape[1] == 0:
        raise ValueError(
            f"{name}: shape {curves.shape}; accepted: [n, points] with at least one point"
        )
    if kind == "skewed" and len(curves) > 1 and (curves < 0).any():
        low = np.nanmin(curves)
        raise ValueError(f"{name}: {low} for kind 'skewed'; accepted: numbers >= 0, such as regret")
    missing = np.isnan(curves).all(axis=1)
    bad = np.argwhere(np.isinf(curves) if gaps else ~np.isfinite(curves) & ~missing[:, None])
    if bad.size:
        row, point = bad[0]
        raise ValueError(
            f"{name}: {curves[row, point]} in replicate {row}, point {point}; accepted: finite "
            "numbers (a replicate that is nan throughout is left out)"
        )
    return curves[~missing]


def jackknife_half_width(left_out: Array, level: float) -> float:
    """Half the width of the Student-t interval of a statistic, from its values without replicate 1, ..., n each.

    nan for fewer than two replicates, and for fewer than `fewest_runs` that all agree.

    Args:
        left_out: [n], the statistic without replicate 1, 2, ..., n.
        level: confidence level.

    Example:
        >>> runs = np.asarray([1.0, 2.0, 4.0, 5.0])
        >>> means = (runs.sum() - runs) / 3                # of a mean it is the t-interval
        >>> round(jackknife_half_width(means, 0.95), 3), round(3.1824 * float(runs.std(ddof=1)) / 2, 3)
        (2.905, 2.905)
    """
    values = np.asarray(left_out, np.float64)
    count = values.size
    if count < 2:
        return float("nan")
    error = np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2))
    if count < fewest_runs(level) and error <= FLAT * np.abs(values).max():
        return float("nan")
    return float(student(1 - level, count - 1) * error)


def fewest_runs(level: float = 0.95, quantities: int = 1) -> int:
    """The smallest number of runs that can decide anything about so many quantities at once.

    Example:
        >>> fewest_runs(), fewest_runs(quantities=6), fewest_runs(0.99)
        (6, 8, 8)
    """
    level, quantities = share("level", level), whole("quantities", quantities, at_most=10**12)
    return max(2, math.ceil(1 + math.log2(quantities / (1 - level)) - 1e-9))


def loglog_slope(
    episodes: Array,
    curves: Array,
    fit_from: float | None = None,
    level: float = 0.95,
    *,
    replicates: str = "seeds",
) -> Estimate:
    """The exponent of regret: slope of log(mean regret) against log(episode), least squares.

    The mean curve is read at 32 log-spaced episodes from ``fit_from`` (default T/10: the last
    decade) to T, so the answer does not depend on the recorded episodes. The interval is the jackknife
    over replicates: n slopes with one replicate left out each, Student-t with n - 1 degrees of
    freedom. Measured: 95 % for normal data; for exponential data 88 % at n = 6, 94 % at n = 32, so few or skewed
    replicates get the warning that t-intervals get. Theorems 3.1 and 3.11 bound the exponent by 1/2.

    Args:
        episodes: [points], increasing.
        curves: cumulative regret [n, points].
        fit_from: first episode of the fit.
        level: confidence level.
        replicates: what the rows are.

    Example:
        >>> import numpy as np
        >>> episodes = np.arange(1, 1001)
        >>> estimate = loglog_slope(episodes, np.outer([1.0, 1.1, 1.2], episodes**0.5))
        >>> round(estimate.value, 3), estimate.n
        (0.5, 3)
    """
    episodes, curves = _matched(episodes, curves)
    level = share("level", level)
    first = episodes[-1] / 10 if fit_from is None else number("fit_from", fit_from)
    start, count = max(first, episodes[0]), len(curves)
    if start >= episodes[-1]:
        last = f"{episodes[-1]:g}"
        raise ValueError(f"fit_from: {start:g}; accepted: an episode before the last, {last}")
    at = np.geomspace(start, episodes[-1], 32)
    values = curves @ np.stack([np.interp(at, episodes, unit) for unit in np.eye(episodes.size)])
    others = (values.sum(axis=0) - values) / (count - 1) if count > 1 else values[:0]
    if not count or not (values.mean(axis=0) > 0).all() or not (others > 0).all():
        raise ValueError(
            "curves: the mean regret, or that without one of them, is 0 on the fitted part; "
            "accepted: positive, or a later fit_from"
        )
    x = np.log(at) - np.log(at).mean()
    value, left_out = (np.log(mean) @ x / (x @ x) for mean in (values.mean(axis=0), others))
    half = jackknife_half_width(left_out, level)
    warning = coverage_warning(left_out) if half > 1e-12 else ""
    about: dict[str, Any] = {"n": count, "replicates": replicates, "warning": warning}
    return Estimate(float(value), float(value - half), float(value + half), level=level, **about)


class TimeToTarget(NamedTuple):
    """When average regret came down to a target, over replicates."""

    times: np.ndarray
    """float [n]: recorded episode of each replicate; nan if it did not get there."""
    median: float
    """Median over replicates; inf if half of them or more did not get there."""
    low: float
    """Interval for the median, from order statistics (no assumption on the distribution)."""
    high: float
    reached: int
    """How many replicates got there."""
    n: int
    level: float
    replicates: str = "seeds"


def time_to_average_regret(
    episodes: Array, curves: Array, target: float, level: float = 0.95, *, replicates: str = "seeds"
) -> TimeToTarget:
    """First recorded episode t from which on regret(t) / t stays at or below ``target`` until T.

    The interval for the median is [x_(j), x_(n+1-j)] with the largest j that keeps the binomial(n,
    1/2) coverage at or above ``level``; it is [-inf, inf] when n is too small for any (n < 6 at 95
    %).

    Example:
        >>> import numpy as np
        >>> episodes = np.array([10, 20, 40, 80])
        >>> curves = np.array([[5.0, 6.0, 7.0, 7.0], [5.0, 9.0, 9.0, 9.0], [9.0, 18.0, 36.0, 72.0]])
        >>> answer = time_to_average_regret(episodes, curves, target=0.3)
        >>> answer.times.tolist(), answer.median, answer.reached
        ([20.0, 40.0, nan], 40.0, 2)
    """
    from scipy import stats

    episodes, curves = _matched(episodes, curves)
    level, target = share("level", level), number("target", target, low=0, above=True)
    below = curves <= target * episodes
    stays = np.logical_and.accumulate(below[:, ::-1], axis=1)[:, ::-1]
    times = np.where(stays[:, -1], episodes[np.argmax(stays, axis=1)], np.nan)
    ordered = np.sort(np.where(np.isnan(times), np.inf, times))
    count = ordered.size
    about: dict[str, Any] = {"times": times, "n": count, "level": level, "replicates": replicates}
    if count == 0:
        return TimeToTarget(median=np.nan, low=np.nan, high=np.nan, reached=0, **about)
    j = int(stats.binom.ppf((1 - level) / 2, count, 0.5))  # P(fewer than j below) < (1 - level) / 2
    low, high = (ordered[j - 1], ordered[count - j]) if j >= 1 else (-np.inf, np.inf)
    middle, reached = float(np.median(ordered)), int(np.isfinite(ordered).sum())
    return TimeToTarget(median=middle, low=float(low), high=float(high), reached=reached, **about)


def _matched(episodes: Array, curves: Array) -> tuple[np.ndarray, np.ndarray]:
    curves = as_curves(curves)
    episodes = np.asarray(real_array("episodes", episodes), np.float64)
    inside = np.isfinite(episodes).all() and (episodes > 0).all()
    if episodes.shape != curves.shape[1:] or not inside or (np.diff(episodes) <= 0).any():
        raise ValueError(
            f"episodes: shape {episodes.shape}; accepted: positive and increasing, one per point of "
            f"curves {curves.shape}"
        )
    return episodes, curves


class JointIntervals(NamedTuple):
    """P means whose intervals hold together; arrays are float [P]."""

    value: np.ndarray
    low: np.ndarray
    """-inf where too few runs all agree."""
    high: np.ndarray
    p_value: np.ndarray
    """The smallest 1 - level at which the mean is told from 0, for all P together."""
    too_few: str
    """Why nothing is decided, whatever the intervals are; "" if there are enough runs."""


def joint_intervals(strata: Sequence[np.ndarray], level: float = 0.95) -> JointIntervals:
    """The means of the columns of strata [n_f, P], with intervals that hold together.

    Example:
        >>> import numpy as np
        >>> found = joint_intervals([np.random.default_rng(0).normal([0.0, 5.0], 1.0, (6, 2))])
        >>> (found.low <= 0).tolist(), found.too_few
        ([True, False], '6 runs decide nothing, 7 or more can')
    """
    from scipy import stats

    sizes = [len(values) for values in strata]
    if not sizes or min(sizes) < 2:
        raise ValueError(f"strata: {sizes} replicates; accepted: at least 2 in every stratum")
    value = np.mean([values.mean(axis=0) for values in strata], axis=0)
    error, freedom = standard_error(strata)
    scale = np.max([np.abs(values).max(axis=0) for values in strata], axis=0)
    flat, count, runs = error <= FLAT * scale, value.size, sum(sizes)
    width = np.where(flat, 0.0, student((1 - level) / count, freedom) * error)
    ratio = np.abs(value) / np.where(flat, 1.0, error)
    still = np.where(np.abs(value) > FLAT * scale, 0.0, 1.0)
    p_value = 2 * count * np.where(flat, still, stats.t.sf(ratio, freedom))
    p_value = np.clip(p_value, min(1.0, count * 2.0 ** (1 - runs)), 1.0)
    fewest = fewest_runs(level, count)
    too_few = f"{runs} runs decide nothing, {fewest} or more can" if runs < fewest else ""
    if too_few:
        width = np.where(flat, np.inf, width)
    return JointIntervals(value, value - width, value + width, p_value, too_few=too_few)


def standard_error(strata: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Error of the mean over strata [n_f, P] and Satterthwaite's degrees of freedom, each [P].

    Example:
        >>> import numpy as np
        >>> error, freedom = standard_error([np.array([[1.0], [2.0], [3.0]])] * 4)
        >>> round(float(error[0]), 3), round(float(freedom[0]), 3)      # 4 strata with 2 each
        (0.289, 8.0)
    """
    parts = np.stack([values.var(axis=0, ddof=1) / len(values) for values in strata])
    freedoms = np.array([[len(values) - 1.0] for values in strata])
    total, spread = parts.sum(axis=0), (parts**2 / freedoms).sum(axis=0)
    freedom = np.divide(total**2, spread, out=np.ones_like(total), where=spread > 0)
    return np.sqrt(total) / len(strata), np.maximum(freedom, 1.0)


def coverage_warning(values: np.ndarray) -> str:
    """Whether values [n] are too few, or too skewed, for an interval to cover its level: "few", "skewed" or "".

    Example:
        >>> [coverage_warning(x) for x in (np.arange(3.0), np.arange(32.0), np.arange(32.0) ** 6)]
        ['few', '', 'skewed']
    """
    count = len(values)
    if count < FEW:
        return "few"
    last = values - values.mean()
    spread = np.mean(last**2) ** 1.5
    skew = np.mean(last**3) / spread if spread > 0 else 0.0
    if abs(skew) * np.sqrt(count * (count - 1)) / (count - 2) > MUCH_SKEW:
        return "skewed"
    return "few" if count < FEW_TO_JUDGE else ""


def joint_warning(warnings: Iterable[str]) -> str:
    """One code for several intervals: theirs if they agree, else "both".

    Example:
        >>> joint_warning(["", "few"]), joint_warning(["skewed", "few"]), joint_warning([])
        ('few', 'both', '')
    """
    found = set(warnings) - {""}
    return "both" if len(found) > 1 else "".join(found)


def warning_line(warnings: Iterable[str]) -> str:
    """`MAY_COVER_LESS` as a sentence after a space, if there is any warning among these; else "".

    Example:
        >>> warning_line(["", "few"]), warning_line([""])
        (' Intervals of few or skewed runs may cover less than they say.', '')
    """
    return f" {MAY_COVER_LESS.capitalize()}." if any(warnings) else ""


def multiplier(
    curves: np.ndarray, kind: str, level: float, random: np.random.Generator, num_resamples: int
) -> Array:
    """How many standard errors the band of ``kind`` extends: a number, or one per point for
    "bootstrap"."""
    count = curves.shape[0]
    spread = curves.std(axis=0, ddof=1)
    moving = np.isfinite(spread) & (spread > FLAT * np.abs(curves).max(axis=0))
    plain = student(1 - level, count - 1)
    if kind in ("t", "skewed") or not moving.any():
        return plain
    points = int(moving.sum()) if kind == "simultaneous" else 1
    most = student((1 - level) / (2 * points), count - 1)
    if count < FEW:
        return most
    standard = (curves[:, moving] - curves[:, moving].mean(axis=0)) / spread[moving]
    ratios = _bootstrap_t(standard, random, num_resamples)
    if kind == "simultaneous":
        tops = (side.max(axis=1) for side in (ratios, -ratios))
        return min(most, max(np.quantile(top, (1 + level) / 2, method="higher") for top in tops))
    widths = np.full(curves.shape[1], plain)
    found = np.quantile(np.abs(ratios), level, axis=0, method="higher")
    widths[moving] = np.minimum(most, found)
    return widths


def student(error_rate: Any, freedom: Any) -> Any:
    """Two-sided Student's quantile: |t| is above it with probability ``error_rate``.

    Example:
        >>> round(float(student(0.05, 7)), 3)
        2.365
    """
    from scipy import stats

    return stats.t.isf(error_rate / 2, freedom)


def _bootstrap_t(standard: np.ndarray, rng: np.random.Generator, num_resamples: int) -> np.ndarray:
    """Student ratios t* of resampled means, [resamples, points]; columns of ``standard`` are
    standardised."""
    count = standard.shape[0]
    times = resampled_counts(rng, count, num_resamples)
    mean = times @ standard / count
    variance = (times @ standard**2 / count - mean**2) * count / (count - 1)
    # A resample of one repeated value has no spread: its ratio is beyond every finite one.
    constant = variance < 1e-10
    ratio = mean * np.sqrt(count) / np.sqrt(np.where(constant, 1.0, variance))
    return np.where(constant, np.copysign(np.inf, mean), ratio)


def resampled_counts(rng: np.random.Generator, count: int, num_resamples: int) -> np.ndarray:
    """How often each of ``count`` replicates is in each resample, float [resamples, count]."""
    return rng.multinomial(count, np.full(count, 1 / count), size=num_resamples).astype(np.float64)


def generator(key: Any) -> np.random.Generator:
    """A numpy generator from an integer or a jax key."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0:
        return np.random.default_rng(int(key))
    import jax

    if not isinstance(key, jax.Array) or not jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key: {key!r}; accepted: an integer >= 0 or a jax key")
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
