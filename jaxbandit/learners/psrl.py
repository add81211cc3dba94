"""Posterior sampling (PSRL; Osband, Russo and Van Roy 2013), stage-dependent, semi-bandit feedback.

Before every episode a model is drawn from the posterior and its optimal policy is played. At each
stage, level and action, after N visits of which N_s led to level s (0..k) and whose rewards add up
to S,

    next level   ~ Dirichlet(d + c N_0, ..., d + c N_k),         d = 1 / (k+1) unless ``prior`` says otherwise,
    mean reward  ~ Beta(b + c S, b + c (N - S)),                 b = 1/2 likewise,

independently. c is ``concentration``: 1 is the posterior, a larger c a narrower distribution (rewards
in [0, 1] vary less than the coin flips that the Beta posterior stands for). ``prior`` sets b and d: 1 is uniform, Beta(1, 1)
and Dirichlet(1, ..., 1). ``stationary`` pools the counts of all stages, as in the paper: one draw serves all of them.

The policy played is greedy in Q = r + p min(V, 1) of the drawn model, with V = max_a Q (0 at level 0 and after stage H).
Q itself is not clipped: the draws are continuous, so there are no ties, and numbering the actions otherwise changes no
law.

Deviations from the reference: V is clipped at 1, the largest total there is; reward and next
level are given independent posteriors although they are drawn jointly, which leaves the mean of
every value right; gamma variates are quantiles to within 0.0005 in probability (`gamma`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.bandits import open_unit
from jaxbandit.learners.model import Model, add_episode, empty, greedy, plan
from jaxbandit.specs import Flag, Optional, Real, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate
from jaxbandit.xla.threefry import key_words, threefry

NORMAL = (1.25244, 0.00686594, 0.314827, -0.00202479, 0.0435906, -0.0245487, 0.0032536)
CUBE_ROOT = (
    (0.00318718, -0.0135402, 0.00633044),
    (0.0130333, -0.00485588, -0.00107514),
    (-0.00364413, 0.00607094, 0.00341250),
    (-0.00384743, 0.000223195, -0.00268179),
    (-0.00120207, 0.00473262, -0.00276061),
    (-0.000124386, 0.000297717, 0.0000137552),
)
"""The polynomials of `gamma`, fitted by weighted least squares: q by powers of y, p by powers of x (rows) and v."""


class PSRLConstants(NamedTuple):
    """The posterior's parameters are ``reward`` and ``level`` and ``concentration`` times the counts."""

    concentration: Array
    """float32 []: c."""
    reward: Array
    """float32 []: b."""
    level: Array
    """float32 []: d."""
    stages: Array
    """int32 [H]: 1, ..., H."""


@takes(concentration=Real(low=0), prior=Optional(Real(low=0, above=True)), stationary=Flag)
def psrl(
    concentration: float = 1.0, prior: float | None = None, stationary: bool = False
) -> Learner:
    """Posterior sampling with ``concentration`` times the counts.

    Args:
        concentration: >= 0, on the counts in the posterior: larger values trust the data sooner.
        prior: > 0, what every outcome of a reward's coin and every next level begins with; 1 is uniform. By default
            Beta(1/2, 1/2) and Dirichlet(1 / (k+1), ...).
        stationary: pool the counts of all stages, for MDPs whose stages are alike.

    Example:
        >>> psrl(prior=1)
        Learner('psrl', semi-bandit, concentration 1, prior 1)
    """
    fields = as_params(psrl.specs, concentration=concentration, prior=prior)  # type: ignore[attr-defined]
    init = _init(stationary)
    return Learner(init, act, update, "semi-bandit", name="psrl", constants=constants, **fields)


def constants(problem: Problem, params: Any) -> PSRLConstants:
    """c, b and d."""
    prior = float(params["prior"])
    usual = np.isnan(prior)
    return PSRLConstants(
        concentration=np.float32(params["concentration"]),
        reward=np.float32(0.5 if usual else prior),
        level=np.float32(1 / (problem.width + 1) if usual else prior),
        stages=np.arange(1, problem.horizon + 1, dtype=np.int32),
    )


