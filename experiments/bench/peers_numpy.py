"""The NumPy peers of ``jaxbandit bench``, and the tables that all peers share.

Plain vectorised code, one run after the other, as people write it. Level l = 1..k of the MDP is
index l - 1 here, and index -1 is "exhausted"; everything is float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.types import Array


class Tables(NamedTuple):
    """An instance as plain arrays, the exhausted level dropped."""

    cumulative: Array
    """float [H, k, A, M]: cumulative outcome probabilities; exactly 1 from the last possible
    outcome on."""
    reward: Array
    """float [H, k, A, M]."""
    next_level: Array
    """int [H, k, A, M]: index of the next level; -1 is exhausted."""
    transition: Array
    """float [H, k, A, k]: dense kernel between the levels that are not exhausted."""
    gap: Array
    """float [H, k, A]: Opt - Q*, what one action loses."""
    rank: Array
    """int [H, k, A]: the known order (zeros for an unordered MDP)."""
    start: int
    """Index of the first level."""


class Schedule(NamedTuple):
    """All that tells one ExpRef from another."""

    episodes: Array
    """int [R]: episodes per (stage, level, action) in each phase."""
    slack: Array
    """float [R, H, k]: C_{l,i} eps, how far below the best an action may be and stay."""
    uniform_share: float
    """Probability of exploring uniformly: 1 for ExpRef, k / (2 H) for OrderedExpRef."""


def tables(mdp: Any) -> Tables:
    """The tables of an MDP, with the gaps from a backward induction of their own.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> tables(mdp).transition.shape
        (3, 2, 4, 2)
    """
    prob, reward = (np.array(x[:, 1:], np.float64) for x in (mdp.prob, mdp.reward))
    prob /= prob.sum(-1, keepdims=True)
    next_level = np.array(mdp.next_level[:, 1:], np.int64) - 1
    width = prob.shape[1]
    transition = (prob[..., None] * (next_level[..., None] == np.arange(width))).sum(-2)
    gap = np.zeros(prob.shape[:3])
    tail = np.zeros(width)
    for i in reversed(range(prob.shape[0])):
        q = (prob[i] * reward[i]).sum(-1) + transition[i] @ tail
        tail = q.max(-1)
        gap[i] = tail[:, None] - q
    cumulative = prob.cumsum(-1)
    cumulative[cumulative >= cumulative[..., -1:]] = 1.0
    rank = (
        np.zeros(prob.shape[:3], np.int64)
        if mdp.rank is None
        else np.array(mdp.rank[:, 1:], np.int64)
    )
    return Tables(
        cumulative=cumulative,
        reward=reward,
        next_level=next_level,
        transition=transition,
        gap=gap,
        rank=rank,
        start=int(mdp.start) - 1,
    )


def schedule(
    instance: Tables,
    num_episodes: int,
    *,
    ordered: bool = False,
    episodes_scale: float = 1.0,
    threshold_scale: float = 1.0,
    threshold: float | None = None,
    first_epsilon: float = 1.0,
    ratio: float = 0.5,
    num_phases: float = math.inf,
    exploration_scale: float = 0.5,
) -> Schedule:
    """The phases of ExpRef or OrderedExpRef; by default with the constants of the theorems.

    eps = first, first * ratio, ... while eps > sqrt(H k A ln T / T), at most ``num_phases`` times;
    n = ceil(12 scale ln T / eps^2); C_{l,i} as in the paper, or the constant ``threshold``. If
    ordered, exploration is uniform with probability min(1, c k / H), c = ``exploration_scale``.

    Example:
        >>> import jaxbandit as jb
        >>> instance = tables(jb.make_instance("prophet-uniform", horizon=15, capacity=2, num_values=5))
        >>> schedule(instance, 2_000_000).episodes
        array([  175,   697,  2786, 11143, 44571])
    """
    horizon, width, num_actions = instance.gap.shape
    log = math.log(num_episodes)
    least = math.sqrt(horizon * width * num_actions * log / num_episodes)
    epsilons = [first_epsilon]
    while epsilons[-1] > least and len(epsilons) <= num_phases:
        epsilons.append(first_epsilon * ratio ** len(epsilons))
    eps = np.array(epsilons[:-1])
    left = np.arange(horizon, 0.0, -1.0)[:, None]  # H - i + 1
    level = np.arange(1.0, width + 1.0)[None, :]
    constants = left * (num_actions * width) ** (left - 1) + 0 * level
    if ordered:
        grow = np.exp((left - 1) * width / horizon)
        constants = grow * (2 * num_actions * horizon / width) ** (level - 1) * left**level
    constants = (
        threshold_scale * constants if threshold is None else np.full((horizon, width), threshold)
    )
    share = min(exploration_scale * width / horizon, 1.0) if ordered else 1.0
    episodes = np.ceil(12 * episodes_scale * log / eps**2).astype(np.int64)
    return Schedule(episodes, constants * eps[:, None, None], share)


def log_term(instance: Tables, num_episodes: int) -> float:
    """L = ln(5 k A H T / delta) of UCB-VI's bonus, with delta = 1 / T."""
    return math.log(5 * instance.gap.size) + 2 * math.log(num_episodes)


def ucbvi(
    instance: Tables, num_episodes: int, points: Array, seeds: Array, *, bonus_scale: float = 1.0
) -> np.ndarray:
    """UCB-VI, vectorised over the levels and actions of a stage: exact regret [S, W] at ``points``
    [W].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> ucbvi(tables(mdp), 50, [25, 50], seeds=[0]).shape
        (1, 2)
    """
    return np.stack([_ucbvi_run(instance, num_episodes, points, s, bonus_scale) for s in seeds])


