"""Learners for K-armed bandits, episode by episode: index policies, Thompson sampling, epsilon-greedy and Exp3.

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

**Thompson sampling** (Thompson 1933; Agrawal and Goyal 2012). Before every episode each arm draws theta_a ~ Beta(alpha + wins, beta + losses), and the arm of the largest
theta is played. A reward x strictly between 0 and 1 counts as a win with probability x (the coin of Agrawal and
Goyal): the law of the arms that are played depends on their mean rewards alone.

A Beta variate is G / (G + G') for two gamma variates. These are Marsaglia and Tsang's (2000): with x
standard normal, d = shape - 1/3 and y = x / (3 sqrt d), the proposal d (1 + y)^3 is accepted with probability

    exp(d (3 (ln(1 + y) - y + y^2 / 2) - y^3)),                     0.95 for shape 1, more for larger ones,

and drawn anew until it is. Rejection loops end when the last draw of all lanes is accepted, so draws are exact up
to float32 and the 23 bits of a uniform. A shape below 1 (a prior below 1, before the first win or loss) is raised by 1
and the logarithm of its variate lowered by an exponential one over the shape.

Ties have probability 0, up to float32; they go to the first arm.

**UCB1 over all deterministic policies** (`ucb_policies`) is the natural first attempt in an MDP under bandit feedback, and
what the paper's learners improve on. Every assignment of actions to states is an arm, played in episode t if it has the
largest

    mean total reward + c sqrt(2 ln t / (times played)).

Ties go to the first arm. There are A^n arms for n states, so it is for tiny MDPs only and refuses others. Without further
knowledge all states of levels 1..k count; ``reachable`` leaves out states that no policy visits, where actions do not
matter.

Functions without random ties also take arrays with lanes (seeds side by side) in trailing axes (`jaxbandit.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import change_if
from jaxbandit.specs import Choice, Flag, Probability, Real, Whole, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import separate
from jaxbandit.xla.threefry import key_words, threefry, unit_float32

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
    return _paid(arms, was_played(arms.plays, policy), feedback.total)


def _paid(arms: Arms, here: Array, reward: Array) -> Arms:
    """The arms after the one that is ``here``, bool [K], has paid."""
    term = jnp.where(here, reward.astype(jnp.float32)[None] - arms.lost, 0)
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


# Thompson sampling.

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
    return Learner(
        thompson_init,
        thompson_act,
        thompson_update,
        name="thompson",
        constants=thompson_constants,
        **fields,
    )


def thompson_constants(problem: Problem, params: Any) -> Any:
    """The parameters."""
    require_bandit("thompson", problem)
    return dict(params)


def thompson_init(problem: Problem, constants: Any, key: Array) -> Beliefs:
    """No arm was played."""
    del constants
    zeros = jnp.zeros(problem.num_actions, jnp.int32)
    return Beliefs(zeros, zeros, jnp.stack(key_words(key)))


def thompson_act(state: Beliefs, key: Array, constants: Any) -> Array:
    """The arm of the largest draw.

    The draws of an episode are made from the seed and its number, and not from ``key``: one cipher for all of them.
    """
    del key
    wins, losses = (x.astype(jnp.float32) for x in (state.wins, state.losses))
    alpha, beta, warmup = (jnp.asarray(constants[x])[None] for x in ("alpha", "beta", "warmup"))
    words = _words(state.seed, jnp.sum(state.wins + state.losses, axis=0), jnp.uint32(DRAWS))
    theta = draw_beta(words, wins + alpha, losses + beta)
    # Until every arm was played so often, the one that was played least comes first.
    missing = warmup - wins - losses
    return play(best_arm(jnp.where(missing > 0, missing + 1, theta)))


def thompson_update(
    state: Beliefs, policy: Array, feedback: BanditFeedback, constants: Any
) -> Beliefs:
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
        return turn + 1, _propose(raised, words, place, turn, drawn)

    first = jnp.uint32(0), jnp.full_like(raised, -1)
    _, drawn = jax.lax.while_loop(lambda carry: jnp.any(carry[1] < 0), again, first)
    low = jnp.any(shape < 1)
    return _ratio(change_if(low, lambda drawn: lower_gamma(shape, drawn, words, place), drawn))


@separate
def _propose(
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
    x = jnp.float32(2**0.5) * jax.lax.erf_inv(2 * open_unit(first) - 1)
    y = x / (3 * jnp.sqrt(d))
    inside = y > -1
    y = jnp.where(inside, y, 0)
    log_ratio = d * (3 * (jnp.log1p(y) - y + y * y / 2) - y * y * y)
    accepted = inside & (open_unit(second) < jnp.exp(log_ratio))
    return jnp.where(accepted, d * (1 + y) ** 3, -1)


def lower_gamma(shape: Array, drawn: Array, words: tuple[Array, Array], place: Array) -> Array:
    """Gamma variates of ``shape`` where it is below 1, from those of shape + 1, all times the same number.

    The smaller of two exponents may underflow; their ratio, which is all that a Beta variate is made of, does not: pairs
    [2, K] are divided by the larger one.
    """
    word = threefry(words, (jnp.uint32(2**31), place))[0]
    log = jnp.log(drawn) + jnp.where(shape < 1, jnp.log(open_unit(word)) / shape, 0)
    return jnp.exp(log - jnp.max(log, axis=0, keepdims=True))


def open_unit(word: Array) -> Array:
    """Uniform on (0, 1)."""
    return unit_float32(word) + jnp.float32(2.0**-24)


# UCB1 over policies.

MOST_ARMS = 2**16


class PolicyArms(NamedTuple):
    """What each of the P policies has paid, and the next one."""

    arms: Arms
    policy: Array
    """int32 [H, k+1]: the next arm, as a policy."""
    arm: Array
    """int32 []: its number."""


class UCBConstants(NamedTuple):
    """The scale of the bonus, and how an arm's number says its policy."""

    scale: Array
    """float32 []: c."""
    values: Array
    """int32 [H, k+1]: the action of arm x at a state is x // value % A; 0 where there is no choice."""
    num_actions: Array
    """int32 []: A."""


