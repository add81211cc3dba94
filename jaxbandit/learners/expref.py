"""ExpRef and OrderedExpRef (Algorithms 1 and 3 of the paper) inside the doubling scheme (Algorithm
2), in block form.

The algorithms line by line, every printed line counted, and the functions that do them:

    Algorithm 2   1     eps = 1, all actions active                                    `init`
                  2     while eps > sqrt(H k A ln T / T)                  `constants`
                  3     one phase: Algorithm 1 or 3
                  4     eps = eps / 2, the sets A become the refined sets N            `end_phase`
    Algorithm 1   2-5   exploration: uniform over the active set                       `exploration`
    Algorithm 3   2-5   uniform with probability k / (2H), else the maximal action     `exploration`
    both          6     for the stages i = H..1                                        a block each
                  7-10  for l = k..1 and a active: play an arm for n episodes          `next_block`
                  11    Phi-hat_{l,i}(a): the arm's mean total reward                  `absorb`
                  13-16 alpha-hat = argmax Phi-hat; N = {a : Phi-hat(a) >= max - C eps} `refine`

The arm of (l, i, a) is the randomised policy

    [ exploration in stages < i | a at (l, i), exploration at the other levels | alpha-hat after i ]

played n = ceil(12 s ln T / eps^2) times. Exploration is drawn anew in every episode, as the lemmas
need. The active sets change only when a phase is complete; after the last phase the learner plays
alpha-hat of the last complete one (action 0 before the first). Ties of Phi-hat go to the first action; arms are played in
index order, so numbering the actions otherwise matters where T cuts a stage short. The two learners differ in exploration and in C_{l,i}, and in
nothing else.

With the constants of the theorems (preset "theory") the guarantee holds and nothing is eliminated
at T = 2e6 on the paper's instances; the preset "practical" gives the guarantee up (see the tuning
experiment).

The shared form and prophet-bandit are built of the functions below. They run the same phases, while
eps > sqrt(H w A ln T / T): w is k where every level of a stage has arms of its own, and 1 where one set of arms serves
the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import KNOWN_PRESETS, BlockForm, Blocks, Learner, Presets, Problem
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.specs import Choice, Optional, ParamCheck, Probability, Real, Spec, Whole, takes
from jaxbandit.theory import LARGEST_THRESHOLD, schedule, thresholds
from jaxbandit.types import Array

MAX_PHASES = 32
"""Phases that there is room for: with halved accuracies enough for any T up to 2^53."""
Schedule = Array | Sequence[float] | Callable[[int], Array]


class Epsilons(Spec):
    """A schedule of accuracies: an array, or a function of the phase's number such as an optax schedule.

    Example:
        >>> Epsilons().check("epsilons", [0.5, 0.25])[:3].tolist()
        [0.5, 0.25, 0.0]
    """

    entrywise = False

    def check(self, name: str, value: Any) -> np.ndarray:
        """As float64 [MAX_PHASES], padded with 0, which ends it."""
        accepted = f"1..{MAX_PHASES} numbers in (0, 1], or a callable giving them"
        values = [value(r) for r in range(MAX_PHASES)] if callable(value) else value
        try:
            array = np.asarray(values, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{name}: {values!r}; accepted: {accepted}") from error
        last = int(np.max(np.flatnonzero(array), initial=0)) + 1  # it may be padded already
        good = array.ndim == 1 and 1 <= array.size <= MAX_PHASES
        if not good or not np.all((array[:last] > 0) & (array[:last] <= 1)):
            raise ValueError(f"{name}: {array.tolist()}; accepted: {accepted}")
        return np.pad(array, (0, MAX_PHASES - array.size))

    def good(self) -> list[Any]:
        """Arrays and a function."""
        return [[0.5, 0.25], np.full(MAX_PHASES, 1.0), lambda phase: 0.5**phase]

    def odd(self) -> list[Any]:
        """Numbers beyond (0, 1], and too many."""
        return [*super().odd(), [0.0], [0.5, 2.0], [-1.0, 0.5], np.full(MAX_PHASES + 1, 0.5)]


POSITIVE = Real(low=0, above=True)
SPECS: dict[str, Spec] = {
    "episodes_scale": POSITIVE,
    "threshold_scale": POSITIVE,
    "threshold": Optional(POSITIVE),
    "first_epsilon": POSITIVE,
    "ratio": Real(0, 1, above=True, below=True),
    "last_epsilon": Optional(POSITIVE),
    "num_phases": Optional(Whole(1, MAX_PHASES), unset=np.inf),
    "epsilons": Optional(Epsilons()),
}
"""Of ExpRef in all its forms."""
PAPER: dict[str, Any] = {
    "episodes_scale": 1.0, "threshold_scale": 1.0, "threshold": np.nan, "first_epsilon": 1.0, "ratio": 0.5,
    "last_epsilon": np.nan, "num_phases": np.inf, "epsilons": np.full(MAX_PHASES, np.nan),
}  # fmt: skip
"""The paper's parameters: nan is "as in the paper", inf "no limit"."""
PRACTICAL = {"episodes_scale": 1 / 12, "first_epsilon": 0.3, "ratio": 0.5**0.5}
"""What the practical presets have in common."""
PRESETS: dict[str, dict[str, dict[str, float]]] = {
    "expref": {"theory": {}, "practical": {**PRACTICAL, "num_phases": 5, "threshold": 0.09}},
    "ordered-expref": {
        "theory": {},
        "practical": {**PRACTICAL, "num_phases": 5, "threshold": 0.09, "exploration_scale": 1.25},
        "practical-paper-exploration": {
            **PRACTICAL, "first_epsilon": 0.42, "num_phases": 5, "threshold": 0.125, "exploration_scale": 0.5,
        },
    },
}  # fmt: skip
"""By learner and preset: what differs from the constants of the paper's theorems."""
EVERY: dict[str, Any] = {
    **PAPER, "exploration_scale": 0.5, "greedy_share": 0.0, "deviations": np.nan,
}  # fmt: skip
"""The parameters of all forms, as in the paper."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "expref": PAPER,
    "ordered-expref": {**PAPER, "exploration_scale": 0.5},
}
KNOWN_PRESETS.update({name: (Presets(DEFAULTS[name], PRESETS[name]),) for name in PRESETS})


@takes(preset=Choice(None, *PRESETS["expref"]), **SPECS)
def expref(
    *,
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Schedule | None = None,
) -> Learner:
    """ExpRef for general MDPs (Theorem 3.1). Whatever is not given comes from the preset, else from
    the paper.

    Args:
        preset: "theory" (the default) or "practical".
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (paper: sqrt(H k A ln T / T)).
        num_phases: at most so many phases, and never more than 32.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an
            optax schedule; replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("expref", preset="practical", threshold=0.1)
        Learner('expref', bandit, preset practical, threshold 0.1)
    """
    return make_phased("expref", FORMS[False], KNOWN_PRESETS["expref"][0], locals())


@takes(preset=Choice(None, *PRESETS["ordered-expref"]), exploration_scale=POSITIVE, **SPECS)
def ordered_expref(
    *,
    preset: str | None = None,
    exploration_scale: float | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    epsilons: Schedule | None = None,
) -> Learner:
    """OrderedExpRef for ordered MDPs (Theorem 3.11); it is told the rank of the actions and nothing
    else.

    Args:
        preset: "theory" (the default), "practical", or "practical-paper-exploration" (the paper's k
            / (2H) kept).
        exploration_scale: c; exploration is uniform with probability min(1, c k / H) (paper: 1/2),
            else maximal.
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (paper: sqrt(H k A ln T / T)).
        num_phases: at most so many phases, and never more than 32.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an
            optax schedule; replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ordered-expref").requires
        ('rank',)
    """
    return make_phased("ordered-expref", FORMS[True], KNOWN_PRESETS["ordered-expref"][0], locals())


def make_phased(name: str, form: BlockForm, presets: Presets, given: Mapping[str, Any]) -> Learner:
    """The learner with its parameters in float64: given values (None: not given) over the preset's over the paper's."""
    given = {key: value for key, value in given.items() if value is not None}
    params = {**presets.defaults, **presets.values[given.pop("preset", "theory")], **given}
    for one, other in (("threshold", "deviations"), ("deviations", "threshold")):
        if one in given and other in params and other not in given:
            params[other] = np.nan  # what is given replaces the preset's way to set the slack
    check_schedule(params)
    return from_blocks(
        form,
        name=name,
        params={key: np.asarray(value, np.float64) for key, value in params.items()},
        requires=("rank",) if "exploration_scale" in params else (),
        check=check_schedule,
    )


def check_schedule(params: Mapping[str, Any]) -> None:
    """Refuses parameters that ExpRef in all its forms cannot mean (its `Learner.check`).

    Example:
        >>> check_schedule({"episodes_scale": -1.0})
        Traceback (most recent call last):
        ...
        ValueError: episodes_scale: -1.0; accepted: a finite number > 0
    """
    more = {
        "exploration_scale": POSITIVE,
        "greedy_share": Probability(),
        "deviations": Optional(POSITIVE),
    }
    ParamCheck({**SPECS, **more})(params)
    slacks = {name: float(params[name]) for name in ("threshold", "deviations") if name in params}
    if len(slacks) == 2 and not np.isnan(list(slacks.values())).any():
        shown = " with ".join(f"{name}: {value}" for name, value in slacks.items())
        raise ValueError(f"{shown}; accepted: one of them (nan for the other)")


class ExpRefConstants(NamedTuple):
    """The schedule, the thresholds and what exploration needs; R = `MAX_PHASES`."""

    epsilons: Array
    """float [R]: accuracy of each phase; 0 for phases that are not in the schedule."""
    episodes_per_arm: Array
    """int [R]: n of each phase."""
    thresholds: Array
    """float [H, k+1]: C_{l,i}."""
    uniform_share: Array
    """float []: probability of the uniform draw in exploration."""
    rank: Array
    """int32 [H, k+1, A]: the order of the actions (all 0 for ExpRef)."""
    forever: Array
    """int []: T + 1, more episodes than there are."""
    greedy_share: Array
    """float []: probability of alpha-hat of the phase before in exploration; 0 but in the shared form."""
    deviations: Array
    """float []: slack in standard errors, in the shared form; nan for the slack C_{l,i} eps."""


class ExpRefState(NamedTuple):
    """Where the schedule stands and what is still active."""

    active: Array
    """bool [H, k+1, A]: the sets A_{l,i} of this phase."""
    refined: Array
    """bool [H, k+1, A]: the sets N_{l,i}, filled in stage by stage."""
    best: Array
    """int32 [H, k+1]: alpha-hat of this phase, filled in stage by stage."""
    committed: Array
    """int32 [H, k+1]: alpha-hat of the last complete phase (action 0 everywhere before the
    first)."""
    phase: Array
    """int32 []."""
    stage: Array
    """int32 []: index 0..H-1 of the stage being explored."""
    played: Array
    """int []: episodes absorbed so far."""
    phase_end: Array
    """int [R]: episodes absorbed when each phase was complete; -1 before."""
    active_actions: Array
    """int32 [R, H, k+1]: size of the active sets after each phase; -1 before."""


def init(problem: Problem, constants: Any, key: Array) -> ExpRefState:
    """Algorithm 2, line 1: every action is active, and the first phase begins at stage H."""
    del constants, key
    states = (problem.horizon, problem.width + 1)
    full = jnp.ones((*states, problem.num_actions), bool)
    zeros = jnp.zeros(states, jnp.int32)
    count = jnp.result_type(int)  # int64 on the block engine, where T may be 10^15
    return ExpRefState(
        active=full,
        refined=full,
        best=zeros,
        committed=zeros,
        phase=jnp.int32(0),
        stage=jnp.int32(problem.horizon - 1),
        played=jnp.zeros((), count),
        phase_end=jnp.full(MAX_PHASES, -1, count),
        active_actions=jnp.full((MAX_PHASES, *states), -1, jnp.int32),
    )


def constants(
    ordered: bool, problem: Problem, params: Mapping[str, Any], width: int | None = None
) -> ExpRefConstants:
    """Algorithm 2, line 2, and the numbers of the theorems; ``width`` is w, by default k. Parameters that are not given
    are the paper's.

    Example:
        >>> problem = Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000)
        >>> found = constants(False, problem, {})
        >>> found.epsilons[:6].tolist(), found.episodes_per_arm[:3].tolist()
        ([1.0, 0.5, 0.25, 0.125, 0.0625, 0.0], [175, 697, 2786])
    """
    H, k, A, T = problem.horizon, problem.width, problem.num_actions, int(problem.num_episodes)
    p = {name: np.asarray(value, np.float64) for name, value in {**EVERY, **params}.items()}
    listed = p["epsilons"][p["epsilons"] > 0]  # nan is "not given", and 0 fills the array up
    found = schedule(
        H,
        k if width is None else width,
        A,
        num_episodes=max(T, 2),  # ln 1 = 0 would be phases of no episodes
        episodes_scale=float(p["episodes_scale"]),
        first_epsilon=float(p["first_epsilon"]),
        ratio=float(p["ratio"]),
        max_phases=int(np.minimum(p["num_phases"], MAX_PHASES + 1)),
        last_epsilon=None if np.isnan(p["last_epsilon"]) else float(p["last_epsilon"]),
        epsilons=listed if listed.size else None,
    )
    if (count := found.epsilons.size) > MAX_PHASES:
        raise ValueError(
            f"ratio: {float(p['ratio'])}, more than {MAX_PHASES} phases at T = {T}; accepted: at most "
            f"{MAX_PHASES} (num_phases={MAX_PHASES} ends the schedule there)"
        )
    # No arm of more than T episodes is ever complete, so n need not be kept beyond that.
    each = np.minimum(found.episodes_per_arm, np.float64(max(T + 1, 2**31 - 1))).astype(np.int64)
    padding = (0, MAX_PHASES - count)
    theirs = np.minimum(p["threshold_scale"] * thresholds(H, k, A, ordered), LARGEST_THRESHOLD)
    rank, share = np.zeros((H, k + 1, A), np.int32), 1.0
    if ordered:
        chex.assert_shape(problem.rank, rank.shape)
        rank = np.asarray(problem.rank, np.int32)
        share = min(float(p["exploration_scale"]) * k / H, 1.0)
    return ExpRefConstants(
        epsilons=np.pad(found.epsilons, padding),
        episodes_per_arm=np.pad(each, padding),
        forever=np.int64(T + 1),
        thresholds=theirs if np.isnan(p["threshold"]) else np.full((H, k + 1), p["threshold"]),
        uniform_share=np.float64(share),
        rank=rank,
        greedy_share=p["greedy_share"],
        deviations=p["deviations"],
    )


def exploration(state: ExpRefState, constants: ExpRefConstants) -> jax.Array:
    """Lines 2-5: the exploration policy e, action probabilities [H, k+1, A] in the active sets; from the second phase on
    with probability ``greedy_share`` alpha-hat of the phase before."""
    real = constants.epsilons.dtype
    count = jnp.sum(state.active, axis=-1, keepdims=True)
    spread = state.active.astype(real) / count.astype(real)
    lowest = jnp.iinfo(jnp.int32).min
    top = jnp.argmax(jnp.where(state.active, constants.rank, lowest), axis=-1)
    maximal = jax.nn.one_hot(top, state.active.shape[-1], dtype=real)
    explore = constants.uniform_share * spread + (1 - constants.uniform_share) * maximal
    greedy = jnp.where(state.phase > 0, constants.greedy_share, 0)
    before = jax.nn.one_hot(state.committed, state.active.shape[-1], dtype=real)
    return (1 - greedy) * explore + greedy * before


def next_block(state: ExpRefState, constants: ExpRefConstants) -> Blocks:
    """Lines 6-10: the arms of one stage, levels k..1, actions in index order, eliminated ones
    skipped; after the last phase the policy that is committed to, for ever."""
    _, levels, A = state.active.shape
    explore = exploration(state, constants)
    tried = jnp.repeat(jnp.arange(levels - 1, 0, -1, dtype=jnp.int32), A)
    action = jnp.tile(jnp.arange(A, dtype=jnp.int32), levels - 1)
    here = tried[:, None] == jnp.arange(levels, dtype=jnp.int32)[None, :]
    rows = jnp.where(  # a at level l, e at the other levels of the stage
        here[:, :, None],
        jax.nn.one_hot(action, A, dtype=explore.dtype)[:, None, :],
        explore[state.stage][None],
    )
    wanted = state.active[state.stage, tried, action]
    episodes = jnp.where(wanted, constants.episodes_per_arm[state.phase], 0)
    return arms_or_committed(state, constants, explore, rows, episodes)


def arms_or_committed(
    state: ExpRefState, constants: ExpRefConstants, explore: Array, rows: Array, episodes: Array
) -> Blocks:
    """The arms [B] of the stage, [e_1 .. e_i, alpha-hat ..]; when no phase is left, or below stage 1, the policy that is
    committed to."""
    H, levels, A = state.active.shape
    chex.assert_shape([constants.rank, constants.thresholds], [(H, levels, A), (H, levels)])
    finished = (state.stage < 0) | (state.phase >= MAX_PHASES)
    finished = finished | (constants.epsilons[state.phase] == 0)
    tail, final = (jax.nn.one_hot(x, A, dtype=explore.dtype) for x in (state.best, state.committed))
    explored = jnp.arange(H, dtype=jnp.int32) <= state.stage
    policy = jnp.where(explored[:, None, None], explore, tail)
    forever = jnp.where(jnp.arange(episodes.shape[0]) == 0, constants.forever, 0)
    stage = jnp.maximum(state.stage, 0)
    return Blocks(
        policy=jnp.where(finished, final, policy),
        stage=stage,
        rows=jnp.where(finished, final[stage][None], rows),
        episodes=jnp.where(finished, forever, episodes),
    )


def absorb(
    state: ExpRefState, episodes: Array, totals: Array, constants: ExpRefConstants
) -> ExpRefState:
    """Line 11: Phi-hat of the stage from the sums of its arms; then `refine`, and after stage 1
    `end_phase`."""
    _, levels, A = state.active.shape
    chex.assert_shape([episodes, totals], ((levels - 1) * A,))
    # Arms come as levels k..1 x actions; level 0 gets values that nothing reads.
    count = episodes.reshape(levels - 1, A)[::-1].astype(totals.dtype)
    sums = totals.reshape(levels - 1, A)[::-1]
    phi = jnp.where(count > 0, sums / jnp.maximum(count, 1), -jnp.inf)
    phi = jnp.concatenate([jnp.zeros((1, A), phi.dtype), phi])
    tried = jnp.concatenate([jnp.ones((1, A), bool), count > 0])
    slack = constants.thresholds[state.stage] * constants.epsilons[state.phase]
    state = refine(state, episodes, phi, tried, slack)
    return end_phase(state, state.stage - 1, jnp.int32(len(state.active) - 1))


def refine(
    state: ExpRefState, episodes: Array, phi: Array, tried: Array, slack: Array
) -> ExpRefState:
    """Lines 13-16: alpha-hat and N of all levels of the stage, from Phi-hat [k+1, A] and C_{l,i} eps
    [k+1]; the first action wins a tie."""
    kept = tried & (phi >= jnp.max(phi, axis=-1, keepdims=True) - slack[:, None])
    best = jnp.argmax(phi, axis=-1).astype(jnp.int32)
    here = jnp.arange(state.active.shape[0], dtype=jnp.int32) == state.stage
    return state._replace(
        refined=jnp.where(here[:, None, None], kept[None], state.refined),
        best=jnp.where(here[:, None], best[None], state.best),
        played=state.played + jnp.sum(episodes).astype(state.played.dtype),
    )


def end_phase(state: ExpRefState, onward: Array, first: Array) -> ExpRefState:
    """The stage ``onward``; when there is none (below 0) Algorithm 2, line 4: the refined sets become
    the active ones, and the next phase begins at stage ``first``."""
    last = onward < 0
    ended = last & (jnp.arange(MAX_PHASES, dtype=jnp.int32) == state.phase)
    sizes = jnp.sum(state.refined, axis=-1, dtype=jnp.int32)
    return state._replace(
        active=jnp.where(last, state.refined, state.active),
        committed=jnp.where(last, state.best, state.committed),
        phase=state.phase + last.astype(jnp.int32),
        stage=jnp.where(last, first, onward),
        phase_end=jnp.where(ended, state.played, state.phase_end),
        active_actions=jnp.where(ended[:, None, None], sizes[None], state.active_actions),
    )


def report(state: ExpRefState) -> dict[str, Array]:
    """When each phase ended and how many actions were left; nan for phases that did not end."""
    numbers = {"phase_end": state.phase_end, "active_actions": state.active_actions}
    real = jnp.result_type(float)
    return {name: jnp.where(x < 0, jnp.nan, x.astype(real)) for name, x in numbers.items()}


FORMS = {
    ordered: BlockForm(init, next_block, absorb, report, constants=partial(constants, ordered))
    for ordered in (False, True)
}
"""The block forms without and with an order; one per variant, so that all its learners share their compilations."""
