"""The path of an episode, followed stage by stage in one kernel: how a CPU does it.

An episode is a chain: the level of a stage decides the outcome, and the outcome the level of the next stage. A look-up in
the chain waits for the one before it, so with few levels (`AT_ONCE`) it is cut: where each level of each stage *would*
lead is looked up for all of them at once, from the same random word, and the path is followed by shifts in words that
hold the ways of a stage. With more levels a link is one loop over the lanes: the action at the level, the look-up of
where it leads, the next level.

Either way there is one number per stage and lane, from which everything else is unpacked for all stages at once. Between
kernels stages and lanes are one axis [HW]: XLA vectorises long loops only, and cuts an index of two axes out of one the
slow way.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.world import EpisodeWorld
from jaxbandit.feedback import Trajectory
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together

AT_ONCE = 4
"""Levels from 1 on up to which all are looked up at once; 4 bits for each, and for level 0, fit in a word of 32."""
LINKS = 5
"""Stages that are followed in one kernel: it computes every link again for each of those after it."""


def walk(sizes: Any, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """The episode [H, W] of a policy int32 [k+1, HW], from words [H, W]."""
    shape = words.shape
    found = _walk(sizes)(
        world.route, world.paid, world.row.reshape(-1), world.start, policy, words.reshape(-1)
    )
    return Trajectory(*(x.reshape(shape) for x in found))


@cache
def _walk(sizes: Any):
    _, k, A, M = sizes
    path_of = _all_levels(sizes) if k <= AT_ONCE else _one_level(sizes)

    @separate
    def side(packed, row, words):
        """Where the rewards of both sides begin, and the side [HW]."""
        level, own, action = packed & 15, (packed >> 8) & 15, packed >> 12
        return 2 * (row + (level * A + action) * M + column(words, M)[0]) + own

    @together
    def walked(route, paid, row, start, policy, words):
        path = path_of(route, row, start, policy, words)
        rewards = separate(look)(paid, side(path, row, words))
        return path & 15, path >> 12, rewards, (path >> 4) & 15

    return walked


# Both ways to the path give packed numbers [HW]: level, next level, side of the column (4 bits each), action.


def _one_level(sizes: Any):
    """Link after link."""
    H, _, A, M = sizes

    @separate
    def link(before, route, row, policy, words, i):
        """The packed number [W] of stage i."""
        lanes = before.shape[0]

        def here(x):
            return jax.lax.dynamic_slice_in_dim(x, i * lanes, lanes, axis=-1)

        level = (before >> 4) & 15
        action = jnp.clip(at_level(here(policy), level), 0, A - 1)
        place, rest = column(here(words), M)
        entry = look(route, here(row) + (level * A + action) * M + place)
        return packed(level, entry, rest, action)

    def path_of(route, row, start, policy, words):
        def step(i, carry):
            here, path = carry
            here = link(here, route, row, policy, words, i)
            at = i * start.shape[0]
            return here, jax.lax.dynamic_update_slice_in_dim(path, here, at, axis=0)

        carry = (start << 4, jnp.zeros(row.shape, jnp.int32))
        return jax.lax.fori_loop(0, H, step, carry)[1]

    return path_of


def _all_levels(sizes: Any):
    """What every level would lead to first."""
    H, _, A, M = sizes

    def levels_of(policy):
        return jnp.arange(1, policy.shape[0], dtype=jnp.int32)[:, None]

    @separate
    def everywhere(row, policy, words):
        """The column that is drawn at each level from 1 on [k, HW]."""
        action = jnp.clip(policy[1:], 0, A - 1)
        return row[None] + (levels_of(policy) * A + action) * M + column(words, M)[0][None]

    @separate
    def lead(entry, policy, words):
        """The packed numbers of each level from 1 on [k, HW]."""
        action = jnp.clip(policy[1:], 0, A - 1)
        return packed(levels_of(policy), entry, column(words, M)[1][None], action)

    @separate
    def ways_of(would):
        """The next levels of all levels [HW], 4 bits each; level 0 leads nowhere else."""
        ways = [((x >> 4) & 15) << 4 * level for level, x in enumerate(would, 1)]
        return reduce(jnp.bitwise_or, ways)

    @separate
    def chosen(levels, would, policy):
        """The packed numbers of the levels [HW]."""
        found = jnp.clip(policy[0], 0, A - 1) << 12
        for level, x in enumerate(would, 1):
            found = jnp.where(levels == level, x, found)
        return found

    def path_of(route, row, start, policy, words):
        index = everywhere(row, policy, words)
        # The look-ups alone in one kernel: with arithmetic beside them XLA vectorises neither.
        entry = separate(look)(route, index.reshape(-1)).reshape(index.shape)
        would = lead(entry, policy, words)
        ways, lanes = ways_of(would), start.shape[0]
        level, levels = start, [start]
        for first in range(0, H - 1, LINKS):
            last = min(first + LINKS, H - 1)
            found = _links(last - first)(level, ways[first * lanes : last * lanes])
            levels.append(found.reshape(-1))
            level = found[-1]
        return chosen(_in_order(*levels), would, policy)

    return path_of


@cache
def _links(count: int):
    """The levels int32 [count, W] after some stages, from the level [W] before them and their ways [count * W]."""

    @separate
    def links(level, ways):
        row = jnp.arange(count, dtype=jnp.int32)[:, None]
        found = jnp.broadcast_to(level[None], (count, *level.shape))
        # One select over all stages, not one stage after the other: XLA vectorises a loop only if much is done in it.
        for i, way in enumerate(ways.reshape(count, -1)):
            level = jax.lax.shift_right_logical(way, level << 2) & 15
            found = jnp.where(row >= i, level[None], found)
        return found

    return links


@separate
def _in_order(*pieces: Array) -> Array:
    return jnp.concatenate(pieces)


def packed(level: Array, entry: Array, rest: Array, action: Array) -> jax.Array:
    """The packed numbers of levels, where ``rest`` picks the side of the columns ``entry`` of `EpisodeWorld.route`."""
    own = rest < (entry >> jnp.uint32(8))
    after = jnp.where(own, entry >> jnp.uint32(4), entry) & jnp.uint32(15)
    return level | (after.astype(jnp.int32) << 4) | (own.astype(jnp.int32) << 8) | action << 12


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