@takes(bonus_scale=Real(low=0))
def ucb_policies(bonus_scale: float = 1.0, reachable: Any = None) -> Learner:
    """UCB1 with an arm for every deterministic policy; at most 65,536 of them.

    Args:
        bonus_scale: c >= 0.
        reachable: bool [H, k+1], the states whose actions matter, such as
            ``jb.visitation(mdp, uniform_policy) > 0``; all states of levels 1..k if not given.

    Example:
        >>> ucb_policies(reachable=[[False, True], [False, True]]).feedback
        'bandit'
    """
    table = None
    if reachable is not None:
        array = np.asarray(reachable)
        if array.dtype != bool or array.ndim != 2:
            raise ValueError(
                f"reachable: {array.dtype} {list(array.shape)}; accepted: bool [H, k+1]"
            )
        table = tuple(map(tuple, array.tolist()))
    constants, init = _policy_functions(table)
    fields = as_params(ucb_policies.specs, bonus_scale=bonus_scale)  # type: ignore[attr-defined]
    return Learner(
        init, _act_policy, _update_policy, name="ucb-policies", constants=constants, **fields
    )


def place_values(shape: tuple[int, int], num_actions: int, reachable: Any = None) -> np.ndarray:
    """The place value of every state in the number of an arm, int [H, k+1].

    Example:
        >>> place_values((2, 3), 3).tolist()
        [[0, 1, 3], [0, 9, 27]]
        >>> place_values((9, 3), 5)
        Traceback (most recent call last):
        ...
        ValueError: ucb-policies: 5^18 = 3,814,697,265,625 policies; accepted: at most 65,536 (name the reachable states, or take a smaller MDP)
    """
    open_ = np.ones(shape, bool)
    if reachable is not None:
        if np.shape(reachable) != shape:
            raise ValueError(
                f"reachable: {list(np.shape(reachable))}; accepted: {list(shape)} in this MDP"
            )
        open_ = np.array(reachable)
    open_[:, 0] = False
    count = int(open_.sum())
    if num_actions**count > MOST_ARMS:
        raise ValueError(
            f"ucb-policies: {num_actions}^{count} = {num_actions**count:,} policies; accepted: "
            f"at most {MOST_ARMS:,} (name the reachable states, or take a smaller MDP)"
        )
    values = np.zeros(shape, np.int64)
    values[open_] = num_actions ** np.arange(count)
    return values


@cache
def _policy_functions(reachable: tuple[tuple[bool, ...], ...] | None):
    """constants and init for a table of states; the same objects for the same table."""

    def constants(problem: Problem, params: Any) -> UCBConstants:
        """c, and the place values."""
        shape = (problem.horizon, problem.width + 1)
        values = place_values(shape, problem.num_actions, reachable)
        return UCBConstants(
            scale=np.float32(params["bonus_scale"]),
            values=values.astype(np.int32),
            num_actions=np.int32(problem.num_actions),
        )

    def init(problem: Problem, constants: UCBConstants, key: Array) -> PolicyArms:
        """No arm was played."""
        shape = (problem.horizon, problem.width + 1)
        values = place_values(shape, problem.num_actions, reachable)
        policies = problem.num_actions ** int((values > 0).sum())
        arms = no_arms(replace(problem, num_actions=policies), constants, key)
        return PolicyArms(arms, jnp.zeros(shape, jnp.int32), jnp.int32(0))

    return constants, init


def _act_policy(state: PolicyArms, key: Array, constants: UCBConstants) -> Array:
    """The arm of the largest bound."""
    del key, constants
    return state.policy


def _update_policy(
    state: PolicyArms, policy: Array, feedback: BanditFeedback, constants: UCBConstants
) -> PolicyArms:
    """Counts the episode; the next arm is that of the largest bound, inf for arms that were never played."""
    del policy
    chex.assert_shape(feedback.total, ())
    numbers = jnp.arange(state.arms.plays.size, dtype=jnp.int32)
    arms = _paid(state.arms, numbers == state.arm, feedback.total)
    n, mean = _means(arms)
    bound = mean + constants.scale * jnp.sqrt(2 * _log_episodes(arms) / n)
    arm = jnp.argmax(jnp.where(arms.plays == 0, jnp.inf, bound)).astype(jnp.int32)
    digit = arm // jnp.maximum(constants.values, 1) % constants.num_actions
    return PolicyArms(arms, jnp.where(constants.values > 0, digit, 0), arm)
