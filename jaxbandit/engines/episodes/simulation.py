"""One episode in every lane: the environment's side of the loop.

An episode is a chain: the level of a stage decides the outcome, and the outcome the level of the next stage. A CPU
follows it stage by stage in one kernel (`walking`). Where every link would be a kernel or several (`Platform.straight`)
the links are cut: where each level of each stage *would* lead is looked up for all of them at once, from the same random
word, and only then the path is followed, by selects. With `MOST_LEVELS` levels or more the chain is followed stage by
stage with tables that name any level.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.walking import column, look, walk
from jaxbandit.engines.episodes.world import MOST_LEVELS, EpisodeWorld
from jaxbandit.feedback import Trajectory
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import unit_float32

LINKS = 16
"""Stages that one kernel follows: it computes every link again for each of those after it."""


class Sizes(NamedTuple):
    """The static sizes."""

    horizon: int
    width: int
    num_actions: int
    num_outcomes: int


def simulate(sizes: Sizes, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """One episode in every lane, from words [H, W] (a randomised policy's actions take another H of them).

    An action that is none is played as the nearest one: what is no policy is told by its regret.
    """
    H, k, A = sizes[:3]
    if not jnp.issubdtype(policy.dtype, jnp.integer):
        policy = _draw_actions(policy, words[H : 2 * H])
    words = words[:H]
    # Levels first, stages and lanes as one axis: kernels over few lanes alone are not vectorised.
    flat = jnp.moveaxis(policy, 1, 0).reshape(k + 1, -1)
    if k < MOST_LEVELS and not active().straight:
        return walk(sizes, world, flat, words)
    if k < MOST_LEVELS:
        return _cut_chain(sizes, world, jnp.clip(flat, 0, A - 1), words)
    return _any_levels(sizes, world, jnp.clip(policy, 0, A - 1), words)


def _cut_chain(sizes: Sizes, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """The episode of a policy int32 [k+1, HW] of actions in range."""
    H, k, A, M = sizes
    row, flat = world.row.reshape(-1), words.reshape(-1)
    level = jnp.arange(1, k + 1, dtype=jnp.int32)[:, None]
    place, rest = column(flat, M)
    entry = look(world.route, row[None] + (level * A + policy[1:]) * M + place[None])
    own = rest[None] < (entry >> jnp.uint32(8))
    after = (jnp.where(own, entry >> jnp.uint32(4), entry) & jnp.uint32(15)).astype(jnp.int32)
    # At each level: where it leads (4 bits), which side of the column was drawn, and the action.
    would = after | (own.astype(jnp.int32) << 4) | (policy[1:] << 5)
    levels, path = (x.reshape(-1) for x in _follow(would.reshape(k, H, -1), world.start))
    actions = jnp.where(levels == 0, policy[0], path >> 5)
    side = 2 * (row + (levels * A + actions) * M + place) + ((path >> 4) & 1)
    return Trajectory(
        levels=levels.reshape(words.shape),
        actions=actions.reshape(words.shape),
        rewards=look(world.paid, side).reshape(words.shape),
        next_levels=(path & 15).reshape(words.shape),
    )


def _follow(would: Array, level: Array) -> tuple[jax.Array, jax.Array]:
    """The levels int32 [H, W] of the path, and what stands there in ``would`` [k, H, W]; 0 at level 0, which leads nowhere."""
    width, horizon = would.shape[:2]
    levels, path = [], []
    for i in range(horizon):
        here = jnp.zeros_like(level)
        for one in range(width):
            here = jnp.where(level == one + 1, would[one, i], here)
        levels.append(level)
        path.append(here)
        level = here & 15
        if (i + 1) % LINKS == 0:
            level = jax.lax.optimization_barrier(level)
    return jnp.stack(levels), jnp.stack(path)


def _any_levels(sizes: Sizes, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """The episode of a policy int32 [H, k+1, W] of actions in range, however many the levels: stage by stage."""
    A, M = sizes[2:]
    lanes = words.shape[1]
    lane = jnp.arange(lanes, dtype=jnp.int32)

    def step(level, stage):
        row, actions, word = stage
        action = look(actions.reshape(-1), level * lanes + lane)
        index = row + (level * A + action) * M
        place, rest = column(word, M)
        entry = look(world.alias, index + place)
        own = rest < (entry >> jnp.uint32(8))
        outcome = index + jnp.where(own, place, (entry & jnp.uint32(255)).astype(jnp.int32))
        following = look(world.next_level, outcome)
        return following, Trajectory(level, action, look(world.reward, outcome), following)

    unroll = sizes.horizon if active().straight else 1
    return jax.lax.scan(step, world.start, (world.row, policy, words), unroll=unroll)[1]


def _draw_actions(policy: Array, words: Array) -> jax.Array:
    """Actions int32 [H, k+1, W] of a randomised policy [H, k+1, A, W]; a stage's levels share its word."""
    num_actions = policy.shape[2]
    passed = policy[:, :, 0]
    # Not jnp.sum, which XLA hands to a library that is slow for a few numbers.
    total = reduce(jnp.add, [policy[:, :, a] for a in range(num_actions)])
    target = unit_float32(words)[:, None] * total
    action = jnp.zeros(passed.shape, jnp.int32)
    for a in range(1, num_actions):
        action = action + (target >= passed).astype(jnp.int32)
        passed = passed + policy[:, :, a]
    return action
