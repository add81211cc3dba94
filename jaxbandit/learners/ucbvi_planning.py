"""Backward induction of UCB-VI: the values of all stages, and the greedy actions."""

from __future__ import annotations

from functools import cache, reduce

import jax
import jax.numpy as jnp

from jaxbandit.learners.ucbvi_counts import spread
from jaxbandit.learners.ucbvi_straight import plan_by_lanes
from jaxbandit.learners.ucbvi_values import Plan, UCBVIConstants, q_of
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate
from jaxbandit.xla.platforms import active

LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""


def optimistic_values(plan: Plan, constants: UCBVIConstants) -> Array:
    """V of all stages, float32 [k, H, *lanes], by backward induction."""
    width, horizon = plan.model.shape[2:4]
    tail = jnp.zeros_like(plan.model[0, 0, :, 0])
    if horizon > LONGEST_UNROLLED:
        stages = jax.tree.map(lambda x: jnp.moveaxis(x, -tail.ndim, 0), plan)

        def back(tail, stage):
            value = _value(stage, tail, *constants)
            return value, value

        values = jax.lax.scan(back, tail, stages, reverse=True)[1]
        return jnp.moveaxis(values, 0, 1)
    if active().straight:
        return plan_by_lanes(plan, constants)
    found = []
    for i in reversed(range(horizon)):
        tail = _value_of(i, width)(plan, tail, *constants)
        found.append(tail[:, None])
    return jnp.concatenate(found[::-1], axis=1)


@cache
def _value_of(i: int, width: int):
    """`_value` of a stage that is known while compiling: it takes the whole tables, so that no slice is copied."""
    del width

    def value(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
        stage = Plan(
            plan.model[:, :, :, i],
            None if plan.doubt is None else plan.doubt[:, i],
            None if plan.ceiling is None else plan.ceiling[:, :, i],
        )
        return _value(stage, tail, scale, log_term)

    return separate(value)


def _value(stage: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    """V of a stage [k, *lanes], where V of the next stage is ``tail`` [k, *lanes]."""
    tails = [tail[s] for s in range(tail.shape[0])]
    return reduce(jnp.maximum, q_of(stage, tails, scale, log_term))


def greedy(plan: Plan, values: Array, constants: UCBVIConstants) -> tuple[Array, Array | None]:
    """The greedy actions int32 [k, H, *lanes] and, if it is kept, Q [A, k, H, *lanes]; all stages at once."""
    after = jnp.concatenate([values[:, 1:], jnp.zeros_like(values[:, :1])], axis=1)

    def flat(x, leading):
        return None if x is None else x.reshape(*x.shape[:leading], -1)

    arguments = (
        Plan(flat(plan.model, 3), flat(plan.doubt, 1), flat(plan.ceiling, 2)),
        flat(after, 1),
        *(spread(x, values.shape[1:]) for x in constants),
    )
    actions = _argmax_flat(*arguments).reshape(values.shape)
    if plan.ceiling is None:
        return actions, None
    return actions, _q_flat(*arguments).reshape(plan.ceiling.shape)


@separate
def _argmax_flat(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    q = q_of(plan, list(tail), scale, log_term)
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return action


@separate
def _q_flat(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    return jnp.stack(q_of(plan, list(tail), scale, log_term))


@separate
def policy_table(actions: Array) -> Array:
    """[k, H, *lanes] as a policy [H, k+1, *lanes]."""
    return jnp.moveaxis(jnp.concatenate([jnp.zeros_like(actions[:1]), actions]), 0, 1)
