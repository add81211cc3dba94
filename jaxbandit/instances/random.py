"""Random MDPs, for property tests and for sweeps over unstructured instances.

Every (state, action) has its own ``num_outcomes`` outcomes with probabilities uniform on the simplex and
rewards uniform on [0, 1/H], so that no run collects more than 1.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP, Array

PROBABILITIES, REWARDS, LEVELS = 0, 1, 2
"""Roles of the keys folded in."""


def random_general(key: Any, horizon: int, width: int, num_actions: int, num_outcomes: int = 3) -> MDP:
    """A general MDP (Section 2): next levels uniform on 1..k, starting at level 1, without an order.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("random-general", key=jax.random.key(0), horizon=4, width=3, num_actions=2)
        >>> mdp.prob.shape, int(mdp.start), mdp.rank is None
        ((4, 4, 2, 3), 1, True)
    """
    prob, reward = _outcomes(key, horizon, width, num_actions, num_outcomes)
    levels = jax.random.randint(jax.random.fold_in(key, LEVELS), prob.shape, 1, width + 1, jnp.int32)
    return MDP(prob, reward, jnp.where(_alive(width), levels, 0), None, jnp.asarray(1, jnp.int32))


def random_ordered(key: Any, horizon: int, width: int, num_actions: int, num_outcomes: int = 3) -> MDP:
    """An ordered MDP (Section 3.2): outcome 0 stays, the others lead to levels uniform on 0..l.

    It starts at level k. The order of the actions differs from state to state; ``rank`` sorts them by their
    staying probabilities.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("random-ordered", key=jax.random.key(0), horizon=4, width=3, num_actions=2)
        >>> int(mdp.start), jb.validate(mdp) is mdp
        (3, True)
    """
    prob, reward = _outcomes(key, horizon, width, num_actions, num_outcomes)
    here = jnp.broadcast_to(jnp.arange(width + 1, dtype=jnp.int32)[None, :, None, None], prob.shape)
    drawn = jax.random.randint(jax.random.fold_in(key, LEVELS), prob.shape, 0, here + 1, jnp.int32)
    first = (jnp.arange(num_outcomes) == 0)[None, None, None, :]
    next_level = jnp.where(first, here, drawn)
    staying = jnp.sum(jnp.where(next_level == here, prob, 0), axis=-1)
    rank = jnp.argsort(jnp.argsort(staying, axis=-1), axis=-1).astype(jnp.int32)
    return MDP(prob, reward, next_level, rank, jnp.asarray(width, jnp.int32))


def _outcomes(key: Any, horizon: int, width: int, num_actions: int, num_outcomes: int) -> tuple[Array, Array]:
    """Probabilities and rewards [H, k+1, A, M]; level 0 pays nothing."""
    key = checks.single_key(key)
    shape = (
        checks.count("horizon", horizon),
        checks.count("width", width) + 1,
        checks.count("num_actions", num_actions),
        checks.count("num_outcomes", num_outcomes),
    )
    prob = checks.simplex_rows(jax.random.fold_in(key, PROBABILITIES), shape)
    reward = jax.random.uniform(jax.random.fold_in(key, REWARDS), shape, checks.float_dtype()) / horizon
    return prob, jnp.where(_alive(width), reward, 0)


def _alive(width: int) -> Array:
    """bool [1, k+1, 1, 1]: not level 0."""
    return (jnp.arange(width + 1) > 0)[None, :, None, None]
