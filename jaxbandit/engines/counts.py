"""n episodes of a randomised Markov policy, exactly in law, as counts pushed through the stages.

Of the n episodes of an arm, the number in a state of stage i that see an outcome (`outcomes`) is binomial given how many are
there and have not been assigned yet, so an arm costs a number of binomial draws that depends on the sizes of the MDP
and not on n: T = 10^12 costs little more than T = 10^6. A block learner only looks at the sum of the rewards, and the
regret of an arm is n times an exactly known number, so nothing else is needed.

Arms are pushed side by side, W at a time, each at its own pace: an arm whose rejection sampler needs another attempt
(`binomial.attempt`) does not hold up the others, outcomes of probability 0, splits that are certain and states that
nobody reaches are passed over, pools that go on unchanged in the next stage wait for it, and every few steps the finished
arms make room for the next ones. Everything is float64 (whole numbers are exact to 2^53) and needs x64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines import binomial, codes
from jaxbandit.engines.codes import word_type
from jaxbandit.engines.outcomes import Outcomes
from jaxbandit.engines.threefry import fold_in, threefry, unit_float64
from jaxbandit.fusion import separate
from jaxbandit.learners.base import Blocks

Array = Any
WORKERS, STEPS = 2048, 16
"""Arms that are pushed side by side, and steps between two rounds of replacement."""


class Push(NamedTuple):
    """Where the arms of W workers stand; ``drawn`` is not yet acted on."""

    stage: Array
    """int32 [W]; H when the arm is finished."""
    state: Array
    """int32 [W]: a pool or a level, see `outcomes`."""
    outcome: Array
    """int32 [W]: the outcome whose count is being drawn."""
    left: Array
    """float64 [W]: episodes in the state not yet assigned to an outcome."""
    pools: Array
    """float64 [P, W]: episodes whose rewards of this stage, or of the stages just before it, are yet to be drawn."""
    here: Array
    """float64 [k, W]: episodes at each level of the stage, from 1 on."""
    there: Array
    """float64 [k, W]: the same of the next stage."""
    waiting: Array
    """int [W]: bit x is set while state x of the stage has episodes to be pushed on."""
    arrived: Array
    """int [W]: bit P + l is set when level l of the next stage has episodes."""
    total: Array
    """float64 [W]: sum of rewards."""
    drawn: Array
    """float64 [W]: the last draw, or -1 if it was rejected."""
    tries: Array
    """uint32 [W]: the counter of the random words."""


class Work(NamedTuple):
    """What each worker works on, [W] each."""

    arm: Array
    """int32: its number, B per lane; a worker without work has the number of arms."""
    row: Array
    """int32: where the lane's tables begin."""
    own: Array
    """int32: the stage with a row of its own."""
    shift: Array
    """int32: from that stage to the row."""
    group: Array
    """int32: H times the group."""
    key: tuple[Array, Array]


