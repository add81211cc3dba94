"""What the count engine looks up while it pushes arms: chances of splits, and where the outcomes lead, in one word each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines.outcomes import Outcomes, merge_pools, same_law, splits
from jaxbandit.learners.base import Blocks

Array = Any


class Tables(NamedTuple):
    """Flat tables. Of a lane [G, S]: the H rows of the policy that its arms share, then a row for each of B arms."""

    chance: Array
    """float64 [G * S * (H + B) * X * U]: those of `splits`."""
    code: Array
    """int64, the same: fields, see `target` and so on."""
    reward: Array
    """float64 [G * H * X * U]."""


def _field(shift: int, width: int) -> Callable[[Array], jax.Array]:
    return lambda code: ((code >> shift) & (2**width - 1)).astype(jnp.int32)


# The outcome's state in the next stage and its pool; the same of the following outcome; whether that one is certain, being
# the last possible one; its number; and, the same throughout the row, a bit for each of the first pools that pays by the
# same law in the next stage (in the shared row before the arms' own, where the next one is not shared, for none).
STANDING = 12
target, pool, rest_target, rest_pool = (_field(shift, 6) for shift in (0, 6, 12, 18))
certain, following, standing = _field(24, 1), _field(32, 18), _field(50, STANDING)


def word_type(num_states: int) -> Any:
    """The type of words with a bit per state."""
    return jnp.int32 if num_states < 32 else jnp.int64


def make_tables(outcomes: Outcomes, blocks: Blocks) -> Tables:
    """The tables of the arms of ``blocks``, leaves [G, S, ...]."""
    P = outcomes.kind.shape[-1]

    def at_stage(table, stage):
        where = stage.reshape(*stage.shape, *[1] * (table.ndim - 2))
        return jnp.take_along_axis(table, where, axis=2)

    everywhere = jax.tree.map(lambda table: table[:, None], outcomes._replace(start=None))
    there = jax.tree.map(lambda table: at_stage(table, blocks.stage), everywhere)
    chance, code = _rows(everywhere, blocks.policy)
    row_chance, row_code = _rows(there, blocks.rows)

    laws, own = ((x[..., 1 : P + 1, :], known.kind) for x, known in ((chance, everywhere), (row_chance, there)))
    last = outcomes.prob.shape[1] - 1
    ahead = jnp.minimum(blocks.stage + 1, last)  # after the last stage nobody looks
    stand = _bits(same_law(*laws, *(jnp.roll(law, -1, axis=2) for law in laws)))
    before_own = jnp.arange(last + 1, dtype=jnp.int32)[None, None] == blocks.stage[..., None] - 1
    row_stand = _bits(same_law(*own, *(at_stage(law, ahead) for law in laws)))
    code = code | jnp.where(before_own, 0, stand)[..., None, None]
    row_code = row_code | row_stand[..., None, None]
    return Tables(
        jnp.concatenate([chance, row_chance], 2).reshape(-1),
        jnp.concatenate([code, row_code], 2).reshape(-1),
        outcomes.reward.reshape(-1),
    )


def _bits(pools: Array) -> jax.Array:
    """The field `standing` of bool [..., P]."""
    known = pools[..., :STANDING].astype(jnp.int64)
    place = 50 + jax.lax.broadcasted_iota(jnp.int64, known.shape, known.ndim - 1)
    return jnp.sum(known << place, axis=-1)


def _rows(known: Outcomes, policy: Array) -> tuple[jax.Array, jax.Array]:
    """Chances and codes [G, S, R, X, U] of R rows of a policy [G, S, R, k+1, A]."""
    P, A = known.kind.shape[-1], policy.shape[-1]
    shape = (*policy.shape[:3], known.level.shape[-1])
    actions = jnp.take_along_axis(policy, jnp.broadcast_to(known.level, shape)[..., None], axis=3)
    # Not jnp.sum: XLA would hand it to a library that takes ten times as long for a few numbers.
    chance, after, sure = splits(sum(actions[..., a, None] * known.prob[..., a, :] for a in range(A)))
    to = jnp.where(known.next_level > 0, known.next_level + P, 0)
    joined = jnp.broadcast_to(known.pool, chance.shape)
    if P:
        first = merge_pools(chance[..., 1 : P + 1, :], jnp.broadcast_to(known.kind, (*shape[:3], P)))
        first = jnp.concatenate([jnp.zeros_like(first[..., :1]), first], -1)
        joined = jnp.take_along_axis(first, joined.reshape(*shape[:3], -1), -1).reshape(joined.shape)
    itself = to | (joined << 6)
    low = itself | (jnp.take_along_axis(itself, after, -1) << 12) | (sure.astype(jnp.int32) << 24)
    return chance, low.astype(jnp.int64) | (after.astype(jnp.int64) << 32)
