"""ExpRef with shared episodes: all levels of a stage are estimated from the same episodes.

ExpRef (Algorithm 1 of the paper) spends n episodes on every action of every level of a stage, and
looks at one level at a time. But the learner chooses the actions of *all* levels, and an episode
visits one level of a stage, so with fixed actions e_1, ..., e_k at the levels of stage i,
exploration before and alpha-hat after it, the mean total reward is

    c + sum_l Q_{l,i} V_{l,i}(e_l):

additive over the levels. An orthogonal array (`orthogonal`) of p^2 arms, p a prime near A, lets
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

Deviations from ExpRef beside these: a stage whose levels all have one active action is not
played; phases run while eps > sqrt(H A ln T / T), without k, because a phase is shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import choice, number
from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.learners.orthogonal import Design, design, largest_prime
from jaxbandit.theory import thresholds
from jaxbandit.types import Array

MAX_PHASES = 32

PRESETS: dict[bool, dict[str, dict[str, float]]] = {
    False: {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.2, "ratio": 0.5**0.5, "num_phases": 7, "threshold": 0.125,
            "greedy_share": 0.95,
        },
    },
    True: {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5, "num_phases": 7, "threshold": 0.125,
            "greedy_share": 0.95, "exploration_scale": 1.25,
        },
    },
}  # fmt: skip
"""By ``ordered`` and preset: what differs from `DEFAULTS`."""
DEFAULTS: dict[str, float] = {
    "episodes_scale": 1.0, "threshold_scale": 1.0, "threshold": np.nan, "first_epsilon": 1.0, "ratio": 0.5,
    "last_epsilon": np.nan, "num_phases": np.inf, "exploration_scale": 0.5, "greedy_share": 0.0,
}  # fmt: skip


class SharedState(NamedTuple):
    """Where the schedule stands and what is still active."""

    active: Array
    """bool [H, k+1, A]: the sets A_{l,i} of this phase."""
    refined: Array
    """bool [H, k+1, A]: the sets N_{l,i}, filled in stage by stage."""
    best: Array
    """int32 [H, k+1]: alpha-hat of this phase, filled in stage by stage."""
    committed: Array
    """int32 [H, k+1]: alpha-hat of the last complete phase (action 0 before the first)."""
    phase: Array
    """int32 []."""
    stage: Array
    """int32 []: index of the stage being explored; -1 when every state has one active action."""
    epsilons: Array
    """float [R]: accuracy of each phase; 0 for phases that are not in the schedule."""
    least_episodes: Array
    """float [R]: n of each phase, a whole number."""
    cutoff: Array
    """float [H, k+1]: C_{l,i}."""
    uniform: Array
    """float []: probability of the uniform draw in exploration."""
    greedy_share: Array
    """float []: probability of alpha-hat of the phase before in exploration."""
    rank: Array
    """int32 [H, k+1, A]: the order of the actions (all 0 if not ``ordered``)."""
    num_episodes: Array
    """float []: T."""


def expref_shared(
    *,
    ordered: bool = False,
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    exploration_scale: float | None = None,
    greedy_share: float | None = None,
) -> Learner:
    """ExpRef in which all levels of a stage share their episodes; see the module.

    Args:
        ordered: explore as OrderedExpRef does in the stages before the one that is learned, with
            its C_{l,i}; the learner is then told the rank of the actions.
        preset: "theory" (the default) or "practical" (no guarantee).
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase.
        ratio: each eps over the one before, below 1.
        last_epsilon: phases run while eps exceeds it.
        num_phases: at most so many phases, 1..32.
        exploration_scale: c; with ``ordered``, exploration is uniform with probability
            min(1, c k / H), else maximal.
        greedy_share: g in [0, 1]; from the second phase on, exploration plays alpha-hat of the phase
            before with probability g at every stage (paper: 0).

    Example:
        >>> expref_shared(preset="practical").feedback
        'bandit'
        >>> expref_shared(ordered=True).needs
        ('rank',)
    """
    choice("ordered", ordered, (False, True))
    choice("preset", preset, (None, *PRESETS[ordered]))
    if exploration_scale is not None and not ordered:
        raise ValueError(
            f"exploration_scale: {exploration_scale}; accepted: only with ordered=True"
        )
    given = {
        "episodes_scale": episodes_scale, "threshold_scale": threshold_scale, "threshold": threshold,
        "first_epsilon": first_epsilon, "ratio": ratio, "last_epsilon": last_epsilon, "num_phases": num_phases,
        "exploration_scale": exploration_scale, "greedy_share": greedy_share,
    }  # fmt: skip
    params = DEFAULTS | PRESETS[ordered][preset or "theory"]
    for name, value in given.items():
        if value is not None:
            params[name] = _number(name, value)
    leaves = {name: np.asarray(value, np.float64) for name, value in params.items()}
    needs = ("rank",) if ordered else ()
    made = from_blocks(_form(ordered), name="expref-shared", params=leaves, needs=needs)
    return made._replace(check=_check)


def _number(name: str, value: Any) -> float:
    high = {"ratio": 1 - 2.0**-20, "num_phases": MAX_PHASES, "greedy_share": 1}.get(name, np.inf)
    seen = number(name, value, low=0, high=high, above=name != "greedy_share")
    if name == "num_phases" and seen != int(seen):
        raise ValueError(f"num_phases: {value}; accepted: whole numbers, 1..{MAX_PHASES}")
    return seen


def _check(params: Mapping[str, Any]) -> None:
    for name, value in params.items():
        for one in np.asarray(value, np.float64).ravel().tolist():
            if one != DEFAULTS[name] and not np.isnan(one):  # nan and inf: as the paper has it
                _number(name, one)


@cache
def _form(ordered: bool) -> BlockForm:
    """The block form; one per variant, so that all its learners share their compilations."""

    def init(problem: Problem, params: Any) -> SharedState:
        H, k, A = problem.horizon, problem.width, problem.num_actions
        real = jnp.result_type(float)
        p = {key: jnp.asarray(value, real) for key, value in params.items()}
        T = jnp.asarray(problem.num_episodes, real)
        index = jnp.arange(MAX_PHASES, dtype=real)
        eps = p["first_epsilon"] * p["ratio"] ** index
        last = jnp.where(
            jnp.isnan(p["last_epsilon"]), jnp.sqrt(H * A * jnp.log(T) / T), p["last_epsilon"]
        )
        eps = jnp.where((eps > last) & (index < p["num_phases"]), eps, 0)
        least = jnp.ceil(12 * p["episodes_scale"] * jnp.log(T) / jnp.where(eps > 0, eps, 1) ** 2)
        theirs = p["threshold_scale"] * jnp.asarray(thresholds(H, k, A, ordered), real)
        uniform, rank = jnp.ones((), real), jnp.zeros((H, k + 1, A), jnp.int32)
        if ordered:
            uniform = jnp.minimum(p["exploration_scale"] * k / H, 1)
            rank = jnp.asarray(problem.rank, jnp.int32)
        full, zeros = jnp.ones((H, k + 1, A), bool), jnp.zeros((H, k + 1), jnp.int32)
        return SharedState(
            active=full,
            refined=full,
            best=zeros,
            committed=zeros,
            phase=jnp.int32(0),
            stage=_unsettled(full, jnp.int32(H)),
            epsilons=eps,
            least_episodes=least,
            cutoff=jnp.where(jnp.isnan(p["threshold"]), theirs, p["threshold"]),
            uniform=uniform,
            greedy_share=p["greedy_share"],
            rank=rank,
            num_episodes=T,
        )

    return BlockForm(init, _next_block, _absorb)


def _unsettled(active: Array, below: Array) -> Array:
    """The last stage before ``below`` with more than one active action at some level >= 1; else
    -1."""
    stages = jnp.arange(active.shape[0], dtype=jnp.int32)
    open_ = jnp.any(jnp.sum(active[:, 1:], axis=-1) > 1, axis=-1)
    return jnp.max(jnp.where(open_ & (stages < below), stages, -1))


def exploration(state: SharedState) -> Array:
    """The exploration policy: action probabilities [H, k+1, A] within the active sets."""
    real = state.epsilons.dtype
    spread = state.active.astype(real) / jnp.sum(state.active, axis=-1, keepdims=True).astype(real)
    top = jnp.argmax(jnp.where(state.active, state.rank, -1), axis=-1)
    maximal = jax.nn.one_hot(top, state.active.shape[-1], dtype=real)
    explore = state.uniform * spread + (1 - state.uniform) * maximal
    greedy = jnp.where(state.phase > 0, state.greedy_share, 0)
    return (1 - greedy) * explore + greedy * jax.nn.one_hot(
        state.committed, state.active.shape[-1], dtype=real
    )


def _arms(state: SharedState) -> tuple[Design, Array]:
    """The design of the stage, and the action of each arm at the levels 1..k as bool [B, k, A]."""
    width, A = state.active.shape[1] - 1, state.active.shape[2]
    active = state.active[state.stage, 1:]
    found = design(jnp.sum(active, axis=-1, dtype=jnp.int32), largest_prime(width, A))
    place = jnp.cumsum(active, axis=-1, dtype=jnp.int32) - 1
    return found, active[None] & (place[None] == found.choice[:, :, None])


def _next_block(state: SharedState) -> Blocks:
    """The arms of one stage, equally long; or alpha-hat of the last complete phase for ever."""
    H, _, A = state.active.shape
    real = state.epsilons.dtype
    epsilon = state.epsilons[jnp.minimum(state.phase, MAX_PHASES - 1)]
    finished = (state.stage < 0) | (state.phase >= MAX_PHASES) | (epsilon == 0)
    stages = jnp.arange(H, dtype=jnp.int32)
    policy = jnp.where(
        (stages < state.stage)[:, None, None],
        exploration(state),
        jax.nn.one_hot(state.best, A, dtype=real),
    )
    found, played = _arms(state)
    dead = jnp.broadcast_to(jax.nn.one_hot(0, A, dtype=real), (played.shape[0], 1, A))
    rows = jnp.concatenate([dead, played.astype(real)], axis=1)
    each = jnp.ceil(state.least_episodes[state.phase] / found.least.astype(real))
    final = jax.nn.one_hot(state.committed, A, dtype=real)
    first = jnp.arange(rows.shape[0], dtype=jnp.int32) == 0
    stage = jnp.maximum(state.stage, 0)
    return Blocks(
        policy=jnp.where(finished, final, policy),
        stage=stage,
        rows=jnp.where(finished, final[stage][None], rows),
        episodes=jnp.where(
            finished,
            jnp.where(first, state.num_episodes + 1, 0),
            jnp.where(found.used, each, 0),
        ),
    )


def estimates(state: SharedState, episodes: Array, totals: Array) -> Array:
    """Phi-hat [k, A] of the levels 1..k of the stage, from the sums of its arms [B]; -inf where
    inactive."""
    _, played = _arms(state)
    counts, sums = (
        jnp.sum(jnp.where(played, x[:, None, None], 0), axis=0) for x in (episodes, totals)
    )
    return jnp.where(counts > 0, sums / jnp.maximum(counts, 1), -jnp.inf)


def _absorb(state: SharedState, episodes: Array, totals: Array) -> SharedState:
    """Fixes alpha-hat and N of the stage; when no earlier stage is open the phase is complete."""
    H = state.active.shape[0]
    phi = estimates(state, episodes, totals)
    slack = state.cutoff[state.stage, 1:] * state.epsilons[state.phase]
    kept = state.active[state.stage, 1:] & (
        phi >= jnp.max(phi, axis=-1, keepdims=True) - slack[:, None]
    )
    refined = state.refined.at[state.stage, 1:].set(kept)
    best = state.best.at[state.stage, 1:].set(jnp.argmax(phi, axis=-1).astype(jnp.int32))
    onward = _unsettled(state.active, state.stage)
    last = onward < 0
    # A stage that is never played in the next phase has one action left: its alpha-hat is that one.
    sole = jnp.argmax(refined, axis=-1).astype(jnp.int32)
    return state._replace(
        active=jnp.where(last, refined, state.active),
        refined=refined,
        best=jnp.where(last, sole, best),
        committed=jnp.where(last, best, state.committed),
        phase=state.phase + last.astype(jnp.int32),
        stage=jnp.where(last, _unsettled(refined, jnp.int32(H)), onward),
    )
