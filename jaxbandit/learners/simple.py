"""Learners that learn nothing: yardsticks, and the simplest examples of the contract.

They carry no state; what they play comes from ``constants``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import TOLERANCE, Learner, Problem
from jaxbandit.types import Array
from jaxbandit.xla.threefry import unit_float32


def uniform() -> Learner:
    """Draws a new deterministic policy in every episode, uniformly among all of them.

    Example:
        >>> uniform().feedback
        'bandit'
    """
    return Learner(_init_nothing, _act_uniform, _ignore, name="uniform", constants=_action_counts)


def oracle() -> Learner:
    """Plays the optimal policy, which it is told; its regret is exactly 0.

    Example:
        >>> oracle().requires
        ('optimal_policy',)
    """
    told: dict[str, Any] = {"requires": ("optimal_policy",), "constants": _optimal_policy}
    return Learner(_init_nothing, _act_policy, _ignore, name="oracle", **told)


def fixed(policy: Any) -> Learner:
    """Plays a given policy: actions, int [H, k+1], or action probabilities, float [H, k+1, A].

    Args:
        policy: actions, int [H, k+1], or probabilities, float [H, k+1, A]; level 0 counts for nothing.

    Example:
        >>> fixed([[0, 1], [0, 2]]).params["policy"].dtype      # action 1, then 2, at level 1
        dtype('int32')
    """
    check_policy({"policy": policy})
    table = np.asarray(policy)
    table = table.astype(np.float32 if table.dtype.kind == "f" else np.int32)
    given: dict[str, Any] = {
        "params": {"policy": table},
        "constants": _given_policy,
        "check": check_policy,
    }
    return Learner(_init_nothing, _act_policy, _ignore, name="fixed", **given)


def check_policy(params: Mapping[str, Any]) -> None:
    """Refuses tables that are no policy (`Learner.check` of ``fixed``).

    Example:
        >>> check_policy({"policy": [[0, -1]]})
        Traceback (most recent call last):
        ...
        ValueError: policy: [[0, -1]]; accepted: actions >= 0, at least one stage and level
    """
    either = "integers [H, k+1] or floats [H, k+1, A]"
    try:
        table = np.asarray(params["policy"])
    except ValueError:  # rows of different lengths
        raise ValueError(f"policy: {str(params['policy'])[:80]}; accepted: {either}") from None
    kind, shown = table.dtype.kind, str(table.tolist())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    if kind in "iu" and table.ndim == 2:
        if table.size == 0 or table.min() < 0 or table.max() > 2**31 - 1:
            accepted = "actions >= 0, at least one stage and level"
            raise ValueError(f"policy: {shown}; accepted: {accepted}")
    elif kind == "f" and table.ndim == 3:
        sums = table.sum(axis=-1, dtype=np.float64)
        if table.size == 0 or not (table >= 0).all() or not (np.abs(sums - 1) <= TOLERANCE).all():
            accepted = "action probabilities >= 0 that sum to 1"
            raise ValueError(f"policy: {shown}; accepted: {accepted}")
    else:
        raise ValueError(f"policy: {table.dtype} of shape {table.shape}; accepted: {either}")


def _init_nothing(problem: Problem, constants: Any, key: Array) -> tuple[()]:
    """Who learns nothing carries nothing."""
    del problem, constants, key
    return ()


def _action_counts(problem: Problem, params: Any) -> np.ndarray:
    """A at every state, int32 [H, k+1]: the shape is that of a policy."""
    del params
    return np.full((problem.horizon, problem.width + 1), problem.num_actions, np.int32)


def _act_uniform(state: Any, key: Array, counts: Array) -> Array:
    del state
    chex.assert_rank(counts, 2)
    share = unit_float32(jax.random.bits(key, counts.shape, jnp.uint32))
    return (share * counts.astype(jnp.float32)).astype(jnp.int32)


def _optimal_policy(problem: Problem, params: Any) -> np.ndarray:
    del params
    if problem.optimal_policy is None:
        raise ValueError(
            "optimal_policy: None; accepted: int [H, k+1], as an engine gives to a learner that needs it"
        )
    chex.assert_shape(problem.optimal_policy, (problem.horizon, problem.width + 1))
    return np.asarray(problem.optimal_policy, np.int32)


def _given_policy(problem: Problem, params: Any) -> np.ndarray:
    policy = np.asarray(params["policy"])
    states = (problem.horizon, problem.width + 1)
    randomised = policy.dtype.kind == "f"
    wanted = (*states, problem.num_actions) if randomised else states
    if policy.shape != wanted:
        raise ValueError(f"policy: shape {policy.shape}; accepted: {wanted} in this MDP")
    if not randomised and policy.max() >= problem.num_actions:
        raise ValueError(
            f"policy: action {policy.max()}; accepted: 0..{problem.num_actions - 1} in this MDP"
        )
    return policy


def _act_policy(state: Any, key: Array, policy: Array) -> Array:
    del state, key
    return policy


def _ignore(state: Any, policy: Array, feedback: BanditFeedback, constants: Any) -> Any:
    del policy, feedback, constants
    return state
