"""Which learner is better: all pairs at once, paired, with one error rate for the whole answer.

`compare` looks at the difference of every pair of learners, run by run (the same instance and seed),
and gives intervals that hold *together* with the stated probability (`jaxbandit.stats.intervals`): Student-t with
Bonferroni's correction, whose width in standard errors falls with every run that is added. A pair is
decided if its interval leaves 0 out and there are enough runs for a decision (`fewest_runs`); all statements of one comparison, and the ranking made of them,
are true together with probability ``level``. A learner's place runs from 1 + (those that are decided
to be better) to the number of learners - (those that are decided to be worse).

Replicates are those of `jaxbandit.stats.replication`: seeds of one instance, or instances of a drawn
family. Several families are strata: the mean over families is compared, each counted once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit import checks
from jaxbandit.checks import accept, real_array, share
from jaxbandit.results.axes import whole
from jaxbandit.stats.intervals import (
    MOST_RESAMPLES,
    WARNINGS,
    JointIntervals,
    coverage_warning,
    generator,
    joint_intervals,
    joint_warning,
)
from jaxbandit.stats.replication import CurveName, curve_names, families
from jaxbandit.tabular import write_table

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["Comparison", "Pair", "compare", "compare_values"]


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
        decided = [pair for pair in self.pairs if pair.decided]
        return {
            name: (
                1 + sum(pair.worse == name for pair in decided),
                len(self.learners) - sum(pair.better == name for pair in decided),
            )
            for name in self.learners
        }

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
        rows = [
            [
                pair.better,
                pair.worse,
                f"{pair.difference:.4g}",
                f"{pair.low:.4g} to {pair.high:.4g}" if np.isfinite(pair.high) else "none",
                "< 0.001" if pair.p_value < 0.001 else f"{pair.p_value:.3f}",
                "yes" if pair.decided else "no",
            ]
            for pair in self.pairs
        ]
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
    ds = whole(ds, "regret")
    names = curve_names(ds, learners)
    if len(names) < 2:
        raise ValueError(f"learners: {[n.label for n in names]}; accepted: at least two to compare")
    if family is not None:
        accept("family", family, list(families(ds)))
    strata = paired_runs(ds, names, family, variable)
    answer = compare_values(
        [name.label for name in names], strata, level, key=key, num_resamples=num_resamples
    )
    return answer._replace(replicates=_words(ds, family, strata))


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
    checks.whole("num_resamples", num_resamples, at_most=MOST_RESAMPLES)
    learners = _names(learners)
    strata = _strata(strata, len(learners))
    means = np.mean([values.mean(axis=0) for values in strata], axis=0)
    order = np.argsort(means, kind="stable")
    ordered = [values[:, order] for values in strata]
    index = list(itertools.combinations(range(len(order)), 2))
    first, second = (list(side) for side in zip(*index, strict=True))
    differences = [values[:, second] - values[:, first] for values in ordered]
    found = joint_intervals(differences, level)
    enough = found.runs >= found.fewest
    sorted_names = tuple(str(learners[j]) for j in order)
    numbers = zip(found.value, found.low, found.high, found.p_value, strict=True)
    columns = ("difference", "low", "high", "p_value")
    pairs = tuple(
        Pair(better=sorted_names[a], worse=sorted_names[b], enough=enough, **dict(zip(columns, map(float, of), strict=True)))
        for (a, b), of in zip(index, numbers, strict=True)
    )  # fmt: skip
    count = " + ".join(str(len(values)) for values in strata)
    return Comparison(
        learners=sorted_names,
        means=tuple(map(float, means[order])),
        pairs=pairs,
        level=level,
        replicates=f"{count} replicates",
        method=_method(found, differences),
        strata=tuple(ordered),
    )


def _method(found: JointIntervals, differences: Sequence[np.ndarray]) -> str:
    """How the intervals were made, and what speaks against them."""
    text = "Student-t, Bonferroni's correction"
    if found.runs < found.fewest:
        return f"{text}; {found.runs} runs decide nothing, {found.fewest} or more can"
    moving = [x for values in differences for x in values.T if np.ptp(x) > 0]
    warning = joint_warning(coverage_warning(x) for x in moving)
    return f"{text} ({WARNINGS[warning]})" if warning else text


def _names(learners: Any) -> list[str]:
    several = isinstance(learners, Sequence) and not isinstance(learners, bytes)
    if not several or len(learners) < 2 or not all(isinstance(name, str) for name in learners):
        raise ValueError(f"learners: {learners!r}; accepted: a list of two names or more")
    return list(learners)


def _strata(strata: Any, columns: int) -> list[np.ndarray]:
    """Arrays [n, columns] of finite numbers, at least one, each with two rows or more."""
    accepted = (
        f"accepted: a list of arrays [n, {columns}] of finite numbers, a row per replicate, n >= 2"
    )
    several = isinstance(strata, Sequence) or (isinstance(strata, np.ndarray) and strata.ndim > 0)
    if not several or isinstance(strata, str | bytes) or not len(strata):
        raise ValueError(f"strata: {type(strata).__name__}; {accepted}")
    found = [np.asarray(real_array("strata", values, accepted), np.float64) for values in strata]
    for values in found:
        if values.ndim != 2 or len(values) < 2 or values.shape[1] != columns:
            raise ValueError(f"strata: one of shape {values.shape}; {accepted}")
        if not np.isfinite(values).all():
            raise ValueError(
                f"strata: {values[~np.isfinite(values)][0]} in one of them; {accepted}"
            )
    return found


def paired_runs(
    ds: Dataset, names: Sequence[CurveName], family: str | None = None, variable: str = "regret"
) -> list[np.ndarray]:
    """Final values of complete replicates, [n, curves] per family: every column has every row.

    A seed that some curve lacks is left out for all; a family of several instances gives one row per
    instance, the mean over its seeds.
    """
    accept("variable", variable, [str(name) for name in ds.data_vars if "seed" in ds[name].dims])
    chosen = list(families(ds)) if family is None else [family]
    strata = []
    for name in chosen:
        members = families(ds)[name]
        runs = np.stack(
            [final_values(ds, variable, curve, members) for curve in names], axis=-1
        )  # [instances, seeds, curves]
        complete = [of_one[np.isfinite(of_one).all(axis=1)] for of_one in runs]
        rows = (
            complete[0]
            if len(complete) == 1
            else np.array([of_one.mean(axis=0) for of_one in complete if len(of_one)])
        )
        if len(rows) < 2:
            raise ValueError(
                f"ds: {len(rows)} complete replicates in family {name!r}; accepted: at least 2 "
                "(seeds of one instance, or drawn instances)"
            )
        strata.append(rows)
    return strata


def final_values(ds: Dataset, variable: str, curve: CurveName, members: list[str]) -> np.ndarray:
    """The last value of each run, [instances, seeds]."""
    array = ds[variable].sel(learner=curve.learner, instance=members)
    if "parameter" in array.dims:
        array = array.isel(parameter=curve.parameter or 0)
    if "episode" in array.dims:
        array = array.isel(episode=-1)
    if set(array.dims) != {"instance", "seed"}:
        raise ValueError(
            f"variable: {variable!r} has dimensions {array.dims} per run; accepted: one number per run"
        )
    return np.asarray(array.transpose("instance", "seed").values, np.float64)


def _words(ds: Dataset, family: str | None, strata: Sequence[np.ndarray]) -> str:
    chosen = families(ds) if family is None else {family: families(ds)[family]}
    parts = [
        f"{len(rows)} {'instances' if len(members) > 1 else 'seeds'} of {name}"
        for (name, members), rows in zip(chosen.items(), strata, strict=True)
    ]
    return ", ".join(parts)
