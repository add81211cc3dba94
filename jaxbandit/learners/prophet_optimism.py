"""Optimism with the structure of the prophet problem known: what structure buys (semi-bandit).

After Agarwal, Ghuge and Nagarajan (2024), "Semi-bandit learning for monotone stochastic
optimization". The learner knows that stage i offers an item of unknown value X_i, independent of
everything else, from the known support v_{i,1} < ... < v_{i,A}, that action a takes it iff X_i >
v_{i,a}, and that values are paid as v / (k scale). It sees X_i if the item was taken and else only
that X_i <= v_{i,a}; all levels share what is seen.

The law of X_i is learned from the top: h_j = Pr(X_i = v_j | X_i <= v_j) has an unbiased estimate
D_j / N_j, with N_j the number of episodes that would have shown X_i = v_j (an action below j) and
in which X_i <= v_j, and D_j those in which it was v_j. Each is raised to

    min(1, D_j / N_j + c sqrt(L / N_j)),     1 where N_j = 0,     L = ln(5 A H T / delta), delta = 1/T,

which makes X_i larger in the stochastic order; the value of the prophet problem is monotone in it.
Planning in the raised law is therefore optimistic. c is ``bonus_scale``. Q is not clipped; ties go to the first action, the
smallest threshold (before the first episode every stage surely has its largest value, so all thresholds but the largest
are equal). What was seen is counted and the plan renewed after every episode.

Deviations from the reference: the band is put on the conditional probabilities of a law seen from
above rather than on its distribution function, because which values are shown depends on the action;
re-planning happens in every episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import real_array
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import log_term, scan_stages
from jaxbandit.specs import ParamCheck, Real, takes
from jaxbandit.types import Array


class OptimismState(NamedTuple):
    """What was seen of the laws, and the policy planned from it."""

    trials: Array
    """int32 [H, A]: N_j."""
    found: Array
    """int32 [H, A]: D_j."""
    policy: Array
    """int32 [H, k+1]."""


class OptimismConstants(NamedTuple):
    """The width of the band and the payments."""

    bonus: Array
    """float32 []: c sqrt(L)."""
    pays: Array
    """float32 [H, A]: what taking v_j pays."""


BONUS_SCALE = Real(low=0)


@takes(value_scale=Real(low=0, above=True), bonus_scale=BONUS_SCALE)
def prophet_optimism(values: Any, value_scale: float = 1.0, bonus_scale: float = 1.0) -> Learner:
    """Plans with the empirical law of every stage, shifted up by its confidence band.

    Args:
        values: [H, A], the support of every stage, increasing along the last axis: the ``values``
            of ``make_instance("prophet", ...)``.
        value_scale: a taken item of value v pays v / (k value_scale): that of the instance.
        bonus_scale: c >= 0.

    Example:
        >>> prophet_optimism(values=[[0, 0.5, 1], [0, 0.5, 1]]).feedback
        'semi-bandit'
    """
    table = np.asarray(real_array("values", values), np.float64)
    params = {
        "bonus_scale": np.float32(bonus_scale),
        "values": np.asarray(table / value_scale, np.float32),
    }
    check(params)
    fields: dict[str, Any] = {"params": params, "check": check, "constants": constants}
    return Learner(init, act, update, "semi-bandit", name="prophet-optimism", **fields)


def check(params: Mapping[str, Any]) -> None:
    """Raises ValueError for a bonus scale below 0 or values that are no supports."""
    ParamCheck({"bonus_scale": BONUS_SCALE})(params)
    table = np.asarray(params["values"])
    if table.ndim < 2 or not np.isfinite(table).all() or (np.diff(table, axis=-1) < 0).any():
        raise ValueError(
            f"values: {table.tolist()}; accepted: finite [H, A], increasing along the last axis"
        )


def constants(problem: Problem, params: Any) -> OptimismConstants:
    """c sqrt(L) with L = ln(5 A H T / delta) and delta = 1/T, and what the values pay."""
    shape = (problem.horizon, problem.num_actions)
    values = np.asarray(params["values"], np.float64)
    if values.shape != shape:
        raise ValueError(f"values: {list(values.shape)}; accepted: {list(shape)} in this MDP")
    bonus = float(params["bonus_scale"]) * np.sqrt(log_term(problem, 5))
    return OptimismConstants(np.float32(bonus), np.asarray(values / problem.width, np.float32))


def init(problem: Problem, constants: Any, key: Array) -> OptimismState:
    """Nothing is known: every stage surely has its largest value."""
    del key
    zeros = jnp.zeros((problem.horizon, problem.num_actions), jnp.int32)
    policy = jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)
    return _planned(OptimismState(trials=zeros, found=zeros, policy=policy), constants)


def act(state: OptimismState, key: Array, constants: OptimismConstants) -> Array:
    """The optimal policy of the raised laws, int32 [H, k+1]."""
    del key, constants
    return state.policy


def update(
    state: OptimismState, policy: Array, feedback: SemiBanditFeedback, constants: OptimismConstants
) -> OptimismState:
    """What the episode shows of every stage's law, and a new plan."""
    del policy
    pays = constants.pays
    horizon, num_values = pays.shape
    chex.assert_shape(list(feedback), (horizon,))
    index = jnp.arange(num_values, dtype=jnp.int32)[None]
    threshold = jnp.take_along_axis(pays, feedback.actions[:, None], axis=1)
    live = (feedback.levels > 0)[:, None]
    taken = (feedback.next_levels < feedback.levels)[:, None]
    paid = feedback.rewards.astype(jnp.float32)[:, None]
    seen = jnp.argmin(jnp.abs(pays - paid), axis=1).astype(jnp.int32)[:, None]
    shown = live & (pays > threshold)
    trials = state.trials + (shown & (~taken | (index >= seen))).astype(jnp.int32)
    found = state.found + (shown & taken & (index == seen)).astype(jnp.int32)
    return _planned(state._replace(trials=trials, found=found), constants)


