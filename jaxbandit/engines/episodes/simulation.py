"""One episode in every lane: the environment's side of the loop.

An episode is a chain: the level of a stage decides the outcome, and the outcome the level of the next stage. A CPU
follows it stage by stage in one kernel. Where every link would be a kernel or several (`Platform.straight`) the links
are cut: where each level of each stage *would* lead is looked up for all of them at once, from the same random word,
and only then the path is followed, by selects. With `MOST_LEVELS` levels or more the chain is followed stage by stage
with tables that name any level.

On a CPU: A look-up in
the chain waits for the one before it, so with few levels (`AT_ONCE`) it is cut: where each level of each stage *would*
lead is looked up for all of them at once, from the same random word, and the path is followed by shifts in words that
hold the ways of a stage. With more levels a link is one loop over the lanes: the action at the level, the look-up of
where it leads, the next level.

Either way there is one number per stage and lane, from which everything else is unpacked for all stages at once.
Between kernels stages and lanes are one axis [HW]: XLA vectorises long loops only, and cuts an index of two axes out
of one the slow way."""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.world import MOST_LEVELS, EpisodeWorld
from jaxbandit.feedback import Trajectory
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import unit_float32

CUT_LINKS = 16
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
        if (i + 1) % CUT_LINKS == 0:
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
        return look(world.next_level, outcome), outcome

    # One number a stage: what else happened is looked up for all stages at once, which is much quicker on a CPU.
    unroll = sizes.horizon if active().straight else 1
    outcomes = jax.lax.scan(step, world.start, (world.row, policy, words), unroll=unroll)[1]
    following = look(world.next_level, outcomes)
    levels = jnp.concatenate([world.start[None], following[:-1]])
    actions = (outcomes - world.row) // M - levels * A
    return Trajectory(levels, actions, look(world.reward, outcomes), following)


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
