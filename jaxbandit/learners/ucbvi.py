"""UCB-VI (Azar, Osband and Munos 2017), stage-dependent, under semi-bandit feedback.

After every episode the learner plans in the empirical model, optimistically: for i = H..1 and l = 1..k,

    Q_{l,i}(a) = min(1, r_{l,i}(a) + sum_s p_i(s | l, a) V_{s,i+1} + b_{l,i}(a)),  V_{l,i} = max_a Q_{l,i}(a),

with r and p the empirical means over the N = N_{l,i}(a) visits, Q = 1 where N = 0, and V = 0 at level 0 and
after stage H. With T episodes, delta = 1/T and L = ln(5 k A H T / delta), the bonus is

    "hoeffding":  b = c sqrt(L / N)                                                       (UCBVI-CH)
    "bernstein":  b = c (sqrt(8 L Var_p(V) / N) + sqrt(8 L r (1 - r) / N) + 14 L / (3 N)  (UCBVI-BF)
                         + sqrt(8 / N  sum_s p_i(s | l, a) min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1)))

where c is ``bonus_scale`` and N'_{i+1}(s) the number of visits to level s of stage i+1. The Bernstein bonus
is that of the paper's Algorithm 4 with values in [0, 1] instead of [0, H]; rewards are unknown here, so their
deviation is added, and r (1 - r) bounds the variance of a reward in [0, 1]. The last sum runs over states of
unknown value only: stages before H, levels from 1. ``monotone`` takes the min with the Q of the episode
before, as Algorithm 2 does.

Arrays are laid out [stage, action, level, ...], level 0 left out (it has value 0), and then any number of
lanes: everything indexes leading axes only, so the same code runs one seed, runs under ``vmap``, and runs
seeds side by side. The cost of an episode is memory traffic, so: only counts are kept; updates are dense
additions of a one-hot (scatters, and a ``where`` between old and new, are not vectorised on CPU); a stage is
planned by one kernel that reads the counts where they are (`separate`); and what several arrays need is
computed once.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.fusion import separate
from jaxbandit.learners.base import Array, Learner, Problem
from jaxbandit.learners.checks import choice, number

PRESETS = {"theory": 1.0, "practical": 2.0**-6}
LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""
FRACTION_BITS = 30


class Counts(NamedTuple):
    """What was seen so far at each stage i, action a and level l = 1..k; int32, exact up to 2^31 visits."""

    visits: Array
    """[H, A, k, *lanes]: N_{l,i}(a)."""
    moves: Array
    """[H, A, k, k, *lanes]: visits that went on to level s = 1..k (last axis before the lanes)."""
    whole: Array
    """[H, A, k, *lanes]: the sum of rewards is whole + fraction / 2^30, with 0 <= fraction < 2^30."""
    fraction: Array


class UCBVIState(NamedTuple):
    """The counts, the optimistic values planned from them, and the constants of the bonus."""

    counts: Counts
    q: Array
    """float32 [H, A, k, *lanes]: Q_{l,i}(a) of the next episode."""
    scale: Array
    """float32 [*lanes]: c, the bonus scale."""
    log_term: Array
    """float32 [*lanes]: L."""


def ucbvi(
    bonus_scale: float | None = None,
    monotone: bool = False,
    bonus: str = "hoeffding",
    preset: str | None = None,
) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding or the Bernstein bonus.

    Args:
        bonus_scale: c >= 0; 1 if neither it nor a preset is given.
        monotone: take the min with the Q of the episode before.
        bonus: "hoeffding" or "bernstein".
        preset: "theory" (c = 1) or "practical" (c = 1/64, no guarantee); ``bonus_scale`` overrides it.

    Example:
        >>> learner = ucbvi(preset="practical")
        >>> learner.feedback, float(learner.params["bonus_scale"])
        ('semi-bandit', 0.015625)
    """
    choice("preset", preset, (None, *PRESETS))
    if bonus_scale is None:
        bonus_scale = PRESETS[preset or "theory"]
    scale = number("bonus_scale", bonus_scale, low=0)
    choice("monotone", monotone, (False, True))
    choice("bonus", bonus, ("hoeffding", "bernstein"))
    params = {"bonus_scale": np.float32(scale)}
    return Learner(init, act, _update(monotone, bonus), "semi-bandit", params, "ucbvi", lanes_last=True)


