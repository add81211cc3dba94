"""How often the package's intervals contain the truth, measured on data whose mean is known.

    python -m jaxbandit.experiments.bench.coverage [repetitions]

prints two tables. In the first, rows are intervals, columns the kind of data and the number n of replicates; where there
is no interval nothing is missed. Nominal is 95 %. The data:

* normal: mean 5, standard deviation 1;
* skewed: exponential, mean 1 (skewness 2);
* lognormal: of a standard normal, mean 1.65 (skewness 6);
* coins: 0 or 1, with probability 1/2 each (means and pairs only);
* clustered: n instances with 4 seeds each; what the runs on one instance have in common varies as
  much as the runs themselves. The package averages over the seeds of an instance and counts
  instances; the last row counts runs instead, which is what it would be to get this wrong.

Curves are 20 points of a random walk with such increments, for the band of a whole curve; slopes
are those of power laws with such factors and measurement noise. `compare` and `until_decided` have
four learners whose numbers are such data times 1, 1.5, 2 and 3, and must be right about all six pairs
(and, the latter, at all looks: 3 and 6, or 8, 16 and 32 seeds). The second table has `compare` at more n: how often all six
pairs are right, half the width of an interval in standard errors, and the share of pairs that are decided: with coins of
equal means, wrongly. Shares of runs (profiles,
probabilities of improvement) answer for fixed instances and new seeds: there, clustered data are
n seeds of each of 4 instances.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandit import stats
from jaxbandit.experiment import markdown_table
from jaxbandit.studies.sequential import Judge

if TYPE_CHECKING:
    from xarray import Dataset

COUNTS = (3, 6, 32)
PAIR_COUNTS = (3, 6, 7, 8, 9, 10, 16, 32)
SEEDS = 4
POINTS = 20
NOMINAL = 0.95
EPISODES = np.geomspace(10, 1e5, 41)
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal with mean 5."""
    return rng.normal(5.0, 1.0, shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Exponential with mean 1."""
    return rng.exponential(1.0, shape)


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Lognormal with mean exp(1/2)."""
    return rng.lognormal(0.0, 1.0, shape)


def coins(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """0 or 1."""
    return rng.integers(0, 2, shape).astype(np.float64)


def clustered(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Means over the seeds of instances that differ as much as their runs do; mean 5."""
    return clustered_runs(rng, shape).mean(axis=-1)


def clustered_runs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """The runs behind `clustered`, [..., seeds]."""
    return 5.0 + rng.normal(size=(*shape, 1)) + rng.normal(size=(*shape, SEEDS))


DATA: dict[str, tuple[Draw, float]] = {
    "normal": (normal, 5.0),
    "skewed": (skewed, 1.0),
    "lognormal": (lognormal, float(np.exp(0.5))),
    "coins": (coins, 0.5),
    "clustered": (clustered, 5.0),
}


def of_a_mean(kind: str, draw: Draw, truth: float, count: int, repetitions: int) -> float:
    """Share of the repetitions in which the interval of the mean of ``count`` numbers covers.

    Example:
        >>> 0.85 < of_a_mean("t", skewed, 1.0, 4, 500) < 0.92
        True
    """
    # Replicate by replicate the same as a band over many points, each a repetition of its own:
    # "t", "skewed" and "bootstrap" look at every point alone.
    rng = np.random.default_rng(count)
    values = np.abs(draw(rng, (count, repetitions)))  # 5 standard deviations from 0
    b = stats.band(values, kind, key=1, num_resamples=400)
    return float(np.mean(~((b.low > truth) | (b.high < truth))))


def of_a_curve(draw: Draw, truth: float, count: int, repetitions: int) -> float:
    """Share of the repetitions in which the simultaneous band contains the whole mean curve."""
    rng = np.random.default_rng(count)
    hits = 0
    for j in range(repetitions):
        steps = draw(rng, (count, POINTS))
        b = stats.band(np.cumsum(steps, axis=1), "simultaneous", key=j, num_resamples=400)
        target = truth * np.arange(1, POINTS + 1)
        hits += bool(((b.low <= target) & (target <= b.high)).all())
    return hits / repetitions


def of_a_slope(draw: Draw, truth: float, count: int, repetitions: int) -> float:
    """Share of the repetitions in which the interval of an exponent contains it."""
    rng = np.random.default_rng(count)
    hits = 0
    for _ in range(repetitions):
        bend = 0.2 * (draw(rng, (count, 1)) - truth)
        curves = EPISODES**0.5 * (1 + 0.1 * bend * np.log10(EPISODES / EPISODES[-1]))
        estimate = stats.loglog_slope(EPISODES, curves)
        hits += estimate.low <= exponent_of(1.0) <= estimate.high
    return hits / repetitions


def exponent_of(factor: float) -> float:
    """The exponent that `loglog_slope` reads from the mean curve of `of_a_slope`.

    Example:
        >>> round(exponent_of(1.0), 3)
        0.5
    """
    return stats.loglog_slope(EPISODES, factor * EPISODES[None] ** 0.5).value


def of_a_median(draw: Draw, count: int, repetitions: int) -> float:
    """Share of the repetitions in which the interval of a median time contains it."""
    rng = np.random.default_rng(count)
    episodes = np.arange(1.0, 2001.0)
    level = float(np.median(draw(rng, (1_000_001,))))
    hits = 0
    for _ in range(repetitions):
        ends = np.clip(np.round(100 * draw(rng, (count,))), 1, 1900)
        curves = np.minimum(episodes, ends[:, None]) * 0.5
        answer = stats.time_to_average_regret(episodes, curves, 0.25)
        hits += answer.low <= 2 * round(100 * level) <= answer.high
    return hits / repetitions


FACTORS = np.array([1.0, 1.5, 2.0, 3.0])
LOOKS = {3: [3], 6: [3, 6], 32: [8, 16, 32]}
LEARNERS = ("A", "B", "C", "D")


def of_pairs(draw: Draw, truth: float, count: int, repetitions: int) -> tuple[float, float]:
    """Shares in which `compare`, and `until_decided` at its looks, are right about all pairs."""
    rng = np.random.default_rng(count)
    means = dict(zip(LEARNERS, truth * FACTORS, strict=True))
    hits = np.zeros(2)
    for _ in range(repetitions):
        values = FACTORS * draw(rng, (count, len(FACTORS)))
        judge = Judge(LEARNERS, LOOKS[count])
        for look in LOOKS[count]:
            judge.look([values[:look]])
        at_once = stats.compare_values(LEARNERS, [values])
        hits += [all_right(found, means) for found in (at_once, judge.comparison())]
    return hits[0] / repetitions, hits[1] / repetitions


def all_right(found: stats.Comparison, means: dict[str, float]) -> bool:
    """Whether every interval contains the true difference."""
    return all(
        pair.low <= means[pair.worse] - means[pair.better] <= pair.high for pair in found.pairs
    )


class Pairs(NamedTuple):
    """What `compare` gave at one n."""

    covered: float
    """Share of the repetitions in which all pairs are right."""
    width: float
    """Half the width of an interval in standard errors, mean over those that have one."""
    decided: float
    """Share of the pairs that are decided."""


def of_pairs_at(draw: Draw, truth: float, count: int, repetitions: int, factors: np.ndarray = FACTORS) -> Pairs:  # fmt: skip
    """`compare` on ``count`` runs of four learners.

    Example:
        >>> few, more = (of_pairs_at(normal, 5.0, count, 20) for count in (7, 8))
        >>> few.width > more.width, few.decided, more.decided > 0.5      # 8 runs are the fewest
        (True, 0.0, True)
    """
    rng = np.random.default_rng(count)
    means = dict(zip(LEARNERS, truth * factors, strict=True))
    hits, widths, decided = 0, [], 0.0
    for _ in range(repetitions):
        values = factors * draw(rng, (count, len(factors)))
        found = stats.compare_values(LEARNERS, [values])
        hits += all_right(found, means)
        decided += sum(pair.decided for pair in found.pairs) / len(found.pairs)
        runs = dict(zip(LEARNERS, values.T, strict=True))
        for pair in found.pairs:
            error = np.std(runs[pair.worse] - runs[pair.better], ddof=1) / np.sqrt(count)
            if error and np.isfinite(pair.high):
                widths.append((pair.high - pair.low) / 2 / error)
    return Pairs(hits / repetitions, float(np.mean(widths)), decided / repetitions)


RATIOS = (1.0, 1.5, 2.0)


def of_shares(data: str, count: int, repetitions: int) -> tuple[float, float]:
    """Shares in which the intervals of `probability_of_improvement` and of `performance_profiles` (of the learner
    that is worse, where the truth is no 0 or 1) cover."""
    from scipy.stats import norm

    rng = np.random.default_rng(count)
    better, worse = np.zeros(1), np.full(1, 0.7)
    if data == "clustered":
        better, worse = np.zeros(SEEDS), np.array([0.0, 0.5, 1.0, 1.5])
    if data == "skewed":
        win, below = 2 / 3, 1 - np.exp(-np.array(RATIOS) / 2)
    elif data == "lognormal":
        win = float(norm.cdf(np.log(2) / np.sqrt(2)))
        below = norm.cdf(0.5 + np.log(np.array(RATIOS) / 2))
    else:
        win = float(norm.cdf((worse - better) / np.sqrt(2)).mean())
        below = np.array([norm.cdf(5 * ratio - 5 - worse).mean() for ratio in RATIOS])
    hits, inside = 0, (below > 0.02) & (below < 0.98)
    covered = np.zeros(len(RATIOS))
    for j in range(repetitions):
        if data == "skewed":
            runs = rng.exponential([[[1.0]], [[2.0]]], (2, 1, count))
        elif data == "lognormal":
            runs = rng.lognormal([[[0.0]], [[np.log(2)]]], 1.0, (2, 1, count))
        else:
            runs = rng.normal(
                5 + np.stack([better, worse])[..., None], 1.0, (2, better.size, count)
            )
        ds = _as_sweep(runs)
        pair = stats.probability_of_improvement(ds, key=j, num_resamples=400)[0]
        hits += pair.low <= win <= pair.high
        b = stats.performance_profiles(ds, ratios=RATIOS, key=j, num_resamples=400).share["B"]
        covered += (b.low <= below) & (below <= b.high)
    return hits / repetitions, float(covered[inside].mean() / repetitions)


def _as_sweep(runs: np.ndarray) -> Dataset:
    """Final regrets [learners, instances, seeds] as the Dataset of a sweep."""
    import xarray

    names = {"learner": list(LEARNERS[: len(runs)]), "instance": [str(j) for j in range(runs.shape[1])]}  # fmt: skip
    dims = ("learner", "instance", "seed", "episode")
    return xarray.Dataset({"regret": (dims, runs[..., None])}, coords=names | {"episode": [1]})


def of_runs_as_replicates(count: int, repetitions: int) -> float:
    """What a t-interval over all runs of clustered data covers: the mistake that is not made."""
    runs = clustered_runs(np.random.default_rng(count), (count, repetitions))
    b = stats.band(np.moveaxis(runs, 2, 1).reshape(count * SEEDS, repetitions))
    return float(np.mean((b.low <= 5) & (b.high >= 5)))


MORE = (
    "all pairs, `compare`",
    "all pairs, all looks, `until_decided`",
    "`probability_of_improvement`",
    "`performance_profiles`",
)


def measured(repetitions: int = 20_000) -> dict[str, dict[tuple[str, int], float]]:
    """Interval -> (data, n) -> share of the repetitions that it covers."""
    slow = max(1, repetitions // 20)
    found: dict[str, dict[tuple[str, int], float]] = {}
    for data, (draw, truth) in DATA.items():
        for count in COUNTS:
            here = (data, count)
            for kind in ("t", "skewed", "bootstrap"):
                many = repetitions if kind != "bootstrap" else 10 * slow
                share = of_a_mean(kind, draw, truth, count, many)
                found.setdefault(f'mean, "{kind}"', {})[here] = share
            pairs = of_pairs(draw, truth, count, slow)
            for name, share in zip(MORE, pairs, strict=False):
                found.setdefault(name, {})[here] = share
            if data == "coins":
                continue
            share = of_a_curve(draw, truth, count, slow)
            found.setdefault('whole curve, "simultaneous"', {})[here] = share
            share = of_a_slope(draw, truth, count, slow)
            found.setdefault("`loglog_slope` (jackknife)", {})[here] = share
            share = of_a_median(draw, count, slow)
            found.setdefault("`time_to_average_regret` (median)", {})[here] = share
            for name, share in zip(MORE[2:], of_shares(data, count, slow), strict=True):
                found.setdefault(name, {})[here] = share
    wrong = {("clustered", n): of_runs_as_replicates(n, repetitions) for n in COUNTS}
    return {**found, 'mean, "t", runs counted as replicates': wrong}


def table(found: dict[str, dict[tuple[str, int], float]]) -> str:
    """The shares in percent as a markdown table.

    Example:
        >>> table({"mean": {("normal", 3): 0.951}}).splitlines()[2].split("|")[1:3]
        [' mean     ', ' 95.1          ']
    """
    columns = [(data, n) for data in DATA for n in COUNTS]
    head = ["interval", *(f"{data}, n = {n}" for data, n in columns)]
    rows = [
        [name, *(f"{100 * shares[c]:.1f}" if c in shares else "" for c in columns)]
        for name, shares in found.items()
    ]
    return markdown_table(head, rows)


def pairs_table(repetitions: int) -> str:
    """`compare` at `PAIR_COUNTS`, as a markdown table."""
    rows, widths = [], []
    for data, (draw, truth) in DATA.items():
        found = [of_pairs_at(draw, truth, count, repetitions) for count in PAIR_COUNTS]
        widths = [f"{x.width:.2f}" for x in found]  # the same for all data
        rows.append([f"{data}, all pairs right (%)", *(f"{100 * x.covered:.1f}" for x in found)])
        rows.append([f"{data}, pairs decided (%)", *(f"{100 * x.decided:.0f}" for x in found)])
    alike = [of_pairs_at(coins, 0.5, n, repetitions, np.ones(4)).decided for n in PAIR_COUNTS]
    rows.append(["coins of equal means, pairs decided (%)", *(f"{100 * x:.1f}" for x in alike)])
    rows.insert(0, ["half-width (standard errors)", *widths])
    return markdown_table(["`compare`", *(f"n = {count}" for count in PAIR_COUNTS)], rows)


def main() -> None:
    """Prints the tables."""
    repetitions = int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000
    print(table(measured(repetitions)), pairs_table(max(1, repetitions // 20)), sep="\n\n")


if __name__ == "__main__":
    main()
