"""UCB-VI (Azar, Osband and Munos 2017), stage-dependent, under semi-bandit feedback.

After every episode the learner plans in the empirical model, optimistically: for i = H..1 and l = 1..k,

    Q_{l,i}(a) = min(1, r_{l,i}(a) + sum_s p_i(s | l, a) V_{s,i+1} + b_{l,i}(a)),   V_{l,i} = max_a Q_{l,i}(a),

with r and p the empirical means over the N = N_{l,i}(a) visits, Q = 1 where N = 0, and V = 0 at level 0 and after
stage H. With T episodes, delta = 1/T and L = ln(5 k A H T / delta), the bonus is

    "hoeffding":  b = c sqrt(L / N)                                                       (UCBVI-CH)
    "bernstein":  b = c (sqrt(8 L Var_p(V) / N) + sqrt(8 L r (1 - r) / N) + 14 L / (3 N)  (UCBVI-BF)
                         + sqrt(8 / N  sum_s p_i(s | l, a) min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1)))

where c is ``bonus_scale`` and N'_{i+1}(s) the number of visits to level s of stage i+1. The Bernstein bonus is that of
the paper's Algorithm 4 with values in [0, 1] instead of [0, H]; rewards are unknown here, so their deviation is added,
and r (1 - r) bounds the variance of a reward in [0, 1]. The last sum runs over states of unknown value only: stages
before H, levels from 1. ``stationary`` pools the counts of all stages, as in the paper, where r and p are the same at
every stage. Deviation from the reference: its Algorithm 2 also takes the min with the Q of the episode before, which is
``monotone=True`` here; the default leaves it out. The policy is greedy in the clipped Q, and ties go to the first
action: among actions that were never tried, or whose Q is clipped at 1, numbering decides.

`ucbvi_doubling` plans only after episodes in which some N has reached a power of two, the rule of UCRL2 (Jaksch,
Ortner and Auer 2010) with one state's count in place of an epoch's: the policy changes at most H k A log2(2 T) times.
Between two plans it plays an old policy, whose counts are behind by a factor of two at most.

An episode visits one entry (l, a) of each stage; only there counts, r, p and b change. `jaxbandit.kernels` has fast
forms of these functions for small tables; large tables run them as they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import (
    Model,
    add_episode,
    change_if,
    empty,
    expected_values,
    greedy,
    log_term,
    of_stage,
    reward_sum,
    scan_stages,
    visited_entries,
    write,
)
from jaxbandit.specs import Choice, Flag, Real, as_params, takes
from jaxbandit.types import Array
from jaxbandit.xla.platforms import together

PRESETS = {"theory": 1.0, "practical": 2.0**-5, "practical-bernstein": 2.0**-8}


class UCBVIState(NamedTuple):
    """What was seen, what planning reads of it, and what was planned. S is H, or 1 if counts are pooled."""

    model: Model
    reward: Array
    """float32 [S, k, A]: r + b (Hoeffding) or r (Bernstein); 1 where N = 0."""
    transition: Array
    """float32 [S, k, k, A]: p by next level, level and action; 0 where N = 0."""
    q: Array | None
    """float32 [H, k, A]: Q of the next episode, if it bounds the one after (``monotone``); else None."""
    values: Array
    """float32 [H, k]: V of the next episode."""
    policy: Array
    """int32 [H, k+1]: the greedy policy; ties go to the first action, level 0 plays action 0."""
    plans: Array | None
    """int32 []: how often `ucbvi_doubling` has planned; else None."""

    @property
    def visits(self) -> Array:
        """int32 [H, k, A]: N, for `jaxbandit.metrics`; if they are pooled, the same at every stage."""
        shape = (self.values.shape[0], *self.model.visits.shape[1:])
        return jnp.broadcast_to(self.model.visits, shape)

    @property
    def optimistic_values(self) -> Array:
        """float32 [H, k]: V, for `jaxbandit.metrics`."""
        return self.values


class UCBVIConstants(NamedTuple):
    """What the bonus is made of."""

    scale: Array
    """float32 []: c."""
    log_term: Array
    """float32 []: L."""


BONUS_SCALE = Real(low=0)


@takes(
    bonus_scale=BONUS_SCALE,
    monotone=Flag,
    bonus=Choice("hoeffding", "bernstein"),
    preset=Choice(None, *PRESETS),
    stationary=Flag,
)
def ucbvi(
    bonus_scale: float | None = None,
    monotone: bool = False,
    bonus: str | None = None,
    preset: str | None = None,
    stationary: bool = False,
) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding or the Bernstein bonus.

    Args:
        bonus_scale: c >= 0; 1 if neither it nor a preset is given.
        monotone: take the min with the Q of the episode before.
        bonus: "hoeffding" (the default) or "bernstein".
        preset: "theory" (c = 1), "practical" (c = 1/32, no guarantee) or "practical-bernstein" (the
            Bernstein bonus with c = 1/256, no guarantee either, and lower regret at most T);
            ``bonus_scale`` overrides it.
        stationary: pool the counts of all stages, for MDPs whose stages are alike.

    Example:
        >>> learner = ucbvi(preset="practical")
        >>> learner.feedback, float(learner.params["bonus_scale"])
        ('semi-bandit', 0.03125)
    """
    if bonus_scale is None:
        bonus_scale = PRESETS[preset or "theory"]
    if bonus is None:
        bonus = "bernstein" if preset == "practical-bernstein" else "hoeffding"
    return _learner("ucbvi", bonus_scale, bonus == "bernstein", monotone, stationary, False)


