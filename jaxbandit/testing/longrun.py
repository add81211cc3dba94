"""A longer run of one lane in which every policy is looked at: learners go wrong late.

The simulation shares no code with the engines: an episode is a loop over stages that draws an
action and an outcome from their cumulative probabilities.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import Trajectory, observe
from jaxbandit.mdp import MDP
from jaxbandit.types import Array

TOLERANCE = 1e-5
"""Sums of probabilities may be off by so much."""


def first_wrong_policy(
    rules: Any, mdp: MDP, state: Any, constants: Any, key: Array, num_episodes: int
) -> str | None:
    """The first episode whose policy is none, with the place and what stands there; None if all
    are sound.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> def act(step, key, constants):                       # actions 0, 1, 2, 3: the last is none
        ...     return jnp.full((2, 2), step)
        >>> rules = jb.Learner(lambda *_: 0, act, lambda step, policy, feedback, constants: step + 1)
        >>> first_wrong_policy(rules, mdp, jnp.int32(0), (), jax.random.key(0), 10)
        'policy: episode 4, stage 1, level 0: action 3; accepted: 0..2'
    """
    plain = rules.rules
    tables = tuple(jnp.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level, mdp.start))

    def one(carry, t):
        state, found = carry
        chosen, drawn = jax.random.split(jax.random.fold_in(key, t))
        policy = plain.act(state, chosen, constants)
        wrong = _wrong(policy, mdp.num_actions)
        fresh = (found[0] < 0) & jnp.any(wrong)
        place = jnp.argmax(wrong.ravel()).astype(jnp.int32)
        entry = policy.reshape(wrong.size, -1)[place]
        found = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), (t, place, entry), found)
        episode = _simulate(tables, policy, drawn)
        word = jax.random.bits(jax.random.fold_in(drawn, 1))
        feedback = observe(rules.feedback, episode, word)
        return (plain.update(state, policy, feedback, constants), found), None

    shape = jax.eval_shape(plain.act, state, key, constants)
    width = mdp.num_actions if jnp.issubdtype(shape.dtype, jnp.floating) else 1
    nothing = (jnp.int32(-1), jnp.int32(0), jnp.zeros(width, shape.dtype))
    times = jnp.arange(num_episodes, dtype=jnp.int32)
    (_, found), _ = jax.jit(lambda carry: jax.lax.scan(one, carry, times))((state, nothing))
    episode, place, entry = (np.asarray(x) for x in found)
    if episode < 0:
        return None
    stage, level = divmod(int(place), mdp.width + 1)
    where = f"policy: episode {int(episode) + 1}, stage {stage + 1}, level {level}"
    if width == 1:
        return f"{where}: action {int(entry[0])}; accepted: 0..{mdp.num_actions - 1}"
    return f"{where}: {entry.tolist()}; accepted: probabilities >= 0 that sum to 1"


def _wrong(policy: Array, num_actions: int) -> jax.Array:
    """bool [H, k+1]: where a policy is none."""
    if jnp.issubdtype(policy.dtype, jnp.integer):
        return (policy < 0) | (policy >= num_actions)
    sums = jnp.abs(jnp.sum(policy, axis=-1) - 1) <= TOLERANCE
    return ~(jnp.all(policy >= 0, axis=-1) & sums)  # nan is wrong, too


def _simulate(tables: tuple[Array, ...], policy: Array, key: Array) -> Trajectory:
    """One episode; wherever an action is out of range it is clipped, so that nothing is read from
    elsewhere."""
    prob, reward, next_level, start = tables
    horizon, _, num_actions, _ = prob.shape
    coins = jax.random.uniform(key, (horizon, 2))

    def step(level, x):
        i, row, (first, second) = x
        action = row[level]
        if action.ndim:
            action = jnp.sum(jnp.cumsum(action) <= first * jnp.sum(action), dtype=jnp.int32)
        action = jnp.clip(action.astype(jnp.int32), 0, num_actions - 1)
        chances = prob[i, level, action]
        outcome = jnp.sum(jnp.cumsum(chances) <= second * jnp.sum(chances), dtype=jnp.int32)
        outcome = jnp.minimum(outcome, chances.size - 1)
        target = next_level[i, level, action, outcome].astype(jnp.int32)
        return target, (level, action, reward[i, level, action, outcome], target)

    stages = jnp.arange(horizon, dtype=jnp.int32)
    rows = (stages, policy, (coins[:, 0], coins[:, 1]))
    _, (levels, actions, rewards, targets) = jax.lax.scan(step, start.astype(jnp.int32), rows)
    return Trajectory(levels, actions, rewards, targets)