def push_arms(outcomes: Outcomes, blocks: Blocks, episodes: Array, keys: tuple[Array, Array]) -> jax.Array:
    """Sums of the total rewards of ``episodes`` [G, S, B] episodes of every arm of ``blocks`` (leaves [G, S, ...]).

    ``keys`` are the uint32 words [G, S] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    G, S, B = episodes.shape
    _, H, X, _, U = outcomes.prob.shape
    P, N = outcomes.kind.shape[-1], G * S * B
    W = min(WORKERS, N)
    tables = codes.make_tables(outcomes, blocks)
    number = episodes.reshape(-1)
    # Arms without episodes are left out: the others come first.
    queue = jnp.argsort(number == 0, stable=True).astype(jnp.int32)
    busy = jnp.sum(number > 0, dtype=jnp.int32)

    def assign(arm: Array) -> Work:
        lane, b = arm // B, arm % B
        high, low = (_look(words.reshape(-1), lane) for words in keys)
        stage = _look(blocks.stage.reshape(-1), lane)
        own_key = fold_in((high, low), b.astype(jnp.uint32))
        return Work(arm, lane * (H + B), stage, H + b - stage, lane // S * H, own_key)

    def begin(work: Work, n: Array) -> Push:
        level = _look(outcomes.start, work.group // H) + P
        real, none = jnp.zeros(W), jnp.zeros(W, jnp.int32)
        levels = jnp.zeros((X - 1 - P, W))
        off = jnp.zeros(W, word_type(X))
        stage = jnp.where(n > 0, 0, H).astype(jnp.int32)
        return Push(
            stage, level, none, n, jnp.zeros((P, W)), levels, levels, off, off, real, real - 1, jnp.zeros(W, jnp.uint32)
        )

    def hand_in(work: Work, p: Push, totals: Array) -> jax.Array:
        """The sums of the arms, with those that are finished."""
        return totals.at[jnp.where(p.stage >= H, work.arm, N)].set(p.total, mode="drop")

    def replace(carry):
        """Finished arms hand in their sums, and the next ones of the queue take their places."""
        taken, work, p, totals = carry
        totals = hand_in(work, p, totals)
        free = p.stage >= H
        place = taken + jnp.cumsum(free, dtype=jnp.int32) - 1
        fresh = free & (place < busy)
        arm = _look(queue, jnp.where(fresh, place, 0))
        new_work = assign(jnp.where(fresh, arm, 0))
        new_work = new_work._replace(arm=jnp.where(fresh, arm, N))
        new = begin(new_work, jnp.where(fresh, _look(number, jnp.where(fresh, arm, 0)), 0))
        work = jax.tree.map(lambda new, old: jnp.where(free, new, old), new_work, work)
        p = jax.tree.map(lambda new, old: jnp.where(free, new, old), new, p)
        return taken + jnp.sum(fresh, dtype=jnp.int32), work, p, totals

    step = _machine(H, X, P, U)

    def round_(carry):
        taken, work, p, totals = replace(carry)
        p = jax.lax.fori_loop(0, STEPS, lambda _, p: step(tables, work, p), p)
        return taken, work, p, totals

    def unfinished(carry):
        taken, _, p, _ = carry
        return (taken < busy) | jnp.any(p.stage < H)

    none, no_key = jnp.zeros(W, jnp.int32), jnp.zeros(W, jnp.uint32)
    nobody = Work(jnp.full(W, N, jnp.int32), none, none, none, none, (no_key, no_key))
    carry = (jnp.int32(0), nobody, begin(nobody, jnp.zeros(W)), jnp.zeros(N))
    _, work, p, totals = jax.lax.while_loop(unfinished, round_, carry)
    return hand_in(work, p, totals).reshape(G, S, B)


@cache
def _machine(H: int, X: int, P: int, U: int) -> Callable[..., Push]:
    """A step of all workers: acts on their last draws, goes on to the next state where one is finished, and draws again.

    Parts that several others need are `separate`, and so computed once.
    """
    bits = word_type(X)

    def place(work, stage, state, outcome):
        stage = jnp.minimum(stage, H - 1)
        return ((work.row + stage + jnp.where(stage == work.own, work.shift, 0)) * X + state) * U + outcome

    @separate
    def look_up(table, work, stage, state, outcome):
        return _look(table, place(work, stage, state, outcome))

    @separate
    def move(drawn):
        """How many episodes the draw moves to its outcome."""
        return jnp.maximum(drawn, 0)

    @separate
    def finish(packed, left, drawn):
        """And how many to the following outcome, if that is certain."""
        return jnp.where((drawn >= 0) & (codes.certain(packed) == 1), left - drawn, 0)

    @separate
    def fields(packed):
        """The low half of a code."""
        return packed.astype(jnp.int32)

    @separate
    def paid(reward, work, following, stage, state, outcome, moved, rest):
        at = ((work.group + jnp.minimum(stage, H - 1)) * X + state) * U
        return moved * _look(reward, at + outcome) + rest * _look(reward, at + following)

    def bit(state, count):
        return jnp.where((count > 0) & (state > 0), jnp.ones_like(state, bits) << state.astype(bits), 0)

    @separate
    def wait(waiting, low, moved, rest):
        return waiting | bit(codes.pool(low), moved) | bit(codes.rest_pool(low), rest)

    @separate
    def arrive(arrived, low, moved, rest):
        return arrived | bit(codes.target(low), moved) | bit(codes.rest_target(low), rest)

    @separate
    def choose(packed, left, stage, waiting, arrived):
        """-1: stay. Else the state to go on to (0: the arm is finished), plus 64 if it is one of the next stage.

        Levels come before pools, so pools are complete when their turn comes. Where nobody goes on, all are due.
        """
        over = (left == 0) & (stage < H)
        onward = jnp.where(stage < H - 1, arrived, 0)
        due = jnp.where(onward == 0, waiting, waiting & ~(codes.standing(packed).astype(bits) << 1))
        leave = due == 0
        state = _top(jnp.where(leave, onward, due))
        return jnp.where(over, state + jnp.where(leave, 64, 0), -1).astype(jnp.int32)

    def join(counts, first, to, rest_to, moved, rest):
        """Counts [n, W] of the states ``first`` on, after the draw."""
        index = jnp.arange(first, first + counts.shape[0], dtype=jnp.int32)[:, None]
        counts = counts + jnp.where(index == to[None], moved[None], 0)
        return counts + jnp.where(index == rest_to[None], rest[None], 0)

    def step(tables, work, p):
        packed = look_up(tables.code, work, p.stage, p.state, p.outcome)
        low, following = fields(packed), codes.following(packed)
        moved = move(p.drawn)
        rest = finish(packed, p.left, p.drawn)
        waiting, arrived = wait(p.waiting, low, moved, rest), arrive(p.arrived, low, moved, rest)
        remaining = p.left - moved - rest
        go = choose(packed, remaining, p.stage, waiting, arrived)
        pools = join(p.pools, 1, codes.pool(low), codes.rest_pool(low), moved, rest)
        there = join(p.there, P + 1, codes.target(low), codes.rest_target(low), moved, rest)
        over, leave, state = go >= 0, go >= 64, go & 63
        here = jnp.where(leave[None], there, p.here)
        left = jnp.where(over, _at(pools, here, state), remaining)
        outcome = jnp.where(p.drawn >= 0, following, p.outcome).astype(jnp.int32)
        stage = jnp.where(over & (state == 0), H, p.stage + leave.astype(jnp.int32)).astype(jnp.int32)
        bare = jnp.where(leave, arrived | waiting, waiting)
        number = jnp.arange(1, P + 1, dtype=bits)[:, None]
        gone = leave[None] & ((waiting[None] >> number) & 1 == 0)
        q = Push(
            stage,
            jnp.where(over, state, p.state),
            jnp.where(over, 0, outcome),
            left,
            jnp.where(gone, 0, pools),
            here,
            jnp.where(leave[None], 0, there),
            jnp.where(over, bare & ~(jnp.ones_like(bare) << state.astype(bits)), waiting),
            jnp.where(leave, 0, arrived),
            p.total + paid(tables.reward, work, following, p.stage, p.state, p.outcome, moved, rest),
            p.drawn,
            p.tries + jnp.uint32(1),
        )
        chances = look_up(tables.chance, work, q.stage, q.state, q.outcome)
        return q._replace(drawn=_draw(work.key, q.tries, q.left, chances))

    return step


def _draw(key: tuple[Array, Array], tries: Array, left: Array, chance: Array) -> jax.Array:
    """One attempt at the pending count of every arm: the count, or -1. Free of look-ups, so that it vectorises."""
    u, v = (_uniform(*key, tries * jnp.uint32(2) + jnp.uint32(word)) for word in (0, 1))
    sure = (chance >= 1) | (chance <= 0) | (left == 0)
    # Where nothing is drawn: an n that calls for nothing but what most others need anyway.
    accepted, x = binomial.attempt(jnp.where(sure, 100.0, left), jnp.where(sure, 0.5, chance), u, v)
    return jnp.where(sure, left * chance, jnp.where(accepted, x, -1.0))


@separate
def _uniform(high: Array, low: Array, counter: Array) -> jax.Array:
    return unit_float64(*threefry((high, low), (jnp.zeros_like(counter), counter)))


def _top(bits: Array) -> jax.Array:
    """The highest bit that is set; 0 if none is (bit 0 never is)."""
    return (bits.dtype.itemsize * 8 - 1 - jax.lax.clz(bits | 1)).astype(jnp.int32)


def _look(table: Array, where: Array) -> jax.Array:
    return table.at[where].get(mode="promise_in_bounds")


def _at(pools: Array, here: Array, state: Array) -> jax.Array:
    """The episodes in a state; 0 in state 0."""
    value = jnp.zeros(state.shape, here.dtype)
    for x, counts in enumerate([*pools, *here], 1):
        value = jnp.where(state == x, counts, value)
    return value
