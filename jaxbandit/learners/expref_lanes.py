"""What a lane of ExpRef counts, as arrays [*lanes] that one kernel can change (`expref_straight`), and how they are packed."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.types import Array

PER_WORD = 31
"""Arms whose bits fit into a word."""


class Lane(NamedTuple):
    """What a lane counts; arrays [*lanes]."""

    phase: Array
    stage: Array
    played: Array
    finished: Array
    """bool: whether the committed policy is played for ever."""
    wanted: list[Array]
    """int32: the arms of the block that have episodes, a bit each."""
    length: Array
    """int32: their episodes."""
    arm: Array
    left: Array
    total: Array
    lost: Array
    totals: list[Array]
    """float32: for each arm, as in `AdapterState`."""
    renewed: Array


def pack(lane: Lane) -> jax.Array:
    """The arrays of a lane as one; bools are 0 or 1, and of reals it holds the bits."""

    def whole(x: Array) -> Array:
        if x.dtype == jnp.float32:
            return jax.lax.bitcast_convert_type(x, jnp.int32)
        return x.astype(jnp.int32)

    return jnp.stack([whole(x) for x in jax.tree.leaves(lane)])


def unpack(packed: Array, arms: int) -> Lane:
    """The arrays of a lane with so many arms."""
    rows = iter(packed)

    def real() -> Array:
        return jax.lax.bitcast_convert_type(next(rows), jnp.float32)

    return Lane(
        phase=next(rows),
        stage=next(rows),
        played=next(rows),
        finished=next(rows) > 0,
        wanted=[next(rows) for _ in range(0, arms, PER_WORD)],
        length=next(rows),
        arm=next(rows),
        left=next(rows),
        total=real(),
        lost=real(),
        totals=[real() for _ in range(arms)],
        renewed=next(rows) > 0,
    )


def bits(arms: list[Array]) -> list[Array]:
    """Whether each of the arms, bool [*lanes], in words."""
    numbered = [x.astype(jnp.int32) << (b % PER_WORD) for b, x in enumerate(arms)]
    return [
        reduce(jnp.bitwise_or, numbered[first : first + PER_WORD])
        for first in range(0, len(numbered), PER_WORD)
    ]


def bit(words: list[Array], b: int) -> Array:
    """Whether arm b."""
    return ((words[b // PER_WORD] >> (b % PER_WORD)) & 1) > 0


def first(arms: list[Array]) -> Array:
    """The first arm that is wanted; 0 if none is."""
    found = jnp.zeros_like(arms[0], jnp.int32)
    for b in reversed(range(len(arms))):
        found = jnp.where(arms[b], b, found)
    return found


def at(table: Array, index: Array) -> Array:
    """table[index] of every lane, [..., *lanes], for a table [N, ..., *lanes]; by selects, which are no kernel of their own."""
    found = table[0]
    for n in range(1, table.shape[0]):
        found = jnp.where(over(index == n, found.ndim - index.ndim), table[n], found)
    return found


def over(x: Array, axes: int) -> jax.Array:
    """With so many axes in front."""
    return x.reshape(*[1] * axes, *x.shape)
