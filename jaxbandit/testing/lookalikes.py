"""Episodes and MDPs that a feedback cannot tell apart: what a learner must not be able to
distinguish.

`jaxbandit.testing.conformance` uses them to show that nothing but the declared feedback reaches a
learner.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import Trajectory, num_segments, segment_bounds
from jaxbandit.mdp import MDP

WORD = np.uint32(2**31)
"""The random word of the coin of one-bit feedback: it shows 1 if the total exceeds one half."""


def play_episode(mdp: MDP, policy: np.ndarray, random: np.random.Generator) -> Trajectory:
    """One episode of a policy, int [H, k+1] or float [H, k+1, A], simulated on the host.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> play_episode(mdp, np.zeros((2, 3), int), np.random.default_rng(0)).actions.tolist()
        [0, 0]
    """
    prob, reward, target = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    level, rows = int(mdp.start), []
    for i in range(mdp.horizon):
        chosen = policy[i, level]
        a = (
            int(chosen)
            if policy.ndim == 2
            else int(random.choice(chosen.size, p=_normalised(chosen)))
        )
        m = int(random.choice(mdp.num_outcomes, p=_normalised(prob[i, level, a])))
        rows.append((level, a, reward[i, level, a, m], target[i, level, a, m]))
        level = int(target[i, level, a, m])
    levels, actions, rewards, next_levels = (
        np.asarray(column) for column in zip(*rows, strict=True)
    )
    whole, real = jnp.int32, jnp.result_type(float)
    return Trajectory(
        jnp.asarray(levels, whole), jnp.asarray(actions, whole), jnp.asarray(rewards, real),
        jnp.asarray(next_levels, whole),
    )  # fmt: skip


def twin_episode(kind: str, episode: Trajectory, mdp: MDP) -> Trajectory:
    """An episode that shows the same under this feedback and differs in the rest (semi-bandit shows
    all there is).

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> episode = play_episode(mdp, np.zeros((2, 3), int), np.random.default_rng(0))
        >>> twin_episode("bandit", episode, mdp).actions.tolist()
        [1, 1]
    """
    if kind == "semi-bandit":
        return episode
    rewards = jnp.zeros_like(episode.rewards)
    for first, end in segment_bounds(mdp.horizon, num_segments(kind) or 1):
        rewards = rewards.at[first].set(jnp.sum(episode.rewards[first:end]))
    if kind == "one-bit":  # another total for which the word gives the same bit
        rewards = jnp.where(rewards > 0.5, 1, 0).astype(rewards.dtype)
    moved = episode._replace(rewards=rewards, next_levels=mdp.width - episode.next_levels)
    if kind not in ("bandit", "one-bit"):
        return moved
    return moved._replace(
        levels=mdp.width - episode.levels, actions=mdp.num_actions - 1 - episode.actions
    )


def twin_mdps(kind: str, mdp: MDP) -> list[MDP]:
    """Two MDPs of that shape whose episodes show the same under this feedback, whatever is played.

    One bit and bandit: the first outcome of stage 1 pays nothing and all others pay 1; in the second MDP it
    leads to level 0 instead, and what is left at the last stage pays 1. Trajectory: 1 is paid at
    the first stage, or at the last; segments: the same within each. Semi-bandit: all outcomes are alike, and likely in different
    ways; levels never visited pay, or do not.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> [jb.mdp.largest_total(jb.validate(one)) for one in twin_mdps("trajectory", mdp)]
        [1.0, 1.0]
    """
    shape, real = np.shape(mdp.prob), np.asarray(mdp.prob).dtype
    horizon, levels, _, outcomes = shape
    stay = np.broadcast_to(np.arange(levels, dtype=np.int32)[None, :, None, None], shape)
    even = np.full(shape, 1 / outcomes, real)
    first, second = np.zeros(shape, real), np.zeros(shape, real)
    one = mdp._replace(prob=even, reward=first, next_level=stay)
    two = one._replace(reward=second)
    if kind in ("one-bit", "bandit") and horizon > 1:
        lucky = (np.arange(outcomes) > 0) | (outcomes == 1)
        first[0, 1:] = lucky
        second[-1, 1:] = 1
        moves = stay.copy()
        moves[0] = np.where(lucky, stay[0], 0)
        return [one, two._replace(next_level=moves)]
    if kind == "semi-bandit":
        first[0, 1:], second[0, int(mdp.start)] = 1, 1
        return [one, two._replace(prob=np.broadcast_to(np.eye(1, outcomes, dtype=real), shape))]
    bounds = segment_bounds(horizon, num_segments(kind) or 1)
    for start, end in bounds:
        first[start, 1:] = second[end - 1, 1:] = 1 / len(bounds)
    return [one, two]


def _normalised(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64)
    return row / row.sum()
