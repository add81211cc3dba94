"""The count machine: one step of all workers, each of which pushes the episodes of an arm through the stages.

A worker is at an outcome of a state of a stage and has just drawn how many of the episodes that are left there see it.
A step (`step`) is

1. `settle`: the episodes drawn join the outcome's pool and its level of the next stage, and are paid. If the draw was
   rejected nobody moves; if the following outcome is certain, the others go there at once.
2. `go_on`: where nobody is left, to the next state with episodes; where no state is left, to the next stage; after the
   last stage the arm is finished.
3. `draw`: one attempt (`binomial.attempt`) at the count of the next outcome.

Parts that several others need are `separate`, and so computed once on platforms where XLA would repeat them.
The tests have the same law in thirty lines, one binomial per split and no packing.

Counts (`push_arms`): n episodes of a randomised Markov policy, exactly in law. Of the n episodes of an arm, the number
in a state of stage i that see an outcome (`outcomes`) is binomial given how many are there and have not been assigned
yet, so an arm costs a number of binomial draws that depends on the sizes of the MDP and not on n: T = 10^12 costs
little more than T = 10^6. A block learner only looks at the sum of the rewards, and the regret of an arm is n times an
exactly known number, so nothing else is needed.

Arms are pushed side by side, V at a time, each at its own pace: an arm whose rejection sampler needs another attempt
does not hold up the others, outcomes of probability 0, splits that are certain and states that nobody reaches are
passed over, pools that go on unchanged in the next stage wait for it, and every few steps the finished arms make room
for the next ones. An arm's numbers come from its own key and its own counter: they do not depend on the worker, nor on
what the others do. Everything is float64 (whole numbers are exact to 2^53) and needs x64.

One-bit feedback (`push_bits`): n episodes of an arm are one binomial draw. Shown is a coin that falls on 1 with
probability equal to the episode's total reward X, given X. So each coin of an arm falls on 1 with probability E[X] =
V, the value of its policy, the coins of different episodes are independent, and their sum is Binomial(n, V) exactly:
nothing of the episodes themselves needs to be drawn. V is Opt - regret, from the float64 tables that give exact
regret, so it is off by a few 10^-16: the mean of n <= 2^53 coins by a few units where their standard deviation is up
to 4.7e7.

An arm's numbers come from its own key and its own attempts: they do not depend on the other arms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.engines.blocks import binomial
from jaxbandit.engines.blocks.outcomes import Outcomes
from jaxbandit.engines.blocks.rows import (
    CERTAIN,
    FOLLOWING,
    POOL,
    REST_POOL,
    REST_TARGET,
    STANDING,
    TARGET,
    ArmTables,
    largest,
    low_half,
    make_tables,
    set_type,
    singleton,
)
from jaxbandit.learner import Blocks
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active, separate, together
from jaxbandit.xla.threefry import fold_in, threefry, unit_float64

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
        return set_type(self.states)


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
    following = FOLLOWING.read(word)
    pool, rest_pool = POOL.read(low), REST_POOL.read(low)
    target, rest_target = TARGET.read(low), REST_TARGET.read(low)
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
    outcome = jnp.where(push.drawn >= 0, FOLLOWING.read(now.word), push.outcome)
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
        waiting=jnp.where(over, states & ~singleton(state, sizes.sets), now.waiting),
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
    return low_half(word)


@separate
def _moved(drawn):
    """How many episodes the draw moves to its outcome."""
    return jnp.maximum(drawn, 0)


@separate
def _rest(word, left, drawn):
    """And how many to the following outcome, if that is certain."""
    return jnp.where((drawn >= 0) & (CERTAIN.read(word) == 1), left - drawn, 0)


def _paid(sizes: MachineSizes, reward, work, stage, state, outcome, following, moved, rest):
    row = work.first + jnp.minimum(stage, sizes.stages - 1)
    at = (row * sizes.states + state) * sizes.outcomes
    return moved * look(reward, at + outcome) + rest * look(reward, at + following)


def _with(sizes: MachineSizes, states, state, count):
    """The set and this state, if any episode goes there."""
    there = singleton(state, sizes.sets)
    return states | jnp.where((count > 0) & (state > 0), there, 0)


def _waiting(sizes: MachineSizes, waiting, low, moved, rest):
    waiting = _with(sizes, waiting, POOL.read(low), moved)
    return _with(sizes, waiting, REST_POOL.read(low), rest)


def _arrived(sizes: MachineSizes, arrived, low, moved, rest):
    arrived = _with(sizes, arrived, TARGET.read(low), moved)
    return _with(sizes, arrived, REST_TARGET.read(low), rest)


def _choose(sizes: MachineSizes, word, left, stage, waiting, arrived):
    """-1: stay. Else the state to go on to (0: the arm is finished), plus NEXT_STAGE if it is one of the next stage.

    Levels come before pools, so pools are complete when their turn comes. Where nobody goes on, all are due.
    """
    over = (left == 0) & (stage < sizes.stages)
    onward = jnp.where(stage < sizes.stages - 1, arrived, 0)
    standing = STANDING.read(word).astype(sizes.sets) << 1
    due = jnp.where(onward == 0, waiting, waiting & ~standing)
    leave = due == 0
    state = largest(jnp.where(leave, onward, due))
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


Key = tuple[Array, Array]


class Crew(NamedTuple):
    """The workers and what has been done."""

    taken: Array
    """int32 []: arms of the queue that were begun."""
    work: Work
    push: Push
    totals: Array
    """float64 [N]: the sums of the arms that are finished."""


def push_arms(outcomes: Outcomes, blocks: Blocks, episodes: Array, keys: Key) -> jax.Array:
    """Sums of the total rewards of ``episodes`` [L, B] episodes of every arm of ``blocks`` (leaves [L, ...]).

    ``keys`` are the uint32 words [L] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    (L, B), (H, X, U) = episodes.shape, outcomes.reward.shape[1:]
    sizes = MachineSizes(stages=H, states=X, pools=outcomes.kind.shape[-1], outcomes=U)
    chex.assert_shape([*keys, outcomes.start, blocks.stage], (L,))
    chex.assert_tree_shape_prefix((blocks.rows, episodes), (L, B))
    N = L * B
    V = min(active().workers, N)
    tables = make_tables(outcomes, blocks)
    number = episodes.reshape(-1)
    queue, busy = _queue(number)

    def assign(arm: Array) -> Work:
        lane, b = arm // B, arm % B
        own = look(blocks.stage, lane)
        high, low = (look(words, lane) for words in keys)
        key = fold_in((high, low), b.astype(jnp.uint32))
        return Work(
            arm=arm, row=lane * (H + B), own=own, shift=H + b - own, first=lane * H, key=key
        )

    def round_(crew: Crew) -> Crew:
        free = crew.push.stage >= H
        # The j-th free worker takes the j-th arm that is left. Who takes which changes no number: an arm brings its key.
        place = crew.taken + jnp.cumsum(free, dtype=jnp.int32) - 1
        fresh = free & (place < busy)
        arm = look(queue, jnp.where(fresh, place, 0))
        work = assign(arm)
        # A free worker without an arm gets one of 0 episodes that is never handed in: N is no arm.
        work = work._replace(arm=jnp.where(fresh, arm, N))
        push = _begin(sizes, look(outcomes.start, arm // B), jnp.where(fresh, look(number, arm), 0))
        totals = _hand_in(sizes, crew.work, crew.push, crew.totals)
        work, push = _where(free, (work, push), (crew.work, crew.push))
        push = _steps(sizes)(tables, work, push)
        return Crew(crew.taken + jnp.sum(fresh, dtype=jnp.int32), work, push, totals)

    def unfinished(crew: Crew) -> jax.Array:
        return (crew.taken < busy) | jnp.any(crew.push.stage < H)

    crew = Crew(
        taken=jnp.int32(0),
        work=assign(jnp.zeros(V, jnp.int32))._replace(arm=jnp.full(V, N, jnp.int32)),
        push=_begin(sizes, jnp.zeros(V, jnp.int32), jnp.zeros(V)),
        totals=jnp.zeros(N),
    )
    crew = jax.lax.while_loop(unfinished, round_, crew)
    return _hand_in(sizes, crew.work, crew.push, crew.totals).reshape(L, B)


@cache
def _steps(sizes: MachineSizes):
    """A round of steps, one kernel where the platform wants it.

    Handing out arms looks at all workers, so it is done once in several steps. Straight-line platforms take two per turn: what a turn hands to the next one is copied.
    """

    @together
    def steps(tables: ArmTables, work: Work, push: Push) -> Push:
        return jax.lax.fori_loop(
            0,
            active().steps,
            lambda _, push: step(sizes, tables, work, push),
            push,
            unroll=2 if active().straight else 1,
        )

    return steps


def _queue(number: Array) -> tuple[jax.Array, jax.Array]:
    """The arms that have episodes, in order, int32 [N], and how many they are; the others are left out."""
    has = number > 0  # an arm of 0 episodes would keep a worker for a whole round
    place = jnp.cumsum(has, dtype=jnp.int32)
    arms = jnp.arange(number.size, dtype=jnp.int32)
    queue = jnp.zeros_like(arms).at[jnp.where(has, place - 1, number.size)].set(arms, mode="drop")
    return queue, place[-1]


def _begin(sizes: MachineSizes, level: Array, number: Array) -> Push:
    """Arms of ``number`` episodes at their first state, before the first draw; those of 0 are finished."""
    V, k = number.size, sizes.states - 1 - sizes.pools
    nobody, no_state = jnp.zeros((k, V)), jnp.zeros(V, sizes.sets)
    return Push(
        stage=jnp.where(number > 0, 0, sizes.stages).astype(jnp.int32),
        state=level + sizes.pools,
        outcome=jnp.zeros(V, jnp.int32),
        left=number,
        pools=jnp.zeros((sizes.pools, V)),
        here=nobody,
        there=nobody,
        waiting=no_state,
        arrived=no_state,
        total=jnp.zeros(V),
        drawn=jnp.full(V, -1.0),
        tries=jnp.zeros(V, jnp.uint32),
    )


def _hand_in(sizes: MachineSizes, work: Work, push: Push, totals: Array) -> jax.Array:
    """The sums of the arms, with those that are finished."""
    finished = push.stage >= sizes.stages
    arm = jnp.where(finished, work.arm, totals.size)
    return totals.at[arm].set(push.total, mode="drop")


def _where(condition: Array, one, other):
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), one, other)


