"""The worst case over a family of gaps in the `scaling` experiment: at every T, and its slope with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from xarray import Dataset

MIN_FITTED = 4
FIXED = "fixed"
"""Name of the fixed instance in every sweep; the others are named by their gap."""


class WorstCase(NamedTuple):
    """The worst case of one learner on one family."""

    horizons: np.ndarray
    """[P]: T."""
    regret: np.ndarray
    """[P]: largest mean regret over the gaps."""
    low: np.ndarray
    """[P]: 95 % t-interval over seeds, at the worst gap."""
    high: np.ndarray
    gap: np.ndarray
    """[P]: where it is attained."""
    fitted: np.ndarray
    """bool [P]: T from which on the worst gap is not the largest of the family."""
    slope: float
    """Least squares of log regret against log T over the fitted T."""
    seeds: tuple[float, float]
    """95 % jackknife interval of the slope over seeds: how much of it is chance."""
    steps: tuple[float, float]
    """95 % t-interval of the slope from the residuals: how far the doubling of phases bends the
    line."""
    reference: float
    """The same fit to sqrt(T ln T)."""

    @property
    def settled(self) -> bool:
        """Whether enough T (two decades) lie beyond the linear beginning for the slope to mean
        something."""
        return int(self.fitted.sum()) >= MIN_FITTED


def horizons_of(longest: int) -> np.ndarray:
    """T from 10^4 to ``longest``, two per decade."""
    steps = max(2, round(2 * np.log10(longest / 1e4)) + 1)
    return np.unique(np.rint(np.geomspace(min(1e4, longest), longest, steps)).astype(np.int64))


def worst_case(ds: Dataset, learner: str) -> WorstCase:
    """The largest mean regret over the instances of ``ds``, at every T of its parameter grid."""
    from scipy import stats

    from jaxbandit.stats.intervals import band, jackknife_half_width

    last = ds["episode"].values[-1]
    horizons = horizons_of(int(last)).astype(np.float64)
    names = [name for name in ds["instance"].values if name != FIXED]
    at = np.arange(horizons.size)
    chosen = ds["regret"].sel(learner=learner, instance=names, episode=horizons.astype(np.int64))
    # [gap, T, seed]: the run for T, read after T episodes
    runs = chosen.transpose("instance", "parameter", "episode", "seed").values[:, at, at]
    gaps = np.asarray([float(name) for name in names])
    mean = runs.mean(-1)
    where = mean.argmax(0)
    count = runs.shape[-1]
    over_seeds = band(runs[where, at].T, "t", 0.95)
    interior = gaps[where] < gaps.max()
    fitted = np.flip(np.logical_and.accumulate(np.flip(interior)))
    if fitted.sum() < 3:
        fitted = at >= horizons.size - 3
    x = np.log(horizons[fitted])
    x = x - x.mean()
    y = np.log(mean.max(0))[fitted]
    slope = float(y @ x / (x @ x))
    # means with one seed left out each
    without = (runs.sum(-1, keepdims=True) - runs) / (count - 1)
    chance = jackknife_half_width(np.log(without.max(0))[fitted].T @ x / (x @ x), 0.95)
    residual = y - y.mean() - slope * x
    bend = stats.t.ppf(0.975, x.size - 2) * np.sqrt(residual @ residual / (x.size - 2) / (x @ x))
    log_root = 0.5 * (np.log(horizons) + np.log(np.log(horizons)))[fitted]
    return WorstCase(
        horizons=horizons,
        regret=mean.max(0),
        low=np.maximum(over_seeds.low, 0.0),
        high=over_seeds.high,
        gap=gaps[where],
        fitted=fitted,
        slope=slope,
        seeds=(slope - chance, slope + chance),
        steps=(slope - bend, slope + bend),
        reference=float(log_root @ x / (x @ x)),
    )
