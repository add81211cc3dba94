"""UCB1 and Thompson sampling as Numba loops: the peers of `jaxbandit bench` on K arms with rewards of 0 and 1.

They share no code with jaxbandit. Thompson's Beta draws are Numba's, of NumPy's generator.
"""

from __future__ import annotations

import numpy as np

from jaxbandit.types import Array

from .peers_expref import fast, first_state, over_seeds, uniform
from .peers_numpy import Tables


def bandit(
    learner: str,
    instance: Tables,
    num_episodes: int,
    points: Array,
    seeds: Array,
    *,
    threads: int = 1,
) -> np.ndarray:
    """Cumulative exact regret [S, W] of "ucb1" or "thompson" (uniform priors) at episodes ``points`` [W].

    Example:
        >>> import jaxbandit as jb
        >>> from .peers_numpy import tables
        >>> arms = tables(jb.make_instance("bandit", means=[0.2, 0.8]))
        >>> [bool(bandit(name, arms, 500, [500], [0])[0, 0] < 60) for name in ("ucb1", "thompson")]
        [True, True]
    """
    run = {"ucb1": _ucb1_run, "thompson": _thompson_run}[learner]
    gap = np.asarray(instance.gap[0, 0], np.float64)
    means = (np.diff(instance.cumulative[0, 0], prepend=0) * instance.reward[0, 0]).sum(-1)
    return over_seeds(run, (gap, means, num_episodes), points, seeds, (), threads)


@fast
def _ucb1_run(gap, means, num_episodes, points, seed, regret):
    random = first_state(seed)
    count, won = np.zeros(gap.size), np.zeros(gap.size)
    total, point = 0.0, 0
    for t in range(num_episodes):
        arm, best = t, -1.0
        if t >= gap.size:
            width = 2 * np.log(t)
            for a in range(gap.size):
                index = won[a] / count[a] + np.sqrt(width / count[a])
                if index > best:
                    arm, best = a, index
        total += gap[arm]
        count[arm] += 1
        won[arm] += uniform(random) < means[arm]
        if t + 1 == points[point]:
            regret[point] = total
            point += 1


@fast
def _thompson_run(gap, means, num_episodes, points, seed, regret):
    np.random.seed(np.uint32(seed))
    random = first_state(seed)
    lost, won = np.ones(gap.size), np.ones(gap.size)
    total, point = 0.0, 0
    for t in range(num_episodes):
        arm, best = 0, -1.0
        for a in range(gap.size):
            drawn = np.random.beta(won[a], lost[a])
            if drawn > best:
                arm, best = a, drawn
        total += gap[arm]
        paid = uniform(random) < means[arm]
        won[arm] += paid
        lost[arm] += not paid
        if t + 1 == points[point]:
            regret[point] = total
            point += 1
