"""UCB-VI that plans only when a visit count has doubled; another algorithm than `ucbvi`.

The values are those of `jaxbandit.learners.ucbvi` with the Hoeffding bonus (Azar, Osband and Munos
2017): Q = min(1, r + p V + c sqrt(L / N)), Q = 1 where N = 0, L = ln(5 k A H T / delta) with
delta = 1/T. They are computed anew after an episode in which some N_{l,i}(a) has reached a power of
two, the rule of UCRL2 (Jaksch, Ortner and Auer 2010) with one state's count in place of an epoch's.
So the policy changes at most H k A log2(2 T) times, and an episode that changes nothing costs only
its counts.

Deviation from UCB-VI: between two plans the learner plays on with an old policy, whose counts are
behind by a factor of two at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem, with_zeros
from jaxbandit.learners.model import Model, add_episode, empty, greedy, inverse, plan
from jaxbandit.learners.parameters import scales
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active


class DoublingState(NamedTuple):
    """What was seen and the policy planned last; with lanes, every leaf has trailing lane axes."""

    model: Model
    policy: Array
    """int32 [H, k+1]."""
    bonus: Array
    """float32 []: c sqrt(L)."""
    plans: Array
    """int32 []: how often it has planned."""
    hope: Array
    """float32 [H, k]: the reward of actions never tried: 1, and 0 at states that a padded MDP does not have."""


def ucbvi_doubling(bonus_scale: float = 1.0) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding bonus, planning on doubled counts.

    Args:
        bonus_scale: >= 0, on the bonus; less explores less.

    Example:
        >>> ucbvi_doubling(bonus_scale=0.1).feedback
        'semi-bandit'
    """
    return Learner(
        name="ucbvi-doubling",
        feedback="semi-bandit",
        lanes_last=True,
        init=init,
        act=act,
        update=update,
        report=report,
        pad=with_zeros,
        **scales(bonus_scale=bonus_scale),
    )


def init(problem: Problem, params: Any) -> DoublingState:
    """Every Q is 1, and action 0 is the first among equals."""
    size = problem.horizon * problem.width * problem.num_actions
    episodes = jnp.asarray(problem.num_episodes, float).astype(jnp.float32)
    log_term = jnp.float32(np.log(5 * size)) + 2 * jnp.log(episodes)
    scale = jnp.asarray(params["bonus_scale"]).astype(jnp.float32)
    policy = jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)
    return DoublingState(
        model=empty(problem),
        policy=policy,
        bonus=scale * jnp.sqrt(log_term),
        plans=jnp.int32(0),
        hope=jnp.ones((problem.horizon, problem.width), jnp.float32),
    )


def act(state: DoublingState, key: Array) -> Array:
    """The policy planned last."""
    del key
    return state.policy


def optimistic_q(model: Model, bonus: Array, hope: Array) -> Array:
    """Q [H, k, A] of one lane."""
    weight = inverse(model)
    known = model.reward * weight + bonus * jnp.sqrt(weight)
    reward = jnp.where(model.visits > 0, known, hope[:, :, None])
    return plan(reward, model.moves.astype(jnp.float32) * weight[..., None])


def update(state: DoublingState, policy: Array, feedback: SemiBanditFeedback) -> DoublingState:
    """Counts, and plans in the lanes in which a count has reached a power of two."""
    del policy
    count, replan = add_episode, _replan
    for _ in state.bonus.shape:
        count = jax.vmap(count, in_axes=-1, out_axes=-1)
        replan = jax.vmap(replan, in_axes=-1, out_axes=-1)
    before = state.model.visits
    state = state._replace(model=count(state.model, feedback))
    now = state.model.visits
    due = jnp.any((now != before) & (now & (now - 1) == 0), axis=(0, 1, 2))
    if not active().branches:
        return replan(state, due)
    # With lanes this is a real branch: late in a run most episodes double no count in any lane.
    return jax.lax.cond(jnp.any(due), replan, lambda state, due: state, state, due)


def _replan(state: DoublingState, due: Array) -> DoublingState:
    policy = greedy(optimistic_q(state.model, state.bonus, state.hope))
    return state._replace(
        policy=jnp.where(due, policy, state.policy), plans=state.plans + due.astype(jnp.int32)
    )


def report(state: DoublingState) -> dict[str, Array]:
    """How often it has planned."""
    return {"plans": state.plans}
