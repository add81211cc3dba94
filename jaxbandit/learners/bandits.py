"""Learners for K-armed bandits, episode by episode: index policies, epsilon-greedy and Exp3.

A K-armed bandit is an MDP with H = 1, k = 1 and A = K (``jb.make_instance("bandit", means=...)``).
After t episodes arm a was played n_a times and its mean reward is m_a. Every index policy plays

    argmax_a  index(a),      index(a) = +inf while n_a = 0,

so the first K episodes play arms 0, ..., K - 1 in this order if ties go to the first arm.

    ucb1     m_a + c sqrt(2 ln t / n_a)                              Auer, Cesa-Bianchi, Fischer 2002
    moss     m_a + c sqrt(max(0, ln(T / (K n_a))) / n_a)             Audibert, Bubeck 2009
    kl-ucb   max{q : n_a kl(m_a, q) <= c ln t + d ln ln t}           Garivier, Cappe 2011
    imed     -(n_a kl(m_a, max_b m_b) + ln n_a)                      Honda, Takemura 2015

kl(p, q) = p ln(p/q) + (1 - p) ln((1 - p)/(1 - q)) is the divergence of Bernoulli distributions, which is
right for rewards of 0 and 1 and a valid bound for rewards in [0, 1].

t counts *finished* episodes, as in SMPyBandits (the reference starts at the number of the next one: ln t against
ln(t + 1)). Ties go to the first arm (``ties="first"``) or to a uniformly drawn one (``ties="random"``); the order of
the arms matters to a greedy learner in the first case only.

Functions without random ties also take arrays with lanes (seeds side by side) in trailing axes (`jaxbandit.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.specs import Choice, Flag, Probability, Real, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate

TIES = Choice("first", "random")
NEWTON_STEPS = 8
"""Of the index of kl-ucb: 6 exhaust float32, whatever the mean and the bound; 8 exhaust float64 (see the tests)."""


class Arms(NamedTuple):
    """What the arms have paid."""

    plays: Array
    """int32 [K]: n_a."""
    total: Array
    """float32 [K]: sum of rewards, and in ``lost`` what rounding dropped from it."""
    lost: Array
    episodes: Array
    """int32 []: t."""


class ArmConstants(NamedTuple):
    """The numbers in an index."""

    scale: Array
    """float32 []: c."""
    extra: Array
    """float32 []: T / K for moss, d for kl-ucb, else 0."""


@takes(bonus_scale=Real(0), ties=TIES)
def ucb1(bonus_scale: float = 1.0, ties: str = "first") -> Learner:
    """UCB1 for K-armed bandits: the arm of the largest m + c sqrt(2 ln t / n).

    c = 1 is UCB1. SMPyBandits' UCB(alpha) is c = sqrt(alpha) / 2, and c = 0 is greedy.

    Args:
        bonus_scale: c >= 0.
        ties: "first" (the arm of the smallest number) or "random".

    Example:
        >>> import jaxbandit as jb
        >>> arms = jb.make_instance("bandit", means=[0.5, 0.6])
        >>> ds = jb.sweep({"UCB1": jb.make_learner("ucb1")}, {"two arms": arms}, 100, num_seeds=2, progress=False)
        >>> bool((ds["regret"] >= 0).all())
        True
    """
    return _index_policy(ucb1, "ucb1", ties, bonus_scale=bonus_scale)


@takes(bonus_scale=Real(0), ties=TIES)
def moss(bonus_scale: float = 1.0, ties: str = "first") -> Learner:
    """MOSS for K-armed bandits: the arm of the largest m + c sqrt(max(0, ln(T / (K n))) / n).

    It knows T; its regret is at most of order sqrt(K T) whatever the means.

    Args:
        bonus_scale: c >= 0; 1 in the reference.
        ties: "first" or "random".

    Example:
        >>> moss()
        Learner('moss', bandit, bonus_scale 1)
    """
    return _index_policy(moss, "moss", ties, bonus_scale=bonus_scale)


@takes(bonus_scale=Real(0), loglog_scale=Real(0), ties=TIES)
def kl_ucb(bonus_scale: float = 1.0, loglog_scale: float = 0.0, ties: str = "first") -> Learner:
    """KL-UCB for K-armed bandits: the largest q with n kl(m, q) <= c ln t + d ln ln t.

    Its regret on Bernoulli arms meets the bound of Lai and Robbins as T grows.

    Args:
        bonus_scale: c >= 0, 1 in the reference.
        loglog_scale: d >= 0; 3 in the theorem, 0 is what its authors recommend.
        ties: "first" or "random".

    Example:
        >>> kl_ucb()
        Learner('kl-ucb', bandit, bonus_scale 1, loglog_scale 0)
    """
    return _index_policy(kl_ucb, "kl-ucb", ties, bonus_scale=bonus_scale, loglog_scale=loglog_scale)


@takes(ties=TIES)
def imed(ties: str = "first") -> Learner:
    """IMED for K-armed bandits: the arm of the smallest n kl(m, best m) + ln n.

    It has no parameter and meets the bound of Lai and Robbins.

    Args:
        ties: "first" or "random".

    Example:
        >>> imed()
        Learner('imed', bandit)
    """
    return _index_policy(imed, "imed", ties)


@takes(epsilon=Real(0), decay=Flag, ties=TIES)
def epsilon_greedy(epsilon: float = 0.1, decay: bool = False, ties: str = "first") -> Learner:
    """Epsilon-greedy for K-armed bandits: a uniformly drawn arm with probability eps, else the best mean.

    Args:
        epsilon: eps in [0, 1]; with ``decay`` any number c >= 0.
        decay: eps_t = min(1, c K / t) after t episodes (Auer, Cesa-Bianchi and Fischer 2002) instead of a constant.
        ties: "first" or "random", among the best means.

    Example:
        >>> epsilon_greedy(0.05)
        Learner('epsilon-greedy', bandit, epsilon 0.05)
    """
    specs = {"epsilon": Real(0) if decay else Probability()}
    fields = as_params(specs, epsilon=specs["epsilon"].check("epsilon", epsilon))
    act, constants = _epsilon_greedy(decay, ties)
    return Learner(no_arms, act, add_reward, name="epsilon-greedy", constants=constants, **fields)


@takes(rate_scale=Real(0, above=True))
def exp3(rate_scale: float = 1.0) -> Learner:
    """Exp3 for K-armed bandits: arm a with probability proportional to exp(-eta L_a).

    L_a adds (1 - reward) / probability whenever arm a is played, which makes it an unbiased estimate of
    the arm's total loss. eta = s sqrt(ln K / (T K)) (Auer, Cesa-Bianchi, Freund and Schapire 2002, in the form of
    Lattimore and Szepesvari 2020, Theorem 11.2). The rewards need not be drawn at random for its guarantee.

    Args:
        rate_scale: s > 0.

    Example:
        >>> exp3()
        Learner('exp3', bandit, rate_scale 1)
    """
    fields = as_params(exp3.specs, rate_scale=rate_scale)  # type: ignore[attr-defined]
    return Learner(
        exp3_init, exp3_act, exp3_update, name="exp3", constants=exp3_constants, **fields
    )


# What all of them share.


def require_bandit(name: str, problem: Problem) -> None:
    """Raises ValueError unless the problem is a K-armed bandit.

    Example:
        >>> require_bandit("ucb1", Problem(horizon=15, width=2, num_actions=5, num_episodes=100))
        Traceback (most recent call last):
        ...
        ValueError: ucb1: an MDP with H = 15 and k = 2; accepted: a K-armed bandit, H = 1 and k = 1 ...
    """
    if (problem.horizon, problem.width) != (1, 1):
        raise ValueError(
            f"{name}: an MDP with H = {problem.horizon} and k = {problem.width}; accepted: a K-armed bandit, H = 1 and "
            'k = 1 (jb.make_instance("bandit", means=...)). For other MDPs use "ucb-policies" (tiny ones) or "expref" '
            'with bandit feedback, "ucbvi" or "psrl" with semi-bandit feedback'
        )


def no_arms(problem: Problem, constants: Any, key: Array) -> Arms:
    """Nothing was played."""
    del constants, key
    zeros = jnp.zeros(problem.num_actions, jnp.float32)
    return Arms(jnp.zeros(problem.num_actions, jnp.int32), zeros, zeros, jnp.int32(0))


def add_reward(arms: Arms, policy: Array, feedback: BanditFeedback, constants: Any) -> Arms:
    """The arms after one more episode: compensated sums."""
    del constants
    chex.assert_shape(policy, (1, 2, *feedback.total.shape))
    here = was_played(arms.plays, policy)
    term = jnp.where(here, feedback.total.astype(jnp.float32)[None] - arms.lost, 0)
    total = arms.total + term
    return Arms(
        plays=arms.plays + here.astype(jnp.int32),
        total=total,
        lost=jnp.where(here, (total - arms.total) - term, arms.lost),
        episodes=arms.episodes + 1,
    )


def play(arm: Array) -> Array:
    """The policy int32 [1, 2] that plays an arm int32 []; level 0, where nothing is left to play, is given the same."""
    return jnp.broadcast_to(arm[None, None], (1, 2, *arm.shape))


def was_played(like: Array, policy: Array) -> Array:
    """bool [K], the shape of ``like``: which arm a policy plays."""
    return jax.lax.broadcasted_iota(jnp.int32, like.shape, 0) == policy[0, 1][None]


def best_arm(index: Array, key: Array | None = None) -> Array:
    """argmax of index [K] as int32 []: the first of equals, or with a key a uniformly drawn one.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> int(best_arm(jnp.asarray([0.0, 1.0, 1.0])))
        1
    """
    if key is not None:
        equal = (index == jnp.max(index)).astype(jnp.int32)
        wanted = (jax.random.uniform(key) * jnp.sum(equal).astype(jnp.float32)).astype(jnp.int32)
        return jnp.argmax(jnp.cumsum(equal) > wanted).astype(jnp.int32)
    return _first_largest(index)


@separate
def _first_largest(index: Array) -> Array:
    """argmax, written out: a reduction is a loop over single entries, and this a chain of selects over lanes."""
    best, arm = index[0], jnp.zeros(index.shape[1:], jnp.int32)
    for a in range(1, index.shape[0]):
        better = index[a] > best
        best, arm = jnp.where(better, index[a], best), jnp.where(better, jnp.int32(a), arm)
    return arm


# Index policies.


def index_ucb1(arms: Arms, constants: ArmConstants) -> Array:
    """m + c sqrt(2 ln t / n), [K]."""
    n, mean = _means(arms)
    width = constants.scale * jnp.sqrt(2 * _log_episodes(arms))
    return mean + width[None] / jnp.sqrt(n)


def index_moss(arms: Arms, constants: ArmConstants) -> Array:
    """m + c sqrt(max(0, ln(T / (K n))) / n), [K]."""
    n, mean = _means(arms)
    scale, most = jnp.asarray(constants.scale)[None], jnp.asarray(constants.extra)[None]
    return mean + scale * jnp.sqrt(jnp.maximum(jnp.log(most / n), 0) / n)


def index_kl_ucb(arms: Arms, constants: ArmConstants) -> Array:
    """The largest q with n kl(m, q) <= c ln t + d ln ln t, [K]."""
    n, mean = _means(arms)
    log_t = _log_episodes(arms)
    loglog = jnp.log(jnp.maximum(log_t, 1))
    return upper_bound(mean, (constants.scale * log_t + constants.extra * loglog)[None] / n)


def index_imed(arms: Arms, constants: ArmConstants) -> Array:
    """-(n kl(m, best m) + ln n), [K]."""
    del constants
    n, mean = _means(arms)
    best = jnp.max(jnp.where(arms.plays > 0, mean, 0), axis=0, keepdims=True)
    return -(n * divergence(mean, jnp.maximum(best - mean, 0)) + jnp.log(n))


def divergence(p: Array, gap: Array) -> Array:
    """kl(p, p + gap) of Bernoulli distributions for 0 <= gap <= 1 - p; inf where p + gap = 1 > p.

    Each logarithm is of 1 + something small where the gap is, so that float32 keeps the digits of a small divergence.

    Example:
        >>> import jax.numpy as jnp
        >>> f"{float(divergence(jnp.float32(0.8), jnp.float32(0.1))):.5f}"
        '0.04440'
    """
    some, rest = jnp.where(p > 0, p, 1), jnp.where(p < 1, 1 - p, 1)
    up = jnp.where(p > 0, -p * jnp.log1p(gap / some), 0)
    down = jnp.where(p < 1, -rest * jnp.log1p(-jnp.minimum(gap / rest, 1)), 0)
    return jnp.maximum(up + down, 0)


def upper_bound(p: Array, level: Array) -> Array:
    """The largest q in [p, 1] with kl(p, q) <= level, by Newton's method from above.

    kl(p, .) is convex and increasing, so that every step from above stays above. The first point is the smaller of two upper
    bounds: kl >= 2 (q - p)^2, and kl >= (1 - p) ln((1 - p) / (1 - q)) + p ln p.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(abs(upper_bound(jnp.float32(0), jnp.float32(1)) - (1 - jnp.exp(-1))) < 1e-6)
        True
    """
    tiny = jnp.finfo(p.dtype).eps
    sure = p >= 1
    p = jnp.clip(p, tiny * tiny, 1 - tiny)
    rest = 1 - p
    straight = jnp.sqrt(level / 2)
    steep = -rest * jnp.expm1(-(level - p * jnp.log(p)) / rest)
    gap = jnp.minimum(jnp.minimum(straight, steep), rest * (1 - tiny))

    def step(_, gap):
        slope = gap / ((p + gap) * jnp.maximum(rest - gap, tiny * rest))
        over = divergence(p, gap) - level
        return jnp.where(over > 0, jnp.maximum(gap - over / slope, 0), gap)

    return jnp.where(sure, 1, p + jax.lax.fori_loop(0, NEWTON_STEPS, step, gap, unroll=True))


def _means(arms: Arms) -> tuple[Array, Array]:
    """n, at least 1, and m as float32 [K]."""
    n = jnp.maximum(arms.plays, 1).astype(jnp.float32)
    return n, arms.total / n


def _log_episodes(arms: Arms) -> Array:
    return jnp.log(jnp.maximum(arms.episodes, 1).astype(jnp.float32))


INDEX: dict[str, Callable[[Arms, ArmConstants], Array]] = {
    "ucb1": index_ucb1, "moss": index_moss, "kl-ucb": index_kl_ucb, "imed": index_imed,
}  # fmt: skip


def _index_policy(constructor: Any, name: str, ties: str, **values: float) -> Learner:
    act, constants = _functions(name, ties)
    fields = as_params(constructor.specs, **values)
    return Learner(no_arms, act, add_reward, name=name, constants=constants, **fields)


@cache
def _functions(name: str, ties: str) -> tuple[Any, Any]:
    """act and constants of an index policy; the same objects for the same arguments."""

    @separate
    def index(state: Arms, constants: ArmConstants) -> Array:
        return jnp.where(state.plays == 0, jnp.inf, INDEX[name](state, constants))

    def act(state: Arms, key: Array, constants: ArmConstants) -> Array:
        """The arm of the largest index; arms that were never played come first."""
        return play(best_arm(index(state, constants), key if ties == "random" else None))

    def constants(problem: Problem, params: Any) -> ArmConstants:
        """c and what else is in the index."""
        require_bandit(name, problem)
        extra = params.get("loglog_scale", 0.0)
        if name == "moss":
            extra = problem.num_episodes / problem.num_actions
        return ArmConstants(np.float32(params.get("bonus_scale", 1.0)), np.float32(extra))

    return act, constants


# Epsilon-greedy and Exp3 draw their arms.


@cache
def _epsilon_greedy(decay: bool, ties: str) -> tuple[Any, Any]:
    """act and constants; the same objects for the same arguments."""

    def act(state: Arms, key: Array, constants: Array) -> Array:
        """A drawn arm, or the one of the best mean; arms that were never played come first."""
        coin, draw, tie = jax.random.split(key, 3)
        mean = jnp.where(state.plays == 0, jnp.inf, _means(state)[1])
        greedy = best_arm(mean, tie if ties == "random" else None)
        drawn = jax.random.randint(draw, (), 0, state.plays.size)
        share = constants
        if decay:
            share = share * state.plays.size / jnp.maximum(state.episodes, 1).astype(jnp.float32)
        return play(jnp.where(jax.random.uniform(coin) < share, drawn, greedy))

    def constants(problem: Problem, params: Any) -> np.float32:
        """eps, or c."""
        require_bandit("epsilon-greedy", problem)
        return np.float32(params["epsilon"])

    return act, constants


def exp3_constants(problem: Problem, params: Any) -> np.float32:
    """eta."""
    require_bandit("exp3", problem)
    arms = problem.num_actions
    rate = np.sqrt(np.log(max(arms, 2)) / (problem.num_episodes * arms))
    return np.float32(params["rate_scale"] * rate)


def exp3_init(problem: Problem, constants: Array, key: Array) -> Array:
    """-eta times the estimated losses, float32 [K], less their maximum."""
    del constants, key
    return jnp.zeros(problem.num_actions, jnp.float32)


def exp3_act(state: Array, key: Array, constants: Array) -> Array:
    """An arm drawn from softmax(state)."""
    del constants
    passed = jnp.cumsum(jnp.exp(state))
    target = jax.random.uniform(key) * passed[-1]
    return play(jnp.minimum(jnp.sum(passed <= target), state.size - 1).astype(jnp.int32))


def exp3_update(state: Array, policy: Array, feedback: BanditFeedback, constants: Array) -> Array:
    """Adds the estimated loss of the arm that was played."""
    here = jnp.arange(state.size, dtype=jnp.int32) == policy[0, 1]
    loss = constants * (1 - feedback.total.astype(jnp.float32)) / jax.nn.softmax(state)
    state = jnp.where(here, state - loss, state)
    return state - jnp.max(state)
