"""Posterior sampling (PSRL; Osband, Russo and Van Roy 2013), stage-dependent, semi-bandit feedback.

Before every episode a model is drawn from the posterior and its optimal policy is played. At each
stage, level and action, after N visits of which N_s led to level s (0..k) and whose rewards add up
to S,

    next level   ~ Dirichlet(1 / (k+1) + c N_0, ..., 1 / (k+1) + c N_k),
    mean reward  ~ Beta(1/2 + c S, 1/2 + c (N - S)),

independently. c is ``concentration``: 1 is the posterior, a larger c a narrower distribution (rewards
in [0, 1] vary less than the coin flips that the Beta posterior stands for).

The policy played is greedy in Q = r + p min(V, 1) of the drawn model, with V = max_a Q (0 at level 0 and after stage H).
Q itself is not clipped: the draws are continuous, so there are no ties, and numbering the actions otherwise changes no
law.

Deviations from the reference: V is clipped at 1, the largest total there is; reward and next
level are given independent posteriors although they are drawn jointly, which leaves the mean of
every value right; gamma variates are Marsaglia and Tsang's (2000) with one rejection at most: the
second proposal is kept as it is, which concerns one draw in twenty at most, so draws are nearly but
not exactly gamma.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import Model, add_episode, empty, greedy, plan
from jaxbandit.learners.parameters import scales
from jaxbandit.types import Array
from jaxbandit.xla.threefry import unit_float32


class PSRLState(NamedTuple):
    """What was seen."""

    model: Model


def psrl(concentration: float = 1.0) -> Learner:
    """Posterior sampling with ``concentration`` times the counts.

    Args:
        concentration: >= 0, on the counts in the posterior: larger values trust the data sooner.

    Example:
        >>> psrl().feedback
        'semi-bandit'
    """
    fields = scales(concentration=concentration)
    return Learner(
        init=init,
        act=act,
        update=update,
        feedback="semi-bandit",
        name="psrl",
        **fields,
    )


def init(problem: Problem, constants: Any, key: Array) -> PSRLState:
    """Nothing is known."""
    del constants, key
    return PSRLState(model=empty(problem))


def act(state: PSRLState, key: Array, constants: Any) -> Array:
    """The optimal policy of a drawn model, int32 [H, k+1]."""
    return greedy(plan(*draw_model(state.model, key, constants)))


def update(
    state: PSRLState, policy: Array, feedback: SemiBanditFeedback, constants: Any
) -> PSRLState:
    """One more episode."""
    del policy, constants
    return PSRLState(model=add_episode(state.model, feedback))


def draw_model(model: Model, key: Array, constants: Any) -> tuple[Array, Array]:
    """Mean rewards [H, k, A] and probabilities [H, k, A, k] of the levels 1..k, drawn from the
    posterior."""
    scale = constants["concentration"]
    level = 1 / (model.moves.shape[-1] + 1)  # every next level begins with this share of one visit
    seen = model.visits.astype(jnp.float32)
    moves = model.moves.astype(jnp.float32)
    gone = seen[..., None] - jnp.sum(moves, axis=-1, keepdims=True)
    reward = jnp.clip(model.reward, 0, seen)[..., None]
    shapes = jnp.concatenate(
        [
            scale * jnp.concatenate([reward, seen[..., None] - reward], axis=-1) + 0.5,
            scale * jnp.concatenate([gone, moves], axis=-1) + level,
        ],
        axis=-1,
    )
    drawn = gamma(key, shapes)
    pays, levels = drawn[..., :2], drawn[..., 2:]
    mean = pays[..., 0] / (pays[..., 0] + pays[..., 1])
    return mean, levels[..., 1:] / jnp.sum(levels, axis=-1, keepdims=True)


def gamma(key: Array, shape: Array) -> Array:
    """Gamma variates of unit scale and of these ``shape`` parameters > 0, in float32.

    Marsaglia and Tsang's proposal is (nearly) normal in the cube root and rejected with probability
    below 0.05; shapes are raised by 1 and brought back by a power of a uniform.
    """
    first, second, coin, root = jax.random.split(key, 4)
    d = shape + 2 / 3
    x = jnp.stack([_normal(first, shape.shape), _normal(second, shape.shape)])
    cube = (1 + x / (3 * jnp.sqrt(d))[None]) ** 3
    good = cube > 0
    v = jnp.where(good, cube, 1)
    bound = 0.5 * x**2 + d[None] * (1 - v + jnp.log(v))
    kept = jnp.where(good[0] & (jnp.log(_uniform(coin, shape.shape)) < bound[0]), v[0], v[1])
    lowered = _uniform(root, shape.shape) ** (1 / shape)
    return jnp.maximum(d * kept * lowered, jnp.finfo(jnp.float32).tiny)


def _uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform on (0, 1)."""
    return unit_float32(jax.random.bits(key, shape, jnp.uint32)) + jnp.float32(2.0**-24)


def _normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normal."""
    return jnp.float32(2**0.5) * jax.lax.erf_inv(2 * _uniform(key, shape) - 1)
