"""The words of the count machine: what an outcome's entry says, in one int64, and sets of states, a bit each.

An entry belongs to a row (a stage of an arm's policy), a state and an outcome (`rows.make_tables` makes it):

    bits    field        meaning
    0-5     TARGET       the state in the next stage of the episodes that see the outcome (0: none)
    6-11    POOL         the pool that they join (0: none)
    12-17   REST_TARGET  the same two of the following outcome; both together are REST
    18-23   REST_POOL
    24      CERTAIN      1: the following outcome is certain for all others, being the last possible one
    32-49   FOLLOWING    its number
    50-61   STANDING     the same in all entries of a row: bit j is set if pool j + 1 pays by the same law in the next
                         stage (in the shared row before the arms' own stage, where the next is not shared, for none)

The fields of the low half are read from its int32 alone, which is cheaper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.types import Array


class Field(NamedTuple):
    """Some bits of a word.

    Example:
        >>> field = Field(shift=6, width=3)
        >>> word = field.write(jnp.int32(5)) | Field(0, 6).write(jnp.int32(63))
        >>> int(field.read(word)), int(word)
        (5, 383)
    """

    shift: int
    """The lowest bit."""
    width: int
    """How many."""

    def read(self, word: Array) -> jax.Array:
        """The field of a word, int32."""
        return ((word >> self.shift) & (2**self.width - 1)).astype(jnp.int32)

    def write(self, value: Array) -> jax.Array:
        """A word that holds nothing else; join words with ``|``. The value must fit."""
        wide = jnp.int32 if self.shift + self.width < 32 else jnp.int64
        return value.astype(wide) << self.shift


TARGET, POOL = Field(0, 6), Field(6, 6)
REST_TARGET, REST_POOL = Field(12, 6), Field(18, 6)
REST = Field(12, 12)
CERTAIN = Field(24, 1)
FOLLOWING, STANDING = Field(32, 18), Field(50, 12)


def low_half(word: Array) -> jax.Array:
    """The half with all fields but FOLLOWING and STANDING, int32."""
    return word.astype(jnp.int32)


def set_type(num_states: int) -> Any:
    """The type of sets of states: signed, so one bit less than it has."""
    return jnp.int32 if num_states < 32 else jnp.int64


def singleton(state: Array, kind: Any) -> jax.Array:
    """The set of one state.

    Example:
        >>> int(singleton(jnp.int32(5), jnp.int32))
        32
    """
    return jnp.ones_like(state, kind) << state.astype(kind)


def largest(states: Array) -> jax.Array:
    """The largest state of a set; 0 of the empty one (state 0 is in none).

    Example:
        >>> largest(jnp.asarray([0, 2, 40], jnp.int32)).tolist()
        [0, 1, 5]
    """
    return (states.dtype.itemsize * 8 - 1 - jax.lax.clz(states | 1)).astype(jnp.int32)


def pack(flags: Array) -> jax.Array:
    """Bools [..., n] as the STANDING field of a word [...]; those that have no bit are left out."""
    known = flags[..., : STANDING.width].astype(jnp.int64)
    place = STANDING.shift + jax.lax.broadcasted_iota(jnp.int64, known.shape, known.ndim - 1)
    return jnp.sum(known << place, axis=-1)
