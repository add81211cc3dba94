"""Intervals for several means that hold together, and how many runs a decision needs.

A stratum is a set of independent replicates (the seeds of an instance, or the instances of a family), an array [n, P] with
one column per quantity. What is estimated is the mean over strata of the stratum means, each stratum counted once. With S
strata of variances v_f and sizes n_f the standard error is e = sqrt(sum_f v_f / n_f) / S, and the intervals are

    estimate +- q e,      q = Student's quantile of 1 - (1 - level) / (2 P)      (Bonferroni),

with Satterthwaite's degrees of freedom (n - 1 for one stratum). So q depends on the number of runs and of quantities alone,
and falls as runs are added.

**The fewest runs that can decide.** If a difference is as likely to be x as -x, all N runs have the same sign with
probability 2^(1-N), however large the difference looks beside its spread. A decision about P quantities at this level
therefore needs P 2^(1-N) <= 1 - level, or

    N >= 1 + log2(P / (1 - level))        (6 runs for one pair at 95 %, 8 for the six pairs of four learners).

No p-value is below P 2^(1-N). Where all of fewer runs agree there is no interval at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxbandit.checks import share, whole

FLAT = 1e-12
"""Relative to the largest value: a spread below this is rounding."""


def fewest_runs(level: float = 0.95, quantities: int = 1) -> int:
    """The smallest number of runs that can decide anything about so many quantities at once.

    Example:
        >>> fewest_runs(), fewest_runs(quantities=6), fewest_runs(0.99)
        (6, 8, 8)
    """
    level, quantities = share("level", level), whole("quantities", quantities, at_most=10**12)
    return max(2, math.ceil(1 + math.log2(quantities / (1 - level)) - 1e-9))


class JointIntervals(NamedTuple):
    """P means whose intervals hold together."""

    value: np.ndarray
    """float [P]."""
    low: np.ndarray
    """float [P]; -inf where too few runs all agree."""
    high: np.ndarray
    """float [P]."""
    error: np.ndarray
    """float [P]: standard errors."""
    p_value: np.ndarray
    """float [P]: the smallest 1 - level at which the mean is told from 0, for all P together."""
    runs: int
    """N, in all strata."""
    fewest: int
    """With fewer runs nothing is decided, whatever the intervals are."""


def joint_intervals(strata: Sequence[np.ndarray], level: float = 0.95) -> JointIntervals:
    """The means of the columns of strata [n_f, P], with intervals that hold together.

    Example:
        >>> import numpy as np
        >>> found = joint_intervals([np.random.default_rng(0).normal([0.0, 5.0], 1.0, (32, 2))])
        >>> (found.low <= 0).tolist(), found.fewest
        ([True, False], 7)
    """
    from scipy import stats

    strata = [np.asarray(values, np.float64) for values in strata]
    sizes = [len(values) for values in strata]
    if not strata or min(sizes) < 2:
        raise ValueError(f"strata: {sizes} replicates; accepted: at least 2 in every stratum")
    if not 0 < level < 1:
        raise ValueError(f"level: {level}; accepted: a number strictly between 0 and 1")
    value = np.mean([values.mean(axis=0) for values in strata], axis=0)
    error, freedom = standard_error(strata)
    scale = np.max([np.abs(values).max(axis=0) for values in strata], axis=0)
    flat, count, runs = error <= FLAT * scale, value.size, sum(sizes)
    width = np.where(flat, 0.0, stats.t.isf((1 - level) / (2 * count), freedom) * error)
    ratio = np.abs(value) / np.where(flat, 1.0, error)
    still = np.where(np.abs(value) > FLAT * scale, 0.0, 1.0)
    p_value = 2 * count * np.where(flat, still, stats.t.sf(ratio, freedom))
    fewest = fewest_runs(level, count)
    if runs < fewest:
        width = np.where(flat, np.inf, width)
    return JointIntervals(
        value=value,
        low=value - width,
        high=value + width,
        error=error,
        p_value=np.clip(p_value, min(1.0, count * 2.0 ** (1 - runs)), 1.0),
        runs=runs,
        fewest=fewest,
    )


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