def raised_law(state: OptimismState, bonus: Array) -> Array:
    """Probabilities [H, A] of the values, optimistic."""
    trials = jnp.maximum(state.trials, 1).astype(jnp.float32)
    share = state.found.astype(jnp.float32) / trials + bonus / jnp.sqrt(trials)
    share = jnp.where(state.trials == 0, 1, jnp.minimum(share, 1))
    share = share.at[:, 0].set(1)  # what is not above the smallest value is the smallest value
    # Pr(X = v_j) = h_j (1 - h_{j+1}) ... (1 - h_A).
    below = jnp.ones_like(share[:, 0])
    law = []
    for j in range(share.shape[1] - 1, -1, -1):
        law.append(below * share[:, j])
        below = below * (1 - share[:, j])
    return jnp.stack(law[::-1], axis=1)


def action_values(law: Array, pays: Array, width: int) -> Array:
    """Q [H, k+1, A] of the prophet problem with that law [H, A] and those payments [H, A]."""
    num_values = pays.shape[1]

    def back(tail, i):
        lower = jnp.concatenate([tail[:1], tail[:-1]])
        q = []
        for a in range(num_values):
            terms = [
                law[i, j] * jnp.where(pays[i, j] > pays[i, a], pays[i, j] + lower, tail)
                for j in range(num_values)
            ]
            q.append(reduce(jnp.add, terms))
        table = jnp.stack(q, axis=-1).at[0].set(0)  # level 0: no capacity
        return jnp.max(table, axis=-1), table

    return scan_stages(back, jnp.zeros(width + 1, pays.dtype), len(pays))


def _planned(state: OptimismState, constants: OptimismConstants) -> OptimismState:
    law = raised_law(state, constants.bonus)
    q = action_values(law, constants.pays, state.policy.shape[1] - 1)
    return state._replace(policy=jnp.argmax(q, axis=-1).astype(jnp.int32))
