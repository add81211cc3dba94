"""Planning of UCB-VI as straight-line code, for platforms where a loop over stages costs a launch per turn."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp

from jaxbandit.learners.ucbvi_values import Plan, UCBVIConstants, larger, q_of
from jaxbandit.types import Array

VALUES = 40
"""Values V_{l,i} that become one kernel, at most: compilation takes longer than in proportion to them."""


def plan_by_lanes(plan: Plan, constants: UCBVIConstants) -> Array:
    """The same, level by level on arrays [*lanes]: a compiler that fuses at will makes few kernels of it."""
    width, horizon = plan.model.shape[2:4]
    tails = [jnp.zeros_like(constants.scale[0])] * width
    found = []
    for i in reversed(range(horizon)):
        tails = [_value_at(plan, level, i, tails, constants) for level in range(width)]
        if (horizon - i) % max(1, VALUES // width) == 0:
            tails = jax.lax.optimization_barrier(tails)
        found.append(tails)
    return jnp.stack([jnp.stack([tails[level] for tails in found[::-1]]) for level in range(width)])


def _value_at(
    plan: Plan, level: int, i: int, tails: list[Array], constants: UCBVIConstants
) -> Array:
    """V at one level of a stage, [*lanes]."""

    scale, log_term = (x[i] for x in constants)
    found = q_of(plan, tails, scale, log_term, (slice(level, level + 1), i))
    return reduce(larger, found)[0]
