"""UCB-VI (Azar, Osband and Munos 2017), stage-dependent, under semi-bandit feedback.

After every episode the learner plans in the empirical model, optimistically: for i = H..1 and l =
1..k,

    Q_{l,i}(a) = min(1, r_{l,i}(a) + sum_s p_i(s | l, a) V_{s,i+1} + b_{l,i}(a)),  V_{l,i} = max_a
    Q_{l,i}(a),

with r and p the empirical means over the N = N_{l,i}(a) visits, Q = 1 where N = 0, and V = 0 at
level 0 and after stage H. With T episodes, delta = 1/T and L = ln(5 k A H T / delta), the bonus is

    "hoeffding":  b = c sqrt(L / N)                                                       (UCBVI-CH)
    "bernstein":  b = c (sqrt(8 L Var_p(V) / N) + sqrt(8 L r (1 - r) / N) + 14 L / (3 N)  (UCBVI-BF)
                         + sqrt(8 / N  sum_s p_i(s | l, a) min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1)))

where c is ``bonus_scale`` and N'_{i+1}(s) the number of visits to level s of stage i+1. The
Bernstein bonus is that of the paper's Algorithm 4 with values in [0, 1] instead of [0, H]; rewards
are unknown here, so their deviation is added, and r (1 - r) bounds the variance of a reward in [0,
1]. The last sum runs over states of
unknown value only: stages before H, levels from 1. ``monotone`` takes the min with the Q of the
episode before, as Algorithm 2 does.

Only counts and what follows from them at single entries are kept. An episode visits one entry (l, a) of each stage, so
only there r, p and b change: they are computed for the visited entries [H] and put in their places, and planning reads
them without dividing or taking roots again.

Arrays are laid out [..., action, level, stage, lanes], level 0 left out (it has value 0): everything indexes leading
axes only, so the same code runs one seed, runs under ``vmap``, and runs seeds side by side. Stages and lanes are
neighbours in memory and kernels run over both as one axis: a loop over few lanes alone is not vectorised by XLA on CPU.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import choice, number
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate
from jaxbandit.xla.platforms import active

PRESETS = {"theory": 1.0, "practical": 2.0**-6}
LONGEST_UNROLLED = 64
"""Horizons up to this are planned without a loop: much faster, for a second or two more of compilation."""
FRACTION_BITS = 30


class UCBVIConstants(NamedTuple):
    """What does not change."""

    scale: Array
    """float32 [*lanes]: c, the bonus scale."""
    log_term: Array
    """float32 [*lanes]: L."""


class UCBVIState(NamedTuple):
    """What was seen at each action a, level l = 1..k and stage i, and what was planned from it.

    Counts are int32, exact up to 2^31 visits.
    """

    counts: Array
    """int32 [1 + k, A, k, H, *lanes]: visits N_{l,i}(a), then those that went on to level s = 1..k."""
    rewards: Array
    """int32 [2, A, k, H, *lanes]: the sum of rewards is the first + the second / 2^30, below 2^30."""
    model: Array
    """float32 [2 + k or 1 + k, A, k, H, *lanes]: what planning reads, see `_modelled`."""
    values: Array
    """float32 [k, H, *lanes]: V_{l,i} of the next episode, optimistic."""
    ceiling: Array | None
    """float32 [A, k, H, *lanes]: Q_{l,i}(a) of the next episode, if it bounds the one after; else None."""
    policy: Array
    """int32 [H, k+1, *lanes]: the greedy policy; ties go to the first action, level 0 plays action 0."""

    @property
    def visits(self) -> Array:
        """int32 [H, k, A, *lanes]: N_{l,i}(a), levels 1..k."""
        return jnp.moveaxis(self.counts[0], (2, 1, 0), (0, 1, 2))


def ucbvi(
    bonus_scale: float | None = None,
    monotone: bool = False,
    bonus: str = "hoeffding",
    preset: str | None = None,
) -> Learner:
    """UCB-VI with ``bonus_scale`` times the Hoeffding or the Bernstein bonus.

    Args:
        bonus_scale: c >= 0; 1 if neither it nor a preset is given.
        monotone: take the min with the Q of the episode before.
        bonus: "hoeffding" or "bernstein".
        preset: "theory" (c = 1) or "practical" (c = 1/64, no guarantee); ``bonus_scale`` overrides
            it.

    Example:
        >>> learner = ucbvi(preset="practical")
        >>> learner.feedback, float(learner.params["bonus_scale"])
        ('semi-bandit', 0.015625)
    """
    choice("preset", preset, (None, *PRESETS))
    if bonus_scale is None:
        bonus_scale = PRESETS[preset or "theory"]
    choice("monotone", monotone, (False, True))
    choice("bonus", bonus, ("hoeffding", "bernstein"))
    check({"bonus_scale": bonus_scale})
    init, update = _variant(monotone, bonus == "bernstein")
    return Learner(
        init=init,
        act=act,
        update=update,
        feedback="semi-bandit",
        params={"bonus_scale": np.float32(bonus_scale)},
        name="ucbvi",
        lanes_last=True,
        constants=constants,
        check=check,
    )


def check(params: Any) -> None:
    """Refuses bonus scales that are not finite numbers >= 0."""
    number("bonus_scale", params["bonus_scale"], low=0)


def constants(problem: Problem, params: Any) -> UCBVIConstants:
    """c and L = ln(5 k A H T / delta) with delta = 1/T."""
    size = problem.horizon * problem.num_actions * problem.width
    episodes = jnp.asarray(problem.num_episodes, float)
    return UCBVIConstants(
        scale=jnp.asarray(params["bonus_scale"]).astype(jnp.float32),
        log_term=(np.log(5 * size) + 2 * jnp.log(episodes)).astype(jnp.float32),  # T^2 may overflow
    )


def act(state: UCBVIState, key: Array, constants: UCBVIConstants) -> Array:
    """The greedy policy, int32 [H, k+1, *lanes]."""
    del key, constants
    return state.policy


@cache
def _variant(monotone: bool, bernstein: bool):
    """init and update of a variant; the same objects on every call, so that equal learners share compilations."""

    def init(problem: Problem, params: Any) -> UCBVIState:
        """Nothing is known and every Q is 1."""
        del params
        H, k, A = problem.horizon, problem.width, problem.num_actions
        fields = 2 + k if bernstein else 1 + k
        return UCBVIState(
            counts=jnp.zeros((1 + k, A, k, H), jnp.int32),
            rewards=jnp.zeros((2, A, k, H), jnp.int32),
            # Unvisited entries have mean reward 1 and lead nowhere: clipped at 1, their Q is 1.
            model=jnp.zeros((fields, A, k, H), jnp.float32).at[0].set(1),
            values=jnp.ones((k, H), jnp.float32),
            ceiling=jnp.ones((A, k, H), jnp.float32) if monotone else None,
            policy=jnp.zeros((H, k + 1), jnp.int32),
        )

    def update(
        state: UCBVIState, policy: Array, feedback: SemiBanditFeedback, constants: UCBVIConstants
    ) -> UCBVIState:
        """Line by line: count the episode, refresh the model where it went, plan backwards, be greedy."""
        del policy
        width = state.counts.shape[2]
        flat = jax.tree.map(lambda x: x.reshape(-1), feedback)
        entry, target, reward = _visited(flat, jnp.int32(width))
        counts = _counted(_read(state.counts, entry), target)
        rewards = _paid(_read(state.rewards, entry), reward)
        spread = [_spread(x, feedback.levels.shape) for x in constants]
        known = _modelled(bernstein)(counts, rewards, *spread)
        state = state._replace(
            counts=_write(state.counts, entry, counts),
            rewards=_write(state.rewards, entry, rewards),
            model=_write(state.model, entry, known),
        )
        doubt = _doubt(state.counts[0], constants.log_term) if bernstein else None
        plan = Plan(state.model, doubt, state.ceiling)
        values = _plan(plan, constants)
        actions, ceiling = _greedy(plan, values, constants)
        return state._replace(values=values, ceiling=ceiling, policy=_table(actions))

    return init, update


@separate
def _visited(feedback: SemiBanditFeedback, width: Array) -> tuple[Array, Array, Array]:
    """int32 [H, *lanes] each: the entry a k + l-1 visited (-1: level 0), next level - 1, 2^30 reward."""
    entry = jnp.where(feedback.levels > 0, feedback.actions * width + feedback.levels - 1, -1)
    # Rewards lie in [0, 1]; the clip only keeps a careless one from overflowing the integers.
    reward = jnp.clip(feedback.rewards.astype(jnp.float32), 0, 1)
    scaled = jnp.round(reward * 2**FRACTION_BITS).astype(jnp.int32)
    return entry, feedback.next_levels - 1, scaled


# From here to the writing back, stages and lanes are one axis [HW]. The reshaping is outside of `separate`: inside, XLA
# would undo it.


def _spread(x: Array, shape: tuple[int, ...]) -> Array:
    """[*lanes] as [HW]."""
    return jnp.broadcast_to(x[None], shape).reshape(-1)


def _flat(table: Array, size: int) -> Array:
    """[F, A, k, H, *lanes] as [F, A k, HW]."""
    return table.reshape(table.shape[0], -1, size)


def _read(table: Array, entry: Array) -> Array:
    """The fields [F, HW] of the visited entries; 0 at entry -1."""
    return _read_flat(_flat(table, entry.size), entry)


def _write(table: Array, entry: Array, fields: Array) -> Array:
    """The table with the fields of the visited entries replaced."""
    return _write_flat(_flat(table, entry.size), entry, fields).reshape(table.shape)


@separate
def _read_flat(table: Array, entry: Array) -> Array:
    # A sum of selects: XLA on CPU does not vectorise gathers.
    chosen = [jnp.where((entry == e)[None], table[:, e], 0) for e in range(table.shape[1])]
    return reduce(jnp.add, chosen)


@separate
def _write_flat(table: Array, entry: Array, fields: Array) -> Array:
    entries = jnp.arange(table.shape[1], dtype=jnp.int32)
    here = entry[None, None] == entries[None, :, None]
    return jnp.where(here, fields[:, None], table)


@separate
def _counted(counts: Array, target: Array) -> Array:
    """Visits and moves [1 + k, HW] after one more visit that led to ``target``."""
    field = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 0)
    return counts + ((field == 0) | (field - 1 == target[None])).astype(jnp.int32)


@separate
def _paid(rewards: Array, reward: Array) -> Array:
    """The sum of rewards [2, HW] after one more."""
    fraction = rewards[1:] + reward[None]
    whole = rewards[:1] + (fraction >> FRACTION_BITS)
    first = jax.lax.broadcasted_iota(jnp.int32, rewards.shape, 0) == 0
    return jnp.where(first, whole, fraction & (2**FRACTION_BITS - 1))


@cache
def _modelled(bernstein: bool):
    """The model of visited entries, from their counts [1 + k, HW] and rewards [2, HW].

    Fields: r + b (Hoeffding) or r (Bernstein); p(s), s = 1..k; and 1 / N (Bernstein).
    """

    @separate
    def modelled(counts: Array, rewards: Array, scale: Array, log_term: Array) -> Array:
        inverse = 1 / counts[:1].astype(jnp.float32)
        fraction = rewards[1:].astype(jnp.float32) * 2.0**-FRACTION_BITS
        first = (rewards[:1].astype(jnp.float32) + fraction) * inverse
        if not bernstein:
            first = first + (scale * jnp.sqrt(log_term))[None] * jnp.sqrt(inverse)
        # One select over all fields: pieces put together are not vectorised.
        field = jax.lax.broadcasted_iota(jnp.int32, counts.shape, 0)
        known = jnp.where(field == 0, first, counts.astype(jnp.float32) * inverse)
        return jnp.concatenate([known, inverse]) if bernstein else known

    return modelled


class Plan(NamedTuple):
    """What backward induction reads."""

    model: Array
    """float32 [F, A, k, H, *lanes]."""
    doubt: Array | None
    """float32 [k, H, *lanes], see `_doubt`; None with the Hoeffding bonus."""
    ceiling: Array | None
    """float32 [A, k, H, *lanes]: the Q of the episode before, if it bounds this one; else None."""


def _plan(plan: Plan, constants: UCBVIConstants) -> Array:
    """V of all stages, float32 [k, H, *lanes], by backward induction."""
    width, horizon = plan.model.shape[2:4]
    tail = jnp.zeros_like(plan.model[0, 0, :, 0])
    if horizon > LONGEST_UNROLLED:
        stages = jax.tree.map(lambda x: jnp.moveaxis(x, -tail.ndim, 0), plan)

        def back(tail, stage):
            value = _value(stage, tail, *constants)
            return value, value

        values = jax.lax.scan(back, tail, stages, reverse=True)[1]
        return jnp.moveaxis(values, 0, 1)
    if active().straight:
        return _plan_by_lanes(plan, constants)
    found = []
    for i in reversed(range(horizon)):
        tail = _value_of(i, width)(plan, tail, *constants)
        found.append(tail[:, None])
    return jnp.concatenate(found[::-1], axis=1)


def _plan_by_lanes(plan: Plan, constants: UCBVIConstants) -> Array:
    """The same, level by level on arrays [*lanes]: a compiler that fuses at will makes few kernels of it."""
    width, horizon = plan.model.shape[2:4]
    tails = [jnp.zeros_like(constants.scale)] * width
    found = []
    for i in reversed(range(horizon)):
        tails = [_value_at(plan, level, i, tails, constants) for level in range(width)]
        found.append(tails)
    return jnp.stack([jnp.stack([tails[level] for tails in found[::-1]]) for level in range(width)])


def _value_at(
    plan: Plan, level: int, i: int, tails: list[Array], constants: UCBVIConstants
) -> Array:
    """V at one level of a stage, [*lanes]."""

    def here(table, leading):
        return (
            None
            if table is None
            else table[(slice(None),) * leading + (slice(level, level + 1), i)]
        )

    stage = Plan(here(plan.model, 2), None, here(plan.ceiling, 1))
    if plan.doubt is not None:
        stage = stage._replace(doubt=plan.doubt[:, i])
    return reduce(jnp.maximum, _q_of(stage, tails, *constants))[0]


@cache
def _value_of(i: int, width: int):
    """`_value` of a stage that is known while compiling: it takes the whole tables, so that no slice is copied."""
    del width

    def value(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
        stage = Plan(
            plan.model[:, :, :, i],
            None if plan.doubt is None else plan.doubt[:, i],
            None if plan.ceiling is None else plan.ceiling[:, :, i],
        )
        return _value(stage, tail, scale, log_term)

    return separate(value)


def _value(stage: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    """V of a stage [k, *lanes], where V of the next stage is ``tail`` [k, *lanes]."""
    tails = [tail[s] for s in range(tail.shape[0])]
    return reduce(jnp.maximum, _q_of(stage, tails, scale, log_term))


def _greedy(plan: Plan, values: Array, constants: UCBVIConstants) -> tuple[Array, Array | None]:
    """The greedy actions int32 [k, H, *lanes] and, if it is kept, Q [A, k, H, *lanes]; all stages at once."""
    after = jnp.concatenate([values[:, 1:], jnp.zeros_like(values[:, :1])], axis=1)

    def flat(x, leading):
        return None if x is None else x.reshape(*x.shape[:leading], -1)

    arguments = (
        Plan(flat(plan.model, 3), flat(plan.doubt, 1), flat(plan.ceiling, 2)),
        flat(after, 1),
        *(_spread(x, values.shape[1:]) for x in constants),
    )
    actions = _argmax_flat(*arguments).reshape(values.shape)
    if plan.ceiling is None:
        return actions, None
    return actions, _q_flat(*arguments).reshape(plan.ceiling.shape)


@separate
def _argmax_flat(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    q = _q_of(plan, list(tail), scale, log_term)
    best, action = q[0], jnp.zeros_like(q[0], jnp.int32)
    for a in range(1, len(q)):
        better = q[a] > best
        best, action = jnp.where(better, q[a], best), jnp.where(better, a, action)
    return action


@separate
def _q_flat(plan: Plan, tail: Array, scale: Array, log_term: Array) -> Array:
    return jnp.stack(_q_of(plan, list(tail), scale, log_term))


@separate
def _table(actions: Array) -> Array:
    """[k, H, *lanes] as a policy [H, k+1, *lanes]."""
    return jnp.moveaxis(jnp.concatenate([jnp.zeros_like(actions[:1]), actions]), 0, 1)


def _q_of(plan: Plan, tails: list[Array], scale: Array, log_term: Array) -> list[Array]:
    """Q of each action, [k, ...], where V at level s of the next stage is tails[s - 1] [...]."""
    found = []
    for a in range(plan.model.shape[1]):
        fields = plan.model[:, a]
        if plan.doubt is None:
            q = fields[0] + _next_value(fields, tails)
        else:
            q = _bernstein(fields, tails, list(plan.doubt), scale, log_term)
        q = jnp.minimum(q, 1)
        found.append(q if plan.ceiling is None else jnp.minimum(q, plan.ceiling[a]))
    return found


def _next_value(fields: Array, tails: list[Array]) -> Array:
    """sum_s p(s | l, a) tails[s], [k, ...]."""
    return reduce(jnp.add, [fields[1 + s] * tail[None] for s, tail in enumerate(tails)])


def _doubt(visits: Array, log_term: Array) -> Array:
    """min(100^2 H k^2 A L^2 / N'_{i+1}(s), 1) as [k, H, *lanes]; 0 at the last stage: V is known after it."""
    num_actions, width, horizon = visits.shape[:3]
    arrivals = jnp.maximum(reduce(jnp.add, [visits[a, :, 1:] for a in range(num_actions)]), 1)
    factor = 1e4 * horizon * width**2 * num_actions * log_term**2
    doubt = jnp.minimum(factor[None, None] / arrivals.astype(jnp.float32), 1)
    return jnp.concatenate([doubt, jnp.zeros_like(visits[0, :, :1], jnp.float32)], axis=1)


def _bernstein(
    fields: Array, tails: list[Array], doubts: list[Array], scale: Array, log_term: Array
) -> Array:
    """r + p V + b of an action, [k, ...]; 1 where it was never tried."""
    tried = (fields[-1] > 0).astype(jnp.float32)
    mean, inverse = jnp.clip(fields[0], 0, 1), fields[-1]
    value = _next_value(fields, tails)
    variance = jnp.maximum(_next_value(fields, [tail**2 for tail in tails]) - value**2, 0)
    log_term = log_term[None]
    bonus = (
        jnp.sqrt(8 * log_term * mean * (1 - mean) * inverse)
        + 14 / 3 * log_term * inverse
        + jnp.sqrt(8 * log_term * variance * inverse)
        + jnp.sqrt(8 * inverse * _next_value(fields, doubts))
    )
    return mean + scale[None] * bonus * tried + value
