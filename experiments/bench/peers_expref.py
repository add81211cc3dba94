"""ExpRef and OrderedExpRef as a Numba loop: the peer of ``jaxbandit bench`` that simulates every
stage.

Conventions as in `peers_numpy`. Per block of episodes, the outcomes of each state under the
randomised policy are put in one table, so that a stage costs one uniform number and a short
branch-free search. Random numbers are those of splitmix64, with one explicit state per run.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from jaxbandit.types import Array

from .peers_numpy import Schedule, Tables

fast: Any = njit(fastmath=True, error_model="numpy", nogil=True)

_GOLDEN, _MIX1, _MIX2 = (
    np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_S11, _S27, _S30, _S31 = (np.uint64(x) for x in (11, 27, 30, 31))


class Outcomes(NamedTuple):
    """What may happen at each state under a randomised policy, equal outcomes of its actions put
    together."""

    cumulative: Array
    """float [H, k, A M]: cumulative probabilities; exactly 1 from the last possible outcome on."""
    reward: Array
    """float [H, k, A M]."""
    next_level: Array
    """int [H, k, A M]."""
    size: Array
    """int [H, k]: number of different outcomes."""


def expref(
    instance: Tables,
    num_episodes: int,
    points: Array,
    seeds: Array,
    plan: Schedule,
    *,
    threads: int = 1,
) -> np.ndarray:
    """ExpRef or OrderedExpRef, by its `Schedule`, every stage of every episode drawn: exact regret
    [S, W].

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.experiments.bench.peers_numpy import schedule, tables
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> instance = tables(mdp)
        >>> expref(instance, 20_000, [20_000], [0, 1], schedule(instance, 20_000)).shape
        (2, 1)
    """
    return over_seeds(_expref_run, (instance, num_episodes), points, seeds, (plan,), threads)


def over_seeds(
    run: Callable, before: tuple, points: Array, seeds: Array, after: tuple, threads: int
) -> np.ndarray:
    """Regret [S, W] of ``run(*before, points, seed, *after, regret)`` by seed, ``threads`` at a
    time."""
    points = np.asarray(points, np.int64)
    regret = np.zeros((len(seeds), points.size))
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(
                lambda seed, row: run(*before, points, np.uint64(seed), *after, row), seeds, regret
            )
        )
    return regret


@fast
def _expref_run(instance, num_episodes, points, seed, plan, regret):
    horizon, width, num_actions = instance.gap.shape
    random = first_state(seed)
    active = np.ones((horizon, width, num_actions), np.bool_)
    choice = np.zeros((horizon, width, num_actions))
    outcomes = new_outcomes(horizon, width, num_actions * instance.reward.shape[3])
    best = np.zeros((horizon, width), np.int64)
    lost = np.zeros((horizon + 1, width))
    means = np.zeros(num_actions)
    total, played, point = 0.0, 0, 0
    for r in range(plan.episodes.size):
        refined = active.copy()
        explore(active, instance.rank, plan.uniform_share, choice)
        for i in range(horizon):
            for level in range(width):
                merge(instance, choice, i, level, outcomes)
        for i in range(horizon - 1, -1, -1):
            for level in range(width - 1, -1, -1):
                mixed = choice[i, level].copy()
                for a in range(num_actions):
                    if not active[i, level, a]:
                        continue
                    n = min(plan.episodes[r], num_episodes - played)
                    commit(choice[i, level], a)
                    merge(instance, choice, i, level, outcomes)
                    means[a] = play(outcomes, instance.start, n, random) / n
                    loss = mixed_regret(instance, choice, lost)
                    while point < points.size and points[point] <= played + n:
                        regret[point] = total + loss * (points[point] - played)
                        point += 1
                    total += loss * n
                    played += n
                    if played == num_episodes:
                        return
                choice[i, level] = mixed
                merge(instance, choice, i, level, outcomes)
                best[i, level] = refine(
                    means, active[i, level], plan.slack[r, i, level], refined[i, level]
                )
            for level in range(width):
                commit(choice[i, level], best[i, level])
                merge(instance, choice, i, level, outcomes)
        active = refined
    loss = policy_regret(instance, best, lost)
    for w in range(point, points.size):
        regret[w] = total + loss * (points[w] - played)


@fast
def commit(row, action):
    """Makes the action probabilities ``row`` [A] those of a single action."""
    row[:] = 0.0
    row[action] = 1.0


@fast
def explore(active, rank, share, choice):
    """Exploration: uniform over the active actions with probability ``share``, else that of largest
    rank."""
    for i in range(active.shape[0]):
        for level in range(active.shape[1]):
            number, top = active[i, level].sum(), -1
            for a in range(active.shape[2]):
                choice[i, level, a] = share / number if active[i, level, a] else 0.0
                if active[i, level, a] and (top < 0 or rank[i, level, a] > rank[i, level, top]):
                    top = a
            choice[i, level, top] += 1.0 - share


@fast
def refine(means, active, slack, refined):
    """The active action of largest mean (the first of equals); drops those more than ``slack``
    below it."""
    best = -1
    for a in range(active.size):
        if active[a] and (best < 0 or means[a] > means[best]):
            best = a
    for a in range(active.size):
        refined[a] = active[a] and means[a] >= means[best] - slack
    return best


@fast
def mixed_regret(instance, choice, lost):
    """Opt - V of a randomised Markov policy ``choice`` [H, k, A]; ``lost`` [H+1, k] is for work."""
    horizon, width, num_actions = choice.shape
    for i in range(horizon - 1, -1, -1):
        for level in range(width):
            lost[i, level] = 0.0
            for a in range(num_actions):
                total = instance.gap[i, level, a]
                for s in range(width):
                    total += instance.transition[i, level, a, s] * lost[i + 1, s]
                lost[i, level] += choice[i, level, a] * total
    return lost[0, instance.start]


@fast
def new_outcomes(horizon, width, most):
    """Room for the outcomes of every state under a randomised policy."""
    shape = (horizon, width, most)
    size = np.zeros((horizon, width), np.int64)
    return Outcomes(np.ones(shape), np.zeros(shape), np.zeros(shape, np.int64), size)


@fast
def merge(instance, choice, i, level, outcomes):
    """Outcomes of one state: those of all its actions weighted by ``choice``, equal ones put
    together."""
    cumulative, rewards = outcomes.cumulative[i, level], outcomes.reward[i, level]
    next_levels = outcomes.next_level[i, level]
    size = 0
    for a in range(choice.shape[2]):
        below = 0.0
        for m in range(instance.reward.shape[3]):
            weight = choice[i, level, a] * (instance.cumulative[i, level, a, m] - below)
            below = instance.cumulative[i, level, a, m]
            reward, next_level = (
                instance.reward[i, level, a, m],
                instance.next_level[i, level, a, m],
            )
            if weight <= 0.0:
                continue
            j = 0
            while j < size and (rewards[j] != reward or next_levels[j] != next_level):
                j += 1
            if j == size:
                rewards[j], next_levels[j], cumulative[j] = reward, next_level, 0.0
                size += 1
            cumulative[j] += weight
    for j in range(1, size):
        cumulative[j] += cumulative[j - 1]
    cumulative[size - 1 :] = 1.0
    outcomes.size[i, level] = size


@fast
def play(outcomes, start, num_episodes, random):
    """The summed reward of n episodes, every stage of every episode drawn."""
    last = 0
    for i in range(outcomes.size.shape[0]):
        for level in range(outcomes.size.shape[1]):
            last = max(last, outcomes.size[i, level] - 1)
    total = 0.0
    for _ in range(num_episodes):
        level = start
        for i in range(outcomes.size.shape[0]):
            u, m = uniform(random), 0
            for j in range(
                last
            ):  # counting all has no branch to mispredict, unlike stopping at a hit
                m += u >= outcomes.cumulative[i, level, j]
            total += outcomes.reward[i, level, m]
            level = outcomes.next_level[i, level, m]
            if level < 0:
                break
    return total


@fast
def policy_regret(instance, policy, lost):
    """Opt - V(policy), exactly: the expected sum of the gaps on its path; ``lost`` [H+1, k] is for
    work."""
    horizon, width, _ = instance.gap.shape
    for i in range(horizon - 1, -1, -1):
        for level in range(width):
            a = policy[i, level]
            total = instance.gap[i, level, a]
            for s in range(width):
                total += instance.transition[i, level, a, s] * lost[i + 1, s]
            lost[i, level] = total
    return lost[0, instance.start]


@fast
def first_state(seed):
    """The state of splitmix64, uint64 [1], for a seed."""
    return np.array([seed * _MIX1])


@fast
def uniform(random):
    """The next number in [0, 1) of splitmix64; ``random`` uint64 [1] is its state."""
    random[0] += _GOLDEN
    z = random[0]
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    z = z ^ (z >> _S31)
    return (z >> _S11) * (1.0 / 9007199254740992.0)
