"""Random MDPs, for property tests and for sweeps over unstructured instances.

Every (state, action) has its own ``num_outcomes`` outcomes with probabilities uniform on the
simplex and rewards uniform on [0, 1/H], so that no run collects more than 1.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.specs import Whole, takes
from jaxbandit.types import Array
from jaxbandit.xla.threefry import single_key

SIZES = takes(horizon=Whole(1), width=Whole(1), num_actions=Whole(1), num_outcomes=Whole(1))

PROBABILITIES, REWARDS, LEVELS = 0, 1, 2
"""Roles of the keys folded in."""


@checks.single_precision
@SIZES
def random_general(
    key: Any, horizon: int, width: int, num_actions: int, num_outcomes: int = 3
) -> MDP:
    """A general MDP (Section 2): next levels uniform on 1..k, starting at level 1, without an
    order.

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of stages.
        width: k, the number of levels besides 0.
        num_actions: A, the actions of every state.
        num_outcomes: M, the outcomes of every state and action.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("random-general", key=jax.random.key(0), horizon=4, width=3, num_actions=2)
        >>> mdp.prob.shape, int(mdp.start), mdp.rank is None
        ((4, 4, 2, 3), 1, True)
    """
    return _general(single_key(key), _shape(horizon, width, num_actions, num_outcomes))


@checks.single_precision
@SIZES
def random_ordered(
    key: Any, horizon: int, width: int, num_actions: int, num_outcomes: int = 3
) -> MDP:
    """An ordered MDP (Section 3.2): outcome 0 stays, the others lead to levels uniform on 0..l.

    It starts at level k. The order of the actions differs from state to state; ``rank`` sorts them
    by their staying probabilities.

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of stages.
        width: k, the number of levels besides 0.
        num_actions: A, the actions of every state.
        num_outcomes: M, the outcomes of every state and action.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("random-ordered", key=jax.random.key(0), horizon=4, width=3, num_actions=2)
        >>> int(mdp.start), jb.validate(mdp) is mdp
        (3, True)
    """
    return _ordered(single_key(key), _shape(horizon, width, num_actions, num_outcomes))


def _shape(horizon: int, width: int, num_actions: int, num_outcomes: int) -> tuple[int, ...]:
    """[H, k+1, A, M]."""
    sizes = {"horizon": horizon, "width + 1": width + 1}
    sizes |= {"num_actions": num_actions, "num_outcomes": num_outcomes}
    checks.table(sizes)
    return tuple(sizes.values())


@partial(jax.jit, static_argnames="shape")
def _general(key: Array, shape: tuple[int, ...]) -> MDP:
    prob, reward = _outcomes(key, shape)
    lowest = jnp.minimum(_levels(shape), 1)
    next_level = _drawn_levels(key, lowest, jnp.where(lowest > 0, shape[1] - 1, 0), shape)
    return MDP(prob, reward, next_level, rank=None, start=jnp.asarray(1, jnp.int32))


@partial(jax.jit, static_argnames="shape")
def _ordered(key: Array, shape: tuple[int, ...]) -> MDP:
    prob, reward = _outcomes(key, shape)
    here = jnp.broadcast_to(_levels(shape), shape)
    drawn = _drawn_levels(key, jnp.zeros_like(here), here, shape)
    first = (jnp.arange(shape[3]) == 0)[None, None, None, :]
    next_level = jnp.where(first, here, drawn)
    staying = jnp.sum(jnp.where(next_level == here, prob, 0), axis=-1)
    rank = jnp.argsort(jnp.argsort(staying, axis=-1), axis=-1).astype(jnp.int32)
    return MDP(prob, reward, next_level, rank=rank, start=jnp.asarray(shape[1] - 1, jnp.int32))


def _outcomes(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Probabilities and rewards [H, k+1, A, M]; level 0 pays nothing."""
    prob = checks.simplex_rows(jax.random.fold_in(key, PROBABILITIES), shape)
    role = jax.random.fold_in(key, REWARDS)
    reward = jax.random.uniform(role, (math.prod(shape),), jnp.float32).reshape(shape) / shape[0]
    return prob, jnp.where(_levels(shape) > 0, reward, 0)


def _drawn_levels(key: Array, lowest: Array, highest: Array, shape: tuple[int, ...]) -> Array:
    """Levels uniform on lowest..highest (drawn flat, which compiles faster)."""
    low, high = (jnp.broadcast_to(x, shape).reshape(-1) for x in (lowest, highest))
    role = jax.random.fold_in(key, LEVELS)
    return jax.random.randint(role, low.shape, low, high + 1, jnp.int32).reshape(shape)


def _levels(shape: tuple[int, ...]) -> Array:
    """int32 [1, k+1, 1, 1]."""
    return jnp.arange(shape[1], dtype=jnp.int32)[None, :, None, None]
