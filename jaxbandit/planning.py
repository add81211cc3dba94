"""Exact planning by backward and forward induction: equation (2) of the paper and its consequences.

Everything is pure, jitted and vmappable; MDPs and policies that are not being traced are checked
first. Policies are deterministic, int [H, k+1], or randomised
Markov policies, float [H, k+1, A]: independent action distributions at every state. Results are
float32 by default and float64 when the MDP's arrays are float64 (under x64).

The values, gaps and regrets of an MDP that `jaxbandit.from_arrays` made are numpy float64 and in the unit of its arrays
(`Labels.scale`, `Labels.offsets`); inside `jax.jit` and `jax.vmap`, and for `jaxbandit.mdp.plain(mdp)`, they are in the
rewards of the MDP, like the results of a sweep.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import distributions, entries, real_array
from jaxbandit.mdp import MDP, checked, labels_of, mean_reward
from jaxbandit.mdp.labels import Labels
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64

Function = TypeVar("Function", bound=Callable[..., Any])


def _planner(function: Function) -> Function:
    """Jits a function of an MDP and perhaps a policy, and checks both first.

    Values are looked at on the host, and only where they are known: under `jax.jit` or `jax.vmap`
    the functions stay pure, and only types and shapes are checked.
    """
    jitted, signature = jax.jit(function), inspect.signature(function)

    @functools.wraps(function)
    def planner(*args: Any, **kwargs: Any) -> Any:
        mdp, *policy = signature.bind(*args, **kwargs).args
        words = labels_of(mdp)
        mdp = checked(mdp)
        with x64() if words.offsets else nullcontext():
            found = jitted(mdp, *(check_policy(mdp, one) for one in policy))
            return _in_units(function.__name__, found, words) if words.offsets else found

    return cast(Function, planner)


def _in_units(name: str, found: Any, words: Labels) -> Any:
    """What a planner of that name found, in the unit of the labels."""
    if isinstance(found, tuple):  # values and a policy
        return _in_units(name, found[0], words), found[1]
    found = np.asarray(found)[()]  # float64 of jax is of no use where x64 is off
    if name in ("gaps", "regret"):
        return found * words.scale
    if name in ("optimal", "evaluate"):
        return words.total(found)
    if name in ("optimal_values", "policy_values"):  # level 0 has no stages left
        left = np.cumsum([0.0, *words.offsets[::-1]])[::-1, None]
        return found * words.scale + left * (np.arange(found.shape[1]) > 0)
    return found


def check_policy(mdp: MDP, policy: Any) -> Array:
    """The policy as an array, or an error that says where it is not one of the MDP.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> jb.planning.check_policy(mdp, [[0, 1], [0, 3]])
        Traceback (most recent call last):
        ...
        ValueError: policy: 3 at stage 2, level 1; accepted: actions 0..2
    """
    states = (mdp.horizon, mdp.width + 1)
    accepted = (
        f"integers [H, k+1] = {states} or probabilities [H, k+1, A] = {(*states, mdp.num_actions)}"
    )
    array = real_array("policy", policy, accepted)
    deterministic = array.dtype.kind in "iu" and array.shape == states
    randomised = array.dtype.kind not in "iu" and array.shape == (*states, mdp.num_actions)
    if not deterministic and not randomised:
        raise ValueError(f"policy: {array.dtype} of shape {array.shape}; accepted: {accepted}")
    if isinstance(array, jax.core.Tracer):
        return array
    host = np.asarray(array)
    if deterministic:
        bad, most = (host < 0) | (host >= mdp.num_actions), mdp.num_actions - 1
        entries("policy", host, bad, f"actions 0..{most}", "stage, level")
        return jnp.asarray(host.astype(np.int32))
    distributions("policy", host, "stage, level, action")
    return jnp.asarray(array)


@_planner
def optimal(mdp: MDP) -> tuple[jax.Array, jax.Array]:
    """Optimal value from the start level and an optimal policy int32 [H, k+1] (ties: the first
    action).

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> value, policy = jb.optimal(mdp)
        >>> round(float(value), 4), int(policy[0, 1])      # at first, only more than 1/2 is taken
        (0.7778, 1)
    """
    values, policy = optimal_values(mdp)
    return values[0, mdp.start], policy


@_planner
def optimal_values(mdp: MDP) -> tuple[jax.Array, jax.Array]:
    """Opt_{l,i} as [H+1, k+1] (the last row, after the last stage, is 0) and an optimal policy [H,
    k+1].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> values, policy = jb.optimal_values(mdp)
        >>> [f"{x:.3f}" for x in values[:, 1]]
        ['0.667', '0.500', '0.000']
    """
    q, values = _backward(mdp, mean_reward(mdp))
    return values, jnp.argmax(q, axis=-1).astype(jnp.int32)


@_planner
def evaluate(mdp: MDP, policy: Array) -> jax.Array:
    """V(policy): the exact expected total reward of a deterministic or randomised Markov policy.

    Example:
        >>> import jaxbandit as jb, jax.numpy as jnp
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> round(float(jb.evaluate(mdp, jnp.zeros((2, 2), jnp.int32))), 4)   # take the first positive value
        0.6667
        >>> round(float(jb.evaluate(mdp, jnp.full((2, 2, 3), 1 / 3))), 4)     # uniform thresholds
        0.463
    """
    return policy_values(mdp, policy)[0, mdp.start]


@_planner
def policy_values(mdp: MDP, policy: Array) -> jax.Array:
    """The tail values V_{l,i} of a policy as [H+1, k+1]; the last row is 0.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.policy_values(mdp, [[0, 2], [0, 1]])[:, 1]]
        ['0.333', '0.333', '0.000']
    """
    return _backward(mdp, mean_reward(mdp), policy)[1]


@_planner
def gaps(mdp: MDP) -> jax.Array:
    """What playing a once and optimally afterwards loses, Opt_{l,i} - Q*_{l,i}(a) >= 0, as [H, k+1,
    A].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.gaps(mdp)[0, 1]]
        ['0.000', '0.000', '0.167']
    """
    q, values = _backward(mdp, mean_reward(mdp))
    return values[:-1, :, None] - q


@_planner
def regret(mdp: MDP, policy: Array) -> jax.Array:
    """Opt - V(policy), computed as the expected sum of the gaps along the policy's path.

    Equal to ``optimal(mdp)[0] - evaluate(mdp, policy)``, but free of cancellation: never negative,
    exactly 0 for the optimal policy, and accurate relative to itself.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> f"{jb.regret(mdp, [[0, 2], [0, 0]]):.3f}"      # the first value is never taken
        '0.167'
    """
    return _backward(mdp, gaps(mdp), policy)[1][0, mdp.start]


@_planner
def visitation(mdp: MDP, policy: Array) -> jax.Array:
    """Q_{l,i}: the probability that the policy visits level l of stage i, as [H, k+1].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.visitation(mdp, [[0, 0], [0, 0]])[:, 1]]
        ['1.000', '0.333']
    """

    def forward(here, stage):
        prob, following, chosen = stage
        shares = here[:, None, None] * chosen[..., None] * prob
        return jnp.zeros_like(here).at[following].add(shares), here

    choice = action_probabilities(policy, mdp.num_actions, mdp.prob.dtype)
    start = (jnp.arange(mdp.width + 1, dtype=jnp.int32) == mdp.start).astype(mdp.prob.dtype)
    stages = jnp.asarray(mdp.prob), jnp.asarray(mdp.next_level), choice
    return jax.lax.scan(forward, start, stages)[1]


def sample_episode(mdp: MDP, policy: Any, draws: np.ndarray) -> tuple[np.ndarray, ...]:
    """One episode on the host: levels, actions, outcomes, rewards and next levels, each [H].

    Args:
        mdp: a single MDP.
        policy: int [H, k+1] or float [H, k+1, A].
        draws: uniform numbers in [0, 1), float [H, 2]: one for the action and one for the outcome of each stage.

    Example:
        >>> import jaxbandit as jb, numpy as np
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> levels, actions, *_ = sample_episode(mdp, np.zeros((2, 3), int), np.full((2, 2), 0.5))
        >>> levels.tolist(), actions.tolist()
        ([1, 2], [0, 0])
    """
    policy = np.asarray(policy)
    prob, reward, target = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    level, steps = int(mdp.start), []
    for i, (first, second) in enumerate(np.asarray(draws, np.float64)):
        chosen = policy[i, level]
        action = int(chosen) if policy.ndim == 2 else _index_of(chosen, first)
        outcome = _index_of(prob[i, level, action], second)
        place = (i, level, action, outcome)
        steps.append((level, action, outcome, float(reward[place]), int(target[place])))
        level = steps[-1][-1]
    return tuple(np.array(column) for column in zip(*steps, strict=True))


def _index_of(probabilities: np.ndarray, uniform: float) -> int:
    """The index that a uniform number in [0, 1) falls on; never one of probability 0."""
    passed = np.cumsum(probabilities, dtype=np.float64)
    last = int(np.flatnonzero(probabilities > 0)[-1])
    return min(int(np.searchsorted(passed, uniform * passed[-1], side="right")), last)


def action_probabilities(policy: Array, num_actions: int, dtype=None) -> jax.Array:
    """A policy in randomised form, float [H, k+1, A].

    Example:
        >>> from jaxbandit.planning import action_probabilities
        >>> action_probabilities([[1, 0]], num_actions=2).tolist()
        [[[0.0, 1.0], [1.0, 0.0]]]
    """
    policy = jnp.asarray(policy)
    if jnp.issubdtype(policy.dtype, jnp.integer):
        return jax.nn.one_hot(policy, num_actions, dtype=dtype)
    return policy if dtype is None else policy.astype(dtype)


def _backward(
    mdp: MDP, reward: jax.Array, policy: Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Backward induction: ``reward`` [H, k+1, A] of an action and the expected tail value after it, as [H, k+1, A], and the
    tail values [H+1, k+1], of the policy or, without one, of the best actions."""

    def back(tail, stage):
        prob, following, pay, chosen = stage
        q = pay + jnp.sum(prob * tail[following], axis=-1)
        value = jnp.max(q, axis=-1) if chosen is None else jnp.sum(chosen * q, axis=-1)
        return value, (q, value)

    chosen = None if policy is None else action_probabilities(policy, mdp.num_actions, reward.dtype)
    last = jnp.zeros(mdp.width + 1, reward.dtype)
    stages = jnp.asarray(mdp.prob), jnp.asarray(mdp.next_level), reward, chosen
    _, (q, values) = jax.lax.scan(back, last, stages, reverse=True)
    return q, jnp.concatenate([values, last[None]])
