"""UCB-VI that plans only when a visit count has doubled; another algorithm than `ucbvi`.

The values are those of `jaxbandit.learners.ucbvi` with the Hoeffding bonus (Azar, Osband and Munos
2017): Q = min(1, r + p V + c sqrt(L / N)), Q = 1 where N = 0, L = ln(5 k A H T / delta) with
delta = 1/T. They are computed anew after an episode in which some N_{l,i}(a) has reached a power of
two, the rule of UCRL2 (Jaksch, Ortner and Auer 2010) with one state's count in place of an epoch's.
So the policy changes at most H k A log2(2 T) times, and an episode that changes nothing costs only
its counts.

Ties go to the first action: among actions that were never tried or whose Q is clipped at 1, numbering decides.

Deviation from UCB-VI: between two plans the learner plays on with an old policy, whose counts are
behind by a factor of two at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import Model, add_episode, empty, greedy, inverse, plan
from jaxbandit.learners.parameters import scales
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active


class DoublingState(NamedTuple):
    """What was seen and the policy planned last; with lanes, every leaf has trailing lane axes."""

    model: Model
    policy: Array
    """int32 [H, k+1]."""
    plans: Array
    """int32 []: how often it has planned."""


class DoublingConstants(NamedTuple):
    """The bonus of one visit, and the reward before the first; with lanes as the state."""

    bonus: Array
    """float32 []: c sqrt(L)."""
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
        constants=constants,
        **scales(bonus_scale=bonus_scale),
    )


def constants(problem: Problem, params: Any) -> DoublingConstants:
    """c sqrt(L) with L = ln(5 k A H T / delta) and delta = 1/T."""
    size = problem.horizon * problem.width * problem.num_actions
    log_term = np.log(5 * size) + 2 * np.log(float(problem.num_episodes))
    return DoublingConstants(
        bonus=np.float32(float(params["bonus_scale"]) * np.sqrt(log_term)),
        hope=np.ones((problem.horizon, problem.width), np.float32),
    )


def init(problem: Problem, constants: Any, key: Array) -> DoublingState:
    """Every Q is 1, and action 0 is the first among equals."""
    del constants, key
    policy = jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)
    return DoublingState(model=empty(problem), policy=policy, plans=jnp.int32(0))


def act(state: DoublingState, key: Array, constants: DoublingConstants) -> Array:
    """The policy planned last."""
    del key, constants
    return state.policy


def optimistic_q(model: Model, constants: DoublingConstants) -> Array:
    """Q [H, k, A] of one lane, at most 1."""
    weight = inverse(model)
    known = model.reward * weight + constants.bonus * jnp.sqrt(weight)
    reward = jnp.where(model.visits > 0, known, constants.hope[:, :, None])
    return jnp.minimum(plan(reward, model.moves.astype(jnp.float32) * weight[..., None]), 1)


def update(
    state: DoublingState, policy: Array, feedback: SemiBanditFeedback, constants: DoublingConstants
) -> DoublingState:
    """Counts, and plans in the lanes in which a count has reached a power of two."""
    del policy
    count, replan = add_episode, _replan
    for _ in state.plans.shape:
        count = jax.vmap(count, in_axes=-1, out_axes=-1)
        replan = jax.vmap(replan, in_axes=-1, out_axes=-1)
    before = state.model.visits
    state = state._replace(model=count(state.model, feedback))
    now = state.model.visits
    due = jnp.any((now != before) & (now & (now - 1) == 0), axis=(0, 1, 2))
    if not active().branches:
        return replan(state, due, constants)
    # With lanes this is a real branch: late in a run most episodes double no count in any lane.
    return jax.lax.cond(jnp.any(due), replan, lambda state, *_: state, state, due, constants)


def _replan(state: DoublingState, due: Array, constants: DoublingConstants) -> DoublingState:
    policy = greedy(optimistic_q(state.model, constants))
    return state._replace(
        policy=jnp.where(due, policy, state.policy), plans=state.plans + due.astype(jnp.int32)
    )


def report(state: DoublingState) -> dict[str, Array]:
    """How often it has planned."""
    return {"plans": state.plans}