def _ucbvi_run(instance, num_episodes, points, seed, bonus_scale):
    horizon, width, num_actions = instance.gap.shape
    rng = np.random.default_rng(seed)
    log = log_term(instance, num_episodes)
    count, reward = np.zeros((2, horizon, width, num_actions))
    moves = np.zeros((horizon, width, num_actions, width))
    q = np.ones((horizon, width, num_actions))
    regret = np.zeros(num_episodes)
    for t in range(num_episodes):
        visits = np.maximum(count, 1)
        optimistic = reward / visits + bonus_scale * np.sqrt(log / visits)
        estimate = moves / visits[..., None]
        tail = np.zeros(width)
        for i in reversed(range(horizon)):
            q[i] = np.where(count[i] > 0, np.minimum(optimistic[i] + estimate[i] @ tail, 1), 1)
            tail = q[i].max(-1)
        policy = q.argmax(-1)
        regret[t] = policy_regret(instance, policy)
        level = instance.start
        for i, u in enumerate(rng.random(horizon)):
            a = policy[i, level]
            m = np.searchsorted(instance.cumulative[i, level, a], u, side="right")
            following = instance.next_level[i, level, a, m]
            count[i, level, a] += 1
            reward[i, level, a] += instance.reward[i, level, a, m]
            if following < 0:
                break
            moves[i, level, a, following] += 1
            level = following
    return regret.cumsum()[np.asarray(points) - 1]


def policy_regret(instance: Tables, policy: Array) -> float:
    """Opt - V of a deterministic policy, int [H, k], exactly: the expected sum of the gaps on its
    path."""
    gap = np.take_along_axis(instance.gap, policy[..., None], 2)[..., 0]
    transition = np.take_along_axis(instance.transition, policy[..., None, None], 2)[:, :, 0]
    tail = np.zeros(gap.shape[1])
    for i in reversed(range(gap.shape[0])):
        tail = gap[i] + transition[i] @ tail
    return tail[instance.start]


def expref(
    instance: Tables, num_episodes: int, points: Array, seeds: Array, plan: Schedule
) -> np.ndarray:
    """ExpRef by its `Schedule`, the episodes of a block simulated side by side: exact regret [S,
    W].

    Example:
        >>> import jaxbandit as jb
        >>> instance = tables(jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4))
        >>> expref(instance, 20_000, [20_000], [0], schedule(instance, 20_000)).shape
        (1, 1)
    """
    rngs = (np.random.default_rng(s) for s in seeds)
    return np.stack([_expref_run(instance, num_episodes, points, rng, plan) for rng in rngs])


def _expref_run(instance, num_episodes, points, rng, plan):
    horizon, width, num_actions = instance.gap.shape
    active = np.ones((horizon, width, num_actions), bool)
    best = np.zeros((horizon, width), np.int64)
    ends, totals = [0], [0.0]  # corners of the regret curve, which is linear within a block

    def spend(choice, wanted):
        n = min(wanted, num_episodes - ends[-1])
        totals.append(totals[-1] + n * mixed_regret(instance, choice))
        ends.append(ends[-1] + n)
        return n

    for n, slack in zip(plan.episodes, plan.slack, strict=True):
        top = np.where(active, instance.rank, -1).argmax(-1)
        choice = plan.uniform_share * active / active.sum(-1, keepdims=True)
        choice += (1 - plan.uniform_share) * np.eye(num_actions)[top]
        refined = active.copy()
        for i in reversed(range(horizon)):
            for level in reversed(range(width)):
                means = np.full(num_actions, -np.inf)
                for a in np.flatnonzero(active[i, level]):
                    arm = choice.copy()
                    arm[i, level] = np.eye(num_actions)[a]
                    done = spend(arm, n)
                    means[a] = play(instance, arm, done, rng) / n
                    if ends[-1] == num_episodes:
                        return np.interp(points, ends, totals)
                best[i, level] = means.argmax()
                refined[i, level] = means >= means.max() - slack[i, level]
            choice[i] = np.eye(num_actions)[best[i]]
        active = refined
    spend(np.eye(num_actions)[best], num_episodes)
    return np.interp(points, ends, totals)


def mixed_regret(instance: Tables, choice: Array) -> float:
    """Opt - V of a randomised Markov policy, float [H, k, A]."""
    tail = np.zeros(choice.shape[1])
    for i in reversed(range(choice.shape[0])):
        tail = (choice[i] * (instance.gap[i] + instance.transition[i] @ tail)).sum(-1)
    return tail[instance.start]


def play(instance: Tables, choice: Array, num_episodes: int, rng: np.random.Generator) -> float:
    """The summed reward of n episodes of a randomised policy, stage by stage, all running ones at
    once."""
    cumulative = choice.cumsum(-1)
    cumulative[..., -1] = 1.0
    level = np.full(num_episodes, instance.start)
    total = 0.0
    for i in range(choice.shape[0]):
        u = rng.random((2, level.size))
        a = (u[0, :, None] >= cumulative[i, level]).sum(-1)
        m = (u[1, :, None] >= instance.cumulative[i, level, a]).sum(-1)
        total += instance.reward[i, level, a, m].sum()
        level = instance.next_level[i, level, a, m]
        level = level[level >= 0]
    return total
