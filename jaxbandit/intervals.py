"""Intervals over replicates: for a number, for a curve point by point, and for a whole curve at once.

Curves are arrays [n, points] with one row per *independent* replicate (a seed, or a drawn instance); the
points of one curve are dependent and are never counted as replicates. Every answer carries its n and an
honest name:

* ``"t"``: mean +- t_{n-1} s / sqrt(n) at each point;
* ``"bootstrap"``: mean +- q s / sqrt(n) at each point, q the bootstrap quantile of |t*| (symmetric
  bootstrap-t; the percentile bootstrap is not offered: it covers 87-88 % instead of 95 % at n = 8);
* ``"simultaneous"``: mean +- q s / sqrt(n) with one q for all points, so that the *whole* mean curve lies
  inside with the stated probability. q is the larger of the two one-sided bootstrap quantiles of the largest
  t* along the curve (regret is skewed, so one tail does most of the missing; a two-sided quantile covers only
  93-94 % then). With fewer than 8 replicates the bootstrap is too coarse, and q is Bonferroni's Student-t
  quantile instead;
* ``"quantile"``: the median and the central share of the *runs*; it says where runs lie, not where the mean
  is.

Replicates that are nan throughout (runs that do not exist) are left out of n; a point at which some other
replicate is nan has the band nan.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = Any  # a numpy array, or anything numpy can read

KINDS = ("t", "bootstrap", "simultaneous", "quantile")
FEWEST_FOR_BOOTSTRAP = 8
_NAMES = {
    "t": "t-interval",
    "bootstrap": "bootstrap-t interval",
    "simultaneous": "simultaneous band",
}


class Band(NamedTuple):
    """A curve with an interval at each point."""

    center: np.ndarray
    """float [points]: the mean (the median for "quantile")."""
    low: np.ndarray
    """float [points]; nan where there is no interval (fewer than two replicates)."""
    high: np.ndarray
    """float [points]."""
    n: int
    """Number of replicates."""
    level: float
    """Confidence level, or the central share of the runs for "quantile"."""
    kind: str
    """One of "t", "bootstrap", "simultaneous", "quantile"."""
    replicates: str = "seeds"
    """What the replicates are: "seeds" or "instances"."""

    @property
    def method(self) -> str:
        """What center and interval are, in words, for a figure."""
        percent = f"{100 * self.level:g} %"
        if self.kind == "quantile":
            return f"median and central {percent} of the runs"
        return f"mean and {percent} {_NAMES[self.kind]}"

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
        kind: "t", "bootstrap", "simultaneous" or "quantile".
        level: confidence level, default 0.95; for "quantile" the central share of the runs, default 0.8.
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
    level = (0.8 if kind == "quantile" else 0.95) if level is None else float(level)
    if not 0 < level < 1:
        raise ValueError(f"level: {level}; accepted: a number strictly between 0 and 1")
    curves = as_curves(curves)
    count = curves.shape[0]
    if kind == "quantile":
        tail = (1 - level) / 2
        if count == 0:
            nothing = np.full(curves.shape[1], np.nan)
            return Band(nothing, nothing, nothing, 0, level, kind, replicates)
        low, center, high = np.quantile(curves, [tail, 0.5, 1 - tail], axis=0)
        return Band(center, low, high, count, level, kind, replicates)
    center = curves.mean(axis=0) if count else np.full(curves.shape[1], np.nan)
    if count < 2:
        nothing = np.full(curves.shape[1], np.nan)
        return Band(center, nothing, nothing, count, level, kind, replicates)
    error = curves.std(axis=0, ddof=1) / np.sqrt(count)
    half = multiplier(curves, kind, level, key=key, num_resamples=num_resamples) * error
    return Band(center, center - half, center + half, count, level, kind, replicates)


def multiplier(curves: np.ndarray, kind: str, level: float, *, key: Any, num_resamples: int) -> Array:
    """How many standard errors the band of ``kind`` extends: a number, or one per point for "bootstrap"."""
    from scipy import stats

    count = curves.shape[0]
    spread = curves.std(axis=0, ddof=1)
    moving = np.isfinite(spread) & (spread > 1e-12 * np.abs(curves).max(axis=0))
    plain = float(stats.t.ppf((1 + level) / 2, count - 1))
    if kind == "t" or not moving.any():
        return plain
    if count < FEWEST_FOR_BOOTSTRAP:
        points = int(moving.sum()) if kind == "simultaneous" else 1
        return float(stats.t.ppf(1 - (1 - level) / (2 * points), count - 1))
    standard = (curves[:, moving] - curves[:, moving].mean(axis=0)) / spread[moving]
    ratios = _bootstrap_t(standard, generator(key), num_resamples)
    if kind == "bootstrap":
        widths = np.full(curves.shape[1], plain)
        widths[moving] = np.quantile(np.abs(ratios), level, axis=0, method="higher")
        return widths
    tails = [np.quantile(side.max(axis=1), (1 + level) / 2, method="higher") for side in (ratios, -ratios)]
    return float(max(tails))


def _bootstrap_t(standard: np.ndarray, rng: np.random.Generator, num_resamples: int) -> np.ndarray:
    """Student ratios t* of resampled means, [resamples, points]; columns of ``standard`` are standardised."""
    count = standard.shape[0]
    times = rng.multinomial(count, np.full(count, 1 / count), size=num_resamples).astype(np.float64)
    mean = times @ standard / count
    variance = (times @ standard**2 / count - mean**2) * count / (count - 1)
    # A resample of one repeated value has no spread: its ratio is beyond every finite one.
    constant = variance < 1e-10
    ratio = mean * np.sqrt(count) / np.sqrt(np.where(constant, 1.0, variance))
    return np.where(constant, np.copysign(np.inf, mean), ratio)


def mean_interval(values: Array, level: float = 0.95, *, replicates: str = "seeds") -> Estimate:
    """The mean of values [n] with its Student-t interval; nan values (runs that do not exist) are left out.

    Example:
        >>> estimate = mean_interval([1.0, 2.0, 3.0])
        >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2), estimate.n
        (2.0, -0.48, 4.48, 3)
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 1:
        raise ValueError(f"values: shape {values.shape}; accepted: [n], one value per replicate")
    b = band(values[:, None], "t", level)
    return Estimate(float(b.center[0]), float(b.low[0]), float(b.high[0]), b.n, b.level, replicates)


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

    Row j of both must be the same replicate (the same seed and instance), as in every sweep: what the two
    have in common then cancels, and the band is narrower than those of the two curves. A pair with a missing
    run is left out.

    Example:
        >>> import numpy as np
        >>> easy_and_hard = np.array([[1.0], [5.0], [9.0]])
        >>> b = paired_difference(easy_and_hard + 2.0, easy_and_hard)
        >>> float(b.low[0]), float(b.high[0])
        (2.0, 2.0)
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim not in (1, 2):
        raise ValueError(
            f"first, second: shapes {first.shape}, {second.shape}; accepted: equal shapes [n, points] or [n]"
        )
    if kind == "quantile":
        raise ValueError("kind: 'quantile'; accepted: t, bootstrap, simultaneous")
    difference = (first - second).reshape(first.shape[0], -1)
    return band(difference, kind, level, key=key, replicates=replicates)


