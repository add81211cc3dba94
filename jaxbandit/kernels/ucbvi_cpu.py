"""UCB-VI for CPUs: lanes in the last axis, barriers between kernels, planning unrolled over stages.

Arrays are [..., action, level, stage, lane] with stages and lanes as one axis [HW]: XLA vectorises long loops only, and
cuts an index of two axes out of one the slow way. Every step is a kernel of its own (`separate`), because XLA computes
a value again for each of its uses, and all of them are one call (`together`), because starting a kernel costs more than
the arithmetic of a few lanes.

Counts, rewards and model are renewed where the episode went: the fields of the visited entries are read by a sum of
selects (gathers are not vectorised). They are written by a select between the table and the new fields, which becomes a
masked store; where the processor takes a hundred times as long for one, by adding what changes. The bits are the same.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.kernels.kernel import Kernel
from jaxbandit.learners.model import FRACTION_BITS, Model, fixed_point, reward_sum
from jaxbandit.learners.ucbvi import UCBVIConstants, UCBVIState, ucbvi
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together
from jaxbandit.xla.platforms import masks_stores

LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""
WRITTEN_FROM = 4
"""Levels from which Q is written down stage by stage: with fewer it is faster to compute it again for the actions, because
XLA does not vectorise loops in which little is done."""
LOOKED_UP_FROM = 48
"""Entries A k from which the visited ones are looked up and put back one by one where selects do not become masked stores;
with fewer, or with masked stores, selects are faster."""
MOST_LEVELS = 20
"""From more levels on the readable form is faster."""


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


def kernel_of(bernstein: bool, monotone: bool) -> Kernel:
    """The kernel of a variant."""

    def enter(state: UCBVIState, keys: Array, constants: UCBVIConstants) -> Tables:
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
        shape = (seen.shape[1] // width, width, size)
        unknown = None
        if bernstein:
            unknown = doubt(seen[0].reshape(shape), inner.log_term, inner.values.shape[1] - size)
        plan = PlanTables(model.reshape(-1, *shape), unknown, inner.ceiling)
        values, actions, ceiling = planned(plan, inner.scale, inner.log_term, inner.values)
        policy = one_below_the_other(inner.policy[:1], actions)
        return inner._replace(seen=seen, model=model, values=values, ceiling=ceiling, policy=policy)

    def update(
        inner: Tables,
        policy: Array,
        feedback: SemiBanditFeedback,
        constants: UCBVIConstants,
        live: Any,
    ) -> Tables:
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

    return Kernel(enter=enter, act=act, update=update, leave=leave, fits=fits)


def fits(horizon: int, width: int, num_actions: int) -> bool:
    """By measuring: with more levels the readable form is faster."""
    del horizon, num_actions
    return width <= MOST_LEVELS


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
    field, place = (
        jax.lax.broadcasted_iota(jnp.int32, (len(table), entry.size), axis) for axis in (0, 1)
    )
    at = (field * table.shape[1] + jnp.maximum(entry, 0)[None]) * entry.size + place
    found = table.reshape(-1).at[at].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return jnp.where(entry[None] >= 0, found, 0)


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


def planned(
    plan: PlanTables, scale: Array, log_term: Array, values: Array
) -> tuple[Array, Array, Array | None]:
    """V [k, (H+1) W], the greedy actions [k, HW] and, if it is kept, Q [A, k, HW]; ``values``: V of before."""
    size = plan.model.shape[3]
    lanes = values.shape[1] - size
    tail = values[:, size:]
    found, actions = [tail], []
    horizon = size // lanes
    written = len(values) >= WRITTEN_FROM and plan.ceiling is None
    for i in reversed(range(horizon)):
        if written:
            q = _q_at(i, lanes)(plan, found[-1], scale, log_term)
            flat = q.reshape(len(q), -1)  # long loops
            found.append(_max(flat).reshape(tail.shape))
            actions.append(_first_best(flat).reshape(tail.shape))
        else:
            found.append(_value_at(i, lanes)(plan, found[-1], scale, log_term))
    values = _side_by_side(*found[::-1])
    if written:
        return values, _side_by_side(*actions[::-1]), None
    actions = _argmax(plan, values, scale, log_term)
    if plan.ceiling is None:
        return values, actions, None
    return values, actions, q_of_all(plan, values, scale, log_term)


def at_stage(x: Any, i: int, lanes: int) -> Any:
    """The lanes of a stage, of arrays [..., HW]."""
    return jax.tree.map(lambda x: x[..., i * lanes : (i + 1) * lanes], x)


@cache
def _value_at(i: int, lanes: int):
    """V of a stage [k, W] from that of the next: it takes whole tables, so that no slice is copied."""

    @separate
    def value(plan: PlanTables, tail: Array, scale: Array, log_term: Array) -> Array:
        here = at_stage((plan, scale, log_term), i, lanes)
        return reduce(larger, q_of(here[0], list(tail), *here[1:]))

    return value


@cache
def _q_at(i: int, lanes: int):
    """Q of a stage [A, k, W], for all actions at once."""

    @separate
    def q(plan: PlanTables, tail: Array, scale: Array, log_term: Array) -> Array:
        plan, scale, log_term = at_stage((plan, scale, log_term), i, lanes)
        doubts = None if plan.doubt is None else [x[None] for x in plan.doubt]
        tails = [x[None] for x in tail]
        return q_of_fields(list(plan.model), tails, doubts, scale[None], log_term[None])

    return q


@separate
def _argmax(plan: PlanTables, values: Array, scale: Array, log_term: Array) -> Array:
    return first_best(q_of(plan, _next(values, plan), scale, log_term))


@separate
def q_of_all(plan: PlanTables, values: Array, scale: Array, log_term: Array) -> Array:
    """Q [A, k, HW] of all stages, from V [k, (H+1) W]."""
    return jnp.stack(q_of(plan, _next(values, plan), scale, log_term))


def _next(values: Array, plan: PlanTables) -> list[Array]:
    """V [HW] of each level at the next stage: W places further on."""
    return [row[row.size - plan.model.shape[3] :] for row in values]


@separate
def _max(q: Array) -> Array:
    return reduce(larger, list(q))


@separate
def _first_best(q: Array) -> Array:
    return first_best(list(q))


@separate
def one_below_the_other(*pieces: Array) -> Array:
    """The pieces joined along their first axis."""
    return jnp.concatenate(pieces)


@separate
def _side_by_side(*pieces: Array) -> Array:
    return jnp.concatenate(pieces, axis=1)


def first_best(q: list[Array]) -> Array:
    """The first action of the largest Q."""
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return action


def q_of(plan: PlanTables, tails: list[Array], scale: Array, log_term: Array) -> list[Array]:
    """Q of each action [k, ...], where V at level s of the next stage is tails[s - 1]."""
    doubts = None if plan.doubt is None else list(plan.doubt)
    found = []
    for a in range(plan.model.shape[1]):
        # Every field is cut out of its table in one step: what is cut twice, XLA copies.
        fields = [plan.model[f, a] for f in range(plan.model.shape[0])]
        q = q_of_fields(fields, tails, doubts, scale, log_term)
        found.append(q if plan.ceiling is None else smaller(q, plan.ceiling[a]))
    return found


def q_of_fields(
    fields: list[Array],
    tails: list[Array],
    doubts: list[Array] | None,
    scale: Array,
    log_term: Array,
) -> Array:
    """Q where the model has these fields, clipped at 1; ``tails`` and ``doubts`` by level of the next stage."""
    if doubts is None:
        q = fields[0] + _expected(fields, tails)
    else:
        q = _bernstein_q(fields, tails, doubts, scale, log_term)
    return smaller(q, jnp.ones_like(q))


def smaller(x: Array, y: Array) -> Array:
    """The minimum of numbers: one instruction, where ``jnp.minimum`` also looks for nan."""
    return jnp.where(x < y, x, y)


def larger(x: Array, y: Array) -> Array:
    """The maximum of numbers."""
    return jnp.where(y > x, y, x)


def _expected(fields: list[Array], tails: list[Array]) -> Array:
    """sum_s p(s | l, a) tails[s], [k, ...]."""
    return reduce(jnp.add, [fields[1 + s] * tail[None] for s, tail in enumerate(tails)])


def _bernstein_q(
    fields: list[Array], tails: list[Array], doubts: list[Array], scale: Array, log_term: Array
) -> Array:
    """As `jaxbandit.learners.ucbvi.bernstein_q`, [k, ...]."""
    mean, inverse = jnp.clip(fields[0], 0, 1), fields[-1]
    value = _expected(fields, tails)
    variance = jnp.maximum(_expected(fields, [tail**2 for tail in tails]) - value**2, 0)
    log_term = log_term[None]
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * _expected(fields, doubts))
    )
    return mean + scale[None] * bonus + value


def doubt(visits: Array, log_term: Array, lanes: int) -> Array:
    """`jaxbandit.learners.ucbvi.unknown` as [k, HW], of visits [A, k, HW]."""
    num_actions, width, size = visits.shape
    arrivals = jnp.maximum(reduce(jnp.add, list(visits))[:, lanes:], 1)
    factor = 1e4 * (size // lanes) * width**2 * num_actions * log_term[lanes:] ** 2
    found = jnp.minimum(factor[None] / arrivals.astype(jnp.float32), 1)
    return jnp.concatenate([found, jnp.zeros((width, lanes), jnp.float32)], axis=1)


KERNELS = [
    (ucbvi(bonus=bonus, monotone=monotone), "cpu", kernel_of(bonus == "bernstein", monotone))
    for bonus in ("hoeffding", "bernstein")
    for monotone in (False, True)
]
