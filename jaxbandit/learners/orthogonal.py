"""Orthogonal arrays of strength 2: few experiments in which any two factors meet evenly.

For a prime p, the p^2 experiments (u, v) with u, v = 0..p-1 give factor c = 0..p-1 the symbol
(u + c v) mod p, and factor p the symbol v. Over all experiments every symbol of a factor comes up p
times, and every pair of symbols of two factors exactly once (Rao 1947; two lines of different slope
in the plane over the integers modulo p meet in one point). Symbols are then mapped to the choices
of each factor, s to s mod n for n <= p choices: two factors stay independent of each other, and a
choice comes up at least p floor(p / n) times.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandit.types import Array


class Design(NamedTuple):
    """Experiments on k factors; B = P^2 of them, of which the first p^2 in use are marked."""

    choice: Array
    """int32 [B, k]: the choice of each factor."""
    used: Array
    """bool [B]."""
    least: Array
    """int32 []: every choice of every factor comes up in at least so many experiments."""


def largest_prime(num_factors: int, most_choices: int) -> int:
    """P: the smallest prime with room for that many factors and choices.

    Example:
        >>> largest_prime(4, 5), largest_prime(2, 6), largest_prime(1, 1)
        (5, 7, 2)
    """
    p = max(2, num_factors - 1, most_choices)
    while any(p % d == 0 for d in range(2, int(p**0.5) + 1)):
        p += 1
    return p


def design(sizes: Array, largest: int) -> Design:
    """The design for factors with ``sizes`` int32 [k] choices whose experiments are the fewest for
    equally many of the rarest choice. A factor with one choice takes no room.

    ``largest`` is the prime P of `largest_prime`, for the most factors and choices there can be.

    Example:
        >>> import jax.numpy as jnp
        >>> found = design(jnp.asarray([2, 2], jnp.int32), 2)
        >>> found.choice.tolist(), found.used.tolist(), int(found.least)
        ([[0, 0], [0, 1], [1, 1], [1, 0]], [True, True, True, True], 2)
    """
    primes = [p for p in range(2, largest + 1) if all(p % d for d in range(2, p))]
    open_ = sizes > 1
    count = jnp.sum(open_, dtype=jnp.int32)
    prime, best, least = jnp.int32(largest), jnp.float32(np.inf), jnp.int32(1)
    for p in primes:
        times = p * (p // jnp.max(sizes))
        fits = (jnp.max(sizes) <= p) & (count <= p + 1)
        cost = jnp.where(fits, p * p / jnp.maximum(times, 1).astype(jnp.float32), np.inf)
        better = cost < best
        prime, best, least = (
            jnp.where(better, new, old)
            for new, old in ((jnp.int32(p), prime), (cost, best), (times, least))
        )
    u, v = (
        jnp.asarray(np.repeat(np.arange(largest), largest), jnp.int32),
        jnp.asarray(np.tile(np.arange(largest), largest), jnp.int32),
    )
    column = (jnp.cumsum(open_, dtype=jnp.int32) - 1)[None]
    symbol = jnp.where(
        column == prime, v[:, None], (u[:, None] + jnp.maximum(column, 0) * v[:, None]) % prime
    )
    return Design(symbol % sizes[None], (u < prime) & (v < prime), least.astype(jnp.int32))
