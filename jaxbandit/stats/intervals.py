"""Intervals over replicates: for a number, for a curve point by point, and for a whole curve at
once.

Curves are arrays [n, points] with one row per *independent* replicate (a seed, or a drawn
instance); the points of one curve are dependent and are never counted as replicates. Every answer
carries its n and an
honest name:

* ``"t"``: mean +- t_{n-1} s / sqrt(n) at each point;
* ``"bootstrap"``: mean +- q s / sqrt(n) at each point, q the bootstrap quantile of |t*| (symmetric
  bootstrap-t; the percentile bootstrap is not offered: it covers 87-88 % instead of 95 % at n = 8);
* ``"simultaneous"``: mean +- q s / sqrt(n) with one q for all points, so that the *whole* mean
  curve lies inside with the stated probability. q is the larger of the two one-sided bootstrap
  quantiles of the largest t* along the curve (regret is skewed, so one tail does most of the
  missing; a two-sided quantile covers only 93-94 % then). With fewer than 8 replicates the
  bootstrap is too coarse, and q is Bonferroni's Student-t quantile instead;
* ``"skewed"``: for quantities >= 0 such as regret. With h = t_{n-1} s / sqrt(n), from mean - h (not
  below 0) to mean exp(h / mean): the lower end of Student-t, and the upper end that Student-t has
  for the logarithm of the mean. A few skewed runs mostly miss what the large values would add, so
  it is the upper end that "t" has too low;
* ``"quantile"``: the median and the central share of the *runs*; it says where runs lie, not where
  the mean is.

What "95 %" is worth was measured (``python -m jaxbandit.experiments.bench.coverage`` prints the
table): on exponential data, 3, 6 and 32 runs, "t" covers 88, 89 and 93 %, "skewed" 95 % each time;
on normal data 95 % and 95 to 96 %. On lognormal data (skewness 6) both are lower, 82 to 88 and 89 to 92 %. A
band whose runs are too few to look skewed, or look so, says that it may cover less (`coverage_warning`).

Runs that all agree have no spread to speak of. From `fewest_runs` on (6 at 95 %) their interval is the point; fewer of them
have no interval (nan), because coins fall alike that often by chance.

Replicates that are nan throughout (runs that do not exist) are left out of n. A point at which some
other replicate is nan (sweeps joined that were recorded at other episodes) has the band nan, which
figures leave out. Infinite numbers are an error, and so is nan wherever the answer is one number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, real_array, share, whole
from jaxbandit.stats.bootstrap import generator, multiplier
from jaxbandit.stats.coverage_warnings import WARNINGS, coverage_warning, joint_warning
from jaxbandit.stats.joint import FLAT, fewest_runs
from jaxbandit.types import Array

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
    """One of `KINDS`, or "score" for the shares of `jaxbandit.stats.profiles`."""
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
    curves = as_curves(curves, gaps=True)
    count = curves.shape[0]
    about: dict[str, Any] = {"n": count, "level": level, "kind": kind, "replicates": replicates}
    nothing = np.full(curves.shape[1], np.nan)
    if kind == "quantile":
        tail = (1 - level) / 2
        if count == 0:
            return Band(center=nothing, low=nothing, high=nothing, **about)
        low, center, high = np.quantile(curves, [tail, 0.5, 1 - tail], axis=0)
        return Band(center=center, low=low, high=high, **about)
    center = curves.mean(axis=0) if count else nothing
    if count < 2:
        return Band(center=center, low=nothing, high=nothing, **about)
    error = curves.std(axis=0, ddof=1) / np.sqrt(count)
    half = multiplier(curves, kind, level, random, num_resamples) * error
    low, high, warning = center - half, center + half, ""
    if kind == "skewed":
        low, high = _skewed(curves, center, half)
    elif half.any():
        warning = coverage_warning(curves[:, -1], kind)
    if count < fewest_runs(level):
        flat = error <= FLAT * np.abs(curves).max(axis=0)
        low, high = np.where(flat, np.nan, [low, high])
    return Band(center=center, low=low, high=high, warning=warning, **about)


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


def _skewed(
    curves: np.ndarray, center: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if (curves < 0).any():
        raise ValueError(
            f"curves: {curves.min()} for kind 'skewed'; accepted: numbers >= 0, such as regret"
        )
    high = center * np.exp(np.divide(half, center, out=np.zeros_like(half), where=center > 0))
    return np.maximum(center - half, 0.0), high


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
    as_curves(values[:, None], gaps=True, name="values")
    if kind == "skewed" and (values < 0).any():
        raise ValueError(f"values: {values.min()} for kind 'skewed'; accepted: numbers >= 0")
    b = band(values[:, None], kind, level)
    return Estimate(
        value=float(b.center[0]),
        low=float(b.low[0]),
        high=float(b.high[0]),
        n=b.n,
        level=b.level,
        replicates=replicates,
        warning=b.warning,
    )


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


def as_curves(curves: Array, *, gaps: bool = False, name: str = "curves") -> np.ndarray:
    """Float64 [n, points] without the replicates that are nan throughout; all else is finite, but
    for single points if ``gaps``. Errors call the argument ``name``."""
    curves = np.asarray(real_array(name, curves), np.float64)
    if curves.ndim != 2 or curves.shape[1] == 0:
        raise ValueError(
            f"{name}: shape {curves.shape}; accepted: [n, points] with at least one point"
        )
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
    from scipy import stats

    values = np.asarray(left_out, np.float64)
    count = values.size
    if count < 2:
        return float("nan")
    error = np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2))
    if count < fewest_runs(level) and error <= FLAT * np.abs(values).max():
        return float("nan")
    return float(stats.t.ppf((1 + level) / 2, count - 1) * error)
