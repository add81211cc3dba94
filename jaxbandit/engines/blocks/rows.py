"""What the count engine looks up while it pushes arms: chances of splits, and where the outcomes lead.

A *row* is a stage of a policy. Of each lane there are the H rows of the policy that its arms share, then a row for
each arm at the stage where they differ.

What an outcome's entry says stands in one int64, and a set of states in one word, a bit each.

An entry belongs to a row (a stage of an arm's policy), a state and an outcome (`make_tables` makes it):

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

from jaxbandit.engines.blocks.outcomes import Outcomes
from jaxbandit.learner import Blocks
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate

FEW = 8
"""Up to so many entries, comparing with each is faster than looking one up, and a loop over them is written out."""


class ArmTables(NamedTuple):
    """Flat tables of L lanes."""

    chance: Array
    """float64 [L * (H + B) * X * U]: those of `splits`."""
    code: Array
    """int64, the same: words of `codec`."""
    reward: Array
    """float64 [L * H * X * U]."""


def make_tables(outcomes: Outcomes, blocks: Blocks) -> ArmTables:
    """The tables of the arms of ``blocks``, leaves [L, ...] like those of ``outcomes``."""
    P, H = outcomes.kind.shape[-1], outcomes.kind.shape[1]

    def at_stage(table, stage):
        where = stage.reshape(-1, *[1] * (table.ndim - 1))
        return jnp.take_along_axis(table, where, axis=1)

    tables = outcomes._replace(start=None)
    there = jax.tree.map(lambda table: at_stage(table, blocks.stage), tables)
    chance, code = _rows(tables, blocks.policy)
    own_chance, own_code = _rows(there, blocks.rows)

    laws = chance[..., 1 : P + 1, :], tables.kind
    own_laws = own_chance[..., 1 : P + 1, :], there.kind
    # A pool stands if it pays by the same law in the next stage: its draws can wait and be made once for both.
    ahead = jnp.minimum(blocks.stage + 1, H - 1)  # after the last stage nobody looks
    stand = pack(same_law(*laws, *(jnp.roll(law, -1, axis=1) for law in laws)))
    # The row after the shared one before the own stage differs from arm to arm, so there no pool stands: that costs draws,
    # and is right for every arm.
    before_own = jnp.arange(H, dtype=jnp.int32)[None] == blocks.stage[:, None] - 1
    own_stand = pack(same_law(*own_laws, *(at_stage(law, ahead) for law in laws)))
    code = code | jnp.where(before_own, 0, stand)[..., None, None]
    own_code = own_code | own_stand[..., None, None]
    return ArmTables(
        chance=jnp.concatenate([chance, own_chance], 1).reshape(-1),
        code=jnp.concatenate([code, own_code], 1).reshape(-1),
        reward=outcomes.reward.reshape(-1),
    )


def _rows(known: Outcomes, policy: Array) -> tuple[jax.Array, jax.Array]:
    """Chances and words [L, R, X, U] of R rows of a policy [L, R, k+1, A]."""
    P = known.kind.shape[-1]
    shape = (*policy.shape[:2], known.level.shape[-1])
    chance, following, certain = splits(_weights(known.prob, known.level, policy))
    target = jnp.where(known.next_level > 0, known.next_level + P, 0)
    pool = jnp.broadcast_to(known.pool, chance.shape)
    if P:
        first = merge_pools(
            chance[..., 1 : P + 1, :], jnp.broadcast_to(known.kind, (*shape[:2], P))
        )
        first = jnp.concatenate([jnp.zeros_like(first[..., :1]), first], -1)
        pool = _pick(first[..., None], pool.reshape(*shape[:2], -1)).reshape(pool.shape)
    itself = TARGET.write(target) | POOL.write(pool)
    low = itself | REST.write(_pick(itself[..., None], following)[..., 0])
    low = low | CERTAIN.write(certain)
    return chance, low.astype(jnp.int64) | FOLLOWING.write(following)


@separate
def _weights(prob: Array, level: Array, policy: Array) -> jax.Array:
    """Probabilities [L, R, X, U] of the outcomes."""
    actions = _pick(policy, jnp.broadcast_to(level, (*policy.shape[:2], level.shape[-1])))
    # Not jnp.sum: XLA would hand it to a library that takes ten times as long for a few numbers.
    return sum(actions[..., a, None] * prob[..., a, :] for a in range(policy.shape[-1]))


def _pick(table: Array, where: Array) -> jax.Array:
    """Rows [..., n, c] of a table [..., N, c] at ``where`` [..., n]."""
    N = table.shape[-2]
    if N > FEW:
        return jnp.take_along_axis(table, where[..., None], axis=-2)
    found = jnp.broadcast_to(table[..., :1, :], (*where.shape, table.shape[-1]))
    for number in range(1, N):
        here = (where == number)[..., None]
        found = jnp.where(here, table[..., number : number + 1, :], found)
    return found


class Splits(NamedTuple):
    """The chains of binomial splits of a policy, leaves [..., X, U]."""

    chance: Array
    """float64: probability of outcome u given that it is none of the earlier ones; exactly 1 at the last possible one,
    0 at impossible ones."""
    following: Array
    """int32: the next possible outcome after u."""
    certain: Array
    """bool: there is one such and no other."""


@separate
def splits(weight: Array) -> Splits:
    """The chain for outcomes of weights [..., U], not normalised."""
    U = weight.shape[-1]

    def back(carry, x):
        after, following, possible = carry
        u, here = x
        left = after + here
        # From the back, because the chance at the last possible outcome must be exactly 1: a sum from the front would round
        # and leave an episode behind. 1e-300 is only there where the division is not used.
        chance = jnp.where(here > 0, jnp.where(after > 0, here / jnp.maximum(left, 1e-300), 1), 0)
        before = (left, jnp.where(here > 0, u, following), possible + (here > 0).astype(jnp.int32))
        return before, (chance, following, possible == 1)

    none = jnp.zeros_like(weight[..., 0])
    start = (none, jnp.full(none.shape, U - 1, jnp.int32), jnp.zeros(none.shape, jnp.int32))
    steps = (jnp.arange(U, dtype=jnp.int32), jnp.moveaxis(weight, -1, 0))
    _, chain = jax.lax.scan(back, start, steps, reverse=True, unroll=min(U, FEW))
    chance, following, certain = (jnp.moveaxis(x, 0, -1) for x in chain)
    return Splits(chance, following, certain)


def same_law(chance: Array, kind: Array, other_chance: Array, other_kind: Array) -> jax.Array:
    """Whether pools pay the same rewards by the same chain, bool [...]: ``chance`` [..., U], ``kind`` [...]."""
    equal = kind == other_kind
    for u in range(chance.shape[-1]):
        equal = equal & (chance[..., u] == other_chance[..., u])
    return equal


def merge_pools(chance: Array, kind: Array) -> jax.Array:
    """For each of P pools the first one of the same law, int32 [..., P], numbered from 1.

    ``chance`` [..., P, U], ``kind`` [..., P].
    """
    equal = same_law(
        chance[..., :, None, :], kind[..., :, None], chance[..., None, :, :], kind[..., None, :]
    )
    return 1 + jnp.argmax(equal, axis=-1).astype(jnp.int32)


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
