"""Exact regrets of policies: the expected sum of gaps along their paths, by backward induction.

At a state where a policy is none the value is nan, and nan passes through every sum before it, so the regret of a policy
that is wrong anywhere is nan, whether or not the state is ever visited. (Level 0, where nothing matters, is left out.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce

import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.simulation import look
from jaxbandit.engines.episodes.world import MOST_LEVELS, EpisodeWorld
from jaxbandit.learner import TOLERANCE
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together
from jaxbandit.xla.platforms import active

TERMS = 4
"""Outcomes whose look-ups are written out; more are a loop."""


def deterministic_regret(world: EpisodeWorld, policies: Array, outcomes: int = 0) -> jax.Array:
    """Of policies int [E, k, H, W], level 0 left out, as float32 [E, W]; ``outcomes``: M, if they are looked up."""
    if outcomes:
        num_actions = world.gap.shape[2]
        wrong = jnp.any((policies < 0) | (policies >= num_actions), axis=(1, 2))
        tables = (world.gap, world.chance, world.next_level, world.row)
        tail = _of_outcomes(outcomes)(tables, policies)
        return jnp.where(wrong, jnp.nan, _from_start(world, tail))
    return _from_start(world, _of_actions(world.gap, world.transition, policies))


def _of_actions(gap: Array, transition: Array, policies: Array) -> jax.Array:
    """From every level, float32 [k, E, W]."""
    width = gap.shape[1]
    return (_summed if width < MOST_LEVELS else _multiplied)(gap, transition, policies)


def _chosen(played: Array, values: Callable[[int], Array], num_actions: int) -> jax.Array:
    """The values of the actions that are played; nan where none is."""
    value = jnp.full(played.shape, jnp.nan, jnp.float32)
    for a in range(num_actions):
        value = jnp.where(played == a, values(a), value)
    return value


@together
def _summed(gap: Array, transition: Array, policies: Array) -> jax.Array:
    """With few levels: sums written out."""
    width, num_actions = gap.shape[1:3]

    def back(tail, i):
        # Tables are looked up by the stage's number: handed over stage by stage they would be copied.
        def q(a):
            here = gap[i, :, a][:, None]
            for s in range(width):
                here = here + transition[i, :, a, s][:, None] * tail[s][None]
            return here

        return _chosen(jnp.moveaxis(policies[:, :, i], 0, 1), q, num_actions), None

    episodes, _, horizon, lanes = policies.shape
    tail = jnp.zeros((width, episodes, lanes), jnp.float32)
    stages = jnp.arange(horizon - 1, -1, -1, dtype=jnp.int32)
    return jax.lax.scan(back, tail, stages, unroll=horizon if active().straight else 1)[0]


def _multiplied(gap: Array, transition: Array, policies: Array) -> jax.Array:
    """With many: a matrix product per stage and lane, of all actions and episodes."""
    _, width, num_actions, lanes = gap.shape
    exact = jax.lax.Precision.HIGHEST

    def back(tail, stage):
        gap, transition, policies = stage
        ahead = jnp.einsum("lasw,sew->alew", transition, tail, precision=exact)
        q = jnp.moveaxis(gap, 1, 0)[:, :, None] + ahead
        return _chosen(jnp.moveaxis(policies, 0, 1), lambda a: q[a], num_actions), None

    tail = jnp.zeros((width, len(policies), lanes), jnp.float32)
    stages = (gap, transition, jnp.moveaxis(policies, 2, 0))
    return jax.lax.scan(back, tail, stages, reverse=True)[0]


def randomised_regrets(world: EpisodeWorld, policies: Array, outcomes: int = 0) -> jax.Array:
    """Of randomised policies float [E, H, k+1, A, W], as float32 [E, W].

    Where branches are free a policy that is the one before it in every lane is not evaluated again: block learners play
    one policy for many episodes.
    """
    if not active().branches:
        return jax.vmap(lambda policy: randomised_regret(world, policy, outcomes))(policies)

    def one(last, turn):
        policy, new = turn
        regret = jax.lax.cond(new, lambda: randomised_regret(world, policy, outcomes), lambda: last)
        return regret, regret

    new = jnp.any(_renewed(policies), axis=-1)
    last = jnp.zeros(policies.shape[-1:], jnp.float32)
    return jax.lax.scan(one, last, (policies, new))[1]


@separate
def _renewed(policies: Array) -> jax.Array:
    """bool [E, W]: whether a policy differs from the one before it; nan differs from nan. Lanes stay apart: a reduction
    of all axes is not vectorised."""
    differ = jnp.any(policies[1:] != policies[:-1], axis=(1, 2, 3))
    return jnp.concatenate([jnp.ones((1, differ.shape[1]), bool), differ])


def randomised_regret(world: EpisodeWorld, policy: Array, outcomes: int = 0) -> jax.Array:
    """Of a randomised policy float [H, k+1, A, W], as float32 [W]."""
    if outcomes:
        shares = policy[:, 1:]
        right = (jnp.min(shares, axis=2) >= 0) & (jnp.abs(jnp.sum(shares, axis=2) - 1) <= TOLERANCE)
        tables = (world.gap, world.chance, world.next_level, world.row)
        tail = _of_outcomes(outcomes)(tables, jnp.moveaxis(shares, (1, 2), (0, 1)))
        return jnp.where(jnp.all(right, axis=(0, 1)), _from_start(world, tail)[0], jnp.nan)
    tail = _of_probabilities(world.gap, world.transition, policy)
    return _from_start(world, tail[:, None])[0]


@together
def _of_probabilities(gap: Array, transition: Array, policy: Array) -> jax.Array:
    """From every level, float32 [k, W]."""
    width, num_actions = gap.shape[1:3]
    policy = policy[:, 1:]

    def back(tail, x):
        gap, transition, row = x
        value = jnp.zeros_like(tail)
        for a in range(num_actions):
            here = jnp.broadcast_to(gap[:, a], tail.shape)
            for s in range(width):
                here = here + transition[:, a, s] * tail[s][None]
            value = value + row[:, a] * here
        shares = [row[:, a] for a in range(num_actions)]
        low, total = reduce(jnp.minimum, shares), reduce(jnp.add, shares)
        # Written so that nan is wrong too.
        right = (low >= 0) & (jnp.abs(total - 1) <= TOLERANCE)
        return jnp.where(right, value, jnp.nan), None

    tail = jnp.zeros((width, *policy.shape[3:]), jnp.float32)
    unroll = policy.shape[0] if active().straight else 1
    steps = (gap, transition, policy)
    return jax.lax.scan(back, tail, steps, reverse=True, unroll=unroll)[0]


@cache
def _of_outcomes(num_outcomes: int):
    """From every level, float32 [k, E, W], by looking up where each outcome leads: H k A M rows of values and not H k^2 A.

    Of actions int [E, k, H, W] in range, or of probabilities float [k, A, H, W]. Episodes are the last axis inside: what
    is looked up is the same for all of them.
    """

    @together
    def tails(tables, policies):
        gap, chance, next_level, row = tables
        horizon, width, num_actions, lanes = gap.shape
        mixed = jnp.issubdtype(policies.dtype, jnp.floating)
        episodes = 1 if mixed else policies.shape[0]
        level = jnp.arange(1, width + 1, dtype=jnp.int32)[:, None]
        lane = jnp.arange(lanes, dtype=jnp.int32)[None]
        straight = active().straight

        def q(tail, i, a):
            """Of one action at every level, [k, W, E]."""
            index = row[i][None] + (level * num_actions + a) * num_outcomes

            def add(m, here):
                following = look(next_level, index + m) * lanes + lane
                return here + look(chance, index + m)[..., None] * look(tail, following)

            here = jnp.broadcast_to(gap[i, :, a][..., None], (width, lanes, episodes))
            unroll = num_outcomes if straight else min(num_outcomes, TERMS)
            return jax.lax.fori_loop(0, num_outcomes, add, here, unroll=unroll)

        def back(tail, i):
            if mixed:
                shares = [policies[:, a, i][..., None] for a in range(num_actions)]
                value = reduce(jnp.add, [x * q(tail, i, a) for a, x in enumerate(shares)])
            else:
                played = jnp.moveaxis(policies[:, :, i], 0, -1)
                value = _chosen(played, lambda a: q(tail, i, a), num_actions)
            return jnp.concatenate([tail[:lanes], value.reshape(-1, episodes)]), None

        stages = jnp.arange(horizon - 1, -1, -1, dtype=jnp.int32)
        tail = jnp.zeros(((width + 1) * lanes, episodes), jnp.float32)
        found = jax.lax.scan(back, tail, stages, unroll=horizon if straight else 1)[0]
        return jnp.moveaxis(found[lanes:].reshape(width, lanes, episodes), -1, 1)

    return tails


def _from_start(world: EpisodeWorld, tail: Array) -> jax.Array:
    """tail[start - 1] for tail [k, E, W]: float32 [E, W]."""
    value, wrong = tail[0], jnp.isnan(tail[0])
    for level in range(1, tail.shape[0]):
        value = jnp.where((world.start == level + 1)[None], tail[level], value)
        wrong = wrong | jnp.isnan(tail[level])
    return jnp.where(wrong, jnp.nan, value)
