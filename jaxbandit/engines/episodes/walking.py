"""The path of an episode, followed stage by stage in one kernel: how a CPU does it.

A link of the chain is one loop over the lanes: the action at the level, the look-up of where it leads, the next level.
It leaves one number per stage and lane, from which everything else is unpacked for all stages at once. Between kernels
stages and lanes are one axis [HW]: XLA vectorises long loops only, and cuts an index of two axes out of one the slow way.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.world import EpisodeWorld
from jaxbandit.feedback import Trajectory
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together


def walk(sizes: Any, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """The episode [H, W] of a policy int32 [k+1, HW], from words [H, W]."""
    shape = words.shape
    found = _walk(sizes)(
        world.route, world.paid, world.row.reshape(-1), world.start, policy, words.reshape(-1)
    )
    return Trajectory(*(x.reshape(shape) for x in found))


@cache
def _walk(sizes: Any):
    H, _, A, M = sizes

    @separate
    def link(before, route, row, policy, words, i):
        """The packed number [W] of stage i: level, next level, side of the column (4 bits each), action."""
        lanes = before.shape[0]

        def here(x):
            return jax.lax.dynamic_slice_in_dim(x, i * lanes, lanes, axis=-1)

        level = (before >> 4) & 15
        action = jnp.clip(at_level(here(policy), level), 0, A - 1)
        place, rest = column(here(words), M)
        entry = look(route, here(row) + (level * A + action) * M + place)
        own = rest < (entry >> jnp.uint32(8))
        after = jnp.where(own, entry >> jnp.uint32(4), entry) & jnp.uint32(15)
        return level | (after.astype(jnp.int32) << 4) | (own.astype(jnp.int32) << 8) | action << 12

    @separate
    def side(packed, row, words):
        """Where the rewards of both sides begin, and the side [HW]."""
        level, own, action = packed & 15, (packed >> 8) & 15, packed >> 12
        return 2 * (row + (level * A + action) * M + column(words, M)[0]) + own

    @together
    def walked(route, paid, row, start, policy, words):
        def step(i, carry):
            packed, path = carry
            packed = link(packed, route, row, policy, words, i)
            at = i * start.shape[0]
            return packed, jax.lax.dynamic_update_slice_in_dim(path, packed, at, axis=0)

        carry = (start << 4, jnp.zeros(row.shape, jnp.int32))
        _, path = jax.lax.fori_loop(0, H, step, carry)
        rewards = separate(look)(paid, side(path, row, words))
        return path & 15, path >> 12, rewards, (path >> 4) & 15

    return walked


def column(words: Array, num_outcomes: int) -> tuple[jax.Array, jax.Array]:
    """The column of an alias table that a word picks, and 24 bits that pick its side."""
    place = (words >> jnp.uint32(8)) * jnp.uint32(num_outcomes)
    return (place >> jnp.uint32(24)).astype(jnp.int32), place & jnp.uint32(0xFFFFFF)


def at_level(row: Array, level: Array) -> jax.Array:
    """row[level] with levels in front: row [k+1, ..., W], level [..., W]."""
    value = row[0]
    for one in range(1, row.shape[0]):
        value = jnp.where(level == one, row[one], value)
    return value


def look(table: Array, index: Array) -> jax.Array:
    """table[index], all of them in bounds."""
    return table.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)
