"""The bootstrap, and how many standard errors a band extends: Student's quantile, or that of the bootstrap-t.

The kinds are those of `jaxbandit.stats.intervals`. Everything is seeded: the same key gives the same band.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbandit.stats.joint import FLAT
from jaxbandit.types import Array

FEW = 8
"""With fewer replicates the bootstrap is too coarse, and nobody can see whether they are skewed."""


def multiplier(
    curves: np.ndarray, kind: str, level: float, random: np.random.Generator, num_resamples: int
) -> Array:
    """How many standard errors the band of ``kind`` extends: a number, or one per point for
    "bootstrap"."""
    from scipy import stats

    count = curves.shape[0]
    spread = curves.std(axis=0, ddof=1)
    moving = np.isfinite(spread) & (spread > FLAT * np.abs(curves).max(axis=0))
    plain = float(stats.t.ppf((1 + level) / 2, count - 1))
    if kind in ("t", "skewed") or not moving.any():
        return plain
    if count < FEW:
        points = int(moving.sum()) if kind == "simultaneous" else 1
        return float(stats.t.ppf(1 - (1 - level) / (2 * points), count - 1))
    standard = (curves[:, moving] - curves[:, moving].mean(axis=0)) / spread[moving]
    ratios = _bootstrap_t(standard, random, num_resamples)
    if kind == "bootstrap":
        widths = np.full(curves.shape[1], plain)
        widths[moving] = np.quantile(np.abs(ratios), level, axis=0, method="higher")
        return widths
    tails = [
        np.quantile(side.max(axis=1), (1 + level) / 2, method="higher")
        for side in (ratios, -ratios)
    ]
    return float(max(tails))


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
