"""Episodes and MDPs that a feedback cannot tell apart: what a learner must not be able to
distinguish.

`jaxbandit.testing.conformance` uses them to show that nothing but the declared feedback reaches a
learner.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import Trajectory, observe, segment_bounds
from jaxbandit.mdp import MDP
from jaxbandit.testing.trees import differing

WORD = np.uint32(2**31)
"""The random bits of feedback that draws: the coin of "one-bit" shows 1 if the total exceeds one half."""


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
    """An episode that shows the same under this feedback and differs in the rest, as far as there is any.

    Every change of a field that the feedback does not notice is made; of the ways to move rewards
    between stages, the first.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> episode = play_episode(mdp, np.zeros((2, 3), int), np.random.default_rng(0))
        >>> twin_episode("bandit", episode, mdp).actions.tolist()
        [1, 1]
    """
    rewards = episode.rewards
    moved = [jnp.zeros_like(rewards).at[0].set(jnp.round(jnp.sum(rewards)))]
    for count in range(1, mdp.horizon):
        collected = jnp.zeros_like(rewards)
        for first, end in segment_bounds(mdp.horizon, count):
            collected = collected.at[first].set(jnp.sum(rewards[first:end]))
        moved.append(collected)
    changes = {
        "levels": [mdp.width - episode.levels],
        "actions": [mdp.num_actions - 1 - episode.actions],
        "next_levels": [mdp.width - episode.next_levels],
        "rewards": moved,
    }
    shown, twin = observe(kind, episode, WORD), episode
    for field, values in changes.items():
        for value in values:
            tried = twin._replace(**{field: value})
            if differing(observe(kind, tried, WORD), shown) is None:
                twin = tried
                break
    return twin


def twin_mdps(mdp: MDP) -> list[MDP]:
    """Two MDPs of that shape whose episodes are the same whatever is played, so that no feedback tells them apart.

    All outcomes are alike, and likely in different ways; levels never visited pay, or do not.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> [jb.mdp.largest_total(jb.validate(one)) for one in twin_mdps(mdp)]
        [1.0, 1.0]
    """
    shape, real = np.shape(mdp.prob), np.asarray(mdp.prob).dtype
    _, levels, _, outcomes = shape
    stay = np.broadcast_to(np.arange(levels, dtype=np.int32)[None, :, None, None], shape)
    first, second = np.zeros(shape, real), np.zeros(shape, real)
    first[0, 1:], second[0, int(mdp.start)] = 1, 1
    one = mdp._replace(prob=np.full(shape, 1 / outcomes, real), reward=first, next_level=stay)
    sure = np.broadcast_to(np.eye(1, outcomes, dtype=real), shape)
    return [one, one._replace(prob=sure, reward=second)]


def _normalised(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64)
    return row / row.sum()
