"""ExpRef and OrderedExpRef (Algorithms 1 and 3 of the paper) inside the doubling scheme (Algorithm 2), in block form.

A phase of accuracy eps goes through the stages i = H..1. In stage i every active action a of every level l is an arm:
n = ceil(12 s ln T / eps^2) episodes of the randomised policy

    [ exploration in stages < i | a at (l, i), exploration at the other levels of stage i | alpha-hat in stages > i ]

whose mean total reward is Phi-hat_{l,i}(a). Then alpha-hat_{l,i} = argmax Phi-hat, and the actions kept are
N_{l,i} = {a : Phi-hat(a) >= max Phi-hat - C_{l,i} eps}. Exploration is uniform over the active set (ExpRef), or, with
probability 1 - min(1, c k / H), the active action of largest rank (OrderedExpRef; the paper's c is 1/2). It is drawn
anew in every episode, as the lemmas need. The active sets change only when a phase is complete; after the last phase
the learner plays alpha-hat of the last complete one. The two learners differ in exploration and C and in nothing else.

With the constants of the theorems (preset "theory") the guarantee holds and nothing is eliminated at T = 2e6 on the
paper's instances; the preset "practical" gives the guarantee up (see the tuning experiment).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learners.base import BlockForm, Blocks, Learner, Problem, from_blocks
from jaxbandit.theory import thresholds

Array = Any
MAX_PHASES = 32

PRESETS: dict[str, dict[str, dict[str, float]]] = {
    "expref": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.2982, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.064,
        },
    },
    "ordered-expref": {
        "theory": {},
        "practical": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.204, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.0385,
            "exploration_scale": 2.5,
        },
        "practical-paper-exploration": {
            "episodes_scale": 1 / 12, "first_epsilon": 0.329, "ratio": 0.5**0.5, "num_phases": 5, "threshold": 0.069,
            "exploration_scale": 0.5,
        },
    },
}  # fmt: skip


class ExpRefState(NamedTuple):
    """Where the schedule stands and what is still active."""

    active: Array
    """bool [H, k+1, A]: the sets A_{l,i} of this phase."""
    refined: Array
    """bool [H, k+1, A]: the sets N_{l,i}, filled in stage by stage."""
    best: Array
    """int32 [H, k+1]: alpha-hat of this phase, filled in stage by stage."""
    committed: Array
    """int32 [H, k+1]: alpha-hat of the last complete phase (action 0 everywhere before the first)."""
    phase: Array
    """int32 []."""
    stage: Array
    """int32 []: index 0..H-1 of the stage being explored."""
    epsilons: Array
    """float [R]: accuracy of each phase; 0 for phases that are not in the schedule."""
    arm_episodes: Array
    """float [R]: n of each phase, a whole number."""
    cutoff: Array
    """float [H, k+1]: C_{l,i}."""
    uniform: Array
    """float []: probability of the uniform draw in exploration."""
    rank: Array
    """int32 [H, k+1, A]: the order of the actions (all 0 for ExpRef)."""
    played: Array
    """float []: episodes absorbed so far."""
    num_episodes: Array
    """float []: T."""
    phase_end: Array
    """float [R]: episodes absorbed when each phase was complete; nan before."""
    active_actions: Array
    """int32 [R, H, k+1]: size of the active sets after each phase; -1 before."""


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
    epsilons: Array | Callable[[int], Array] | None = None,
) -> Learner:
    """ExpRef for general MDPs (Theorem 3.1). Whatever is not given comes from the preset, else from the paper.

    Args:
        preset: "theory" (the default) or "practical".
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_{l,i}.
        threshold: a constant in place of C_{l,i} (it is still multiplied by eps).
        first_epsilon: eps of the first phase (paper: 1).
        ratio: each eps over the one before (paper: 1/2).
        last_epsilon: phases run while eps exceeds it (paper: sqrt(H k A ln T / T)).
        num_phases: at most so many phases.
        epsilons: the whole schedule, as an array [R] or a callable of the phase's number such as an optax schedule;
            replaces first_epsilon and ratio.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("expref", preset="practical", threshold=0.1).feedback
        'bandit'
    """
    given = {
        "episodes_scale": episodes_scale, "threshold_scale": threshold_scale, "threshold": threshold,
        "first_epsilon": first_epsilon, "ratio": ratio, "last_epsilon": last_epsilon, "num_phases": num_phases,
    }  # fmt: skip
    return _make("expref", False, preset, given, epsilons)


def ordered_expref(
    *,
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    threshold: float | None = None,
    first_epsilon: float | None = None,
    ratio: float | None = None,
    last_epsilon: float | None = None,
    num_phases: int | None = None,
    exploration_scale: float | None = None,
    epsilons: Array | Callable[[int], Array] | None = None,
) -> Learner:
    """OrderedExpRef for ordered MDPs (Theorem 3.11); it is told the rank of the actions and nothing else.

    Args:
        preset: "theory" (the default), "practical", or "practical-paper-exploration" (the paper's k / (2H) kept).
        episodes_scale: as for `expref`, like all arguments that are not named here.
        threshold_scale: as there.
        threshold: as there.
        first_epsilon: as there.
        ratio: as there.
        last_epsilon: as there.
        num_phases: as there.
        exploration_scale: c; exploration is uniform with probability min(1, c k / H) (paper: 1/2), else maximal.
        epsilons: as there.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ordered-expref").needs
        ('rank',)
    """
    given = {
        "episodes_scale": episodes_scale, "threshold_scale": threshold_scale, "threshold": threshold,
        "first_epsilon": first_epsilon, "ratio": ratio, "last_epsilon": last_epsilon, "num_phases": num_phases,
        "exploration_scale": exploration_scale,
    }  # fmt: skip
    return _make("ordered-expref", True, preset, given, epsilons)


_DEFAULTS = {
    "episodes_scale": 1.0, "threshold_scale": 1.0, "threshold": np.nan, "first_epsilon": 1.0, "ratio": 0.5,
    "last_epsilon": np.nan, "num_phases": np.inf,
}  # fmt: skip


def _make(name: str, ordered: bool, preset: str | None, given: dict, epsilons) -> Learner:
    presets = PRESETS[name]
    if preset is not None and preset not in presets:
        raise ValueError(f"preset: {preset!r}; accepted: {', '.join(presets)}")
    defaults = _DEFAULTS | ({"exploration_scale": 0.5} if ordered else {}) | presets[preset or "theory"]
    params = {key: defaults[key] if value is None else _checked(key, value) for key, value in
              ((key, given.get(key)) for key in defaults)}  # fmt: skip
    params["epsilons"] = _explicit(epsilons)
    leaves = {key: np.asarray(value, np.float64) for key, value in params.items()}
    return from_blocks(_form(ordered), name=name, params=leaves, needs=("rank",) if ordered else ())


def _checked(name: str, value: Any) -> Any:
    array = np.asarray(value, np.float64)
    if not np.all(array > 0) or (name == "ratio" and not np.all(array < 1)):
        raise ValueError(f"{name}: {value}; accepted: numbers {'between 0 and 1' if name == 'ratio' else 'above 0'}")
    if name == "num_phases" and not np.all((array <= MAX_PHASES) & (array == np.floor(array))):
        raise ValueError(f"num_phases: {value}; accepted: whole numbers, 1..{MAX_PHASES}")
    return value


def _explicit(epsilons: Any) -> np.ndarray:
    """The schedule as [MAX_PHASES], padded with 0 (which ends it); nan throughout if there is none."""
    if epsilons is None:
        return np.full(MAX_PHASES, np.nan)
    values = [epsilons(r) for r in range(MAX_PHASES)] if callable(epsilons) else epsilons
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not 1 <= array.size <= MAX_PHASES or not np.all((array > 0) & (array <= 1)):
        raise ValueError(f"epsilons: {array}; accepted: 1..{MAX_PHASES} numbers in (0, 1], or a callable giving them")
    return np.pad(array, (0, MAX_PHASES - array.size))


@cache
def _form(ordered: bool) -> BlockForm:
    """The block form; one per variant, so that all its learners share their compilations."""

    def init(problem: Problem, params: Any) -> ExpRefState:
        H, k, A = problem.horizon, problem.width, problem.num_actions
        real = jnp.result_type(float)
        p = {key: jnp.asarray(value, real) for key, value in params.items()}
        T = jnp.asarray(problem.num_episodes, real)
        log_t = jnp.log(T)
        index = jnp.arange(MAX_PHASES, dtype=real)
        geometric = p["first_epsilon"] * p["ratio"] ** index
        eps = jnp.where(jnp.isnan(p["epsilons"]), geometric, p["epsilons"])
        last = jnp.where(jnp.isnan(p["last_epsilon"]), jnp.sqrt(H * k * A * log_t / T), p["last_epsilon"])
        eps = jnp.where((eps > last) & (index < p["num_phases"]), eps, 0)
        arm_episodes = jnp.ceil(12 * p["episodes_scale"] * log_t / jnp.where(eps > 0, eps, 1) ** 2)
        theirs = jnp.asarray(thresholds(H, k, A, ordered), real)
        cutoff = jnp.where(jnp.isnan(p["threshold"]), p["threshold_scale"] * theirs, p["threshold"])
        full = jnp.ones((H, k + 1, A), bool)
        zeros = jnp.zeros((H, k + 1), jnp.int32)
        if ordered:
            uniform = jnp.minimum(p["exploration_scale"] * k / H, 1)
            rank = jnp.asarray(problem.rank, jnp.int32)
        else:
            uniform, rank = jnp.ones((), real), jnp.zeros((H, k + 1, A), jnp.int32)
        return ExpRefState(
            full, full, zeros, zeros, jnp.int32(0), jnp.int32(H - 1), eps, arm_episodes, cutoff, uniform, rank,
            jnp.zeros((), real), T, jnp.full(MAX_PHASES, jnp.nan, real), jnp.full((MAX_PHASES, H, k + 1), -1, jnp.int32),
        )  # fmt: skip

    return BlockForm(init, _next_block, _absorb, _report)


def exploration(state: ExpRefState) -> jax.Array:
    """The exploration policy: action probabilities [H, k+1, A] within the active sets."""
    real = state.epsilons.dtype
    spread = state.active.astype(real) / jnp.sum(state.active, axis=-1, keepdims=True).astype(real)
    top = jnp.argmax(jnp.where(state.active, state.rank, -1), axis=-1)
    maximal = jax.nn.one_hot(top, state.active.shape[-1], dtype=real)
    return state.uniform * spread + (1 - state.uniform) * maximal


def _next_block(state: ExpRefState) -> Blocks:
    """The arms of one stage: levels k..1, actions in index order, eliminated actions skipped."""
    H, levels, A = state.active.shape
    real = state.epsilons.dtype
    finished = (state.phase >= MAX_PHASES) | (state.epsilons[state.phase] == 0)
    explore = exploration(state)
    stages = jnp.arange(H, dtype=jnp.int32)
    policy = jnp.where((stages <= state.stage)[:, None, None], explore, jax.nn.one_hot(state.best, A, dtype=real))
    tried = jnp.repeat(jnp.arange(levels - 1, 0, -1, dtype=jnp.int32), A)
    action = jnp.tile(jnp.arange(A, dtype=jnp.int32), levels - 1)
    here = tried[:, None] == jnp.arange(levels, dtype=jnp.int32)[None, :]
    rows = jnp.where(here[:, :, None], jax.nn.one_hot(action, A, dtype=real)[:, None, :], explore[state.stage][None])
    episodes = jnp.where(state.active[state.stage, tried, action], state.arm_episodes[state.phase], 0)
    final = jax.nn.one_hot(state.committed, A, dtype=real)
    forever = jnp.where(jnp.arange(episodes.shape[0]) == 0, state.num_episodes + 1, 0)
    return Blocks(
        jnp.where(finished, final, policy),
        state.stage,
        jnp.where(finished, final[state.stage][None], rows),
        jnp.where(finished, forever, episodes),
    )


def _absorb(state: ExpRefState, episodes: Array, totals: Array) -> ExpRefState:
    """Fixes alpha-hat and N of the stage from the sums of its arms; after stage 1 the phase is complete."""
    H, levels, A = state.active.shape
    # Arms come as levels k..1 x actions; level 0 gets values that nothing reads.
    tried = episodes.reshape(levels - 1, A)[::-1] > 0
    sums = totals.reshape(levels - 1, A)[::-1]
    phi = jnp.where(tried, sums / jnp.maximum(episodes.reshape(levels - 1, A)[::-1], 1), -jnp.inf)
    phi = jnp.concatenate([jnp.zeros((1, A), phi.dtype), phi])
    tried = jnp.concatenate([jnp.ones((1, A), bool), tried])
    slack = state.cutoff[state.stage] * state.epsilons[state.phase]
    kept = tried & (phi >= jnp.max(phi, axis=-1, keepdims=True) - slack[:, None])
    here = jnp.arange(H, dtype=jnp.int32) == state.stage
    refined = jnp.where(here[:, None, None], kept[None], state.refined)
    best = jnp.where(here[:, None], jnp.argmax(phi, axis=-1).astype(jnp.int32)[None], state.best)
    played = state.played + jnp.sum(episodes)
    last = state.stage == 0
    ended = last & (jnp.arange(MAX_PHASES, dtype=jnp.int32) == state.phase)
    sizes = jnp.sum(refined, axis=-1, dtype=jnp.int32)
    return state._replace(
        active=jnp.where(last, refined, state.active),
        refined=refined,
        best=best,
        committed=jnp.where(last, best, state.committed),
        phase=state.phase + last.astype(jnp.int32),
        stage=jnp.where(last, H - 1, state.stage - 1).astype(jnp.int32),
        played=played,
        phase_end=jnp.where(ended, played, state.phase_end),
        active_actions=jnp.where(ended[:, None, None], sizes[None], state.active_actions),
    )


def _report(state: ExpRefState) -> dict[str, Array]:
    real = state.epsilons.dtype
    sizes = state.active_actions
    return {
        "phase_end": state.phase_end,
        "active_actions": jnp.where(sizes < 0, jnp.nan, sizes.astype(real)),
    }
