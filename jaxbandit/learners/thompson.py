"""Thompson sampling for K-armed bandits (Thompson 1933; Agrawal and Goyal 2012), with exact Beta draws.

Before every episode each arm draws theta_a ~ Beta(alpha + wins, beta + losses), and the arm of the largest
theta is played. A reward x strictly between 0 and 1 counts as a win with probability x (the coin of Agrawal and
Goyal): the law of the arms that are played depends on their mean rewards alone.

A Beta variate is G / (G + G') for two gamma variates. These are Marsaglia and Tsang's (2000): with x
standard normal, d = shape - 1/3 and y = x / (3 sqrt d), the proposal d (1 + y)^3 is accepted with probability

    exp(d (3 (ln(1 + y) - y + y^2 / 2) - y^3)),                     0.95 for shape 1, more for larger ones,

and drawn anew until it is. Rejection loops end when the last draw of all lanes is accepted, so draws are exact up
to float32 and the 23 bits of a uniform. A shape below 1 (a prior below 1, before the first win or loss) is raised by 1
and the logarithm of its variate lowered by an exponential one over the shape.

Ties have probability 0, up to float32; they go to the first arm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.bandits import best_arm, play, require_bandit, was_played
from jaxbandit.specs import Real, Whole, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate
from jaxbandit.xla.threefry import key_words, threefry, unit_float32

COIN, DRAWS = 0, 1
"""Roles of the random words of an episode."""


class Beliefs(NamedTuple):
    """The posterior of every arm."""

    wins: Array
    """int32 [K]."""
    losses: Array
    """int32 [K]."""
    seed: Array
    """uint32 [2]: of all draws."""


class Prior(NamedTuple):
    """Beta(alpha, beta), and how often every arm is played first."""

    alpha: Array
    """float32 []."""
    beta: Array
    """float32 []."""
    warmup: Array
    """int32 []."""


@takes(alpha=Real(0, above=True), beta=Real(0, above=True), warmup=Whole(0))
def thompson(alpha: float = 1.0, beta: float = 1.0, warmup: int = 0) -> Learner:
    """Thompson sampling for K-armed bandits, with a Beta(alpha, beta) prior for the mean of every arm.

    Args:
        alpha: > 0, wins that every arm begins with; 1 and 1 is the uniform prior.
        beta: > 0, losses that every arm begins with.
        warmup: plays of every arm before the first draw, in the order of the arms. None in the reference, 1 in some
            published experiments.

    Example:
        >>> import jaxbandit as jb
        >>> arms = jb.make_instance("bandit", means=[0.5, 0.6])
        >>> ds = jb.sweep({"TS": jb.make_learner("thompson")}, {"two arms": arms}, 100, num_seeds=2, progress=False)
        >>> bool((ds["regret"] >= 0).all())
        True
    """
    fields = as_params(thompson.specs, alpha=alpha, beta=beta, warmup=warmup)  # type: ignore[attr-defined]
    return Learner(init, act, update, name="thompson", constants=constants, **fields)


def constants(problem: Problem, params: Any) -> Prior:
    """The prior."""
    require_bandit("thompson", problem)
    return Prior(
        np.float32(params["alpha"]), np.float32(params["beta"]), np.int32(params["warmup"])
    )


def init(problem: Problem, constants: Prior, key: Array) -> Beliefs:
    """No arm was played."""
    del constants
    zeros = jnp.zeros(problem.num_actions, jnp.int32)
    return Beliefs(zeros, zeros, jnp.stack(key_words(key)))


def act(state: Beliefs, key: Array, constants: Prior) -> Array:
    """The arm of the largest draw.

    The draws of an episode are made from the seed and its number, and not from ``key``: one cipher for all of them.
    """
    del key
    wins, losses = (x.astype(jnp.float32) for x in (state.wins, state.losses))
    alpha, beta, warmup = (jnp.asarray(x)[None] for x in constants)
    words = _words(state.seed, jnp.sum(state.wins + state.losses, axis=0), jnp.uint32(DRAWS))
    theta = draw_beta(words, wins + alpha, losses + beta)
    # Until every arm was played so often, the one that was played least comes first.
    missing = warmup - state.wins - state.losses
    return play(best_arm(jnp.where(missing > 0, missing.astype(jnp.float32) + 1, theta)))


def update(state: Beliefs, policy: Array, feedback: BanditFeedback, constants: Prior) -> Beliefs:
    """One more win or loss."""
    del constants
    chex.assert_shape(policy, (1, 2, *feedback.total.shape))
    coin = _words(state.seed, jnp.sum(state.wins + state.losses, axis=0), jnp.uint32(COIN))[0]
    won = (unit_float32(coin) < feedback.total)[None]
    here = was_played(state.wins, policy)
    return state._replace(
        wins=state.wins + (here & won).astype(jnp.int32),
        losses=state.losses + (here & ~won).astype(jnp.int32),
    )


@separate
def _words(seed: Array, episode: Array, role: Array) -> tuple[Array, Array]:
    """The random words of an episode for a role."""
    return threefry((seed[0], seed[1]), (episode.astype(jnp.uint32), role))


def draw_beta(words: tuple[Array, Array], alpha: Array, beta: Array) -> Array:
    """Independent Beta variates of float32 parameters [K], all positive, from the two words of a key.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> keys = key_words(jax.random.split(jax.random.key(0), 4000))
        >>> draws = jax.vmap(draw_beta, (0, None, None))(keys, jnp.ones(1), 3 * jnp.ones(1))
        >>> bool(abs(draws.mean() - 1 / 4) < 0.01)      # about 3 standard errors
        True
    """
    shape = jnp.stack([alpha, beta]).astype(jnp.float32)
    place = jax.lax.broadcasted_iota(jnp.uint32, shape.shape, 0) * jnp.uint32(alpha.shape[0])
    place = place + jax.lax.broadcasted_iota(jnp.uint32, shape.shape, 1)
    raised = jnp.where(shape < 1, shape + 1, shape)
    words = (words[0][None, None], words[1][None, None])

    def again(carry):
        turn, drawn = carry
        return turn + 1, _propose_again(raised, words, place, turn, drawn)

    first = jnp.uint32(1), _propose(raised, words, place)
    _, drawn = jax.lax.while_loop(lambda carry: jnp.any(carry[1] < 0), again, first)
    # A loop of at most one turn, and no cond: under vmap a cond computes both sides.
    _, drawn = jax.lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.bool_(False), lower_gamma(shape, carry[1], words, place)),
        (jnp.any(shape < 1), drawn),
    )
    return _ratio(drawn)


@separate
def _propose(shape: Array, words: tuple[Array, Array], place: Array) -> Array:
    return propose_gamma(shape, *threefry(words, (jnp.uint32(0), place)))


@separate
def _propose_again(
    shape: Array, words: tuple[Array, Array], place: Array, turn: Array, drawn: Array
) -> Array:
    new = propose_gamma(shape, *threefry(words, (turn, place)))
    return jnp.where(drawn < 0, new, drawn)


@separate
def _ratio(drawn: Array) -> Array:
    return drawn[0] / (drawn[0] + drawn[1])


def propose_gamma(shape: Array, first: Array, second: Array) -> Array:
    """A gamma variate for every shape >= 1 from two random words; -1 where the proposal is rejected."""
    d = shape - jnp.float32(1 / 3)
    x = jnp.float32(2**0.5) * jax.lax.erf_inv(2 * _open_unit(first) - 1)
    y = x / (3 * jnp.sqrt(d))
    inside = y > -1
    y = jnp.where(inside, y, 0)
    log_ratio = d * (3 * (jnp.log1p(y) - y + y * y / 2) - y * y * y)
    accepted = inside & (_open_unit(second) < jnp.exp(log_ratio))
    return jnp.where(accepted, d * (1 + y) ** 3, -1)


def lower_gamma(shape: Array, drawn: Array, words: tuple[Array, Array], place: Array) -> Array:
    """Gamma variates of ``shape`` where it is below 1, from those of shape + 1, all times the same number.

    The smaller of two exponents may underflow; their ratio, which is all that a Beta variate is made of, does not: pairs
    [2, K] are divided by the larger one.
    """
    word = threefry(words, (jnp.uint32(2**31), place))[0]
    log = jnp.log(drawn) + jnp.where(shape < 1, jnp.log(_open_unit(word)) / shape, 0)
    return jnp.exp(log - jnp.max(log, axis=0, keepdims=True))


def _open_unit(word: Array) -> Array:
    """Uniform on (0, 1)."""
    return unit_float32(word) + jnp.float32(2.0**-24)
