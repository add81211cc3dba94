"""What UCB-VI keeps of an episode: counts and rewards of the visited entries, and the model that follows from them.

An episode visits one entry (l, a) of each stage. Its fields are read from the tables [F, A, k, H, *lanes], renewed, and
written back; nothing else changes.
"""

from __future__ import annotations

from functools import cache, reduce

import jax
import jax.numpy as jnp

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate

FRACTION_BITS = 30


@separate
def visited(feedback: SemiBanditFeedback, width: Array) -> tuple[Array, Array, Array]:
    """int32 [H, *lanes] each: the entry a k + l-1 visited (-1: level 0), next level - 1, 2^30 reward."""
    entry = jnp.where(feedback.levels > 0, feedback.actions * width + feedback.levels - 1, -1)
    # Rewards lie in [0, 1]; the clip only keeps a careless one from overflowing the integers.
    reward = jnp.clip(feedback.rewards.astype(jnp.float32), 0, 1)
    scaled = jnp.round(reward * 2**FRACTION_BITS).astype(jnp.int32)
    return entry, feedback.next_levels - 1, scaled


# From here to the writing back, stages and lanes are one axis [HW]. The reshaping is outside of `separate`: inside, XLA
# would undo it.


def _flat(table: Array, size: int) -> Array:
    """[F, A, k, H, *lanes] as [F, A k, HW]."""
    return table.reshape(table.shape[0], -1, size)


def read(table: Array, entry: Array) -> Array:
    """The fields [F, HW] of the visited entries; 0 at entry -1."""
    return _read_flat(_flat(table, entry.size), entry)


def write(table: Array, entry: Array, fields: Array) -> Array:
    """The table with the fields of the visited entries replaced."""
    return _write_flat(_flat(table, entry.size), entry, fields).reshape(table.shape)


@separate
def _read_flat(table: Array, entry: Array) -> Array:
    # A sum of selects: XLA on CPU does not vectorise gathers.
    chosen = [jnp.where((entry == e)[None], table[:, e], 0) for e in range(table.shape[1])]
    return reduce(jnp.add, chosen)


@separate
def _write_flat(table: Array, entry: Array, fields: Array) -> Array:
    entries = jnp.arange(table.shape[1], dtype=jnp.int32)
    here = entry[None, None] == entries[None, :, None]
    return jnp.where(here, fields[:, None], table)


@separate
def counted(counts: Array, target: Array) -> Array:
    """Visits and moves [1 + k, HW] after one more visit that led to ``target``."""
    field = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 0)
    return counts + ((field == 0) | (field - 1 == target[None])).astype(jnp.int32)


@separate
def paid(rewards: Array, reward: Array) -> Array:
    """The sum of rewards [2, HW] after one more."""
    fraction = rewards[1:] + reward[None]
    whole = rewards[:1] + (fraction >> FRACTION_BITS)
    first = jax.lax.broadcasted_iota(jnp.int32, rewards.shape, 0) == 0
    return jnp.where(first, whole, fraction & (2**FRACTION_BITS - 1))


@cache
def modelled(bernstein: bool):
    """The model of visited entries, from their counts [1 + k, HW] and rewards [2, HW]; of constants, the first are enough.

    Fields: r + b (Hoeffding) or r (Bernstein); p(s), s = 1..k; and 1 / N (Bernstein).
    """

    @separate
    def model(counts: Array, rewards: Array, scale: Array, log_term: Array) -> Array:
        scale, log_term = scale[: counts.shape[1]], log_term[: counts.shape[1]]
        inverse = 1 / counts[:1].astype(jnp.float32)
        fraction = rewards[1:].astype(jnp.float32) * 2.0**-FRACTION_BITS
        first = (rewards[:1].astype(jnp.float32) + fraction) * inverse
        if not bernstein:
            first = first + (scale * jnp.sqrt(log_term))[None] * jnp.sqrt(inverse)
        # One select over all fields: pieces put together are not vectorised.
        field = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 0)
        known = jnp.where(field == 0, first, counts.astype(jnp.float32) * inverse)
        return jnp.concatenate([known, inverse]) if bernstein else known

    return model