def init(problem: Problem, params: Any) -> UCBVIState:
    """The state before the first episode: nothing is known and every Q is 1."""
    shape = (problem.horizon, problem.num_actions, problem.width)
    zeros = jnp.zeros(shape, jnp.int32)
    episodes = jnp.asarray(problem.num_episodes, float).astype(jnp.float32)
    return UCBVIState(
        Counts(zeros, jnp.zeros((*shape, problem.width), jnp.int32), zeros, zeros),
        jnp.ones(shape, jnp.float32),
        jnp.asarray(params["bonus_scale"]).astype(jnp.float32),
        jnp.float32(np.log(5 * np.prod(shape))) + 2 * jnp.log(episodes),  # T^2 may overflow
    )


def act(state: UCBVIState, key: Array) -> Array:
    """The greedy policy, int32 [H, k+1, *lanes]; ties go to the first action, level 0 plays action 0."""
    del key
    best, action = state.q[:, 0], jnp.zeros_like(state.q[:, 0], jnp.int32)
    for a in range(1, state.q.shape[1]):
        better = state.q[:, a] > best
        best, action = jnp.where(better, state.q[:, a], best), jnp.where(better, a, action)
    return jnp.concatenate([jnp.zeros_like(action[:, :1]), action], axis=1)


class Stage(NamedTuple):
    """What backward induction reads at a stage; with a leading axis [H], at all of them."""

    counts: Counts
    doubt: Array
    """float32 [k, *lanes], see `_doubt`; None with the Hoeffding bonus."""
    ceiling: Array
    """float32 [A, k, *lanes]: the Q of the episode before, if it is one; else None."""


@cache
def _update(monotone: bool, bonus: str):
    """The update of a variant; the same object on every call, so that equal learners share compilations."""
    bernstein = bonus == "bernstein"

    def update(state: UCBVIState, policy: Array, feedback: SemiBanditFeedback) -> UCBVIState:
        del policy
        counts = _count(state.counts, feedback)
        doubt = _doubt(counts.visits, state.log_term) if bernstein else None
        stages = Stage(counts, doubt, state.q if monotone else None)
        return state._replace(counts=counts, q=_plan(stages, state.scale, state.log_term))

    return update


def _plan(stages: Stage, scale: Array, log_term: Array) -> Array:
    """Q of all stages, float32 [H, A, k, *lanes], by backward induction."""
    horizon = stages.counts.visits.shape[0]
    tail = jnp.zeros_like(stages.counts.visits[0, 0], jnp.float32)

    def back(tail, stage, q_of=_q_of_slice):
        q = q_of(stage, tail, scale, log_term)
        return reduce(jnp.maximum, list(q)), q

    if horizon > LONGEST_UNROLLED:
        return jax.lax.scan(back, tail, stages, reverse=True)[1]
    found = []
    for i in reversed(range(horizon)):
        tail, q = back(tail, stages, _q_of_stage(i))
        found.append(q)
    return jnp.stack(found[::-1])


@cache
def _q_of_stage(i: int):
    """`_q_of` a stage that is known while compiling: it takes the whole tables, so that no slice is copied."""
    return separate(lambda stages, *rest: _q_of(jax.tree.map(lambda table: table[i], stages), *rest))


def _count(counts: Counts, feedback: SemiBanditFeedback) -> Counts:
    """The counts after one more episode."""
    _, num_actions, width = counts.visits.shape[:3]
    lanes = (1,) * (counts.visits.ndim - 3)
    entry, target, reward = _visited(feedback, jnp.int32(width))
    entries = jnp.arange(num_actions * width, dtype=jnp.int32).reshape(1, num_actions, width, *lanes)
    levels = jnp.arange(width, dtype=jnp.int32).reshape(1, 1, 1, width, *lanes)
    here = entry[:, None, None] == entries
    moved = here[:, :, :, None] & (target[:, None, None, None] == levels)
    fraction = counts.fraction + jnp.where(here, reward[:, None, None], 0)
    return Counts(
        counts.visits + here.astype(jnp.int32),
        counts.moves + moved.astype(jnp.int32),
        counts.whole + (fraction >> FRACTION_BITS),
        fraction & (2**FRACTION_BITS - 1),
    )


