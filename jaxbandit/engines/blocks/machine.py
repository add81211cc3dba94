"""The count machine: one step of all workers, each of which pushes the episodes of an arm through the stages.

A worker is at an outcome of a state of a stage and has just drawn how many of the episodes that are left there see it.
A step (`step`) is

1. `settle`: the episodes drawn join the outcome's pool and its level of the next stage, and are paid. If the draw was
   rejected nobody moves; if the following outcome is certain, the others go there at once.
2. `go_on`: where nobody is left, to the next state with episodes; where no state is left, to the next stage; after the
   last stage the arm is finished.
3. `draw`: one attempt (`binomial.attempt`) at the count of the next outcome.

Parts that several others need are `separate`, and so computed once on platforms where XLA would repeat them.
`plain` is the same law in thirty lines, one binomial per split and no packing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.engines.blocks import binomial, codec
from jaxbandit.engines.blocks.rows import ArmTables
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate
from jaxbandit.xla.threefry import threefry, unit_float64

NEXT_STAGE = 64
"""What `choose` adds to states of the next stage: more than any state."""


class MachineSizes(NamedTuple):
    """What a machine is compiled for."""

    stages: int
    """H."""
    states: int
    """X."""
    pools: int
    """P."""
    outcomes: int
    """U."""

    @property
    def sets(self) -> Any:
        """The type of sets of states."""
        return codec.set_type(self.states)


class Push(NamedTuple):
    """Where the arms of V workers stand; ``drawn`` is not yet acted on."""

    stage: Array
    """int32 [V]; H when the arm is finished."""
    state: Array
    """int32 [V]: a pool or a level, see `outcomes`."""
    outcome: Array
    """int32 [V]: the outcome whose count is being drawn."""
    left: Array
    """float64 [V]: episodes in the state not yet assigned to an outcome."""
    pools: Array
    """float64 [P, V]: episodes whose rewards of this stage, or of the stages just before it, are yet to be drawn."""
    here: Array
    """float64 [k, V]: episodes at each level of the stage, from 1 on."""
    there: Array
    """float64 [k, V]: the same of the next stage."""
    waiting: Array
    """int [V]: the states of the stage with episodes to be pushed on."""
    arrived: Array
    """int [V]: the levels of the next stage with episodes, as states."""
    total: Array
    """float64 [V]: sum of rewards."""
    drawn: Array
    """float64 [V]: the last draw, or -1 if it was rejected."""
    tries: Array
    """uint32 [V]: the counter of the random words."""


class Work(NamedTuple):
    """What each worker works on, [V] each."""

    arm: Array
    """int32: its number, B per lane; a worker without work has the number of arms."""
    row: Array
    """int32: where the lane's rows begin."""
    own: Array
    """int32: the stage with a row of its own."""
    shift: Array
    """int32: from that stage to the row."""
    first: Array
    """int32: where the lane's stages begin."""
    key: tuple[Array, Array]


class Settled(NamedTuple):
    """The episodes of a worker after its draw: fields of `Push`, and the word of the outcome."""

    word: Array
    left: Array
    pools: Array
    there: Array
    waiting: Array
    arrived: Array
    total: Array


def step(sizes: MachineSizes, tables: ArmTables, work: Work, push: Push) -> Push:
    """All workers one attempt further."""
    check_push(sizes, work, push)
    # A draw is acted on in the next step: one that was rejected then needs no loop of its own, which would hold up
    # all workers until the last one is accepted. Its worker moves nobody and tries again beside the others.
    push = go_on(sizes, push, settle(sizes, tables, work, push))
    chance = _unit(_look_up, sizes)(tables.chance, work, push.stage, push.state, push.outcome)
    return push._replace(drawn=draw(work.key, push.tries, push.left, chance))


def check_push(sizes: MachineSizes, work: Work, push: Push) -> None:
    """That every worker has one place, one arm and its own row of counts (shapes alone: nothing is compiled)."""
    V, k = push.left.shape, sizes.states - 1 - sizes.pools
    chex.assert_shape([push.stage, push.state, push.outcome, push.total, push.drawn, push.tries], V)
    chex.assert_shape([push.waiting, push.arrived, work.arm, work.row, work.own, *work.key], V)
    chex.assert_shape([push.pools, push.here, push.there], [(sizes.pools, *V), (k, *V), (k, *V)])


