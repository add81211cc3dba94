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

So this is OrderedExpRef for k = 1 with C_i in place of C_{l,i} and without uniform draws in exploration. It is built of
the functions of `expref`; only the constants are its own.

Deviations from the reference, which treats continuous values: thresholds are the A actions, each of
them is played instead of the two ends of an interval, and the constants are those derived above. The
order of the actions is told (``rank``); the MDP must have k = 1.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.expref import POSITIVE, ExpRefConstants, ExpRefState, absorb, init
from jaxbandit.learners.expref import constants as expref_constants
from jaxbandit.learners.expref import next_block as expref_block
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.specs import Choice, as_params, takes

PRESETS: dict[str, dict[str, float]] = {
    "theory": {"episodes_scale": 1.0, "threshold_scale": 1.0, "first_epsilon": 1.0},
    "practical": {"episodes_scale": 1 / 12, "threshold_scale": 0.02, "first_epsilon": 0.42},
}


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
    given = {**locals(), "preset": None}
    given = {name: value for name, value in given.items() if value is not None}
    values = PRESETS[preset or "theory"] | given
    fields = as_params(prophet_bandit.specs, np.float64, **values)  # type: ignore[attr-defined]
    form = BlockForm(init, next_block, absorb, constants=constants)
    return from_blocks(form, name="prophet-bandit", requires=("rank",), **fields)


def constants(problem: Problem, params: Any) -> ExpRefConstants:
    """The schedule while eps > sqrt(H A ln T / T), accuracy halved, and C_i."""
    if problem.width != 1:
        raise ValueError(f"prophet-bandit: an MDP of width k = {problem.width}; accepted: k = 1")
    own = {"threshold_scale": 1.0, "exploration_scale": 0.0}
    cutoff = params["threshold_scale"] * np.arange(problem.horizon, 0.0, -1.0)
    return expref_constants(True, problem, {**params, **own})._replace(
        thresholds=np.repeat(cutoff[:, None], 2, axis=1)
    )


def next_block(state: ExpRefState, constants: ExpRefConstants) -> Blocks:
    """An arm for every active threshold of the stage; or alpha-hat for ever."""
    blocks = expref_block(state, constants)
    # Level 0 plays as level 1 does: it does not matter.
    policy, rows = (jnp.repeat(x[:, 1:], 2, axis=1) for x in (blocks.policy, blocks.rows))
    return blocks._replace(policy=policy, rows=rows)
