"""Sums of regrets in float64, strictly in order, so that they do not depend on how episodes were cut into calls.

On the host by NumPy, or on the device: there a turn of a loop adds 32 episodes in one kernel, and only the sums at the
recorded episodes come back. Both add the same numbers in the same order, so their bits are equal.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.types import Array

TERMS = 32
"""Episodes that one kernel adds."""
MARKS = 16
"""Rows that one call takes out."""


def host_sums(total: np.ndarray, regrets: Array, count: int) -> np.ndarray:
    """float64 [count, W]: the sums after each episode, from the sum [W] before and regrets [chunk, W].

    Example:
        >>> host_sums(np.ones(1), np.full((4, 1), 0.5, np.float32), 2).tolist()
        [[1.5], [2.0]]
    """
    sums = np.concatenate([total[None], np.asarray(regrets)[:count].astype(np.float64)])
    return np.cumsum(sums, axis=0)[1:]


def device_sums(total: Array, regrets: Array, count: Array) -> jax.Array:
    """The same as float64 [chunk, W]; rows from ``count`` on repeat the last sum. Needs x64, and a chunk of whole `TERMS`."""
    chunk = regrets.shape[0]
    numbers = jnp.arange(chunk, dtype=jnp.int32)
    terms = jnp.where((numbers < count)[:, None], regrets.astype(jnp.float64), 0)

    def turn(j, carry):
        total, sums = carry
        part = jax.lax.dynamic_slice_in_dim(terms, j * TERMS, TERMS)
        rows = []
        for row in range(TERMS):  # one after the other: no sum of partial sums
            total = total + part[row]
            rows.append(total)
        sums = jax.lax.dynamic_update_slice_in_dim(sums, jnp.stack(rows), j * TERMS, 0)
        return total, sums

    blank = jnp.zeros_like(terms)
    return jax.lax.fori_loop(0, chunk // TERMS, turn, (jnp.asarray(total), blank))[1]


def take_rows(sums: Array, rows: Array) -> jax.Array:
    """sums[rows] for int32 rows [MARKS]."""
    return sums[rows]


def padded(rows: np.ndarray) -> list[np.ndarray]:
    """Rows in pieces of `MARKS`, the last one filled up with its own last row.

    Example:
        >>> [piece.tolist() for piece in padded(np.arange(18))][1][:3]
        [16, 17, 17]
    """
    pieces = [rows[first : first + MARKS] for first in range(0, len(rows), MARKS)]
    return [
        np.pad(piece, (0, MARKS - len(piece)), mode="edge").astype(np.int32) for piece in pieces
    ]
