"""UCB-VI (Azar, Osband and Munos 2017), stage-dependent, under semi-bandit feedback.

After every episode the learner plans in the empirical model, optimistically: for stages i = H..1, levels l = 1..k,

    Q_{l,i}(a) = min(1, r_{l,i}(a) + sum_s p_i(s | l, a) V_{s,i+1} + b_{l,i}(a)),    V_{l,i} = max_a Q_{l,i}(a),

with r and p the empirical means over the N = N_{l,i}(a) visits, Q = 1 where N = 0, and V = 0 at level 0 and after
stage H. With T episodes, delta = 1/T and L = ln(5 k A H T / delta), the bonus is

    "hoeffding":  b = c sqrt(L / N)                                                       (UCBVI-CH)
    "bernstein":  b = c (sqrt(8 L Var_p(V) / N) + sqrt(8 L r (1 - r) / N) + 14 L / (3 N)
                         + sqrt(8 / N  sum_s p_i(s | l, a) min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1)))   (UCBVI-BF)

where c is ``bonus_scale`` and N'_{i+1}(s) the number of visits to level s of stage i+1. The Bernstein bonus is that of
the paper's Algorithm 4 with values in [0, 1] instead of [0, H]; rewards are unknown here, so their deviation is
added, and r (1 - r) bounds the variance of a reward in [0, 1]. The last sum runs over states of unknown value only:
stages before H, levels from 1. ``monotone`` takes the min with the Q of the episode before, as Algorithm 2 does.

Arrays are laid out [stage, action, level, ...], level 0 left out (it has value 0), and then any number of lanes:
everything indexes leading axes only, so the same code runs one seed, runs under ``vmap``, and runs seeds side by side.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learners.base import Array, Learner, Problem
from jaxbandit.learners.checks import choice, number

PRESETS = {"theory": 1.0, "practical": 0.25}


class Model(NamedTuple):
    """What the episodes so far say about each stage i, action a and level l = 1..k."""

    visits: Array
    """int32 [H, A, k, *lanes]: N_{l,i}(a). Integers, because float32 stops counting at 2^24."""
    moves: Array
    """int32 [H, A, k, k, *lanes]: visits that went on to level s = 1..k (last axis before the lanes)."""
    rewards: Array
    """float [H, A, k, *lanes]: sum of rewards, with ``lost`` the part that rounding dropped (compensated summation)."""
    lost: Array


class UCBVIState(NamedTuple):
    """The model, the optimistic values planned in it, and the constants of the bonus."""

    model: Model
    q: Array
    """float [H, A, k, *lanes]: Q_{l,i}(a) of the next episode."""
    scale: Array
    """float [*lanes]: c, the bonus scale."""
    log_term: Array
    """float [*lanes]: L."""


def ucbvi(
    bonus_scale: float | None = None,
    monotone: bool = False,
    bonus: str = "hoeffding",
    preset: str | None = None,
) -> Learner:
    """UCB-VI with the bonus ``bonus_scale`` times the Hoeffding or Bernstein bonus above.

    Args:
        bonus_scale: c >= 0; 1 if neither it nor a preset is given.
        monotone: take the min with the Q of the episode before.
        bonus: "hoeffding" or "bernstein".
        preset: "theory" (c = 1) or "practical" (c = 0.25, which voids the guarantee); ``bonus_scale`` overrides it.

    Example:
        >>> learner = ucbvi(preset="practical")
        >>> learner.feedback, float(learner.params["bonus_scale"])
        ('semi-bandit', 0.25)
    """
    choice("preset", preset, (None, *PRESETS))
    if bonus_scale is None:
        bonus_scale = PRESETS[preset or "theory"]
    scale = number("bonus_scale", bonus_scale, low=0)
    choice("monotone", monotone, (False, True))
    choice("bonus", bonus, ("hoeffding", "bernstein"))
    init, act, update = _rules(monotone, bonus)
    params = {"bonus_scale": np.float32(scale)}
    return Learner(init, act, update, "semi-bandit", params, "ucbvi", lanes_last=True)


@lru_cache(maxsize=None)
def _rules(monotone: bool, bonus: str):
    """init, act and update of a variant; the same objects on every call, so that learners share compilations."""
    plan = _plan_bernstein if bonus == "bernstein" else _plan_hoeffding

    def update(state: UCBVIState, policy: Array, feedback: SemiBanditFeedback) -> UCBVIState:
        del policy
        model = _count(state.model, feedback)
        ceiling = state.q if monotone else None
        return state._replace(model=model, q=plan(model, state.scale, state.log_term, ceiling))

    return init, act, update


def init(problem: Problem, params: Any) -> UCBVIState:
    """The state before the first episode: nothing is known and every Q is 1."""
    shape = (problem.horizon, problem.num_actions, problem.width)
    real = jnp.result_type(float)
    log_term = np.log(5.0 * np.prod(shape)) + 2 * jnp.log(jnp.asarray(problem.num_episodes, real))
    model = Model(
        visits=jnp.zeros(shape, jnp.int32),
        moves=jnp.zeros((*shape, problem.width), jnp.int32),
        rewards=jnp.zeros(shape, real),
        lost=jnp.zeros(shape, real),
    )
    return UCBVIState(model, jnp.ones(shape, real), jnp.asarray(params["bonus_scale"], real), log_term)


def act(state: UCBVIState, key: Array) -> Array:
    """The greedy policy, int32 [H, k+1, *lanes]; ties go to the first action, level 0 plays action 0."""
    del key
    best, action = state.q[:, 0], jnp.zeros_like(state.q[:, 0], jnp.int32)
    for a in range(1, state.q.shape[1]):
        better = state.q[:, a] > best
        best, action = jnp.where(better, state.q[:, a], best), jnp.where(better, a, action)
    return jnp.concatenate([jnp.zeros_like(action[:, :1]), action], axis=1)


def _count(model: Model, feedback: SemiBanditFeedback) -> Model:
    """The model after one more episode. Dense one-hot updates: scatters over lanes are slow."""
    _, num_actions, width = model.visits.shape[:3]
    lanes = (1,) * (model.visits.ndim - 3)
    actions = jnp.arange(num_actions, dtype=jnp.int32).reshape(1, -1, 1, *lanes)
    levels = jnp.arange(1, width + 1, dtype=jnp.int32)
    here = (feedback.actions[:, None, None] == actions) & (
        feedback.levels[:, None, None] == levels.reshape(1, 1, -1, *lanes)
    )
    moved = feedback.next_levels[:, None, None, None] == levels.reshape(1, 1, 1, -1, *lanes)
    term = feedback.rewards.astype(model.rewards.dtype)[:, None, None] - model.lost
    rewards = model.rewards + term
    return Model(
        visits=model.visits + here.astype(jnp.int32),
        moves=model.moves + (here[:, :, :, None] & moved).astype(jnp.int32),
        rewards=jnp.where(here, rewards, model.rewards),
        lost=jnp.where(here, (rewards - model.rewards) - term, model.lost),
    )


def _plan_hoeffding(model: Model, scale: Array, log_term: Array, ceiling: Array | None) -> Array:
    """Q with the Hoeffding bonus, [H, A, k, *lanes]."""
    inverse = 1 / jnp.maximum(model.visits, 1).astype(model.rewards.dtype)
    # Optimism for the unvisited: an immediate reward of 1 that the clipping keeps at 1.
    bonus = scale * jnp.sqrt(log_term)
    known = model.rewards * inverse + bonus[None, None, None] * jnp.sqrt(inverse)
    reward = jnp.where(model.visits > 0, known, 1)

    def lookahead(stage, tail):
        reward, moves, inverse = stage
        return reward + inverse * _expected(moves, tail)

    return _backward(lookahead, (reward, model.moves, inverse), ceiling, reward[0, 0])


def _plan_bernstein(model: Model, scale: Array, log_term: Array, ceiling: Array | None) -> Array:
    """Q with the Bernstein bonus, [H, A, k, *lanes]."""
    horizon, num_actions, width = model.visits.shape[:3]
    real = model.rewards.dtype
    inverse = 1 / jnp.maximum(model.visits, 1).astype(real)
    mean = jnp.clip(model.rewards * inverse, 0, 1)
    term, scale = log_term[None, None], scale[None, None]
    # How little is known of each next state; nothing is unknown after the last stage.
    arrivals = jnp.maximum(jnp.sum(model.visits, axis=1), 1).astype(real)
    factor = (1e4 * horizon * width**2 * num_actions * log_term**2)[None, None]
    doubt = jnp.minimum(factor / arrivals, 1)
    doubt = jnp.concatenate([doubt[1:], jnp.zeros_like(doubt[:1])])

    def lookahead(stage, tail):
        visits, moves, inverse, mean, doubt = stage
        value = inverse * _expected(moves, tail)
        variance = jnp.maximum(inverse * _expected(moves, tail**2) - value**2, 0)
        bonus = (
            jnp.sqrt(8 * term * variance * inverse)
            + jnp.sqrt(8 * term * mean * (1 - mean) * inverse)
            + 14 / 3 * term * inverse
            + jnp.sqrt(8 * inverse * inverse * _expected(moves, doubt))
        )
        return jnp.where(visits > 0, mean + value + scale * bonus, 1)

    return _backward(lookahead, (model.visits, model.moves, inverse, mean, doubt), ceiling, mean[0, 0])


def _expected(moves: Array, values: Array) -> Array:
    """sum_s moves[a, l, s] values[s] at one stage, [A, k, *lanes]: N times the expected value of the next level."""
    terms = [moves[:, :, s].astype(values.dtype) * values[s][None, None] for s in range(values.shape[0])]
    return reduce(jnp.add, terms)


def _backward(lookahead, stages: Any, ceiling: Array | None, like: Array) -> Array:
    """Backward induction over the stages with Q = min(1, lookahead, ceiling); Q as [H, A, k, *lanes]."""

    def back(tail, stage):
        stage, ceiling = stage
        q = jnp.minimum(lookahead(stage, tail), 1)
        if ceiling is not None:
            q = jnp.minimum(q, ceiling)
        return reduce(jnp.maximum, [q[a] for a in range(q.shape[0])]), q

    return jax.lax.scan(back, jnp.zeros_like(like), (stages, ceiling), reverse=True)[1]
