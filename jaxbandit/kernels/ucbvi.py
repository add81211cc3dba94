"""UCB-VI with lanes in the last axis and planning unrolled over stages, for CPUs and for GPUs.

Arrays are [..., action, level, stage, lane] with stages and lanes as one axis [HW]: XLA vectorises long loops only, and
cuts an index of two axes out of one the slow way. On CPUs every step is a kernel of its own (`separate`), because XLA computes
a value again for each of its uses, and all of them are one call (`together`), because starting a kernel costs more than
the arithmetic of a few lanes.

Counts, rewards and model are renewed where the episode went: the fields of the visited entries are read by a sum of
selects (gathers are not vectorised). They are written by a select between the table and the new fields, which becomes a
masked store; where the processor takes a hundred times as long for one, by adding what changes. The bits are the same.

On GPUs every kernel is a launch, so there it is straight-line code in few of them. The fields of the visited entries are
looked up in one table and put back. The greedy actions are found while planning, lane by lane, so that V is never written;
what the learner keeps besides (V, and the policy in its own form) is made when a call ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.kernels.lanes import Kernel
from jaxbandit.learners.model import FRACTION_BITS, Model, fixed_point, reward_sum
from jaxbandit.learners.ucbvi import UCBVIConstants, UCBVIState, optimistic_q, ucbvi
from jaxbandit.types import Array
from jaxbandit.xla.platforms import masks_stores, separate, together

LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""
WRITTEN_FROM = 4
"""Levels from which Q is written down stage by stage: with fewer it is faster to compute it again for the actions, because
XLA does not vectorise loops in which little is done."""
LOOKED_UP_FROM = 48
"""Entries A k from which the visited ones are looked up and put back one by one where selects do not become masked stores;
with fewer, or with masked stores, selects are faster."""
MOST_LEVELS = 20
"""From more levels on the readable form is faster, by measuring on CPUs."""
TERMS = 500
"""Products p V that become one GPU kernel, at most: of more XLA makes many kernels, and compiles for minutes."""
MOST_TERMS = 8000
"""Products p V of a plan, H A k^2, up to which it is written out on GPUs; larger tables run the readable form."""


class Tables(NamedTuple):
    """While the episodes of a call are played; k levels without level 0, stages and lanes as one axis."""

    seen: Array
    """int32 [3 + k, A k, HW]: visits N, those that went on to level s = 1..k, and the sum of rewards in two parts."""
    model: Array
    """float32 [1 + k or 2 + k, A k, HW]: r + b (Hoeffding) or r (Bernstein); p(s), s = 1..k; 1 / N (Bernstein)."""
    values: Array
    """float32 [k, (H+1) W]: V; 0 after stage H."""
    ceiling: Array | None
    """float32 [A, k, HW]: Q, if it bounds the next one."""
    policy: Array
    """int32 [k+1, HW]: the greedy actions; 0 at level 0."""
    scale: Array
    """float32 [HW]: c."""
    log_term: Array
    """float32 [HW]: L."""


def to_lanes(x: Array) -> Array:
    """[W, H, k, A, ...] as [..., A k, HW]."""
    lanes, horizon, width, num_actions = x.shape[:4]
    moved = x.transpose(*range(4, x.ndim), 3, 2, 1, 0)
    return moved.reshape(*x.shape[4:], num_actions * width, horizon * lanes)


def from_lanes(x: Array, shape: tuple[int, ...]) -> Array:
    """[..., A k, HW] as an array of this shape, [W, H, k, A, ...]."""
    lanes, horizon, width, num_actions = shape[:4]
    wide = x.reshape(*shape[4:], num_actions, width, horizon, lanes)
    rest = wide.ndim - 4
    return wide.transpose(rest + 3, rest + 2, rest + 1, rest, *range(rest))


def by_action(x: Array, num_actions: int) -> Array:
    """[..., A k, HW] as [..., A, k, HW]."""
    return x.reshape(*x.shape[:-2], num_actions, -1, x.shape[-1])


def cpu_kernel(bernstein: bool, monotone: bool) -> Kernel:
    """The kernel of a variant."""

    def enter(state: UCBVIState, constants: UCBVIConstants) -> Tables:
        model, (lanes, horizon, _) = state.model, state.values.shape
        rewards = [to_lanes(model.rewards[:, part])[None] for part in range(2)]
        fields = [to_lanes(state.reward)[None], to_lanes(jnp.moveaxis(state.transition, 2, -1))]
        if bernstein:
            inverse = 1 / jnp.maximum(model.visits, 1).astype(jnp.float32)
            fields.append(to_lanes(jnp.where(model.visits > 0, inverse, 0))[None])
        values = to_lanes(state.values[..., None])
        return Tables(
            seen=jnp.concatenate([to_lanes(model.visits)[None], to_lanes(model.moves), *rewards]),
            model=jnp.concatenate(fields),
            values=jnp.concatenate([values, jnp.zeros_like(values[:, :lanes])], axis=1),
            ceiling=None if state.q is None else by_action(to_lanes(state.q), state.q.shape[3]),
            policy=to_lanes(state.policy[..., None]),
            scale=jnp.tile(constants.scale, horizon),
            log_term=jnp.tile(constants.log_term, horizon),
        )

    def act(inner: Tables, keys: Array, constants: UCBVIConstants) -> Array:
        del keys
        lanes = constants.scale.shape[0]
        return jnp.moveaxis(inner.policy.reshape(len(inner.policy), -1, lanes), 0, 1)

    @together
    def renew(inner: Tables, feedback: SemiBanditFeedback) -> Tables:
        """Line by line: counts the episode [HW], refreshes the model where it went, plans backwards, is greedy."""
        width, size = len(inner.values), inner.policy.shape[1]
        entry, target, reward = visited(feedback, jnp.int32(width))
        before, old = read(inner.seen, entry), read(inner.model, entry)
        after = counted(before, target, reward)
        known = modelled(bernstein)(after, inner.scale, inner.log_term)
        seen = write(inner.seen, entry, after, before)
        model = write(inner.model, entry, known, old)
        inner = inner._replace(seen=seen, model=model)
        visits = by_action(seen[0], seen.shape[1] // width)
        plan = plan_tables(
            inner, visits, model, inner.values.shape[1] - size if bernstein else None
        )
        values, actions, ceiling = planned(plan, inner.values)
        policy = join_levels([inner.policy[:1], actions])
        return inner._replace(values=values, ceiling=ceiling, policy=policy)

    def update(inner, policy, feedback, constants, live):
        del policy, constants, live
        return renew(inner, jax.tree.map(lambda x: x.reshape(-1), feedback))

    def leave(inner: Tables, constants: UCBVIConstants) -> UCBVIState:
        lanes, width = constants.scale.shape[0], len(inner.values)
        shape = (lanes, inner.policy.shape[1] // lanes, width, inner.seen.shape[1] // width)
        moves = (*shape, width)
        counts, rewards = inner.seen[: 1 + width], inner.seen[1 + width :]
        return UCBVIState(
            model=Model(
                visits=from_lanes(counts[0], shape),
                moves=from_lanes(counts[1:], moves),
                rewards=jnp.stack([from_lanes(part, shape) for part in rewards], axis=1),
            ),
            reward=from_lanes(inner.model[0], shape),
            transition=jnp.moveaxis(from_lanes(inner.model[1 : 1 + width], moves), -1, 2),
            q=from_lanes(inner.ceiling, shape) if monotone else None,
            values=from_lanes(inner.values[:, :-lanes], (*shape[:3], 1))[..., 0],
            policy=from_lanes(inner.policy, (*shape[:2], width + 1, 1))[..., 0],
            plans=None,
        )

    def fits(horizon: int, width: int, num_actions: int) -> bool:
        del horizon, num_actions
        return width <= MOST_LEVELS

    return Kernel(enter=enter, act=act, update=update, leave=leave, fits=fits)


# The visited entries. Arguments are [..., HW]; inside of `separate` XLA would undo a reshaping.


@separate
def visited(feedback: SemiBanditFeedback, width: Array) -> tuple[Array, Array, Array]:
    """int32 [HW] each: the entry a k + l-1 visited (-1: level 0), next level - 1, 2^30 reward."""
    entry = jnp.where(feedback.levels > 0, feedback.actions * width + feedback.levels - 1, -1)
    return entry, feedback.next_levels - 1, fixed_point(feedback.rewards)


def selects(table: Array) -> bool:
    """Whether the visited entries are selected among all."""
    return masks_stores() or table.shape[1] < LOOKED_UP_FROM


def read(table: Array, entry: Array) -> Array:
    """The fields [F, HW] of the visited entries of [F, A k, HW]; 0 at entry -1."""
    return (_selected if selects(table) else _looked_up)(table, entry)


@separate
def _selected(table: Array, entry: Array) -> Array:
    chosen = [jnp.where((entry == e)[None], table[:, e], 0) for e in range(table.shape[1])]
    return reduce(jnp.add, chosen)


@separate
def _looked_up(table: Array, entry: Array) -> Array:
    return jnp.where(entry[None] >= 0, look_up(table, entry, len(table)), 0)


def write(table: Array, entry: Array, after: Array, before: Array) -> Array:
    """The table with the fields of the visited entries changed from ``before`` to ``after``, bit for bit."""
    if selects(table):
        if masks_stores():
            return _chosen(table, entry, after)
        return _added(table, entry, after, before)

    def put(j: Array, table: Array) -> Array:
        at = (0, jnp.maximum(entry[j], 0), j)
        new = jax.lax.dynamic_slice_in_dim(after, j, 1, 1)[:, None]
        old = jax.lax.dynamic_slice(table, at, new.shape)
        return jax.lax.dynamic_update_slice(table, jnp.where(entry[j] >= 0, new, old), at)

    return jax.lax.fori_loop(0, entry.size, put, table)


@separate
def _chosen(table: Array, entry: Array, after: Array) -> Array:
    entries = jnp.arange(table.shape[1], dtype=jnp.int32)
    return jnp.where(entry[None, None] == entries[None, :, None], after[:, None], table)


@separate
def _added(table: Array, entry: Array, after: Array, before: Array) -> Array:
    entries = jnp.arange(table.shape[1], dtype=jnp.int32)
    here = entry[None, None] == entries[None, :, None]
    change = _bits(after) - _bits(before)
    found = _bits(table) + jnp.where(here, change[:, None], 0)
    return jax.lax.bitcast_convert_type(found, table.dtype)


def _bits(x: Array) -> Array:
    return jax.lax.bitcast_convert_type(x, jnp.int32)


@separate
def counted(seen: Array, target: Array, reward: Array) -> Array:
    """Fields [3 + k, HW] after one more visit that led to ``target`` and paid ``reward``."""
    field = jax.lax.broadcasted_iota(jnp.int32, seen.shape, 0)
    fraction = (seen[-1] + reward)[None]
    counts = seen + ((field == 0) | (field - 1 == target[None])).astype(jnp.int32)
    last = len(seen) - 1
    whole = jnp.where(field == last - 1, seen + (fraction >> FRACTION_BITS), counts)
    return jnp.where(field == last, fraction & (2**FRACTION_BITS - 1), whole)


@cache
def modelled(bernstein: bool):
    """The model of visited entries, from `Tables.seen` of them [3 + k, HW]."""

    @separate
    def model(seen: Array, scale: Array, log_term: Array) -> Array:
        counts = seen[:-2]
        inverse = 1 / counts[:1].astype(jnp.float32)
        first = reward_sum(seen[-2:])[None] * inverse
        if not bernstein:
            first = first + (scale * jnp.sqrt(log_term))[None] * jnp.sqrt(inverse)
        # One select over all fields: pieces put together are not vectorised.
        field = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 0)
        known = jnp.where(field == 0, first, counts.astype(jnp.float32) * inverse)
        return jnp.concatenate([known, inverse]) if bernstein else known

    return model


# Planning.


class PlanTables(NamedTuple):
    """What backward induction reads."""

    model: Array
    """float32 [F, A, k, HW]."""
    doubt: Array | None
    """float32 [k, HW], see `doubt`; None with the Hoeffding bonus."""
    ceiling: Array | None
    """float32 [A, k, HW]: the Q of the episode before, if it bounds this one; else None."""
    scale: Array
    """float32 [HW]: c."""
    log_term: Array
    """float32 [HW]: L."""


def plan_tables(inner: Any, visits: Array, model: Array, lanes: int | None) -> PlanTables:
    """Of N [A, k, HW] and a model [F, A k, HW]; ``lanes``: W, with the Bernstein bonus."""
    return PlanTables(
        model=model.reshape(-1, *visits.shape),
        doubt=None if lanes is None else doubt(visits, inner.log_term, lanes),
        ceiling=inner.ceiling,
        scale=inner.scale,
        log_term=inner.log_term,
    )


def planned(plan: PlanTables, values: Array) -> tuple[Array, Array, Array | None]:
    """V [k, (H+1) W], the greedy actions [k, HW] and, if it is kept, Q [A, k, HW]; ``values``: V of before."""
    size = plan.model.shape[3]
    lanes = values.shape[1] - size
    found, actions = [values[:, size:]], []
    written = len(values) >= WRITTEN_FROM and plan.ceiling is None
    for i in reversed(range(size // lanes)):
        if written:
            q = _q_at(i, lanes)(plan, found[-1])
            flat = q.reshape(len(q), -1)  # long loops
            found.append(_largest(flat).reshape(found[0].shape))
            actions.append(_first_best(flat).reshape(found[0].shape))
        else:
            found.append(_value_at(i, lanes)(plan, found[-1]))
    values = join_stages(found[::-1])
    if written:
        return values, join_stages(actions[::-1]), None
    ceiling = None if plan.ceiling is None else q_of_all(plan, values)
    return values, _greedy(plan, values), ceiling


def at_stage(plan: PlanTables, i: int, lanes: int) -> PlanTables:
    """The lanes of a stage."""
    return jax.tree.map(lambda x: x[..., i * lanes : (i + 1) * lanes], plan)


@cache
def _value_at(i: int, lanes: int):
    """V of a stage [k, W] from that of the next: it takes whole tables, so that no slice is copied."""

    @separate
    def value(plan: PlanTables, tail: Array) -> Array:
        return largest(q_of(at_stage(plan, i, lanes), list(tail)))

    return value


@cache
def _q_at(i: int, lanes: int):
    """Q of a stage [A, k, W], for all actions at once."""

    @separate
    def q(plan: PlanTables, tail: Array) -> Array:
        here = at_stage(plan, i, lanes)
        return q_of_fields(here, list(here.model), list(tail))

    return q


@separate
def _greedy(plan: PlanTables, values: Array) -> Array:
    return best(q_of(plan, _next(values, plan)))[1]


@separate
def q_of_all(plan: PlanTables, values: Array) -> Array:
    """Q [A, k, HW] of all stages, from V [k, (H+1) W]."""
    return jnp.stack(q_of(plan, _next(values, plan)))


def _next(values: Array, plan: PlanTables) -> list[Array]:
    """V [HW] of each level at the next stage: W places further on."""
    return [row[row.size - plan.model.shape[3] :] for row in values]


def larger(x: Array, y: Array) -> Array:
    """The maximum of numbers: one instruction, where ``jnp.maximum`` also looks for nan."""
    return jnp.where(y > x, y, x)


def smaller(x: Array, y: Array) -> Array:
    """The minimum of numbers."""
    return jnp.where(x < y, x, y)


def best(q: Sequence[Array]) -> tuple[Array, Array]:
    """The largest Q, and the first action that has it."""
    value, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > value
        value, action = jnp.where(better, q[a], value), jnp.where(better, a, action)
    return value, action


@separate
def _first_best(q: Array) -> Array:
    return best(list(q))[1]


largest = partial(reduce, larger)
_largest = separate(largest)
join_levels = separate(jnp.concatenate)
join_stages = separate(partial(jnp.concatenate, axis=1))


def q_of(plan: PlanTables, tails: list[Array]) -> list[Array]:
    """Q of each action [k, ...], where V at level s of the next stage is tails[s - 1]."""
    found = []
    for a in range(plan.model.shape[1]):
        # Every field is cut out of its table in one step: what is cut twice, XLA copies.
        fields = [plan.model[f, a] for f in range(len(plan.model))]
        q = q_of_fields(plan, fields, tails)
        found.append(q if plan.ceiling is None else smaller(q, plan.ceiling[a]))
    return found


def q_of_fields(plan: PlanTables, fields: list[Array], tails: list[Array]) -> Array:
    """Q where the model has these fields, clipped at 1; of a `plan` with a doubt by the Bernstein bonus.

    As `jaxbandit.learners.ucbvi.bernstein_q`.
    """

    def spread(x: Array) -> Array:
        return jnp.expand_dims(x, tuple(range(fields[0].ndim - x.ndim)))

    def expected(tails: list[Array]) -> Array:
        """sum_s p(s | l, a) tails[s]."""
        return reduce(jnp.add, [fields[1 + s] * spread(tail) for s, tail in enumerate(tails)])

    if plan.doubt is None:
        q = fields[0] + expected(tails)
        return smaller(q, jnp.ones_like(q))
    mean, inverse, log_term = jnp.clip(fields[0], 0, 1), fields[-1], spread(plan.log_term)
    value = expected(tails)
    variance = jnp.maximum(expected([tail**2 for tail in tails]) - value**2, 0)
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * expected(list(plan.doubt)))
    )
    q = mean + spread(plan.scale) * bonus + value
    return smaller(q, jnp.ones_like(q))


def doubt(visits: Array, log_term: Array, lanes: int) -> Array:
    """`jaxbandit.learners.ucbvi.unknown` as [k, HW], of visits [A, k, HW]."""
    num_actions, width, size = visits.shape
    arrivals = jnp.maximum(reduce(jnp.add, list(visits))[:, lanes:], 1)
    factor = 1e4 * (size // lanes) * width**2 * num_actions * log_term[lanes:] ** 2
    found = jnp.minimum(factor[None] / arrivals.astype(jnp.float32), 1)
    return jnp.concatenate([found, jnp.zeros((width, lanes), jnp.float32)], axis=1)


# For GPUs.


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


def gpu_kernel(bernstein: bool, monotone: bool) -> Kernel:
    """The kernel of a variant."""
    on_cpu = cpu_kernel(bernstein, monotone)

    def sizes(inner: Words) -> tuple[int, int, int, int]:
        """H, k, A, W."""
        lanes, width = inner.policy[0][0].shape[0], len(inner.policy)
        return inner.scale.size // lanes, width, inner.table.shape[1] // width, lanes

    def plan_of(inner: Words) -> PlanTables:
        _, width, num_actions, lanes = sizes(inner)
        model = jax.lax.bitcast_convert_type(inner.table[3 + width :], jnp.float32)
        visits = by_action(inner.table[0], num_actions)
        return plan_tables(inner, visits, model, lanes if bernstein else None)

    def enter(state: UCBVIState, constants: UCBVIConstants) -> Words:
        given: Tables = on_cpu.enter(state, constants)
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

    def update(inner, policy, feedback, constants, live):
        """Where it is not live, no entry is visited, and planning finds what it found before."""
        del policy, constants
        width = len(inner.policy)
        seen = jax.tree.map(lambda x: x.reshape(-1), feedback)
        entry, target, reward = visited(seen, jnp.int32(width))
        entry = jnp.where(live, entry, -1)
        entry, target, reward = jax.lax.optimization_barrier((entry, target, reward))
        after = counted(look_up(inner.table, entry, 3 + width), target, reward)
        known = modelled(bernstein)(after, inner.scale, inner.log_term)
        fields = jnp.concatenate([after, jax.lax.bitcast_convert_type(known, jnp.int32)])
        inner = inner._replace(table=put_back(inner.table, entry, fields))
        plan = plan_of(inner)
        values, actions = plan_by_lanes(plan, sizes(inner)[3])
        ceiling = None
        if monotone:
            ended = jnp.concatenate([values, jnp.zeros_like(values[:, :1])], axis=1)
            ceiling = q_of_all(plan, ended.reshape(width, -1))
        return inner._replace(policy=actions, ceiling=ceiling)

    def leave(inner: Words, constants: UCBVIConstants) -> UCBVIState:
        _, width, _, lanes = sizes(inner)
        given = Tables(
            seen=inner.table[: 3 + width],
            model=jax.lax.bitcast_convert_type(inner.table[3 + width :], jnp.float32),
            values=jnp.zeros((width, inner.scale.size + lanes), jnp.float32),
            ceiling=inner.ceiling,
            policy=actions_of(inner).reshape(width + 1, -1),
            scale=inner.scale,
            log_term=inner.log_term,
        )
        state: UCBVIState = on_cpu.leave(given, constants)
        q = jax.vmap(partial(optimistic_q, bernstein=bernstein))(state, constants)
        return state._replace(values=jnp.max(q, axis=-1))

    def fits(horizon: int, width: int, num_actions: int) -> bool:
        return horizon * num_actions * width**2 <= MOST_TERMS

    return Kernel(enter=enter, act=act, update=update, leave=leave, fits=fits)


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
    return table.reshape(-1).at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)


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


def plan_by_lanes(plan: PlanTables, lanes: int) -> tuple[Array, list[list[Array]]]:
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
        here = at_stage(plan, i, lanes)
        found = [_best_at(level, tails, here) for level in range(width)]
        tails = [value for value, _ in found]
        values.append(tails)
        for level, (_, action) in enumerate(found):
            words[level][i // per] |= action << (bits * (i % per))
        if i * pieces // horizon != (i - 1) * pieces // horizon and i > 0:
            # In the shape that everything around has: XLA does not fuse well across a change of shape.
            wide = jax.tree.map(lambda x: x[None], (tails, words))
            tails, words = jax.tree.map(lambda x: x[0], jax.lax.optimization_barrier(wide))
    return jnp.stack([jnp.stack([x[level] for x in values[::-1]]) for level in range(width)]), words


def _best_at(level: int, tails: list[Array], plan: PlanTables) -> tuple[Array, Array]:
    """V at one level of a stage, and the first action that has it, [W]."""
    one = slice(level, level + 1)
    ceiling = None if plan.ceiling is None else plan.ceiling[:, one]
    value, action = best(q_of(plan._replace(model=plan.model[:, :, one], ceiling=ceiling), tails))
    return value[0], action[0]


MAKERS: dict[str, Callable[[bool, bool], Kernel]] = {"cpu": cpu_kernel, "gpu": gpu_kernel}
KERNELS = [
    (ucbvi(bonus=bonus, monotone=monotone), platform, make(bonus == "bernstein", monotone))
    for platform, make in MAKERS.items()
    for bonus in ("hoeffding", "bernstein")
    for monotone in (False, True)
]
