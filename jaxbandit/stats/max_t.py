"""Intervals for several means at once, from paired values in strata: the max-t method.

A stratum is a set of independent replicates (the seeds of an instance, or the instances of a
family), an array [n, P] with one column per quantity; what is estimated is the mean over strata of
the stratum means, each stratum counted once. With S strata of variances v_f and sizes n_f the
standard error is sqrt(sum_f v_f / n_f) / S.

All P intervals together hold the stated level: estimate +- q x error, with q the larger of the two
one-sided bootstrap quantiles of max_p t*_p (replicates are resampled within their stratum, all
columns together, so that q knows how the quantities depend on each other). With fewer than 8
replicates in a stratum the bootstrap is too coarse, and q is Bonferroni's Student-t quantile with
Satterthwaite's degrees of freedom (measured on exponential data: 93 to 94 % instead of 95; for a learner with such
regret beside one whose regret hardly varies, 89 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.stats.bootstrap import generator

FEWEST_FOR_BOOTSTRAP = 8
"""With fewer replicates, resampling them says too little about the tails."""
FLAT = 1e-12
"""Relative to the largest value: a spread below this is rounding."""


class Simultaneous(NamedTuple):
    """P means whose intervals hold together."""

    value: np.ndarray
    """float [P]."""
    low: np.ndarray
    """float [P]."""
    high: np.ndarray
    """float [P]."""
    error: np.ndarray
    """float [P]: standard errors."""
    p_value: np.ndarray
    """float [P]: the smallest 1 - level at which the interval leaves 0 out, for all P together."""
    method: str
    """How q was found: "max-t bootstrap" or "Bonferroni t (...)"."""


def simultaneous(
    strata: Sequence[np.ndarray], level: float = 0.95, *, key: Any = 0, num_resamples: int = 5000
) -> Simultaneous:
    """The means of the columns of strata [n_f, P], with intervals that hold together.

    Example:
        >>> import numpy as np
        >>> seeds = np.random.default_rng(0).normal([0.0, 5.0], 1.0, (32, 2))
        >>> found = simultaneous([seeds])
        >>> (found.low <= 0).tolist(), found.method
        ([True, False], 'max-t bootstrap')
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
    moving = error > FLAT * scale
    p_value = np.where(np.abs(value) > FLAT * scale, 0.0, 1.0)
    ratio = np.abs(value[moving]) / error[moving]
    count = int(moving.sum())
    width = np.zeros_like(value)
    if min(sizes) < FEWEST_FOR_BOOTSTRAP:
        method = (
            f"Bonferroni t (fewer than {FEWEST_FOR_BOOTSTRAP} replicates: covers less if skewed)"
        )
        if count:
            tail = (1 - level) / (2 * count)
            width[moving] = stats.t.isf(tail, freedom[moving]) * error[moving]
            p_value[moving] = np.minimum(1, 2 * count * stats.t.sf(ratio, freedom[moving]))
    else:
        method = "max-t bootstrap"
        if count:
            sides = _largest_ratios([values[:, moving] for values in strata], key, num_resamples)
            q = max(np.quantile(side, (1 + level) / 2, method="higher") for side in sides)
            width[moving] = q * error[moving]
            beyond = [np.sum(side[:, None] >= ratio[None, :], axis=0) for side in sides]
            p_value[moving] = np.minimum(1, 2 * (np.max(beyond, axis=0) + 1) / (num_resamples + 1))
    return Simultaneous(
        value=value,
        low=value - width,
        high=value + width,
        error=error,
        p_value=p_value,
        method=method,
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


def resampled_counts(rng: np.random.Generator, count: int, num_resamples: int) -> np.ndarray:
    """How often each of ``count`` replicates is in each resample, float [resamples, count]."""
    return rng.multinomial(count, np.full(count, 1 / count), size=num_resamples).astype(np.float64)


def _largest_ratios(
    strata: list[np.ndarray], key: Any, num_resamples: int
) -> tuple[np.ndarray, np.ndarray]:
    """max_p t*_p and max_p -t*_p of each resample."""
    rng = generator(key)
    shift: Any = 0.0
    variance: Any = 0.0
    for values in strata:
        count = len(values)
        centred = values - values.mean(axis=0)
        times = resampled_counts(rng, count, num_resamples)
        mean = times @ centred / count
        shift = shift + mean
        variance = variance + np.maximum(times @ centred**2 / count - mean**2, 0) / (count - 1)
    # A resample without spread (one replicate drawn every time) is beyond every finite ratio.
    flat = variance <= 1e-10 * variance.mean(axis=0)
    ratio = np.where(
        flat, np.copysign(np.inf, shift), shift / np.sqrt(np.where(flat, 1.0, variance))
    )
    return ratio.max(axis=1), (-ratio).max(axis=1)