@takes(bonus_scale=BONUS_SCALE, stationary=Flag)
def ucbvi_doubling(bonus_scale: float = 1.0, stationary: bool = False) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding bonus, planning on doubled counts.

    Args:
        bonus_scale: >= 0, on the bonus; less explores less.
        stationary: pool the counts of all stages.

    Example:
        >>> ucbvi_doubling(bonus_scale=0.1).feedback
        'semi-bandit'
    """
    return _learner("ucbvi-doubling", bonus_scale, False, False, stationary, True)


def _learner(
    name: str, scale: Any, bernstein: bool, monotone: bool, stationary: bool, doubling: bool
) -> Learner:
    init, update = _functions(bernstein, monotone, stationary, doubling)
    fields = as_params({"bonus_scale": BONUS_SCALE}, bonus_scale=scale)
    if doubling:
        fields["report"] = report
    return Learner(init, act, update, "semi-bandit", name=name, constants=constants, **fields)


def constants(problem: Problem, params: Any) -> UCBVIConstants:
    """c and L = ln(5 k A H T / delta) with delta = 1/T."""
    log = log_term(problem, 5 * problem.width)
    return UCBVIConstants(np.float32(params["bonus_scale"]), np.float32(log))


def act(state: UCBVIState, key: Array, constants: UCBVIConstants) -> Array:
    """The greedy policy."""
    del key, constants
    return state.policy


def report(state: UCBVIState) -> dict[str, Array]:
    """How often it has planned."""
    return {"plans": state.plans}


@cache
def _functions(bernstein: bool, monotone: bool, stationary: bool, doubling: bool):
    """init and update of a variant; the same objects on every call, as kernels are found by them."""

    def init(problem: Problem, constants: UCBVIConstants, key: Array) -> UCBVIState:
        """Nothing is known and every Q is 1."""
        del constants, key
        H, k, A = problem.horizon, problem.width, problem.num_actions
        model = empty(problem, stationary)
        return UCBVIState(
            model=model,
            reward=jnp.ones(model.visits.shape, jnp.float32),
            transition=jnp.zeros((len(model.moves), k, k, A), jnp.float32),
            q=jnp.ones((H, k, A), jnp.float32) if monotone else None,
            values=jnp.ones((H, k), jnp.float32),
            policy=jnp.zeros((H, k + 1), jnp.int32),
            plans=jnp.int32(0) if doubling else None,
        )

    def update(
        state: UCBVIState, policy: Array, feedback: SemiBanditFeedback, constants: UCBVIConstants
    ) -> UCBVIState:
        """Counts the episode, refreshes r, b and p where it went, plans backwards, is greedy."""
        del policy
        model = add_episode(state.model, feedback)
        at = visited_entries(model, feedback)
        visits = model.visits.at[at].get(mode="fill", fill_value=1)
        inverse = 1 / visits.astype(jnp.float32)
        stage, level, action = at
        mean = reward_sum(model.rewards[:, stage, level, action]) * inverse
        if not bernstein:
            mean = mean + constants.scale * jnp.sqrt(constants.log_term) * jnp.sqrt(inverse)
        share = model.moves[at].astype(jnp.float32) * inverse[:, None]
        state = state._replace(
            model=model,
            reward=write(state.reward, at, mean),
            transition=write(state.transition, (stage, None, level, action), share),
        )
        if not doubling:
            return planned(state, constants)
        due = jnp.any((level < model.visits.shape[1]) & (visits & (visits - 1) == 0))
        return change_if(due, lambda state: planned(state, constants), state)

    def planned(state: UCBVIState, constants: UCBVIConstants) -> UCBVIState:
        """Backward induction, and the greedy policy."""
        q = optimistic_q(state, constants, bernstein)
        return state._replace(
            q=q if monotone else None,
            values=jnp.max(q, axis=-1),
            policy=greedy(q),
            plans=None if state.plans is None else state.plans + 1,
        )

    return init, update


def optimistic_q(state: UCBVIState, constants: UCBVIConstants, bernstein: bool) -> Array:
    """Q [H, k, A] by backward induction in the model of a state."""
    horizon, width = state.values.shape
    tables = {"reward": state.reward}
    if bernstein:
        visits = state.model.visits
        inverse = 1 / jnp.maximum(visits, 1).astype(jnp.float32)
        tables["inverse"] = jnp.where(visits > 0, inverse, 0)
        tables["unknown"] = unknown(visits, horizon, constants.log_term)
    if state.q is not None:
        tables["ceiling"] = state.q

    @together
    def induction(tables: dict[str, Array], transition: Array, constants: UCBVIConstants) -> Array:
        def back(tail, i):
            here = {name: of_stage(table, i) for name, table in tables.items()}
            if bernstein:
                ahead = jnp.stack([tail, tail**2, here["unknown"]])
                q = bernstein_q(here, expected_values(transition, i, ahead), constants)
            else:
                q = here["reward"] + expected_values(transition, i, tail)
            q = jnp.minimum(q, here.get("ceiling", 1))
            return jnp.max(q, axis=-1), q

        return scan_stages(back, jnp.zeros(width, jnp.float32), horizon)

    return induction(tables, state.transition, constants)


def bernstein_q(here: dict[str, Array], expected: Array, constants: UCBVIConstants) -> Array:
    """r + p V + b of a stage, [k, A]; 1 where N = 0, where ``inverse``, else 1 / N, is 0. ``expected``, [3, k, A], are the
    expectations under p of V, V^2 and how far V is unknown."""
    value, square, doubt = expected
    mean, log_term, inverse = jnp.clip(here["reward"], 0, 1), constants.log_term, here["inverse"]
    variance = jnp.maximum(square - value**2, 0)
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * doubt)
    )
    return mean + constants.scale * bonus + value


def unknown(visits: Array, horizon: int, log_term: Array) -> Array:
    """min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1) as [H, k]; 0 at the last stage, after which V is known."""
    _, width, num_actions = visits.shape
    arrivals = jnp.broadcast_to(jnp.sum(visits, axis=-1), (horizon, width))[1:]
    factor = 1e4 * horizon * width**2 * num_actions * log_term**2
    found = jnp.minimum(factor / jnp.maximum(arrivals, 1).astype(jnp.float32), 1)
    return jnp.concatenate([found, jnp.zeros((1, width), jnp.float32)])
