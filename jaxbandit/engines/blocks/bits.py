"""n episodes of an arm under one-bit feedback: one binomial draw.

Shown is a coin that falls on 1 with probability equal to the episode's total reward X, given X. So each coin of an arm
falls on 1 with probability E[X] = V, the value of its policy, the coins of different episodes are independent, and
their sum is Binomial(n, V) exactly: nothing of the episodes themselves needs to be drawn. V is Opt - regret, from the
float64 tables that give exact regret, so it is off by a few 10^-16: the mean of n <= 2^53 coins by a few units where
their standard deviation is up to 4.7e7.

An arm's numbers come from its own key and its own attempts, as in `counts`: they do not depend on the other arms.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxbandit.engines.blocks.machine import draw
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import fold_in

Key = tuple[Array, Array]
ATTEMPTS = 8
"""Attempts between two looks whether all arms are done, where looking costs an answer of the host. At least 73 % of the
attempts succeed, so 8 are enough for all of 10,000 arms three times out of four."""


def push_bits(value: Array, episodes: Array, keys: Key) -> jax.Array:
    """Sums of the bits of ``episodes`` [L, B] episodes of arms of exact ``value`` [L, B].

    ``keys`` are the uint32 words [L] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    L, B = episodes.shape
    high, low = (jnp.repeat(words, B) for words in keys)
    key = fold_in((high, low), jnp.tile(jnp.arange(B, dtype=jnp.uint32), L))
    number, chance = episodes.reshape(-1), jnp.clip(value, 0, 1).reshape(-1)

    def attempt(_, carry):
        tries, drawn = carry
        new = draw(key, jnp.full(number.shape, tries), number, chance)
        return tries + jnp.uint32(1), jnp.where(drawn < 0, new, drawn)

    def attempts(carry):
        return jax.lax.fori_loop(0, 1 if active().branches else ATTEMPTS, attempt, carry)

    def unfinished(carry):
        return jnp.any(carry[1] < 0)

    first = (jnp.uint32(0), jnp.full(number.shape, -1.0))
    return jax.lax.while_loop(unfinished, attempts, first)[1].reshape(L, B)
