"""UCB-VI as straight-line code in few kernels, for devices where every kernel is a launch.

Counts, rewards and model are fields of one table, of which an episode reads and writes the visited entries alone. The
greedy actions are found while planning, lane by lane, so that V is never written; what the learner keeps besides (V, and
the policy in its own form) is made when a call ends.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.kernels import ucbvi_cpu as lanes_last
from jaxbandit.kernels.kernel import Kernel
from jaxbandit.kernels.ucbvi_cpu import PlanTables, Tables
from jaxbandit.learners.ucbvi import UCBVIConstants, UCBVIState, ucbvi
from jaxbandit.types import Array

TERMS = 500
"""Products p V that become one kernel, at most: of more XLA makes many kernels, and compiles for minutes."""
MOST_TERMS = 8000
"""Products p V of a plan, H A k^2, up to which it is written out; larger tables run the readable form."""


class Words(NamedTuple):
    """While the episodes of a call are played."""

    table: Array
    """int32 [F, A k, HW]: the fields of `Tables.seen`, then the bits of `Tables.model`."""
    ceiling: Array | None
    """float32 [A, k, HW]."""
    policy: list[list[Array]]
    """int32 [W] each, for level 1..k: the greedy actions, those of `_per_word` stages in a word."""
    scale: Array
    """float32 [HW]: c."""
    log_term: Array
    """float32 [HW]: L."""


def kernel_of(bernstein: bool, monotone: bool) -> Kernel:
    """The kernel of a variant."""
    on_cpu = lanes_last.kernel_of(bernstein, monotone)

    def sizes(inner: Words) -> tuple[int, int, int, int]:
        """H, k, A, W."""
        lanes, width = inner.policy[0][0].shape[0], len(inner.policy)
        return inner.scale.size // lanes, width, inner.table.shape[1] // width, lanes

    def plan_of(inner: Words) -> PlanTables:
        _, width, num_actions, lanes = sizes(inner)
        shape = (num_actions, width, inner.scale.size)
        model = jax.lax.bitcast_convert_type(inner.table[3 + width :], jnp.float32)
        unknown = None
        if bernstein:
            unknown = lanes_last.doubt(inner.table[0].reshape(shape), inner.log_term, lanes)
        return PlanTables(model.reshape(-1, *shape), unknown, inner.ceiling)

    def enter(state: UCBVIState, keys: Array, constants: UCBVIConstants) -> Words:
        given: Tables = on_cpu.enter(state, keys, constants)
        bits = jax.lax.bitcast_convert_type(given.model, jnp.int32)
        policy = given.policy.reshape(len(given.policy), -1, len(constants.scale))[1:]
        return Words(
            table=jnp.concatenate([given.seen, bits]),
            ceiling=given.ceiling,
            policy=packed(policy, state.reward.shape[3]),
            scale=given.scale,
            log_term=given.log_term,
        )

    def actions_of(inner: Words) -> Array:
        """int32 [k+1, H, W]."""
        horizon, _, num_actions, _ = sizes(inner)
        actions = unpacked(inner.policy, num_actions, horizon)
        return jnp.concatenate([jnp.zeros_like(actions[:1]), actions])

    def act(inner: Words, keys: Array, constants: UCBVIConstants) -> Array:
        del keys, constants
        return jnp.moveaxis(actions_of(inner), 0, 1)

    def update(
        inner: Words,
        policy: Array,
        feedback: SemiBanditFeedback,
        constants: UCBVIConstants,
        live: Array,
    ) -> Words:
        """Where it is not live, no entry is visited, and planning finds what it found before."""
        del policy, constants
        width = len(inner.policy)
        seen = jax.tree.map(lambda x: x.reshape(-1), feedback)
        entry, target, reward = lanes_last.visited(seen, jnp.int32(width))
        entry = jnp.where(live, entry, -1)
        entry, target, reward = jax.lax.optimization_barrier((entry, target, reward))
        after = lanes_last.counted(look_up(inner.table, entry, 3 + width), target, reward)
        known = lanes_last.modelled(bernstein)(after, inner.scale, inner.log_term)
        fields = jnp.concatenate([after, jax.lax.bitcast_convert_type(known, jnp.int32)])
        inner = inner._replace(table=put_back(inner.table, entry, fields))
        plan = plan_of(inner)
        values, actions = plan_by_lanes(plan, inner.scale, inner.log_term, sizes(inner)[3])
        ceiling = None
        if monotone:
            ended = jnp.concatenate([values, jnp.zeros_like(values[:, :1])], axis=1)
            ceiling = lanes_last.q_of_all(
                plan, ended.reshape(width, -1), inner.scale, inner.log_term
            )
        return inner._replace(policy=actions, ceiling=ceiling)

    def leave(inner: Words, constants: UCBVIConstants) -> UCBVIState:
        _, width, _, lanes = sizes(inner)
        plan = plan_of(inner)
        found = values_by_stages(plan, inner.scale, inner.log_term, lanes)
        given = Tables(
            seen=inner.table[: 3 + width],
            model=plan.model.reshape(len(plan.model), -1, inner.scale.size),
            values=jnp.concatenate([found, jnp.zeros((width, lanes), jnp.float32)], axis=1),
            ceiling=inner.ceiling,
            policy=actions_of(inner).reshape(width + 1, -1),
            scale=inner.scale,
            log_term=inner.log_term,
        )
        return on_cpu.leave(given, constants)

    return Kernel(enter=enter, act=act, update=update, leave=leave, fits=fits)


def fits(horizon: int, width: int, num_actions: int) -> bool:
    """Whether a plan can be written out: of larger ones XLA would compile for minutes."""
    return horizon * num_actions * width**2 <= MOST_TERMS


def _per_word(num_actions: int) -> tuple[int, int]:
    """Bits of an action, and stages whose actions fit into a word."""
    bits = max(1, (num_actions - 1).bit_length())
    return bits, 31 // bits


def packed(policy: Array, num_actions: int) -> list[list[Array]]:
    """The words of a policy int32 [k, H, W]."""
    bits, per = _per_word(num_actions)

    def word(level: Array, first: int) -> Array:
        stages = level[first : first + per]
        return reduce(jnp.bitwise_or, [x << (bits * j) for j, x in enumerate(stages)])

    return [[word(level, first) for first in range(0, len(level), per)] for level in policy]


def unpacked(policy: list[list[Array]], num_actions: int, horizon: int) -> jax.Array:
    """The policy int32 [k, H, W] of its words."""
    bits, per = _per_word(num_actions)
    words = jnp.stack([jnp.stack(level) for level in policy])
    shift = jnp.asarray(bits * (np.arange(horizon) % per), jnp.int32)
    spread = jnp.repeat(words, per, axis=1)[:, :horizon]
    return (spread >> shift[None, :, None]) & (2**bits - 1)


def _places(table: Array, entry: Array, fields: int) -> jax.Array:
    """Where the fields of the visited entries [HW] are in the flat table, int32 [fields, HW]."""
    row = jnp.arange(fields, dtype=jnp.int32)[:, None] * table.shape[1] + entry[None]
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


def plan_by_lanes(
    plan: PlanTables, scale: Array, log_term: Array, lanes: int
) -> tuple[Array, list[list[Array]]]:
    """V float32 [k, H, W] and the words of the greedy policy: a compiler that fuses at will makes few kernels of it.

    Arrays [W] are all it makes, and none of them is put together with others: where XLA would have to, it computes
    everything again.
    """
    num_actions, width, size = plan.model.shape[1:]
    horizon = size // lanes
    bits, per = _per_word(num_actions)
    zero = jnp.zeros(lanes, jnp.float32)
    tails: list[Array] = [zero] * width
    words = [[zero.astype(jnp.int32)] * -(-horizon // per) for _ in range(width)]
    pieces = -(-horizon * width * (width + 1) * num_actions // TERMS)
    values = []
    for i in reversed(range(horizon)):
        here = lanes_last.at_stage((plan, scale, log_term), i, lanes)
        found = [_best_at(level, tails, *here) for level in range(width)]
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
    level: int, tails: list[Array], plan: PlanTables, scale: Array, log_term: Array
) -> tuple[Array, Array]:
    """V at one level of a stage, and the first action that has it, [W]."""
    here = PlanTables(
        plan.model[:, :, level : level + 1],
        plan.doubt,
        None if plan.ceiling is None else plan.ceiling[:, level : level + 1],
    )
    q = lanes_last.q_of(here, tails, scale, log_term)
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return best[0], action[0]


def values_by_stages(plan: PlanTables, scale: Array, log_term: Array, lanes: int) -> Array:
    """V float32 [k, HW] by a loop over stages: a call ends with it, once."""
    width = plan.model.shape[2]

    def by_stage(x: Array) -> Array:
        return jnp.moveaxis(x.reshape(*x.shape[:-1], -1, lanes), -2, 0)

    def back(tail, stage):
        value = reduce(lanes_last.larger, lanes_last.q_of(stage[0], list(tail), *stage[1:]))
        return value, value

    stages = jax.tree.map(by_stage, (plan, scale, log_term))
    tail = jnp.zeros((width, lanes), jnp.float32)
    found = jax.lax.scan(back, tail, stages, reverse=True)[1]
    return jnp.moveaxis(found, 0, 1).reshape(width, -1)


KERNELS = [
    (ucbvi(bonus=bonus, monotone=monotone), "gpu", kernel_of(bonus == "bernstein", monotone))
    for bonus in ("hoeffding", "bernstein")
    for monotone in (False, True)
]
