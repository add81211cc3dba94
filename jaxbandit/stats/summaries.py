"""Statistics of regret: growth rates, times to a target, tables.

The intervals live in `jaxbandit.stats.intervals`, and the reading of replicates out of a sweep's
Dataset (which also says when seeds and when instances are the replicates) in
`jaxbandit.stats.replication`; ``jb.stats`` has all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.checks import accept, number, real_array, share, some
from jaxbandit.results.axes import whole
from jaxbandit.stats.intervals import (
    MAY_COVER_LESS,
    Estimate,
    as_curves,
    coverage_warning,
    jackknife_half_width,
)
from jaxbandit.stats.replication import (
    curve_names,
    families,
    regret_band,
)
from jaxbandit.tabular import FORMATS, records, write_table
from jaxbandit.types import Array

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = [
    "Row", "TimeToTarget", "final_table", "format_table", "loglog_slope",
    "time_to_average_regret",
]  # fmt: skip


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
    count = curves.shape[0]
    first = episodes[-1] / 10 if fit_from is None else number("fit_from", fit_from)
    start = max(first, episodes[0])
    if not episodes[0] <= start < episodes[-1]:
        raise ValueError(
            f"fit_from: {start:g}; accepted: an episode before the last, {episodes[-1]:g}"
        )
    at = np.geomspace(start, episodes[-1], 32)
    reading = np.stack(
        [np.interp(at, episodes, unit) for unit in np.eye(episodes.size)]
    )  # [points, 32]
    values = curves @ reading
    x = np.log(at) - np.log(at).mean()

    def slope(mean: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(mean) @ x / (x @ x)

    if count == 0 or not (values.mean(axis=0) > 0).all():
        raise ValueError(
            "curves: mean regret is 0 on the fitted part; accepted: positive, or a later fit_from"
        )
    value = float(slope(values.mean(axis=0)))
    about: dict[str, Any] = {"n": count, "level": level, "replicates": replicates}
    if count < 2:
        return Estimate(value=value, low=np.nan, high=np.nan, **about)
    others = (values.sum(axis=0) - values) / (count - 1)
    if not (others > 0).all():
        raise ValueError(
            "curves: without one of them the mean regret is 0 on the fitted part; "
            "accepted: positive, or a later fit_from"
        )
    left_out = slope(others)
    half = jackknife_half_width(left_out, level)
    warning = coverage_warning(left_out) if half > 1e-12 else ""
    return Estimate(value=value, low=value - half, high=value + half, warning=warning, **about)


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
    level = share("level", level)
    try:
        target = number("target", target, low=0, above=True)
    except ValueError:
        raise ValueError(f"target: {target!r}; accepted: a positive regret per episode") from None
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
    middle = float(ordered[(count - 1) // 2 : count // 2 + 1].mean())
    reached = int(np.isfinite(ordered).sum())
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


NOTE = f'{MAY_COVER_LESS}; kind="skewed" covers more'
"""A line under the table where it is so."""


class Row(NamedTuple):
    """One line of `final_table`."""

    family: str
    learner: str
    parameter: int | None
    label: str
    """The learner, with its parameters if the sweep varies them."""
    mean: float
    """Mean regret at the last recorded episode."""
    low: float
    high: float
    n: int
    replicates: str
    """What n counts: "seeds" or "instances"."""
    level: float
    warning: str = ""
    """Why the interval may cover less than its level: "few", "skewed" or ""."""

    @property
    def doubt(self) -> str:
        """The former name of ``warning``."""
        return self.warning


def final_table(
    ds: Dataset,
    learners: Iterable[str] | None = None,
    panels: Iterable[str] | None = None,
    level: float = 0.95,
    *,
    kind: str = "t",
) -> list[Row]:
    """Regret after the last episode, per family and learner, with its interval over replicates.

    ``panels`` chooses families (default all).

    Example:
        >>> import numpy as np, xarray as xr
        >>> dims = ("learner", "instance", "seed", "episode")
        >>> ds = xr.Dataset({"regret": (dims, np.full((1, 1, 8, 2), 1500.0))},
        ...                 coords={"learner": ["ExpRef"], "instance": ["I1"], "episode": [5000, 10000]})
        >>> print(format_table(final_table(ds)))
        family  learner  final regret  95 % interval   replicates
        I1      ExpRef          1,500  1,500 to 1,500  8 seeds
    """
    ds = whole(ds, "regret")
    chosen = some("panels", panels, list(families(ds)))
    last = ds.isel(episode=[-1])
    rows = []
    for family in chosen:
        for label, learner, parameter in curve_names(ds, learners):
            b = regret_band(
                last, learner, family=family, parameter=parameter, kind=kind, level=level
            )
            if b.n:
                about: dict[str, Any] = {
                    "family": family, "learner": learner, "parameter": parameter, "label": label,
                    "n": b.n, "replicates": b.replicates, "level": b.level, "warning": b.warning,
                }  # fmt: skip
                mean, low, high = (float(side[0]) for side in b[:3])
                rows.append(Row(mean=mean, low=low, high=high, **about))
    return rows


def format_table(rows: Sequence[Row], format: str = "text") -> str:
    """The rows of `final_table` as "text", "markdown", "latex" or "csv"; see there for an example.

    In "csv" mean, low and high are columns of their own with all digits, for other programs, and so is ``warning``; the
    other formats have a line under the table where some interval may cover less than it says (in LaTeX a comment).
    """
    rows = records("rows", rows, Row, "what jb.stats.final_table gives")
    accept("format", format, FORMATS)
    if format == "csv":
        columns = ("family", "label", "mean", "low", "high", "level", "n", "replicates", "warning")
        plain = [[str(getattr(row, name)) for name in columns] for row in rows]
        return write_table(["family", "learner", *columns[2:]], plain, format)
    if not rows:
        return "no runs"
    percent = f"{100 * rows[0].level:g} % interval"
    head = ("family", "learner", "final regret", percent, "replicates")
    cells = [
        (
            row.family,
            row.label,
            _number(row.mean),
            "none" if np.isnan(row.low) else f"{_number(row.low)} to {_number(row.high)}",
            f"{row.n} {row.replicates if row.n > 1 else row.replicates.removesuffix('s')}",
        )
        for row in rows
    ]
    note = NOTE if any(row.warning for row in rows) else ""
    return write_table(head, cells, format, right=[2], note=note)


def _number(value: float) -> str:
    """Whole numbers with thousands separators from 100 on, three significant digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
