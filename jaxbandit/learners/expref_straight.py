"""ExpRef and OrderedExpRef episode by episode, as straight-line code in few kernels.

Without a branch the end of a block is worked out in every episode, so here little is carried and all of it is changed
by element-wise code. What a lane counts is an array [*lanes] of its own, and one kernel does the logic of all of it; what
belongs to a state and an action is one byte; the policy is made of both where it is played. The state of `from_blocks` is
made from this, and this from it, when a call begins and ends.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import StraightForm
from jaxbandit.learners.expref import ExpRefConstants, ExpRefState, next_block
from jaxbandit.learners.expref_lanes import Lane, at, bit, bits, first, over, pack, unpack
from jaxbandit.learners.from_blocks import AdapterState, start_arm
from jaxbandit.learners.phases import MAX_PHASES
from jaxbandit.types import Array

KEPT, BEST, COMMITTED = 63, 64, 128
"""Of a byte: 1 + the phase in which the action was dropped (`KEPT`: it was not; 0: it never was active, at a state that a
padded MDP does not have), and whether alpha-hat of this phase and of the last complete one have it."""


class StraightState(NamedTuple):
    """While the episodes of a call are played."""

    marks: Array
    """uint8 [H, k+1, A, *lanes], see `KEPT`."""
    lane: Array
    """int32 [N, *lanes]: the arrays of `Lane`, see `pack`. XLA would copy many small ones before it changes them."""
    phase_end: Array
    """int32 [R, *lanes]."""
    before: Array
    """int32 [R, H, k+1, *lanes]: the sizes of active sets when the call began."""
    phases_before: Array
    """int32 [*lanes]: the phase when the call began."""


def _lane(state: StraightState) -> Lane:
    _, levels, A = state.marks.shape[:3]
    return unpack(state.lane, (levels - 1) * A)


def enter(state: AdapterState, keys: Array, constants: ExpRefConstants) -> StraightState:
    """From the state of the adapter."""
    del keys
    inner, blocks = state.inner, state.blocks
    A = inner.active.shape[2]
    actions = jnp.arange(A, dtype=jnp.int32).reshape(1, 1, A, *[1] * inner.phase.ndim)
    # Which of the earlier phases dropped an action is not asked again: `before` has the numbers.
    dropped = jnp.where(inner.refined, KEPT, jnp.where(inner.active, over(inner.phase + 1, 3), 0))
    marks = dropped + BEST * (actions == inner.best[:, :, None]).astype(jnp.int32)
    marks = marks + COMMITTED * (actions == inner.committed[:, :, None]).astype(jnp.int32)
    lane = Lane(
        phase=inner.phase,
        stage=inner.stage,
        played=inner.played,
        finished=_is_finished(inner.phase, constants),
        wanted=bits(list(blocks.episodes > 0)),
        length=reduce(jnp.maximum, list(blocks.episodes)).astype(jnp.int32),
        arm=state.arm,
        left=state.left,
        total=state.total,
        lost=state.lost,
        totals=list(state.totals),
        renewed=state.renewed,
    )
    return StraightState(
        marks=marks.astype(jnp.uint8),
        lane=pack(lane),
        phase_end=inner.phase_end,
        before=inner.active_actions,
        phases_before=inner.phase,
    )


def leave(state: StraightState, constants: ExpRefConstants) -> AdapterState:
    """The state of the adapter."""
    lane = _lane(state)
    marks = state.marks.astype(jnp.int32)
    dropped = marks & KEPT
    phases = jnp.arange(MAX_PHASES, dtype=jnp.int32).reshape(MAX_PHASES, *[1] * marks.ndim)
    sizes = jnp.sum(dropped[None] > phases + 1, axis=3, dtype=jnp.int32)
    complete, known = (phases[:, :, :, 0] < over(x, 3) for x in (lane.phase, state.phases_before))
    inner = ExpRefState(
        active=dropped > over(lane.phase, 3),
        refined=dropped == KEPT,
        best=_place_of(marks & BEST),
        committed=_place_of(marks & COMMITTED),
        phase=lane.phase,
        stage=lane.stage,
        played=lane.played,
        phase_end=state.phase_end,
        active_actions=jnp.where(complete & ~known, sizes, state.before),
    )

    def rebuild(inner, arm, totals, constants):
        return start_arm(inner, next_block(inner, constants), totals, arm)

    for _ in lane.arm.shape:
        rebuild = jax.vmap(rebuild, in_axes=-1, out_axes=-1)
    found = rebuild(inner, lane.arm, jnp.stack(lane.totals), constants)
    return found._replace(left=lane.left, total=lane.total, lost=lane.lost, renewed=lane.renewed)


def act(state: StraightState, keys: Array, constants: ExpRefConstants) -> Array:
    """The policy of the arm, float [H, k+1, A, *lanes]: as `expref.next_block` and `from_blocks` put it together."""
    del keys
    H, levels, A = state.marks.shape[:3]
    lane = _lane(state)
    lanes = [1] * lane.arm.ndim
    real = constants.epsilons.dtype
    marks = [state.marks[:, :, a].astype(jnp.int32) for a in range(A)]
    active = [(mark & KEPT) > over(lane.phase, 2) for mark in marks]
    count = jnp.maximum(reduce(jnp.add, [x.astype(real) for x in active]), 1)
    top, highest = jnp.zeros_like(marks[0]), jnp.full_like(marks[0], jnp.iinfo(jnp.int32).min)
    for a in range(A):
        higher = active[a] & (constants.rank[:, :, a] > highest)
        top, highest = (
            jnp.where(higher, a, top),
            jnp.where(higher, constants.rank[:, :, a], highest),
        )
    stage = jnp.arange(H, dtype=jnp.int32).reshape(H, 1, *lanes)
    level = jnp.arange(levels, dtype=jnp.int32).reshape(1, levels, *lanes)
    tried, action = levels - 1 - lane.arm // A, lane.arm % A
    here = (stage == over(lane.stage, 2)) & (level == over(tried, 2))
    uniform = over(constants.uniform_share, 2)
    found = []
    for a in range(A):
        spread = active[a].astype(real) / count
        maximal = (top == a).astype(real)
        explore = uniform * spread + (1 - uniform) * maximal
        share = jnp.where(stage <= over(lane.stage, 2), explore, _flag(marks[a], BEST, real))
        share = jnp.where(here, over((action == a).astype(real), 2), share)
        found.append(jnp.where(over(lane.finished, 2), _flag(marks[a], COMMITTED, real), share))
    # Made once: what reads the state in two places makes XLA copy it.
    return jax.lax.optimization_barrier(jnp.stack(found, axis=2))


def update(
    state: StraightState,
    policy: Array,
    feedback: BanditFeedback,
    constants: ExpRefConstants,
    live: Array,
) -> StraightState:
    """One more episode of the arm; then the next arm, or `expref.absorb` and the next block, where they are due."""
    del policy
    _, levels, A = state.marks.shape[:3]
    arms = [(levels - 1 - b // A, b % A) for b in range((levels - 1) * A)]
    lane = _lane(state)
    ahead = _ahead(state, lane, constants)
    # The sum of the arm, as `from_blocks` has it.
    term = feedback.total - lane.lost
    total = lane.total + term
    lost = (total - lane.total) - term
    left = lane.left - 1
    ended = live & (left == 0)
    mine = [bit(lane.wanted, b) for b in range(len(arms))]
    totals = [jnp.where(ended & (lane.arm == b), total, x) for b, x in enumerate(lane.totals)]
    waiting = [one & (b > lane.arm) for b, one in enumerate(mine)]
    block = ended & ~reduce(jnp.logical_or, waiting)
    # `expref.absorb`, `refine`.
    length = lane.length.astype(totals[0].dtype)
    phi = [jnp.where(one, x / length, -jnp.inf) for one, x in zip(mine, totals, strict=True)]
    kept, best = [], []
    for level in range(levels - 1, 0, -1):
        of_level = [x for (one, _), x in zip(arms, phi, strict=True) if one == level]
        most = reduce(jnp.maximum, of_level)
        kept += [x >= most - ahead.slack[level] for x in of_level]
        lowest = jnp.zeros_like(lane.arm)
        for a in reversed(range(A)):
            lowest = jnp.where(of_level[a] == most, a, lowest)
        best.append(lowest)
    kept = [one & x for one, x in zip(mine, kept, strict=True)]
    # `expref.end_phase`.
    absorbed = reduce(jnp.add, [one.astype(lane.played.dtype) for one in mine])
    played = jnp.where(block, lane.played + absorbed * lane.length, lane.played)
    last = block & (lane.stage == 0)
    phase = lane.phase + last.astype(jnp.int32)
    rows = jnp.arange(MAX_PHASES, dtype=jnp.int32).reshape(MAX_PHASES, *[1] * last.ndim)
    # `expref.next_block`; with one stage alone it is the one whose sets were refined now.
    alone = constants.last_stage == 0
    onward = [(x & KEPT) > ahead.phase for x in ahead.marks]
    onward = [jnp.where(alone, x, y) for x, y in zip(kept, onward, strict=True)]
    only = [jnp.full_like(block, b == 0) for b in range(len(arms))]
    onward = [jnp.where(ahead.finished, x, y) for x, y in zip(only, onward, strict=True)]
    length = jnp.where(block, ahead.length, lane.length)
    following = [jnp.where(block, x, y) for x, y in zip(onward, waiting, strict=True)]
    zero = jnp.zeros_like(total)
    after = Lane(
        phase=phase,
        stage=jnp.where(block, ahead.stage, lane.stage),
        played=played,
        finished=jnp.where(block, ahead.finished, lane.finished),
        wanted=bits([jnp.where(block, x, y) for x, y in zip(onward, mine, strict=True)]),
        length=length,
        arm=jnp.where(ended, first(following), lane.arm),
        left=jnp.where(ended, length, jnp.where(live, left, lane.left)),
        total=jnp.where(ended, zero, jnp.where(live, total, lane.total)),
        lost=jnp.where(ended, zero, jnp.where(live, lost, lane.lost)),
        totals=[jnp.where(block, zero, x) for x in totals],
        renewed=jnp.where(live, ended, lane.renewed),
    )
    marks = _marked(state.marks, lane, block, last, bits(kept), best)
    complete = over(last, 1) & (rows == over(lane.phase, 1))
    phase_end = jnp.where(complete, over(played, 1), state.phase_end)
    # Everything is worked out before it is put together and written over what it was made of.
    after, marks, phase_end = jax.lax.optimization_barrier((after, marks, phase_end))
    return state._replace(marks=marks, lane=pack(after), phase_end=phase_end)


class Ahead(NamedTuple):
    """What the end of this block would read: known before the episode is."""

    stage: Array
    phase: Array
    finished: Array
    length: Array
    slack: list[Array]
    """Of each level, at the present stage and phase."""
    marks: list[Array]
    """uint8: of the arms of the next stage."""


def _ahead(state: StraightState, lane: Lane, constants: ExpRefConstants) -> Ahead:
    _, levels, A = state.marks.shape[:3]
    last = lane.stage == 0
    stage = jnp.where(last, constants.last_stage, lane.stage - 1)
    phase = lane.phase + last.astype(jnp.int32)
    epsilon = at(constants.epsilons, lane.phase)
    finished = _is_finished(phase, constants)
    rows = at(state.marks, stage)
    thresholds = at(constants.thresholds, lane.stage)
    return Ahead(
        stage=stage,
        phase=phase,
        finished=finished,
        length=jnp.where(finished, constants.forever, at(constants.episodes_per_arm, phase)),
        slack=[thresholds[level] * epsilon for level in range(levels)],
        marks=[rows[levels - 1 - b // A, b % A].astype(jnp.int32) for b in range((levels - 1) * A)],
    )


def _marked(
    marks: Array, lane: Lane, block: Array, last: Array, kept: list[Array], best: list[Array]
) -> Array:
    """The marks after the block, if it ended."""
    H, levels, A = marks.shape[:3]
    lanes = [1] * block.ndim
    stage = jnp.arange(H, dtype=jnp.int32).reshape(H, 1, 1, *lanes)
    marks = marks.astype(jnp.int32)
    # Level 0 never changes: all its actions are kept, and the first is the best.
    everything = jnp.ones_like(block)
    of_levels = [
        [bit(kept, (levels - 1 - level) * A + a) for a in range(A)] for level in range(1, levels)
    ]
    stays = jnp.stack([jnp.stack(row) for row in [[everything] * A, *of_levels]])[None]
    action = jnp.arange(A, dtype=jnp.int32).reshape(1, 1, A, *lanes)
    chosen = jnp.stack([jnp.zeros_like(lane.arm), *best[::-1]])[None, :, None] == action
    here = over(block, 3) & (stage == over(lane.stage, 3))
    dropped = jnp.where(
        here & ~stays & ((marks & KEPT) == KEPT), over(lane.phase + 1, 3), marks & KEPT
    )
    flag = jnp.where(here, BEST * chosen.astype(jnp.int32), marks & BEST)
    committed = jnp.where(over(last, 3), 2 * flag, marks & COMMITTED)
    return (dropped | flag | committed).astype(jnp.uint8)


def _is_finished(phase: Array, constants: ExpRefConstants) -> Array:
    return (phase >= MAX_PHASES) | (at(constants.epsilons, phase) == 0)


def _flag(mark: Array, flag: int, real: Any) -> Array:
    return ((mark & flag) > 0).astype(real)


def _place_of(flags: Array) -> Array:
    """The action int32 [H, k+1, *lanes] that has the flag, of [H, k+1, A, *lanes]."""
    return jnp.argmax(flags > 0, axis=2).astype(jnp.int32)


STRAIGHT = StraightForm(enter=enter, act=act, update=update, leave=leave)
