"""The empirical model of learners that see states: what was visited, where it led and what it paid.

Arrays are [stage, level, action, ...] with level 0 left out (nothing happens there), for one lane;
engines vmap.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Problem
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active


class Model(NamedTuple):
    """Counts and sums at each stage i, level l = 1..k and action a."""

    visits: Array
    """int32 [H, k, A]: N_{l,i}(a)."""
    moves: Array
    """int32 [H, k, A, k]: visits that went on to level s = 1..k."""
    reward: Array
    """float32 [H, k, A]: sum of rewards, and in ``lost`` what rounding dropped from it."""
    lost: Array


def empty(problem: Problem) -> Model:
    """The model before the first episode."""
    shape = (problem.horizon, problem.width, problem.num_actions)
    zeros = jnp.zeros(shape, jnp.float32)
    moves = jnp.zeros((*shape, problem.width), jnp.int32)
    return Model(jnp.zeros(shape, jnp.int32), moves, zeros, zeros)


def add_episode(model: Model, feedback: SemiBanditFeedback) -> Model:
    """The model after one more episode."""
    horizon, width, num_actions = model.visits.shape
    chex.assert_shape(list(feedback), (horizon,))
    here = (
        jax.nn.one_hot(feedback.levels - 1, width, dtype=jnp.int32)[:, :, None]
        * jax.nn.one_hot(feedback.actions, num_actions, dtype=jnp.int32)[:, None, :]
    )
    target = jax.nn.one_hot(feedback.next_levels - 1, width, dtype=jnp.int32)
    paid = feedback.rewards.astype(jnp.float32)[:, None, None]
    term = jnp.where(here > 0, paid - model.lost, 0)
    total = model.reward + term
    return Model(
        model.visits + here,
        model.moves + here[..., None] * target[:, None, None, :],
        total,
        jnp.where(here > 0, (total - model.reward) - term, model.lost),
    )


def inverse(model: Model) -> Array:
    """1 / N, and 1 where N = 0."""
    return 1 / jnp.maximum(model.visits, 1).astype(jnp.float32)


def plan(reward: Array, transition: Array) -> Array:
    """Q [H, k, A] of the model with mean rewards [H, k, A] and probabilities [H, k, A, k] of the levels 1..k.

    Q = r + p min(V, 1) with V = max_a Q: the value of what follows is clipped at 1, the largest total, and Q is not, so
    that clipping makes no ties between actions.

    Example:
        >>> import jax.numpy as jnp
        >>> plan(jnp.full((2, 1, 2), 0.5), jnp.asarray([[[[0.0], [0.5]]], [[[0.0], [0.0]]]])).tolist()
        [[[0.5, 0.75]], [[0.5, 0.5]]]
    """

    def back(tail, x):
        reward, transition = x
        onward = [transition[:, :, s] * tail[s] for s in range(tail.shape[0])]
        q = reward + reduce(jnp.add, onward)
        return jnp.minimum(jnp.max(q, axis=-1), 1), q

    tail = jnp.zeros(reward.shape[1], reward.dtype)
    unroll = reward.shape[0] if active().straight else 1
    return jax.lax.scan(back, tail, (reward, transition), reverse=True, unroll=unroll)[1]


def greedy(q: Array) -> Array:
    """The policy int32 [H, k+1] that is greedy in Q [H, k, A]; ties go to the first action, level 0
    plays action 0."""
    best = jnp.argmax(q, axis=-1).astype(jnp.int32)
    return jnp.concatenate([jnp.zeros_like(best[:, :1]), best], axis=1)