def settle(sizes: MachineSizes, tables: ArmTables, work: Work, push: Push) -> Settled:
    """Acts on the last draws."""
    place = (push.stage, push.state, push.outcome)
    word = _unit(_look_up, sizes)(tables.code, work, *place)
    low = _low(word)
    moved = _moved(push.drawn)
    # Of U possible outcomes only U - 1 are drawn: the last one takes who is left, in the same step.
    rest = _rest(word, push.left, push.drawn)
    following = codec.FOLLOWING.read(word)
    pool, rest_pool = codec.POOL.read(low), codec.REST_POOL.read(low)
    target, rest_target = codec.TARGET.read(low), codec.REST_TARGET.read(low)
    paid = _unit(_paid, sizes)(tables.reward, work, *place, following, moved, rest)
    return Settled(
        word=word,
        left=push.left - moved - rest,  # exact: whole numbers below 2^53
        pools=_join(push.pools, 1, pool, rest_pool, moved, rest),
        there=_join(push.there, sizes.pools + 1, target, rest_target, moved, rest),
        waiting=_unit(_waiting, sizes)(push.waiting, low, moved, rest),
        arrived=_unit(_arrived, sizes)(push.arrived, low, moved, rest),
        total=push.total + paid,
    )


def go_on(sizes: MachineSizes, push: Push, now: Settled) -> Push:
    """To the next outcome, and where no episode is left to the next state."""
    go = _unit(_choose, sizes)(now.word, now.left, push.stage, now.waiting, now.arrived)
    over, leave, state = go >= 0, go >= NEXT_STAGE, go & (NEXT_STAGE - 1)
    here = jnp.where(leave[None], now.there, push.here)
    # After a rejected draw the worker stays at its outcome.
    outcome = jnp.where(push.drawn >= 0, codec.FOLLOWING.read(now.word), push.outcome)
    stage = push.stage + leave.astype(jnp.int32)
    states = jnp.where(leave, now.arrived | now.waiting, now.waiting)
    number = jnp.arange(1, sizes.pools + 1, dtype=sizes.sets)[:, None]
    # Pools that wait for the next stage keep their episodes, the others have been paid.
    paid = leave[None] & ((now.waiting[None] >> number) & 1 == 0)
    return Push(
        # State 0 is nowhere: nobody has a level left, so the stages to come pay nothing and the arm ends early.
        stage=jnp.where(over & (state == 0), sizes.stages, stage).astype(jnp.int32),
        state=jnp.where(over, state, push.state),
        outcome=jnp.where(over, 0, outcome).astype(jnp.int32),
        left=jnp.where(over, _episodes_in(now.pools, here, state), now.left),
        pools=jnp.where(paid, 0, now.pools),
        here=here,
        there=jnp.where(leave[None], 0, now.there),
        waiting=jnp.where(over, states & ~codec.singleton(state, sizes.sets), now.waiting),
        arrived=jnp.where(leave, 0, now.arrived),
        total=now.total,
        drawn=push.drawn,
        # Counted in every step, drawn or not, so that no random word serves twice.
        tries=push.tries + jnp.uint32(1),
    )


def draw(key: tuple[Array, Array], tries: Array, left: Array, chance: Array) -> jax.Array:
    """One attempt at Binomial(left, chance) for every worker: the count, or -1. Free of look-ups, so it vectorises."""
    u, v = (_uniform(*key, tries * jnp.uint32(2) + jnp.uint32(word)) for word in (0, 1))
    sure = (chance >= 1) | (chance <= 0) | (left == 0)
    # Where nothing is drawn: an n that calls for nothing but what most others need anyway.
    accepted, x = binomial.attempt(jnp.where(sure, 100.0, left), jnp.where(sure, 0.5, chance), u, v)
    # Where it is sure, left * chance is exactly left or 0: chances there are exactly 1 or 0.
    return jnp.where(sure, left * chance, jnp.where(accepted, x, -1.0))


