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

``stationary``, for MDPs whose stages are alike, pools the counts: n is the number of visits of (l, a) at any stage, and
every visit, in the order of the episode, updates Q_{l,i}(a) at all stages i, with its own V_{s,i+1} from before the episode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import greedy, log_term
from jaxbandit.specs import Flag, Real, as_params, takes
from jaxbandit.types import Array


class QState(NamedTuple):
    """Values and visits."""

    q: Array
    """float32 [H, k, A]."""
    visits: Array
    """int32 [S, k, A]; S is H, or 1 if counts are pooled."""

    @property
    def optimistic_values(self) -> Array:
        """float32 [H, k]: what it hopes for at each state, for `jaxbandit.metrics`."""
        return jnp.minimum(1.0, jnp.max(self.q, axis=2))


@takes(bonus_scale=Real(low=0), stationary=Flag)
def q_learning(bonus_scale: float = 1.0, stationary: bool = False) -> Learner:
    """Q-learning with ``bonus_scale`` times the Hoeffding bonus.

    Args:
        bonus_scale: >= 0, on the bonus; less explores less.
        stationary: pool the counts of all stages, for MDPs whose stages are alike.

    Example:
        >>> q_learning(bonus_scale=0.1).feedback
        'semi-bandit'
    """
    fields = as_params(q_learning.specs, bonus_scale=bonus_scale)  # type: ignore[attr-defined]
    start, step = (init_pooled, update_pooled) if stationary else (init, update)
    return Learner(
        start, act, step, "semi-bandit", name="q-learning", constants=constants, **fields
    )


def constants(problem: Problem, params: Any) -> np.float32:
    """c sqrt(H L) with L = ln(k A H T / delta) and delta = 1/T."""
    log = log_term(problem, problem.width)
    return np.float32(float(params["bonus_scale"]) * np.sqrt(problem.horizon * log))


def init(problem: Problem, constants: Any, key: Array) -> QState:
    """Every Q is 1."""
    del constants, key
    shape = (problem.horizon, problem.width, problem.num_actions)
    return QState(q=jnp.ones(shape, jnp.float32), visits=jnp.zeros(shape, jnp.int32))


def init_pooled(problem: Problem, constants: Any, key: Array) -> QState:
    """Every Q is 1, and the stages have their counts in common."""
    state = init(problem, constants, key)
    return state._replace(visits=state.visits[:1])


def act(state: QState, key: Array, bonus: Array) -> Array:
    """The greedy policy, int32 [H, k+1]."""
    del key, bonus
    return greedy(state.q)


def update(state: QState, policy: Array, feedback: SemiBanditFeedback, bonus: Array) -> QState:
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
    values = _values_after(state)
    onward = jax.nn.one_hot(feedback.next_levels - 1, width, dtype=jnp.float32) * values
    target = feedback.rewards.astype(jnp.float32) + jnp.max(onward, axis=-1)
    alpha = (H + 1) / (H + n)
    goal = target[:, None, None] + bonus / jnp.sqrt(n)
    return state._replace(
        q=jnp.where(here > 0, (1 - alpha) * state.q + alpha * goal, state.q), visits=visits
    )


def update_pooled(
    state: QState, policy: Array, feedback: SemiBanditFeedback, bonus: Array
) -> QState:
    """A step of Q at all stages for every visit of the path, one after the other."""
    del policy
    H, values = len(state.q), _values_after(state)
    values = jnp.concatenate([jnp.zeros_like(values[:, :1]), values], axis=1)  # level 0

    def visit(carry, seen):
        q, visits = carry
        level, action, reward, following = seen
        # Level 0 is out of bounds: reads there are filled and writes are dropped.
        at = (0, jnp.where(level > 0, level - 1, visits.shape[1]), action)
        visits = visits.at[at].add(1, mode="drop")
        n = visits.at[at].get(mode="fill", fill_value=1).astype(jnp.float32)
        alpha = (H + 1) / (H + n)
        goal = reward.astype(jnp.float32) + values[:, following] + bonus / jnp.sqrt(n)
        old = q.at[:, at[1], action].get(mode="fill", fill_value=0)
        return (
            q.at[:, at[1], action].set((1 - alpha) * old + alpha * goal, mode="drop"),
            visits,
        ), None

    path = (feedback.levels, feedback.actions, feedback.rewards, feedback.next_levels)
    chex.assert_equal_shape(list(path))
    (q, visits), _ = jax.lax.scan(visit, (state.q, state.visits), path)
    return QState(q, visits)


def _values_after(state: QState) -> Array:
    """V of the stage after each stage, [H, k]; 0 after the last one."""
    values = state.optimistic_values
    return jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
