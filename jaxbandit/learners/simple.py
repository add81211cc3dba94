"""Learners that learn nothing: yardsticks, and the simplest examples of the contract."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learners.base import Array, Learner, Problem


class UniformState(NamedTuple):
    """The sizes, as an array: the number of actions bounds the draws, the shape is that of a policy."""

    num_actions: Array
    """int32 [H, k+1]: A at every state."""


class PolicyState(NamedTuple):
    """A policy that never changes."""

    policy: Array
    """int32 [H, k+1] or float [H, k+1, A]."""


def uniform() -> Learner:
    """Draws a new deterministic policy in every episode, uniformly among all of them.

    Example:
        >>> uniform().feedback
        'bandit'
    """
    return Learner(_init_uniform, _act_uniform, _ignore, name="uniform")


def oracle() -> Learner:
    """Plays the optimal policy, which it is told; its regret is exactly 0.

    Example:
        >>> oracle().needs
        ('optimal_policy',)
    """
    return Learner(_init_oracle, _act_policy, _ignore, name="oracle", needs=("optimal_policy",))


def fixed(policy: Any) -> Learner:
    """Plays a given policy: actions, int [H, k+1], or action probabilities, float [H, k+1, A].

    Example:
        >>> fixed([[0, 1], [0, 2]]).params["policy"].dtype      # action 1, then 2, at level 1
        dtype('int32')
    """
    table = np.asarray(policy)
    if table.dtype.kind in "iu" and table.ndim == 2:
        if table.size == 0 or table.min() < 0:
            raise ValueError(
                f"policy: {table.tolist()}; accepted: actions >= 0, at least one stage and level"
            )
        table = table.astype(np.int32)
    elif table.dtype.kind == "f" and table.ndim == 3:
        if table.size == 0 or not (table >= 0).all() or np.abs(table.sum(axis=-1) - 1).max() > 1e-5:
            raise ValueError(f"policy: {table.tolist()}; accepted: action probabilities >= 0 that sum to 1")
        table = table.astype(np.float32)
    else:
        raise ValueError(
            f"policy: {table.dtype} of shape {table.shape}; accepted: integers [H, k+1] or floats [H, k+1, A]"
        )
    return Learner(_init_fixed, _act_policy, _ignore, params={"policy": table}, name="fixed")


def _init_uniform(problem: Problem, params: Any) -> UniformState:
    del params
    return UniformState(jnp.full((problem.horizon, problem.width + 1), problem.num_actions, jnp.int32))


def _act_uniform(state: UniformState, key: Array) -> Array:
    return jax.random.randint(key, state.num_actions.shape, 0, state.num_actions, jnp.int32)


def _init_oracle(problem: Problem, params: Any) -> PolicyState:
    del params
    if problem.optimal_policy is None:
        raise ValueError(
            "optimal_policy: None; accepted: int [H, k+1], as an engine gives to a learner that needs it"
        )
    return PolicyState(jnp.asarray(problem.optimal_policy, jnp.int32))


def _init_fixed(problem: Problem, params: Any) -> PolicyState:
    policy = jnp.asarray(params["policy"])
    states = (problem.horizon, problem.width + 1)
    randomised = jnp.issubdtype(policy.dtype, jnp.floating)
    wanted = (*states, problem.num_actions) if randomised else states
    if policy.shape != wanted:
        raise ValueError(f"policy: shape {policy.shape}; accepted: {wanted} in this MDP")
    if (
        not randomised
        and not isinstance(policy, jax.core.Tracer)
        and int(policy.max()) >= problem.num_actions
    ):
        raise ValueError(
            f"policy: action {int(policy.max())}; accepted: 0..{problem.num_actions - 1} in this MDP"
        )
    return PolicyState(policy)


def _act_policy(state: PolicyState, key: Array) -> Array:
    del key
    return state.policy


def _ignore(state: Any, policy: Array, feedback: BanditFeedback) -> Any:
    del policy, feedback
    return state
