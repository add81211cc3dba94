"""Planning of UCB-VI as straight-line code, for platforms where a loop over stages costs a launch per turn."""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp

from jaxbandit.learners.ucbvi_values import Plan, UCBVIConstants, q_of
from jaxbandit.types import Array


def plan_by_lanes(plan: Plan, constants: UCBVIConstants) -> Array:
    """The same, level by level on arrays [*lanes]: a compiler that fuses at will makes few kernels of it."""
    width, horizon = plan.model.shape[2:4]
    tails = [jnp.zeros_like(constants.scale)] * width
    found = []
    for i in reversed(range(horizon)):
        tails = [_value_at(plan, level, i, tails, constants) for level in range(width)]
        found.append(tails)
    return jnp.stack([jnp.stack([tails[level] for tails in found[::-1]]) for level in range(width)])


def _value_at(
    plan: Plan, level: int, i: int, tails: list[Array], constants: UCBVIConstants
) -> Array:
    """V at one level of a stage, [*lanes]."""

    def here(table, leading):
        return (
            None
            if table is None
            else table[(slice(None),) * leading + (slice(level, level + 1), i)]
        )

    stage = Plan(here(plan.model, 2), None, here(plan.ceiling, 1))
    if plan.doubt is not None:
        stage = stage._replace(doubt=plan.doubt[:, i])
    return reduce(jnp.maximum, q_of(stage, tails, *constants))[0]
