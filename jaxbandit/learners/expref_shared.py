"""ExpRef with shared episodes: all levels of a stage are estimated from the same episodes.

ExpRef (Algorithm 1 of the paper) spends n episodes on every action of every level of a stage, and
looks at one level at a time. But the learner chooses the actions of *all* levels, and an episode
visits one level of a stage, so with fixed actions e_1, ..., e_k at the levels of stage i,
exploration before and alpha-hat after it, the mean total reward is

    c + sum_l Q_{l,i} V_{l,i}(e_l):

additive over the levels. An orthogonal array (`design`) of p^2 arms, p a prime near A, lets
every action of a level meet every action of every other level equally often. The mean of the arms
that play a at level l, over N >= n = ceil(12 s ln T / eps^2) episodes, is therefore an unbiased
estimate of

    Phi_{l,i}(a) = Q_{l,i} V_{l,i}(a) + (a number that does not depend on a).

A stage costs about n max_l |A_{l,i}| episodes instead of n sum_l |A_{l,i}|. All else is ExpRef's, or
with ``ordered`` OrderedExpRef's: phases, exploration in the stages before i, C_{l,i}, N_{l,i}.

What carries over, with the preset "theory". Lemmas 3.2 to 3.5 and 3.8 to 3.10 (3.12 and 3.13) speak
of exploration in the stages before i and of differences Phi(a) - Phi(b) = Q (V(a) - V(b)) within one
state; both are as before. Lemma 3.6 is Hoeffding's inequality: the N episodes are independent and in
[0, 1], and their means average to Phi(a) exactly, so it holds as printed; episodes that serve
several states make the estimates of different states dependent, which the union bound does not mind.
Every episode plays active actions only, so the regret per episode of a phase is bounded as before.
A stage takes at most p^2 ceil(n / p) episodes, with p the smallest prime that is at least A and k - 1
(p = A for A = 2, 3, 5, 7, ...; p < 2A always if k <= A + 1), instead of k A n, and the bounds of
Theorems 3.1 and 3.11 hold with p in the place of k A under the root.

With ``greedy_share`` g > 0 (the practical presets; 0 in "theory") exploration plays, from the second
phase on and at every stage, alpha-hat of the phase before with probability g. It is active, as argmax
Phi-hat is never dropped, so every episode still plays active actions only. Any other action keeps 1 - g
of its probability, so visits from stage i to stage j shrink by (1 - g)^(j-i) at most: the induction
on C holds for C_{l,i} / (1 - g)^(H-i), and the bounds grow by 1 / (1 - g)^(H-1) at most.

With ``deviations`` z (the practical presets; none in "theory") the slack C_{l,i} eps is replaced by z
standard errors of a difference, z sqrt(2 s^2 / n), with n that of the phase, as above (not the N >= n episodes
that an action got), and s^2 here an estimate of the variance of an episode's total. The design pays for it: sums of arms
are all that is seen, but the means of the p^2 arms are additive in at most 1 + sum_l (|A_{l,i}| - 1) numbers, and what is left of them, the residuals,
is noise. Their sum of squares times the episodes of an arm has the mean sum_b (1 - h_b) sigma_b^2, with
sigma_b^2 the variance of an episode of arm b and h_b its leverage, which is the degrees of freedom
f = sum_b (1 - h_b) times a weighted mean of the variances (`residuals`). They are added up over all
stages that were played, in this phase and the earlier ones, the present stage included, with one degree of freedom of the
largest variance that totals in [0, 1] can have, V (1 - V), because there may be none; V is the mean total of all episodes
of the present stage: s^2 = (squares + V (1 - V)) / (f + 1). A constant C is too
bold where totals are noisy and too timid where they are not; a number of standard errors is neither.
The theorems do not cover it: z standard errors fail with a probability that does not fall with T.

Ties of Phi-hat go to the first action. Arms are played in the order of the array, whose symbols are active actions in index
order, so numbering the actions otherwise matters where T cuts a stage short.

Deviations from ExpRef beside these: a stage whose levels all have one active action is not
played; phases run while eps > sqrt(H A ln T / T), without k, because a phase is shorter.

An orthogonal array of strength 2 is few experiments in which any two factors meet evenly.
For a prime p, the p^2 experiments (u, v) with u, v = 0..p-1 give factor c = 0..p-1 the symbol
(u + c v) mod p, and factor p the symbol v. Over all experiments every symbol of a factor comes up p
times, and every pair of symbols of two factors exactly once (Rao 1947; two lines of different slope
in the plane over the integers modulo p meet in one point). Symbols are then mapped to the choices
of each factor, s to s mod n for n <= p choices: two factors stay independent of each other, and a
choice comes up at least p floor(p / n) times.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import KNOWN_PRESETS, BlockForm, Blocks, Learner, Presets, Problem
from jaxbandit.learners.expref import (
    EVERY,
    POSITIVE,
    PRACTICAL,
    SPECS,
    ExpRefConstants,
    ExpRefState,
    Schedule,
    arms_or_committed,
    end_phase,
    exploration,
    make_phased,
    refine,
    report,
)
from jaxbandit.learners.expref import constants as expref_constants
from jaxbandit.learners.expref import init as expref_init
from jaxbandit.specs import Choice, Flag, Probability, takes
from jaxbandit.types import Array

PRESETS: dict[str, dict[str, float]] = {
    "theory": {},
    "practical": {**PRACTICAL, "num_phases": 7, "deviations": 2.5, "greedy_share": 0.97},
}
ORDERED_PRESETS = {"theory": {}, "practical": {**PRESETS["practical"], "exploration_scale": 2.5}}
DEFAULTS = {name: value for name, value in EVERY.items() if name != "exploration_scale"}
KNOWN_PRESETS["expref-shared"] = (Presets(DEFAULTS, PRESETS), Presets(EVERY, ORDERED_PRESETS))


@takes(
    ordered=Flag,
    preset=Choice(None, *PRESETS),
    exploration_scale=POSITIVE,
    greedy_share=Probability(),
    deviations=SPECS["threshold"],
    **SPECS,
)
def expref_shared(
    *,
    ordered: bool = False,
    preset: str | None = None,
    exploration_scale: float | None = None,
    greedy_share: float | None = None,
    deviations: float | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Schedule | None = None,
) -> Learner:
    """ExpRef in which all levels of a stage share their episodes; the module
    `jaxbandit.learners.expref_shared` says why that is allowed.

    Args:
        ordered: explore as OrderedExpRef does in the stages before the one that is learned, with
            its C_{l,i}; the learner is then told the rank of the actions.
        preset: "theory" (the default) or "practical" (no guarantee).
        exploration_scale: c; with ``ordered``, exploration is uniform with probability
            min(1, c k / H), else maximal.
        greedy_share: g in [0, 1]; from the second phase on, exploration plays alpha-hat of the phase
            before with probability g at every stage (paper: 0).
        deviations: z; actions are kept that are within z standard errors of the best, measured from
            the arms themselves, in place of C_{l,i} eps.
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (by default sqrt(H A ln T / T)).
        num_phases: at most so many phases, and never more than 32.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an
            optax schedule; replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("expref-shared", preset="practical")
        Learner('expref-shared', bandit, preset practical)
        >>> jb.make_learner("expref-shared", ordered=True).requires
        ('rank',)
    """
    if exploration_scale is not None and not ordered:
        raise ValueError(
            f"exploration_scale: {exploration_scale}; accepted: only with ordered=True"
        )
    given = {**locals(), "ordered": None}
    presets = KNOWN_PRESETS["expref-shared"][ordered]
    return make_phased("expref-shared", FORMS[ordered], presets, given)


class SharedState(NamedTuple):
    """ExpRef's state, and how noisy the totals have been."""

    inner: ExpRefState
    """``stage`` is -1 when every state has one active action."""
    squares: Array
    """float []: residual sums of squares of all stages so far, in units of one episode."""
    freedom: Array
    """float []: their degrees of freedom."""