@separate
def _uniform(high: Array, low: Array, counter: Array) -> jax.Array:
    return unit_float64(*threefry((high, low), (jnp.zeros_like(counter), counter)))


@cache
def _unit(function: Callable[..., jax.Array], sizes: MachineSizes) -> Callable[..., jax.Array]:
    """A part of the step for some sizes, separate from the others."""
    return separate(partial(function, sizes))


def _look_up(sizes: MachineSizes, table, work, stage, state, outcome):
    stage = jnp.minimum(
        stage, sizes.stages - 1
    )  # finished workers, at stage H, look somewhere harmless
    # The arms of a block share every row but one: H + B rows a lane instead of B H.
    row = work.row + stage + jnp.where(stage == work.own, work.shift, 0)
    return look(table, (row * sizes.states + state) * sizes.outcomes + outcome)


@separate
def _low(word):
    return codec.low_half(word)


@separate
def _moved(drawn):
    """How many episodes the draw moves to its outcome."""
    return jnp.maximum(drawn, 0)


@separate
def _rest(word, left, drawn):
    """And how many to the following outcome, if that is certain."""
    return jnp.where((drawn >= 0) & (codec.CERTAIN.read(word) == 1), left - drawn, 0)


def _paid(sizes: MachineSizes, reward, work, stage, state, outcome, following, moved, rest):
    row = work.first + jnp.minimum(stage, sizes.stages - 1)
    at = (row * sizes.states + state) * sizes.outcomes
    return moved * look(reward, at + outcome) + rest * look(reward, at + following)


def _with(sizes: MachineSizes, states, state, count):
    """The set and this state, if any episode goes there."""
    there = codec.singleton(state, sizes.sets)
    return states | jnp.where((count > 0) & (state > 0), there, 0)


def _waiting(sizes: MachineSizes, waiting, low, moved, rest):
    waiting = _with(sizes, waiting, codec.POOL.read(low), moved)
    return _with(sizes, waiting, codec.REST_POOL.read(low), rest)


def _arrived(sizes: MachineSizes, arrived, low, moved, rest):
    arrived = _with(sizes, arrived, codec.TARGET.read(low), moved)
    return _with(sizes, arrived, codec.REST_TARGET.read(low), rest)


def _choose(sizes: MachineSizes, word, left, stage, waiting, arrived):
    """-1: stay. Else the state to go on to (0: the arm is finished), plus NEXT_STAGE if it is one of the next stage.

    Levels come before pools, so pools are complete when their turn comes. Where nobody goes on, all are due.
    """
    over = (left == 0) & (stage < sizes.stages)
    onward = jnp.where(stage < sizes.stages - 1, arrived, 0)
    standing = codec.STANDING.read(word).astype(sizes.sets) << 1
    due = jnp.where(onward == 0, waiting, waiting & ~standing)
    leave = due == 0
    state = codec.largest(jnp.where(leave, onward, due))
    return jnp.where(over, state + jnp.where(leave, NEXT_STAGE, 0), -1).astype(jnp.int32)


def _join(counts: Array, first: int, to: Array, rest_to: Array, moved: Array, rest: Array) -> Array:
    """Counts [n, V] of the states ``first`` on, after the draw."""
    index = jnp.arange(first, first + counts.shape[0], dtype=jnp.int32)[:, None]
    counts = counts + jnp.where(index == to[None], moved[None], 0)
    return counts + jnp.where(index == rest_to[None], rest[None], 0)


def _episodes_in(pools: Array, here: Array, state: Array) -> Array:
    """The episodes in a state; 0 in state 0."""
    value = jnp.zeros(state.shape, here.dtype)
    for x, counts in enumerate([*pools, *here], 1):
        value = jnp.where(state == x, counts, value)
    return value


def look(table: Array, where: Array) -> jax.Array:
    """Entries of a flat table; the indices must be inside."""
    return table.at[where].get(mode="promise_in_bounds")
