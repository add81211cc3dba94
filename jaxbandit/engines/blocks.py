"""The block engine: a learner in block form, block after block, with exact regrets and exact-in-law sums.

The regret of an arm is its number of episodes times an exactly known number, and its rewards are summed by pushing counts
through the stages (`counts.push_arms`), so a run costs a number of blocks, not of episodes. Everything is float64 (whole
numbers are exact to 2^53) and needs x64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines.counts import push_arms
from jaxbandit.engines.outcomes import Outcomes, merge_outcomes, splits
from jaxbandit.engines.threefry import fold_in
from jaxbandit.learners.base import Blocks

__all__ = ["Outcomes", "Progress", "World", "advance", "arm_regrets", "merge_outcomes", "push_arms", "splits"]

Array = Any


class World(NamedTuple):
    """What the engine knows of the MDPs of G groups."""

    outcomes: Outcomes
    gap: Array
    """float64 [G, H, k+1, A]: Opt_{l,i} - Q*_{l,i}(a)."""
    transition: Array
    """float64 [G, H, k+1, A, k+1]."""


def arm_regrets(gap: Array, transition: Array, start: Array, blocks: Blocks) -> jax.Array:
    """Exact regret per episode of every arm of one lane, float64 [B], from one pass forward and one backward."""
    H, levels = gap.shape[:2]
    cost = jnp.sum(blocks.policy * gap, axis=-1)
    move = sum(blocks.policy[:, :, a, None] * transition[:, :, a] for a in range(gap.shape[2]))

    def forward(visits, x):
        cost, move = x
        return jnp.sum(visits[:, None] * move, axis=0), (visits, jnp.sum(visits * cost))

    def backward(tail, x):
        cost, move = x
        return cost + jnp.sum(move * tail[None], axis=-1), tail

    begin = (jnp.arange(levels, dtype=jnp.int32) == start).astype(gap.dtype)
    _, (visits, paid) = jax.lax.scan(forward, begin, (cost, move))
    _, tails = jax.lax.scan(backward, jnp.zeros(levels, gap.dtype), (cost, move), reverse=True)
    before = jnp.sum(jnp.where(jnp.arange(H, dtype=jnp.int32) < blocks.stage, paid, 0))
    ahead = gap[blocks.stage] + jnp.sum(transition[blocks.stage] * tails[blocks.stage][None, None], axis=-1)
    value = visits[blocks.stage][:, None] * ahead
    return before + jnp.sum(blocks.rows * value[None], axis=(1, 2))


class Progress(NamedTuple):
    """Where each lane stands; leaves [G, S, ...]."""

    state: Any
    """The learner's."""
    played: Array
    """float64: episodes so far, at most T."""
    block: Array
    """uint32: blocks so far, the counter of the block's key."""
    curve: Array
    """float64 [G, S, W]: cumulative regret after each recorded number of episodes, as far as played."""


def advance(
    form: Any,
    world: World,
    keys: tuple[Array, Array],
    points: Array,
    num_episodes: Array,
    steps: Array,
    progress: Progress,
) -> Progress:
    """At most ``steps`` blocks in every lane; lanes that have played T episodes stay as they are."""
    next_block = jax.vmap(jax.vmap(form.next_block))
    absorb = jax.vmap(jax.vmap(form.absorb))
    regrets = jax.vmap(jax.vmap(arm_regrets, (None, None, None, 0)))

    def one(carry):
        count, p = carry
        blocks = next_block(p.state)
        begin = p.played[..., None] + jnp.cumsum(blocks.episodes, -1) - blocks.episodes
        length = jnp.clip(num_episodes - begin, 0, blocks.episodes)
        per_episode = regrets(world.gap, world.transition, world.outcomes.start, blocks)
        inside = jnp.clip(points[None, None, None] - begin[..., None], 0, length[..., None])
        curve = p.curve + jnp.sum(per_episode[..., None] * inside, axis=2)
        end = p.played + jnp.sum(blocks.episodes, -1)
        # A block that T cuts short is never absorbed, so its sums are not needed.
        whole = (end <= num_episodes) & (p.played < num_episodes)
        lane_keys = fold_in(keys, p.block)
        totals = push_arms(world.outcomes, blocks, jnp.where(whole[..., None], blocks.episodes, 0), lane_keys)
        state = absorb(p.state, blocks.episodes, totals)
        state = jax.tree.map(
            lambda new, old: jnp.where(whole.reshape(whole.shape + (1,) * (new.ndim - 2)), new, old), state, p.state
        )
        return count + 1, Progress(state, jnp.minimum(end, num_episodes), p.block + jnp.uint32(1), curve)

    def unfinished(carry):
        count, p = carry
        return (count < steps) & jnp.any(p.played < num_episodes)

    return jax.lax.while_loop(unfinished, one, (jnp.int32(0), progress))[1]
