"""What the count machine computes, in plain words: one binomial draw per split, arm by arm, in NumPy.

Nothing is packed, pooled, passed over or run side by side: slow, short, and what the tests compare `counts` with.
"""

from __future__ import annotations

import numpy as np

from jaxbandit.engines.tables import normalised_prob
from jaxbandit.mdp import MDP


def push_policy(mdp: MDP, policy: np.ndarray, episodes: int, random: np.random.Generator) -> float:
    """The sum of the total rewards of n episodes of a randomised policy float [H, k+1, A].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=2)   # values 0 and 1
        >>> policy = np.broadcast_to([1.0, 0.0], (3, 2, 2))                                  # takes the first 1
        >>> round(push_policy(mdp, policy, 10**6, np.random.default_rng(0)) / 10**6, 2)      # 1 - 1/8
        0.88
    """
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    next_level = np.asarray(mdp.next_level)
    here, total = np.zeros(mdp.width + 1, np.int64), 0.0
    here[int(mdp.start)] = episodes
    for i in range(mdp.horizon):
        there = np.zeros_like(here)
        for level in range(1, mdp.width + 1):
            weight = (policy[i, level, :, None] * prob[i, level]).ravel()
            rest = weight[::-1].cumsum()[::-1]  # of this outcome and all after it
            left = here[level]
            for j in np.flatnonzero(weight):
                # Of those that saw none of the outcomes before, so many see this one.
                count = random.binomial(left, min(weight[j] / rest[j], 1.0))
                total += count * reward[i, level].flat[j]
                there[next_level[i, level].flat[j]] += count
                left -= count
        here = there
    return float(total)


def mean_reward(mdp: MDP, policy: np.ndarray) -> float:
    """The exact mean of one episode: the same splits, with shares in place of draws.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=2)
        >>> mean_reward(mdp, np.broadcast_to([1.0, 0.0], (3, 2, 2)))
        0.875
    """
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    here, total = np.eye(mdp.width + 1)[int(mdp.start)], 0.0
    for i in range(mdp.horizon):
        share = here[:, None, None] * np.asarray(policy[i])[..., None] * prob[i]
        share[0] = 0
        total += float((share * reward[i]).sum())
        here = np.bincount(np.ravel(mdp.next_level[i]), share.ravel(), mdp.width + 1)
    return total
