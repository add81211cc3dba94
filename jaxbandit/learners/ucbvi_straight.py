"""UCB-VI as straight-line code in few kernels, for platforms where every kernel is a launch.

Counts, rewards and model are fields of one table, of which an episode reads and writes the visited entries alone. The
greedy actions are found while planning, lane by lane, so that V is never written; what the learner keeps besides (V, and
the policy in its own form) is made when a call ends.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import StraightForm
from jaxbandit.learners.ucbvi_counts import counted, modelled, paid, visited
from jaxbandit.learners.ucbvi_planning import greedy, values_by_stages
from jaxbandit.learners.ucbvi_values import PlanTables, UCBVIConstants, doubt, q_of
from jaxbandit.types import Array

TERMS = 500
"""Products p V that become one kernel, at most: of more XLA makes many kernels, and compiles for minutes."""


class StraightState(NamedTuple):
    """While the episodes of a call are played."""

    table: Array
    """int32 [F, A, k, H, *lanes]: counts and rewards as in `UCBVIState`, then the bits of the model."""
    ceiling: Array | None
    policy: list[list[Array]]
    """int32 [*lanes] each, for level 1..k: the greedy actions, those of `_per_word` stages in a word."""


@cache
def straight_form(state_type: Any, bernstein: bool) -> StraightForm:
    """The form of a variant, whose state is ``state_type`` (`UCBVIState`)."""

    def plan_of(inner: StraightState, constants: UCBVIConstants) -> PlanTables:
        width = inner.table.shape[2]
        model = jax.lax.bitcast_convert_type(inner.table[3 + width :], jnp.float32)
        unknown = doubt(inner.table[0], constants.log_term[0]) if bernstein else None
        return PlanTables(model, unknown, inner.ceiling)

    def enter(state: Any, keys: Array, constants: UCBVIConstants) -> StraightState:
        del keys, constants
        model = jax.lax.bitcast_convert_type(state.model, jnp.int32)
        table = jnp.concatenate([state.counts, state.rewards, model])
        return StraightState(table, state.ceiling, packed(state.policy[1:], table.shape[1]))

    def act(inner: StraightState, keys: Array, constants: UCBVIConstants) -> Array:
        del keys, constants
        actions = jnp.moveaxis(unpacked(inner.policy, *inner.table.shape[1:4:2]), 0, 1)
        return jnp.concatenate([jnp.zeros_like(actions[:, :1]), actions], axis=1)

    def update(
        inner: StraightState,
        policy: Array,
        feedback: SemiBanditFeedback,
        constants: UCBVIConstants,
        live: Array,
    ) -> StraightState:
        """As `ucbvi` does; where it is not live, no entry is visited, and planning finds what it found before."""
        del policy
        width = inner.table.shape[2]
        seen = jax.tree.map(lambda x: x.reshape(-1), feedback)
        entry, target, reward = visited(seen, jnp.int32(width))
        entry = jnp.where(live, entry, -1)
        entry, target, reward = jax.lax.optimization_barrier((entry, target, reward))
        before = look_up(inner.table, entry, 3 + width)
        counts = counted(before[: 1 + width], target)
        rewards = paid(before[1 + width :], reward)
        known = modelled(bernstein)(counts, rewards, *(x.reshape(-1) for x in constants))
        fields = jnp.concatenate([counts, rewards, jax.lax.bitcast_convert_type(known, jnp.int32)])
        inner = inner._replace(table=put_back(inner.table, entry, fields))
        plan = plan_of(inner, constants)
        values, actions = plan_by_lanes(plan, constants)
        ceiling = (
            plan.ceiling if plan.ceiling is None else greedy(plan, _ended(values), constants)[1]
        )
        return inner._replace(policy=actions, ceiling=ceiling)

    def leave(inner: StraightState, constants: UCBVIConstants) -> Any:
        table, width = inner.table, inner.table.shape[2]
        plan = plan_of(inner, constants)
        actions = unpacked(inner.policy, *inner.table.shape[1:4:2])
        return state_type(
            counts=table[: 1 + width],
            rewards=table[1 + width : 3 + width],
            model=plan.model,
            values=_ended(values_by_stages(plan, constants)),
            ceiling=inner.ceiling,
            policy=jnp.concatenate([jnp.zeros_like(actions[:1]), actions]),
        )

    return StraightForm(enter=enter, act=act, update=update, leave=leave)


def _ended(values: Array) -> jax.Array:
    """V [k, H+1, *lanes] of V [k, H, *lanes]: 0 after stage H."""
    return jnp.concatenate([values, jnp.zeros_like(values[:, :1])], axis=1)


def _per_word(num_actions: int) -> tuple[int, int]:
    """Bits of an action, and stages whose actions fit into a word."""
    bits = max(1, (num_actions - 1).bit_length())
    return bits, 31 // bits


def packed(policy: Array, num_actions: int) -> list[list[Array]]:
    """The words of a policy int32 [k, H, *lanes]."""
    bits, per = _per_word(num_actions)

    def word(level: Array, first: int) -> Array:
        stages = level[first : first + per]
        return reduce(jnp.bitwise_or, [x << (bits * j) for j, x in enumerate(stages)])

    return [[word(level, first) for first in range(0, len(level), per)] for level in policy]


def unpacked(policy: list[list[Array]], num_actions: int, horizon: int) -> jax.Array:
    """The policy int32 [k, H, *lanes] of its words."""
    bits, per = _per_word(num_actions)
    words = jnp.stack([jnp.stack(level) for level in policy])
    shift = jnp.asarray(bits * (np.arange(horizon) % per), jnp.int32)
    shift = shift.reshape(1, horizon, *[1] * (words.ndim - 2))
    spread = jnp.repeat(words, per, axis=1)[:, :horizon]
    return (spread >> shift) & (2**bits - 1)


def _places(table: Array, entry: Array, fields: int) -> jax.Array:
    """Where the fields of the visited entries [HW] are in the flat table, int32 [fields, HW]."""
    entries = table.shape[1] * table.shape[2]
    row = jnp.arange(fields, dtype=jnp.int32)[:, None] * entries + entry[None]
    return row * entry.size + jnp.arange(entry.size, dtype=jnp.int32)[None]


def look_up(table: Array, entry: Array, fields: int) -> jax.Array:
    """The first fields [fields, HW] of the visited entries; those of entry -1 mean nothing."""
    place = _places(table, jnp.maximum(entry, 0), fields)
    return table.reshape(-1).at[place].get(mode="promise_in_bounds")


def put_back(table: Array, entry: Array, fields: Array) -> jax.Array:
    """The table with the fields [F, HW] of the visited entries replaced, in place."""
    # A table that is read in the same kernel would be copied, not changed in place.
    fields, table = jax.lax.optimization_barrier((fields, table))
    place = _places(table, entry, fields.shape[0])
    # Beyond the end, where writes are dropped: every place still is another one.
    place = jnp.where(
        entry[None] < 0, table.size + jnp.arange(fields.size).reshape(fields.shape), place
    )
    flat = table.reshape(-1).at[place].set(fields, mode="drop", unique_indices=True)
    return flat.reshape(table.shape)


def plan_by_lanes(plan: PlanTables, constants: UCBVIConstants) -> tuple[Array, list[list[Array]]]:
    """V float32 [k, H, *lanes] and the words of the greedy policy: a compiler that fuses at will makes few kernels of it.

    Arrays [*lanes] are all it makes, and none of them is put together with others: where XLA would have to, it computes
    everything again.
    """
    num_actions, width, horizon = plan.model.shape[1:4]
    bits, per = _per_word(num_actions)
    zero = jnp.zeros_like(constants.scale[0])
    tails: list[Array] = [zero] * width
    words = [[zero.astype(jnp.int32)] * -(-horizon // per) for _ in range(width)]
    pieces = -(-horizon * width * (width + 1) * num_actions // TERMS)
    values = []
    for i in reversed(range(horizon)):
        found = [_best_at(plan, level, i, tails, constants) for level in range(width)]
        tails = [value for value, _ in found]
        values.append(tails)
        for level, (_, action) in enumerate(found):
            words[level][i // per] |= action << (bits * (i % per))
        if i * pieces // horizon != (i - 1) * pieces // horizon and i > 0:
            # In the shape that everything around has: XLA does not fuse well across a change of shape.
            wide = jax.tree.map(lambda x: x[None], (tails, words))
            tails, words = jax.tree.map(lambda x: x[0], jax.lax.optimization_barrier(wide))
    return jnp.stack([jnp.stack([x[level] for x in values[::-1]]) for level in range(width)]), words


def _best_at(
    plan: PlanTables, level: int, i: int, tails: list[Array], constants: UCBVIConstants
) -> tuple[Array, Array]:
    """V at one level of a stage, and the first action that has it, [*lanes]."""
    scale, log_term = (x[i] for x in constants)
    q = q_of(plan, tails, scale, log_term, (slice(level, level + 1), i))
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return best[0], action[0]