class Design(NamedTuple):
    """Experiments on k factors; B = P^2 of them, of which the first p^2 in use are marked."""

    choice: Array
    """int32 [B, k]: the choice of each factor."""
    used: Array
    """bool [B]."""
    least: Array
    """int32 []: every choice of every factor comes up in at least so many experiments."""


def largest_prime(num_factors: int, most_choices: int) -> int:
    """P: the smallest prime with room for that many factors and choices.

    Example:
        >>> largest_prime(4, 5), largest_prime(2, 6), largest_prime(1, 1)
        (5, 7, 2)
    """
    p = max(2, num_factors - 1, most_choices)
    while any(p % d == 0 for d in range(2, int(p**0.5) + 1)):
        p += 1
    return p


def design(sizes: Array, largest: int) -> Design:
    """The design for factors with ``sizes`` int32 [k] choices whose experiments are the fewest for
    equally many of the rarest choice. A factor with one choice takes no room.

    ``largest`` is the prime P of `largest_prime`, for the most factors and choices there can be.

    Example:
        >>> import jax.numpy as jnp
        >>> found = design(jnp.asarray([2, 2], jnp.int32), 2)
        >>> found.choice.tolist(), found.used.tolist(), int(found.least)
        ([[0, 0], [0, 1], [1, 1], [1, 0]], [True, True, True, True], 2)
    """
    found = [p for p in range(2, largest + 1) if all(p % d for d in range(2, p))]
    primes, most = jnp.asarray(found, jnp.int32), jnp.max(sizes)
    open_ = sizes > 1
    fits = (most <= primes) & (jnp.sum(open_, dtype=jnp.int32) <= primes + 1)
    times = primes * (primes // most)
    cost = (primes * primes).astype(jnp.float32) / jnp.maximum(times, 1).astype(jnp.float32)
    best = jnp.argmin(jnp.where(fits, cost, np.inf))
    prime = primes[best]
    u, v = (jnp.asarray(x, jnp.int32) for x in np.divmod(np.arange(largest**2), largest))
    column = (jnp.cumsum(open_, dtype=jnp.int32) - 1)[None]
    symbol = jnp.where(
        column == prime, v[:, None], (u[:, None] + jnp.maximum(column, 0) * v[:, None]) % prime
    )
    return Design(symbol % sizes[None], (u < prime) & (v < prime), times[best])


def init(problem: Problem, constants: Any, key: Array) -> SharedState:
    """Every action is active, and nothing is known of the noise."""
    state = expref_init(problem, constants, key)
    stage = _unsettled(state.active, jnp.int32(problem.horizon))
    nothing = jnp.zeros((), jnp.result_type(float))
    return SharedState(state._replace(stage=stage), nothing, nothing)


def _unsettled(active: Array, below: Array) -> Array:
    """The last stage before ``below`` with more than one active action at some level >= 1; else
    -1."""
    stages = jnp.arange(active.shape[0], dtype=jnp.int32)
    open_ = jnp.any(jnp.sum(active[:, 1:], axis=-1) > 1, axis=-1)
    return jnp.max(jnp.where(open_ & (stages < below), stages, -1))


def _arms(state: ExpRefState) -> tuple[Design, Array]:
    """The design of the stage, and the action of each arm at the levels 1..k as bool [B, k, A]."""
    width, A = state.active.shape[1] - 1, state.active.shape[2]
    active = state.active[state.stage, 1:]
    found = design(jnp.sum(active, axis=-1, dtype=jnp.int32), largest_prime(width, A))
    place = jnp.cumsum(active, axis=-1, dtype=jnp.int32) - 1
    return found, active[None] & (place[None] == found.choice[:, :, None])


def next_block(shared: SharedState, constants: ExpRefConstants) -> Blocks:
    """The arms of one stage, equally long; or alpha-hat of the last complete phase for ever."""
    state = shared.inner
    found, played = _arms(state)
    explore = exploration(state, constants)
    dead = jax.nn.one_hot(0, played.shape[-1], dtype=explore.dtype)
    dead = jnp.broadcast_to(dead, (played.shape[0], 1, played.shape[-1]))
    rows = jnp.concatenate([dead, played.astype(explore.dtype)], axis=1)
    n = constants.episodes_per_arm[state.phase]
    each = -(-n // found.least.astype(n.dtype))  # n / least, rounded up; n + least may be no int32
    return arms_or_committed(state, constants, explore, rows, jnp.where(found.used, each, 0))


def estimates(state: ExpRefState, episodes: Array, totals: Array) -> Array:
    """Phi-hat [k, A] of the levels 1..k of the stage, from the sums of its arms [B]; -inf where
    inactive."""
    _, played = _arms(state)
    chex.assert_shape([episodes, totals], (played.shape[0],))
    counts, sums = (
        jnp.sum(jnp.where(played, x[:, None, None], 0), axis=0) for x in (episodes, totals)
    )
    counts = counts.astype(sums.dtype)
    return jnp.where(counts > 0, sums / jnp.maximum(counts, 1), -jnp.inf)


def residuals(state: ExpRefState, episodes: Array, totals: Array) -> tuple[Array, Array]:
    """The residual sum of squares of the arms' means, times the episodes of an arm, and its degrees of
    freedom; its mean is the variance of an episode's total for each of them."""
    found, played = _arms(state)
    used, each = found.used.astype(totals.dtype), jnp.max(episodes).astype(totals.dtype)
    arms = jnp.sum(used)
    mean = totals / each  # of each arm; 0 where it is not used
    centre = jnp.sum(mean) / arms
    # The levels do not disturb each other in the design: least squares are sums of their effects.
    effects = jnp.where(played, estimates(state, episodes, totals)[None] - centre, 0)
    left = jnp.where(found.used, mean - centre - jnp.sum(effects, axis=(1, 2)), 0)
    numbers = 1 + jnp.sum(state.active[state.stage, 1:].astype(totals.dtype)) - played.shape[1]
    return each * jnp.sum(left**2), arms - numbers


def absorb(
    shared: SharedState, episodes: Array, totals: Array, constants: ExpRefConstants
) -> SharedState:
    """Fixes alpha-hat and N of the stage; when no earlier stage is open the phase is complete."""
    state = shared.inner
    H, _, A = state.active.shape
    phi = estimates(state, episodes, totals)
    phi = jnp.concatenate([jnp.zeros((1, A), phi.dtype), phi])  # nothing reads level 0
    squares, freedom = residuals(state, episodes, totals)
    squares, freedom = shared.squares + squares, shared.freedom + freedom
    value = jnp.sum(totals) / jnp.sum(episodes).astype(totals.dtype)
    variance = (squares + value * (1 - value)) / (freedom + 1)
    error = jnp.sqrt(2 * variance / constants.episodes_per_arm[state.phase].astype(totals.dtype))
    slack = jnp.where(
        jnp.isnan(constants.deviations),
        constants.thresholds[state.stage] * constants.epsilons[state.phase],
        constants.deviations * error,
    )
    state = refine(state, episodes, phi, state.active[state.stage], slack)
    onward = _unsettled(state.active, state.stage)
    state = end_phase(state, onward, _unsettled(state.refined, jnp.int32(H)))
    # A stage that is never played in the next phase has one action left: its alpha-hat is that one.
    sole = jnp.argmax(state.active, axis=-1).astype(jnp.int32)
    state = state._replace(best=jnp.where(onward < 0, sole, state.best))
    return SharedState(state, squares, freedom)


FORMS = {
    ordered: BlockForm(
        init,
        next_block,
        absorb,
        report=lambda shared: report(shared.inner),
        constants=partial(expref_constants, ordered, width=1),
    )
    for ordered in (False, True)
}
"""As those of ExpRef."""
