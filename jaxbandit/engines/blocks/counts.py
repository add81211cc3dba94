"""n episodes of a randomised Markov policy, exactly in law, as counts pushed through the stages.

Of the n episodes of an arm, the number in a state of stage i that see an outcome (`outcomes`) is binomial given how many
are there and have not been assigned yet, so an arm costs a number of binomial draws that depends on the sizes of the
MDP and not on n: T = 10^12 costs little more than T = 10^6. A block learner only looks at the sum of the rewards, and
the regret of an arm is n times an exactly known number, so nothing else is needed.

Arms are pushed side by side, V at a time (`machine`), each at its own pace: an arm whose rejection sampler needs another
attempt does not hold up the others, outcomes of probability 0, splits that are certain and states that nobody reaches
are passed over, pools that go on unchanged in the next stage wait for it, and every few steps the finished arms make
room for the next ones. An arm's numbers come from its own key and its own counter: they do not depend on the worker, nor
on what the others do. Everything is float64 (whole numbers are exact to 2^53) and needs x64.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.engines.blocks.machine import MachineSizes, Push, Work, look, step
from jaxbandit.engines.blocks.outcomes import Outcomes
from jaxbandit.engines.blocks.rows import ArmTables, make_tables
from jaxbandit.learner import Blocks
from jaxbandit.types import Array
from jaxbandit.xla.barriers import together
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import fold_in

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
