"""Optimistic Q-learning (Jin, Allen-Zhu, Bubeck and Jordan 2018, Algorithm 1), semi-bandit feedback.

No model is kept. After the n-th visit of level l of stage i with action a, which paid r and led to
level s,

    Q_{l,i}(a) <- (1 - alpha) Q_{l,i}(a) + alpha (r + V_{s,i+1} + b),
    alpha = (H + 1) / (H + n),   b = c sqrt(H L / n),   V = min(1, max_a Q(a)),

from Q = 1; V is 0 at level 0 and after stage H. L = ln(k A H T / delta) with delta = 1/T, and c is
``bonus_scale``. The policy is greedy in Q, which is not clipped; ties, such as those between actions that were
never tried (Q = 1), go to the first action.

Deviations from the reference: totals lie in [0, 1] instead of [0, H], so the bonus is divided by H;
rewards are random; H T is the number of steps. The updates of an episode read the values from before
it, as in the reference, where stage i+1 is updated after stage i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import greedy
from jaxbandit.learners.parameters import scales
from jaxbandit.types import Array


class QState(NamedTuple):
    """Values and visits."""

    q: Array
    """float32 [H, k, A]."""
    visits: Array
    """int32 [H, k, A]."""

    @property
    def optimistic_values(self) -> Array:
        """float32 [H, k]: what it hopes for at each state, for `jaxbandit.metrics`."""
        return jnp.minimum(1.0, jnp.max(self.q, axis=2))


class QConstants(NamedTuple):
    """What the bonus and the learning rate are made of."""

    bonus: Array
    """float32 []: c sqrt(H L)."""
    horizon: Array
    """float32 []: H."""


def q_learning(bonus_scale: float = 1.0) -> Learner:
    """Q-learning with ``bonus_scale`` times the Hoeffding bonus.

    Args:
        bonus_scale: >= 0, on the bonus; less explores less.

    Example:
        >>> q_learning(bonus_scale=0.1).feedback
        'semi-bandit'
    """
    fields = scales(bonus_scale=bonus_scale)
    return Learner(
        init=init,
        act=act,
        update=update,
        feedback="semi-bandit",
        name="q-learning",
        constants=constants,
        **fields,
    )


def constants(problem: Problem, params: Any) -> QConstants:
    """c sqrt(H L) with L = ln(k A H T / delta) and delta = 1/T."""
    size = problem.horizon * problem.width * problem.num_actions
    log_term = np.log(size) + 2 * np.log(float(problem.num_episodes))
    return QConstants(
        bonus=np.float32(float(params["bonus_scale"]) * np.sqrt(problem.horizon * log_term)),
        horizon=np.float32(problem.horizon),
    )


def init(problem: Problem, constants: Any, key: Array) -> QState:
    """Every Q is 1."""
    del constants, key
    shape = (problem.horizon, problem.width, problem.num_actions)
    return QState(q=jnp.ones(shape, jnp.float32), visits=jnp.zeros(shape, jnp.int32))


def act(state: QState, key: Array, constants: QConstants) -> Array:
    """The greedy policy, int32 [H, k+1]."""
    del key, constants
    return greedy(state.q)


def update(
    state: QState, policy: Array, feedback: SemiBanditFeedback, constants: QConstants
) -> QState:
    """One step of every Q on the path."""
    del policy
    H, width, num_actions = state.q.shape
    chex.assert_shape(list(feedback), (H,))
    here = (
        jax.nn.one_hot(feedback.levels - 1, width, dtype=jnp.int32)[:, :, None]
        * jax.nn.one_hot(feedback.actions, num_actions, dtype=jnp.int32)[:, None, :]
    )
    visits = state.visits + here
    n = jnp.maximum(visits, 1).astype(jnp.float32)
    values = jnp.minimum(jnp.max(state.q, axis=-1), 1)
    values = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    onward = jax.nn.one_hot(feedback.next_levels - 1, width, dtype=jnp.float32) * values
    target = feedback.rewards.astype(jnp.float32) + jnp.max(onward, axis=-1)
    alpha = (constants.horizon + 1) / (constants.horizon + n)
    goal = target[:, None, None] + constants.bonus / jnp.sqrt(n)
    return state._replace(
        q=jnp.where(here > 0, (1 - alpha) * state.q + alpha * goal, state.q), visits=visits
    )
