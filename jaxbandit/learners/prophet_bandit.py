"""Bandit learning of one-item prophet inequalities: thresholds refined from the back, in block form.

After Gatmiry, Kesselheim, Singla and Wang (2024), "Bandit algorithms for prophet inequality and
Pandora's box": the ancestor of ExpRef, for k = 1. In a phase of accuracy eps the stages are learned
from the last to the first. While stage i is learned, the stages before it play their *largest*
threshold that is still active, the one most likely to pass the item on, and the stages after it
play alpha-hat. Every active threshold a of stage i is played n = ceil(12 s ln T / eps^2) times; with
Phi-hat(a) the mean total,

    alpha-hat_i = argmax Phi-hat,   N_i = {a : Phi-hat(a) >= max Phi-hat - C_i eps},   C_i = H - i + 1.

Ties go to the first action. N_i replaces the active set when all stages of the phase are done, and eps is halved, from
``first_epsilon`` on.

When it stops: phases run while eps > sqrt(H A ln T / T). After the last of them, alpha-hat of the last complete phase is
played until T. A phase that T cuts short ends the run; a phase is never left early, also if each stage has one active
threshold left.

Why C_i is right. Let Q_i be the probability of reaching stage i in that play, V* and V^ the optimal
value and that of alpha-hat, and let all Phi-hat be within eps/2. (1) alpha-hat_i loses at most eps /
Q_i against the best threshold before the same tail. (2) An optimal threshold a*_i that is active is
at most the largest one, so Q_i Pr(X_i <= a*_i) <= Q_{i+1}, and by induction Q_i (V*_i - V^_i) <= (H -
i + 1) eps. (3) Hence Phi-hat(a*_i) >= max Phi-hat - eps - Q_{i+1} (V*_{i+1} - V^_{i+1}) >= max
Phi-hat - C_i eps: it is kept. (4) A policy of active thresholds reaches stage i with probability at
most Q_i, so it loses at most sum_i (C_i + 1) eps + H eps, of order H^2 eps: the regret is of order
H^2 sqrt(H A T ln T).

Deviations from the reference, which treats continuous values: thresholds are the A actions, each of
them is played instead of the two ends of an interval, and the constants are those derived above. The
order of the actions is told (``rank``); the MDP must have k = 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.expref import MAX_PHASES, POSITIVE, phases
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.specs import Choice, as_params, takes
from jaxbandit.types import Array

PRESETS: dict[str, dict[str, float]] = {
    "theory": {"episodes_scale": 1.0, "threshold_scale": 1.0, "first_epsilon": 1.0},
    "practical": {"episodes_scale": 1 / 12, "threshold_scale": 0.02, "first_epsilon": 0.42},
}


class ProphetState(NamedTuple):
    """Where the schedule stands and what is still active."""

    active: Array
    """bool [H, A]."""
    refined: Array
    """bool [H, A]: the sets N_i, filled in stage by stage."""
    best: Array
    """int32 [H]: alpha-hat of this phase, filled in stage by stage."""
    committed: Array
    """int32 [H]: alpha-hat of the last complete phase (action 0 before the first)."""
    phase: Array
    """int32 []."""
    stage: Array
    """int32 []: index 0..H-1 of the stage being learned."""


class ProphetConstants(NamedTuple):
    """The schedule, C_i and the order of the thresholds; R = `MAX_PHASES`."""

    epsilons: Array
    """float [R]: accuracy of each phase; 0 for phases that are not in the schedule."""
    episodes_per_arm: Array
    """int [R]: n of each phase."""
    cutoff: Array
    """float [H]: C_i."""
    rank: Array
    """int32 [H, A]."""
    forever: Array
    """int []: T + 1, more episodes than there are."""


@takes(
    preset=Choice(None, *PRESETS),
    episodes_scale=POSITIVE,
    threshold_scale=POSITIVE,
    first_epsilon=POSITIVE,
)
def prophet_bandit(
    preset: str | None = None,
    episodes_scale: float | None = None,
    threshold_scale: float | None = None,
    first_epsilon: float | None = None,
) -> Learner:
    """Thresholds refined from the back, accuracy halved from phase to phase.

    Args:
        preset: "theory" (the default) or "practical" (no guarantee).
        episodes_scale: s, on the 12 in n = ceil(12 s ln T / eps^2).
        threshold_scale: on C_i.
        first_epsilon: eps of the first phase.

    Example:
        >>> prophet_bandit().requires
        ('rank',)
    """
    given = {
        "episodes_scale": episodes_scale,
        "threshold_scale": threshold_scale,
        "first_epsilon": first_epsilon,
    }
    values = PRESETS[preset or "theory"] | {k: v for k, v in given.items() if v is not None}
    fields = as_params(prophet_bandit.specs, np.float64, **values)  # type: ignore[attr-defined]
    form = BlockForm(init, next_block, absorb, constants=constants)
    return from_blocks(form, name="prophet-bandit", requires=("rank",), **fields)


def init(problem: Problem, constants: Any, key: Array) -> ProphetState:
    """Everything is active."""
    del constants, key
    H, A = problem.horizon, problem.num_actions
    full, zeros = jnp.ones((H, A), bool), jnp.zeros(H, jnp.int32)
    return ProphetState(
        active=full,
        refined=full,
        best=zeros,
        committed=zeros,
        phase=jnp.int32(0),
        stage=jnp.int32(H - 1),
    )


def constants(problem: Problem, params: Any) -> ProphetConstants:
    """The schedule while eps > sqrt(H A ln T / T), accuracy halved, and C_i."""
    if problem.width != 1:
        raise ValueError(f"prophet-bandit: an MDP of width k = {problem.width}; accepted: k = 1")
    scale = np.asarray(params["threshold_scale"], np.float64)
    return ProphetConstants(
        **phases(problem, params, width=1)._asdict(),
        cutoff=scale * np.arange(problem.horizon, 0, -1),
        rank=np.asarray(problem.rank, np.int32)[:, 1],
    )


def next_block(state: ProphetState, constants: ProphetConstants) -> Blocks:
    """An arm for every active threshold of the stage; or alpha-hat for ever."""
    H, A = state.active.shape
    real = constants.epsilons.dtype
    chex.assert_shape([constants.rank, constants.cutoff], [(H, A), (H,)])
    finished = constants.epsilons[jnp.minimum(state.phase, MAX_PHASES - 1)] == 0
    finished = finished | (state.phase >= MAX_PHASES)
    largest = jnp.argmax(jnp.where(state.active, constants.rank, -1), axis=-1).astype(jnp.int32)
    stages = jnp.arange(H, dtype=jnp.int32)
    played = jnp.where(stages < state.stage, largest, state.best)
    played = jnp.where(finished, state.committed, played)
    action = jnp.arange(A, dtype=jnp.int32)
    rows = jnp.where(finished, state.committed[state.stage], action)
    episodes = jnp.where(state.active[state.stage], constants.episodes_per_arm[state.phase], 0)
    forever = jnp.where(action == 0, constants.forever, 0)

    def at_both_levels(actions):
        """Level 0 plays as level 1 does: it does not matter."""
        return jnp.repeat(jax.nn.one_hot(actions, A, dtype=real)[:, None], 2, axis=1)

    return Blocks(
        policy=at_both_levels(played),
        stage=state.stage,
        rows=at_both_levels(rows),
        episodes=jnp.where(finished, forever, episodes),
    )


def absorb(
    state: ProphetState, episodes: Array, totals: Array, constants: ProphetConstants
) -> ProphetState:
    """Fixes alpha-hat and N of the stage; after the first stage the phase is complete."""
    H, A = state.active.shape
    chex.assert_shape([episodes, totals], (A,))
    counts = jnp.maximum(episodes, 1).astype(totals.dtype)
    phi = jnp.where(episodes > 0, totals / counts, -jnp.inf)
    slack = constants.cutoff[state.stage] * constants.epsilons[state.phase]
    kept = (episodes > 0) & (phi >= jnp.max(phi) - slack)
    refined = state.refined.at[state.stage].set(kept)
    best = state.best.at[state.stage].set(jnp.argmax(phi).astype(jnp.int32))
    last = state.stage == 0
    return state._replace(
        active=jnp.where(last, refined, state.active),
        refined=refined,
        best=best,
        committed=jnp.where(last, best, state.committed),
        phase=state.phase + last.astype(jnp.int32),
        stage=jnp.where(last, H - 1, state.stage - 1).astype(jnp.int32),
    )