@cache
def _init(stationary: bool):
    """init of a variant; the same object on every call."""

    def init(problem: Problem, constants: Any, key: Array) -> Model:
        """Nothing is known."""
        del constants, key
        return empty(problem, stationary)

    return init


def act(state: Model, key: Array, constants: PSRLConstants) -> Array:
    """The optimal policy of a drawn model, int32 [H, k+1]."""
    return greedy(plan(*draw_model(state, key, constants), constants.stages.shape[0]))


def update(
    state: Model, policy: Array, feedback: SemiBanditFeedback, constants: PSRLConstants
) -> Model:
    """One more episode."""
    del policy, constants
    return add_episode(state, feedback)


def draw_model(model: Model, key: Array, constants: PSRLConstants) -> tuple[Array, Array]:
    """Mean rewards [S, k, A] and probabilities [S, k, A, k] of the levels 1..k, drawn from the
    posterior."""
    shape = _posterior(model, constants)
    # One axis: XLA makes vectors of the innermost axis alone, and k + 3 numbers fill none.
    drawn = gamma(key_words(key), shape.reshape(-1)).reshape(shape.shape)
    pays, levels = drawn[..., :2], drawn[..., 2:]
    mean = pays[..., 0] / (pays[..., 0] + pays[..., 1])
    return mean, levels[..., 1:] / jnp.sum(levels, axis=-1, keepdims=True)


def _posterior(model: Model, constants: PSRLConstants) -> Array:
    """The parameters of Beta and Dirichlet, [S, k, A, 2 + k+1]."""
    seen = model.visits.astype(jnp.float32)[..., None]
    moves = model.moves.astype(jnp.float32)
    gone = seen - jnp.sum(moves, axis=-1, keepdims=True)
    reward = jnp.clip(model.reward[..., None], 0, seen)
    counts = jnp.concatenate([reward, seen - reward, gone, moves], axis=-1)
    of_reward = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 3) < 2
    prior = jnp.where(of_reward, constants.reward, constants.level)
    return constants.concentration * counts + prior


@separate
def gamma(words: tuple[Array, Array], shape: Array) -> Array:
    """Gamma variates of unit scale and of these ``shape`` parameters [n] > 0 in float32, from the two words of a key.

    With t uniform on (-1, 1), y = sqrt(-ln(1 - t^2)), s >= 1 the shape and v = 1 / sqrt(s),

        x = t q(y)     and     s (1 - v^2 / 9 + x v / 3 + v^3 p(x, v))^3

    are nearly a standard normal variate and, from it, Wilson and Hilferty's (1931) quantile with a polynomial p that
    brings its error from 0.012 to 0.0004 in probability. A shape below 1 is raised by 1 and its variate brought back by
    a power of a uniform. There is nothing to reject, and no function that XLA computes entry by entry.
    """
    place = jax.lax.iota(jnp.uint32, shape.size)
    first, second = (open_unit(word) for word in threefry(words, (jnp.zeros_like(place), place)))
    y = jnp.sqrt(-jnp.log(4 * first * (1 - first)))
    x = (2 * first - 1) * _polynomial(NORMAL, y)
    low = shape < 1
    s = jnp.where(low, shape + 1, shape)
    v = 1 / jnp.sqrt(s)
    p = _polynomial([_polynomial(row, v) for row in CUBE_ROOT], x)
    root = jnp.maximum(1 + v * (x / 3 + v * (v * p - 1 / 9)), 1e-3)
    lowered = jnp.where(low, jnp.exp(jnp.log(second) / shape), 1)
    return jnp.maximum(s * root**3 * lowered, jnp.finfo(jnp.float32).tiny)


def _polynomial(coefficients: Sequence[Any], x: Array) -> Array:
    total = jnp.zeros_like(x)
    for each in reversed(coefficients):
        total = total * x + each
    return total