@separate
def _visited(feedback: SemiBanditFeedback, width: Array) -> tuple[Array, Array, Array]:
    """int32 [H, *lanes] each: the entry a k + l-1 visited (-1: level 0), next level - 1, 2^30 reward."""
    entry = jnp.where(feedback.levels > 0, feedback.actions * width + feedback.levels - 1, -1)
    # Rewards lie in [0, 1]; the clip only keeps a careless one from overflowing the integers.
    reward = jnp.clip(feedback.rewards.astype(jnp.float32), 0, 1)
    return entry, feedback.next_levels - 1, jnp.round(reward * 2**FRACTION_BITS).astype(jnp.int32)


def _inverse(visits: Array) -> Array:
    """1 / N, and 1 where N = 0."""
    return 1 / jnp.maximum(visits, 1).astype(jnp.float32)


def _mean_reward(counts: Counts, inverse: Array) -> Array:
    fraction = counts.fraction.astype(jnp.float32) * 2.0**-FRACTION_BITS
    return (counts.whole.astype(jnp.float32) + fraction) * inverse


def _surprise(visits: Array) -> Array:
    """1 where N = 0, to be added to the reward: clipped at 1, Q is then 1."""
    return (visits == 0).astype(jnp.float32)


def _next_value(moves: Array, inverse: Array, values: Array) -> Array:
    """sum_s p(s | l, a) values[s] at one stage, [A, k, *lanes]; ``values`` [k, *lanes]."""
    terms = [moves[:, :, s].astype(jnp.float32) * values[s][None, None] for s in range(values.shape[0])]
    return inverse * reduce(jnp.add, terms)


def _q_of(stage: Stage, tail: Array, scale: Array, log_term: Array) -> Array:
    """Q of a stage, [A, k, *lanes], where V of the next stage is ``tail`` [k, *lanes]."""
    lookahead = _hoeffding if stage.doubt is None else _bernstein
    q = jnp.minimum(lookahead(stage, tail, scale[None, None], log_term[None, None]), 1)
    return q if stage.ceiling is None else jnp.minimum(q, stage.ceiling)


_q_of_slice = separate(_q_of)


def _hoeffding(stage: Stage, tail: Array, scale: Array, log_term: Array) -> Array:
    """r + p V + b, [A, k, *lanes]."""
    counts = stage.counts
    inverse = _inverse(counts.visits)
    bonus = scale * jnp.sqrt(log_term) * jnp.sqrt(inverse)
    reward = _mean_reward(counts, inverse) + bonus + _surprise(counts.visits)
    return reward + _next_value(counts.moves, inverse, tail)


@separate
def _doubt(visits: Array, log_term: Array) -> Array:
    """min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1) as [H, k, *lanes]; 0 at the last stage: V is known after it."""
    horizon, num_actions, width = visits.shape[:3]
    arrivals = jnp.maximum(reduce(jnp.add, [visits[1:, a] for a in range(num_actions)]), 1)
    factor = 1e4 * horizon * width**2 * num_actions * log_term**2
    doubt = jnp.minimum(factor[None, None] / arrivals.astype(jnp.float32), 1)
    return jnp.concatenate([doubt, jnp.zeros_like(log_term, shape=(1, width, *log_term.shape))])


def _bernstein(stage: Stage, tail: Array, scale: Array, log_term: Array) -> Array:
    """r + p V + b, [A, k, *lanes]."""
    counts = stage.counts
    inverse = _inverse(counts.visits)
    mean = jnp.clip(_mean_reward(counts, inverse), 0, 1)
    value = _next_value(counts.moves, inverse, tail)
    variance = jnp.maximum(_next_value(counts.moves, inverse, tail**2) - value**2, 0)
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * _next_value(counts.moves, inverse, stage.doubt))
    )
    return mean + scale * bonus + _surprise(counts.visits) + value