def as_curves(curves: Array) -> np.ndarray:
    """Float64 [n, points] without the replicates that are nan throughout."""
    curves = np.asarray(curves, np.float64)
    if curves.ndim != 2 or curves.shape[1] == 0:
        raise ValueError(f"curves: shape {curves.shape}; accepted: [n, points] with at least one point")
    return curves[~np.isnan(curves).all(axis=1)]


def generator(key: Any) -> np.random.Generator:
    """A numpy generator from an integer or a jax key."""
    if isinstance(key, (int, np.integer)):
        if key < 0:
            raise ValueError(f"key: {key}; accepted: an integer >= 0 or a jax key")
        return np.random.default_rng(int(key))
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def accept(argument: str, value: Any, accepted: Sequence[Any]) -> None:
    """Raises a ValueError with near matches unless ``value`` is among ``accepted``.

    Example:
        >>> accept("learner", "ExpReff", ["ExpRef", "UCB-VI"])
        Traceback (most recent call last):
        ...
        ValueError: learner: 'ExpReff'; did you mean 'ExpRef'? accepted: ExpRef, UCB-VI
    """
    if value in accepted:
        return
    near = difflib.get_close_matches(str(value), [str(a) for a in accepted], n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(f"{argument}: {value!r}; {hint}accepted: {', '.join(map(str, accepted))}")
