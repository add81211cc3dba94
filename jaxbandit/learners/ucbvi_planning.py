"""Backward induction of UCB-VI: the values of all stages, and the greedy actions."""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.learners.ucbvi_values import PlanTables, UCBVIConstants, larger, q_of, q_of_fields
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate

LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""

WRITTEN_FROM = 4
"""Levels from which Q is written down stage by stage: with fewer it is faster to compute it again for the actions, because
XLA does not vectorise loops in which little is done."""


def planned(
    plan: PlanTables, constants: UCBVIConstants, values: Array
) -> tuple[Array, Array, Array | None]:
    """V written over ``values``, the greedy actions and, if it is kept, Q: see `optimistic_values` and `greedy`."""
    width, horizon = plan.model.shape[2:4]
    if width < WRITTEN_FROM or horizon > LONGEST_UNROLLED or plan.ceiling is not None:
        values = optimistic_values(plan, constants, values)
        return values, *greedy(plan, values, constants)
    tail = values[:, horizon]
    found, actions = [tail], []
    for i in reversed(range(horizon)):
        q = _q_at(i)(plan, found[-1], constants)
        flat = q.reshape(len(q), -1)  # long loops
        found.append(_max(flat).reshape(tail.shape))
        actions.append(_argmax(flat).reshape(tail.shape))
    return _by_levels(found), _by_levels(actions), None


def optimistic_values(plan: PlanTables, constants: UCBVIConstants, values: Array) -> Array:
    """V by backward induction, written over ``values`` float32 [k, H+1, *lanes], whose last stage is 0."""
    horizon = plan.model.shape[3]
    if horizon > LONGEST_UNROLLED:
        return values.at[:, :horizon].set(values_by_stages(plan, constants))
    found = [values[:, horizon]]
    for i in reversed(range(horizon)):
        found.append(_value_of(i)(plan, found[-1], constants))
    return _by_levels(found)


def _by_levels(stages: list[Array]) -> Array:
    """[k, H, *lanes] of what was found at the stages [k, *lanes], the last one first.

    Put together in one go, with stages and lanes as one axis: written one by one they are copied, number by number.
    """
    width, *lanes = stages[0].shape
    joined = _side_by_side(*(x.reshape(width, -1) for x in stages[::-1]))
    return joined.reshape(width, len(stages), *lanes)


@separate
def one_below_the_other(*pieces: Array) -> Array:
    """The pieces joined along their first axis."""
    return jnp.concatenate(pieces)


@separate
def _side_by_side(*pieces: Array) -> Array:
    return jnp.concatenate(pieces, axis=1)


def values_by_stages(plan: PlanTables, constants: UCBVIConstants) -> Array:
    """V float32 [k, H, *lanes] by a loop over stages."""
    tail = jnp.zeros_like(plan.model[0, 0, :, 0])
    stages = jax.tree.map(lambda x: jnp.moveaxis(x, -tail.ndim, 0), plan)

    def back(tail, stage):
        value = _value(stage, tail, *(x[0] for x in constants))
        return value, value

    return jnp.moveaxis(jax.lax.scan(back, tail, stages, reverse=True)[1], 0, 1)


@cache
def _value_of(i: int):
    """`_value` of a stage that is known while compiling: it takes whole tables, so that no slice is copied."""

    @separate
    def value(plan: PlanTables, tail: Array, constants: UCBVIConstants) -> Array:
        scale, log_term = (x[i] for x in constants)
        return _value(plan, tail, scale, log_term, at=(slice(None), i))

    return value


def _value(
    plan: PlanTables, tail: Array, scale: Array, log_term: Array, at: tuple[Any, ...] = ()
) -> Array:
    """V of a stage [k, *lanes], where V of the next stage is ``tail`` [k, *lanes]."""
    tails = [tail[s] for s in range(tail.shape[0])]
    return reduce(larger, q_of(plan, tails, scale, log_term, at))


def greedy(
    plan: PlanTables, values: Array, constants: UCBVIConstants
) -> tuple[Array, Array | None]:
    """The greedy actions int32 [k, H, *lanes] and, if it is kept, Q [A, k, H, *lanes]; all stages at once."""
    shape = plan.model.shape[2:]

    def flat(x, leading):
        return None if x is None else x.reshape(*x.shape[:leading], -1)

    arguments = (
        PlanTables(flat(plan.model, 3), flat(plan.doubt, 1), flat(plan.ceiling, 2)),
        flat(values, 1),
        *(x.reshape(-1) for x in constants),
    )
    actions = _argmax_flat(*arguments).reshape(shape)
    if plan.ceiling is None:
        return actions, None
    return actions, _q_flat(*arguments).reshape(plan.ceiling.shape)


def _q_of_all(plan: PlanTables, values: Array, scale: Array, log_term: Array) -> list[Array]:
    """Q of each action, [k, HW], from V [k, HW + W]: that of the next stage is W places further on."""
    lanes = values.shape[1] - plan.model.shape[3]
    return q_of(plan, [row[lanes:] for row in values], scale, log_term)


@cache
def _q_at(i: int):
    """Q of a stage [A, k, *lanes], see `_value_of`."""

    @separate
    def q(plan: PlanTables, tail: Array, constants: UCBVIConstants) -> Array:
        model, levels = plan.model[:, :, :, i], range(len(tail))
        doubts = None if plan.doubt is None else [plan.doubt[s, i][None] for s in levels]
        tails = [tail[s][None] for s in levels]
        return q_of_fields(list(model), tails, doubts, *(x[i][None] for x in constants))

    return q


@separate
def _max(q: Array) -> Array:
    return reduce(larger, list(q))


@separate
def _argmax(q: Array) -> Array:
    return first_best(list(q))


@separate
def _argmax_flat(plan: PlanTables, values: Array, scale: Array, log_term: Array) -> Array:
    return first_best(_q_of_all(plan, values, scale, log_term))


def first_best(q: list[Array]) -> Array:
    """The first action of the largest Q."""
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return action


@separate
def _q_flat(plan: PlanTables, values: Array, scale: Array, log_term: Array) -> Array:
    return jnp.stack(_q_of_all(plan, values, scale, log_term))