ATTEMPTS = 8
"""Attempts between two looks whether all arms are done, where looking costs an answer of the host. At least 73 % of the
attempts succeed, so 8 are enough for all of 10,000 arms three times out of four."""


def push_bits(value: Array, episodes: Array, keys: Key) -> jax.Array:
    """Sums of the bits of ``episodes`` [L, B] episodes of arms of exact ``value`` [L, B].

    ``keys`` are the uint32 words [L] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    L, B = episodes.shape
    high, low = (jnp.repeat(words, B) for words in keys)
    key = fold_in((high, low), jnp.tile(jnp.arange(B, dtype=jnp.uint32), L))
    number, chance = episodes.reshape(-1), jnp.clip(value, 0, 1).reshape(-1)

    def attempt(_, carry):
        tries, drawn = carry
        new = draw(key, jnp.full(number.shape, tries), number, chance)
        return tries + jnp.uint32(1), jnp.where(drawn < 0, new, drawn)

    def attempts(carry):
        return jax.lax.fori_loop(0, 1 if active().branches else ATTEMPTS, attempt, carry)

    def unfinished(carry):
        return jnp.any(carry[1] < 0)

    first = (jnp.uint32(0), jnp.full(number.shape, -1.0))
    return jax.lax.while_loop(unfinished, attempts, first)[1].reshape(L, B)
