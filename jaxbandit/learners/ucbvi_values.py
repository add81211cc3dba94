"""The optimistic Q of UCB-VI, for any stages, levels and lanes at once; who plans decides which."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandit.types import Array


class UCBVIConstants(NamedTuple):
    """What does not change; the same at every stage, for kernels that run over stages and lanes as one axis."""

    scale: Array
    """float32 [H, *lanes]: c, the bonus scale."""
    log_term: Array
    """float32 [H, *lanes]: L."""


class PlanTables(NamedTuple):
    """What backward induction reads."""

    model: Array
    """float32 [F, A, k, H, *lanes]."""
    doubt: Array | None
    """float32 [k, H, *lanes], see `doubt`; None with the Hoeffding bonus."""
    ceiling: Array | None
    """float32 [A, k, H, *lanes]: the Q of the episode before, if it bounds this one; else None."""


def q_of(
    plan: PlanTables, tails: list[Array], scale: Array, log_term: Array, at: tuple[Any, ...] = ()
) -> list[Array]:
    """Q of each action at the levels and stages ``at`` of the plan, where V at level s of the next stage is tails[s - 1].

    Every field is cut out of its table in one step: what is cut twice, XLA copies.
    """
    doubts = None
    if plan.doubt is not None:
        doubts = [plan.doubt[(s, *at[1:])] for s in range(len(tails))]
    found = []
    for a in range(plan.model.shape[1]):
        fields = [plan.model[(f, a, *at)] for f in range(plan.model.shape[0])]
        q = q_of_fields(fields, tails, doubts, scale, log_term)
        found.append(q if plan.ceiling is None else smaller(q, plan.ceiling[(a, *at)]))
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
        q = fields[0] + _next_value(fields, tails)
    else:
        q = _bernstein(fields, tails, doubts, scale, log_term)
    return smaller(q, jnp.ones_like(q))


def smaller(x: Array, y: Array) -> Array:
    """The minimum of numbers: one instruction, where ``jnp.minimum`` also looks for nan."""
    return jnp.where(x < y, x, y)


def larger(x: Array, y: Array) -> Array:
    """The maximum of numbers."""
    return jnp.where(y > x, y, x)


def _next_value(fields: list[Array], tails: list[Array]) -> Array:
    """sum_s p(s | l, a) tails[s], [k, ...]."""
    return reduce(jnp.add, [fields[1 + s] * tail[None] for s, tail in enumerate(tails)])


def doubt(visits: Array, log_term: Array) -> Array:
    """min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1) as [k, H, *lanes]; 0 at the last stage: V is known after it."""
    num_actions, width, horizon = visits.shape[:3]
    arrivals = jnp.maximum(reduce(jnp.add, [visits[a, :, 1:] for a in range(num_actions)]), 1)
    factor = 1e4 * horizon * width**2 * num_actions * log_term**2
    found = jnp.minimum(factor[None, None] / arrivals.astype(jnp.float32), 1)
    return jnp.concatenate([found, jnp.zeros_like(visits[0, :, :1], jnp.float32)], axis=1)


def _bernstein(
    fields: list[Array], tails: list[Array], doubts: list[Array], scale: Array, log_term: Array
) -> Array:
    """r + p V + b of an action, [k, ...]; 1 where it was never tried."""
    tried = (fields[-1] > 0).astype(jnp.float32)
    mean, inverse = jnp.clip(fields[0], 0, 1), fields[-1]
    value = _next_value(fields, tails)
    variance = jnp.maximum(_next_value(fields, [tail**2 for tail in tails]) - value**2, 0)
    log_term = log_term[None]
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * _next_value(fields, doubts))
    )
    return mean + scale[None] * bonus * tried + value
