"""The paper's constants and bounds as plain numbers: thresholds, phase schedule, upper and lower
bounds.

Everything is NumPy in float64 on the host, computed in logarithms, and never NaN. The bounds are
the expressions inside the O(.) and Omega(.) of the theorems, without their unknown constants: good
for slopes and overlays, not for levels. Logarithms are natural.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.checks import MOST_EPISODES, real_array
from jaxbandit.specs import Optional, Real, Whole, takes

SIZE = Whole(1, 10**6)
"""A horizon, a width or a number of actions."""
POSITIVE = Real(0, above=True)
LARGEST_TABLE = 10**8
MOST_PHASES = 10**6
LARGEST_THRESHOLD = 1e30
"""Thresholds are capped here: finite in float32, and far above 1 / eps, so that every action is
kept."""


@takes(horizon=SIZE, width=SIZE, num_actions=SIZE)
def thresholds(horizon: int, width: int, num_actions: int, ordered: bool) -> np.ndarray:
    """C_{l,i} as float64 [H, k+1]: an action survives a phase if it is within C_{l,i} eps of the
    best.

    General (3):  C_{l,i} = (H-i+1) (Ak)^(H-i).
    Ordered (8):  C_{l,i} = exp((H-i) k/H) (2AH/k)^(l-1) (H-i+1)^l   (the first of the two printed
    forms).

    Row i-1 is stage i and column l is level l. Column 0 is never explored and holds
    `LARGEST_THRESHOLD`, at
    which everything is capped: a threshold that large simply keeps every action.

    Example:
        >>> from jaxbandit import theory
        >>> theory.thresholds(horizon=3, width=2, num_actions=2, ordered=False)[:, 1:].round().tolist()
        [[48.0, 48.0], [8.0, 8.0], [1.0, 1.0]]
        >>> theory.thresholds(horizon=3, width=2, num_actions=2, ordered=True)[2, 1:].round().tolist()
        [1.0, 6.0]
        >>> float(theory.thresholds(horizon=40, width=8, num_actions=10, ordered=False).max())
        1e+30
    """
    if horizon * (width + 1) > LARGEST_TABLE:
        states = f"at most {LARGEST_TABLE} states"
        raise ValueError(f"horizon, width: {horizon}, {width}; accepted: {states}")
    if not isinstance(ordered, bool | np.bool_):
        raise ValueError(f"ordered: {ordered!r}; accepted: True, False")
    left = np.arange(horizon - 1, -1, -1, dtype=np.float64)[:, None]  # H - i
    level = np.arange(1, width + 1, dtype=np.float64)[None, :]
    if ordered:
        growth = np.log(2 * num_actions * horizon / width)
        logs = left * width / horizon + (level - 1) * growth + level * np.log(left + 1)
    else:
        logs = np.log(left + 1) + left * np.log(num_actions * width) + 0 * level
    table = np.full((horizon, width + 1), LARGEST_THRESHOLD)
    table[:, 1:] = np.exp(np.minimum(logs, np.log(LARGEST_THRESHOLD)))
    return np.minimum(table, LARGEST_THRESHOLD)


class Schedule(NamedTuple):
    """The phases of the doubling algorithm (Algorithm 2), before any elimination; arrays are
    float64 [R]."""

    epsilons: np.ndarray
    """Accuracy of each phase."""
    episodes_per_arm: np.ndarray
    """Episodes per (level, stage, action): ceil(episodes_scale * 12 ln T / eps^2)."""
    episodes_per_phase: np.ndarray
    """H k A times that: the length of the phase if no action has been eliminated."""
    last_episode: np.ndarray
    """The episode at which each phase ends; cumulative, and not cut at T."""
    phase_cut: int | None
    """Index of the phase in which the T episodes run out, or None if all phases fit."""


@takes(
    horizon=SIZE, width=SIZE, num_actions=SIZE, num_episodes=Real(2), episodes_scale=POSITIVE,
    first_epsilon=POSITIVE, ratio=Real(0, 1, above=True, below=True), last_epsilon=Optional(POSITIVE),
    max_phases=Optional(Whole(0, MOST_EPISODES)),
)  # fmt: skip
def schedule(
    horizon: int,
    width: int,
    num_actions: int,
    num_episodes: float,
    episodes_scale: float = 1.0,
    first_epsilon: float = 1.0,
    ratio: float = 0.5,
    max_phases: int | None = None,
    last_epsilon: float | None = None,
    epsilons: Any = None,
) -> Schedule:
    """The phases eps = first_epsilon * ratio^r of the algorithm, while eps > sqrt(H k A ln T / T).

    This is the schedule that the learners follow. ``last_epsilon`` replaces the bound of the while
    loop, and ``epsilons`` the geometric sequence (it ends the schedule with its last number).
    If T is below about H k A ln T that condition fails at once and the schedule is empty.
    Elimination can only shorten phases, so ``phase_cut`` is the earliest phase that T can cut.

    Example:
        >>> from jaxbandit import theory
        >>> phases = theory.schedule(horizon=15, width=2, num_actions=5, num_episodes=2_000_000)
        >>> phases.epsilons.tolist(), phases.episodes_per_arm.tolist()
        ([1.0, 0.5, 0.25, 0.125, 0.0625], [175.0, 697.0, 2786.0, 11143.0, 44571.0])
        >>> phases.last_episode.tolist(), phases.phase_cut
        ([26250.0, 130800.0, 548700.0, 2220150.0, 8905800.0], 3)
        >>> theory.schedule(horizon=15, width=2, num_actions=5, num_episodes=100).epsilons.size
        0
    """
    arms, log_t = horizon * width * num_actions, np.log(float(num_episodes))
    smallest = np.sqrt(arms * log_t / num_episodes) if last_epsilon is None else last_epsilon
    if epsilons is None:
        phases = np.log(smallest / first_epsilon) / np.log(ratio) if first_epsilon > smallest else 0
        if min(phases, np.inf if max_phases is None else max_phases) > MOST_PHASES:
            raise ValueError(f"ratio: {ratio!r}; accepted: a ratio of at most {MOST_PHASES} phases")
        sequence: Iterable[float] = (first_epsilon * ratio**r for r in itertools.count())
    else:
        accepted = "None or a list of numbers > 0"
        sequence = given = np.asarray(real_array("epsilons", epsilons, accepted), np.float64)
        if given.ndim != 1 or not ((given > 0) & np.isfinite(given)).all():
            raise ValueError(f"epsilons: {epsilons!r}; accepted: {accepted}")
    large = itertools.takewhile(lambda epsilon: epsilon > smallest, sequence)
    eps = np.asarray(list(itertools.islice(large, max_phases)), np.float64)
    per_arm = np.ceil(episodes_scale * 12 * log_t / eps**2)
    last = np.cumsum(arms * per_arm)
    cut = np.flatnonzero(last > num_episodes)
    found = int(cut[0]) if cut.size else None
    return Schedule(eps, per_arm, arms * per_arm, last, phase_cut=found)


@takes(horizon=SIZE, width=SIZE, num_actions=SIZE)
def upper_bound_general(horizon: int, width: int, num_actions: int, num_episodes: Any) -> Any:
    """Theorem 3.1: H^2 (Ak)^H sqrt(H k A T ln T), for T a number or an array.

    Example:
        >>> from jaxbandit import theory
        >>> [f"{x:.3g}" for x in theory.upper_bound_general(2, 1, 2, [1e4, 1e6])]
        ['9.71e+03', '1.19e+05']
    """
    factor = 2 * np.log(horizon) + horizon * np.log(num_actions * width)
    return _times_root(factor, np.log(horizon * width * num_actions), num_episodes)


@takes(horizon=SIZE, width=SIZE, num_actions=SIZE)
def upper_bound_ordered(horizon: int, width: int, num_actions: int, num_episodes: Any) -> Any:
    """Theorem 3.11: (2 e H^2 A / k)^k sqrt(k^3 H T ln T / A), for T a number or an array.

    Example:
        >>> from jaxbandit import theory
        >>> f"{theory.upper_bound_ordered(2, 1, 2, 1e4):.3g}"
        '1.32e+04'
    """
    factor = width * (np.log(2 * horizon**2 * num_actions / width) + 1)
    return _times_root(factor, np.log(width**3 * horizon / num_actions), num_episodes)


def lower_bound_general(horizon: int, num_actions: int, num_episodes: Any) -> Any:
    """Theorem 4.1 (k = 2): min(sqrt(A^H T), T), for T a number or an array.

    Example:
        >>> from jaxbandit import theory
        >>> theory.lower_bound_general(3, 2, [4, 200]).round(9).tolist()
        [4.0, 40.0]
    """
    return _smaller_of_root_and_t(_log_arms_general(horizon, num_actions), num_episodes)


def lower_bound_ordered(horizon: int, num_downs: int, num_actions: int, num_episodes: Any) -> Any:
    """Theorem 4.2: min(sqrt(L T), T) with L = binom(H-1, k) A^k, for T a number or an array.

    The theorem prints binom(H, k); its proof counts binom(H-1, k) paths, which is used here. Here k
    is the number of down moves and A the number of actions besides the maximal one; the MDPs have
    width k+2 and A+1 actions.

    Example:
        >>> from jaxbandit import theory
        >>> theory.lower_bound_ordered(5, 2, 3, [9, 2400]).round(9).tolist()
        [9.0, 360.0]
    """
    return _smaller_of_root_and_t(_log_arms_ordered(horizon, num_downs, num_actions), num_episodes)


def hard_gap_general(horizon: int, num_actions: int, num_episodes: Any) -> Any:
    """The gap of M^theta for T episodes: min(sqrt(N/T), 1) / 4 with N = A^H.

    The paper leaves it to the theorem it cites for Bernoulli bandits with N arms (Theorem 5.1 of
    Auer, Cesa-Bianchi, Freund and Schapire, 2002). With this value the bound of its proof,
    gap (T - T/N - T/2 sqrt(-(T/N) ln(1 - 4 gap^2))), is at least 0.05 min(sqrt(NT), T) for N >= 2.

    Example:
        >>> from jaxbandit import theory
        >>> round(float(theory.hard_gap_general(3, 2, 800)), 9)
        0.025
    """
    return _gap_of(_log_arms_general(horizon, num_actions), num_episodes, 1 / 4)


def hard_gap_ordered(horizon: int, num_downs: int, num_actions: int, num_episodes: Any) -> Any:
    """The gap in the proof of Theorem 4.2: min(sqrt(L/T), 1) / 8 with L = binom(H-1, k) A^k.

    Example:
        >>> from jaxbandit import theory
        >>> round(float(theory.hard_gap_ordered(5, 2, 3, 5400)), 9)
        0.0125
    """
    return _gap_of(_log_arms_ordered(horizon, num_downs, num_actions), num_episodes, 1 / 8)


def lai_robbins(means: Any = None, values: Any = None, probabilities: Any = None) -> float:
    """C in the lower bound liminf R(T) / ln T >= C of K-armed bandits, for learners that are good on all of them.

    C = sum over arms below the best of gap / K_inf, where K_inf is the smallest divergence to a distribution on [0, 1]
    whose mean is the best arm's. For Bernoulli arms it is kl(m, m*) (Lai and Robbins 1985). For others (Burnetas and
    Katehakis 1996) it is max over 0 <= x <= 1 / (1 - m*) of E ln(1 - x (X - m*)) (Honda and Takemura 2010).

    Args:
        means: [K], of Bernoulli arms; or
        values: [M] or [K, M], in [0, 1], and
        probabilities: [K, M].

    Example:
        >>> from jaxbandit import theory
        >>> f"{theory.lai_robbins([k / 10 for k in range(1, 10)]):.3f}", f"{theory.lai_robbins([0.9, 0.8]):.3f}"
        ('7.517', '2.252')
    """
    if means is not None:
        p = real_array("means", means, "numbers in [0, 1], [K]").astype(np.float64)
        values, probabilities = np.array([0.0, 1.0]), np.stack([1 - p, p], axis=-1)
    probabilities = real_array("probabilities", probabilities).astype(np.float64)
    values = real_array("values", values).astype(np.float64)
    outside = np.any(probabilities < 0) or np.any(values < 0) or np.any(values > 1)
    if probabilities.ndim != 2 or outside:
        seen = f"means: {means!r}, probabilities: {probabilities!r}"
        raise ValueError(f"{seen}; accepted: numbers in [0, 1], [K] or [K, M]")
    values = np.broadcast_to(values, probabilities.shape)
    means = np.sum(probabilities * values, axis=1)
    best = float(means.max())
    arms = [arm for arm in zip(means, values, probabilities, strict=True) if best - arm[0] > 1e-9]
    return float(sum((best - mean) / _smallest_divergence(x, p, best) for mean, x, p in arms))


def _smallest_divergence(values: np.ndarray, probabilities: np.ndarray, mean: float) -> float:
    """K_inf of a distribution below this mean: the derivative in x is decreasing, so bisection finds its zero."""
    if mean >= 1:
        return np.inf
    far, p = values[probabilities > 0] - mean, probabilities[probabilities > 0]
    low, high = 0.0, 1 / (1 - mean)
    for _ in range(100):
        x = (low + high) / 2
        rising = np.sum(p * far / (1 - x * far)) < 0
        low, high = (x, high) if rising else (low, x)
    return float(np.sum(p * np.log1p(-low * far)))


@takes(horizon=SIZE, num_actions=SIZE)
def _log_arms_general(horizon: int, num_actions: int) -> float:
    return horizon * float(np.log(num_actions))


@takes(horizon=SIZE, num_downs=SIZE, num_actions=SIZE)
def _log_arms_ordered(horizon: int, num_downs: int, num_actions: int) -> float:
    if num_downs >= horizon:
        raise ValueError(f"num_downs: {num_downs}; accepted: less than the horizon {horizon}")
    steps = np.arange(1, num_downs + 1, dtype=np.float64)
    paths = np.sum(np.log(horizon - steps) - np.log(steps))  # log binom(H-1, k)
    return float(paths + num_downs * np.log(num_actions))


def _times_root(log_factor: Any, log_inside: Any, num_episodes: Any) -> Any:
    T = _check_episodes(num_episodes, at_least=2)
    return _exp(log_factor + 0.5 * (log_inside + np.log(T) + np.log(np.log(T))))


def _smaller_of_root_and_t(log_arms: float, num_episodes: Any) -> Any:
    T = _check_episodes(num_episodes, at_least=1)
    return np.minimum(_exp(0.5 * (log_arms + np.log(T))), T)


def _gap_of(log_arms: float, num_episodes: Any, largest: float) -> Any:
    T = _check_episodes(num_episodes, at_least=1)
    return largest * np.exp(np.minimum(0.5 * (log_arms - np.log(T)), 0.0))


def _exp(logs: Any) -> Any:
    """exp, infinite where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(logs)


def _check_episodes(num_episodes: Any, at_least: int) -> np.ndarray:
    T = np.asarray(real_array("num_episodes", num_episodes), np.float64)
    if not (np.isfinite(T) & (at_least <= T)).all():
        raise ValueError(
            f"num_episodes: {num_episodes!r}; accepted: finite numbers of at least {at_least}"
        )
    return T
