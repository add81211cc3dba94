"""The empirical model of learners that see states: what was visited, where it led and what it paid.

Arrays are [stage, level, action, ...] with level 0 left out (nothing happens there), for one lane; engines vmap.
A stationary model pools the counts of all stages: its arrays have one stage, S = 1 instead of S = H.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Problem
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active

FRACTION_BITS = 30


class Model(NamedTuple):
    """Counts and sums at each stage, level l = 1..k and action; exact integers up to 2^31 visits."""

    visits: Array
    """int32 [S, k, A]: N."""
    moves: Array
    """int32 [S, k, A, k]: visits that went on to level s = 1..k."""
    rewards: Array
    """int32 [2, S, k, A]: the sum of rewards is the first + the second / 2^30, which is below 2^30."""

    @property
    def reward(self) -> Array:
        """float32 [S, k, A]: the sum of rewards."""
        return reward_sum(self.rewards)


def reward_sum(rewards: Array) -> Array:
    """The sums float32 [...] of their two parts int32 [2, ...].

    Example:
        >>> float(reward_sum(jnp.asarray([3, 2**29])))
        3.5
    """
    whole, fraction = rewards.astype(jnp.float32)
    return whole + fraction * jnp.float32(2.0**-FRACTION_BITS)


def empty(problem: Problem, stationary: bool = False) -> Model:
    """The model before the first episode."""
    shape = (1 if stationary else problem.horizon, problem.width, problem.num_actions)
    return Model(
        visits=jnp.zeros(shape, jnp.int32),
        moves=jnp.zeros((*shape, problem.width), jnp.int32),
        rewards=jnp.zeros((2, *shape), jnp.int32),
    )


def visited_entries(model: Model, feedback: SemiBanditFeedback) -> tuple[Array, Array, Array]:
    """The stage, level - 1 and action int32 [H] that an episode visited; level 0 is out of bounds, where writes are
    dropped."""
    stages, width, _ = model.visits.shape
    chex.assert_equal_shape(list(feedback))
    stage = jnp.minimum(jnp.arange(feedback.levels.shape[0], dtype=jnp.int32), stages - 1)
    return stage, _from_one(feedback.levels, width), feedback.actions


def _from_one(level: Array, width: int) -> Array:
    return jnp.where(level > 0, level - 1, width)


def write(table: Array, at: Sequence[Array | None], rows: Any, add: bool = False) -> Array:
    """``table`` with ``rows`` [H, ...] put or added at the entries ``at``, int32 [H] for each of its first axes, or None for
    a whole axis. Entries out of bounds are dropped.

    In one lane a loop of stores, which can be a part of a larger kernel; lanes side by side scatter.
    """
    axes = tuple(axis for axis, x in enumerate(at) if x is not None)
    given = [x for x in at if x is not None]
    rest = [n for axis, n in enumerate(table.shape) if axis not in axes]
    rows = jnp.broadcast_to(jnp.asarray(rows, table.dtype), (len(given[0]), *rest))
    return _writer(axes, add)(table, given, rows)


@cache
def _writer(axes: tuple[int, ...], add: bool) -> Callable:
    @jax.custom_batching.custom_vmap
    def stores(table, at, rows):
        shape = [1 if axis in axes else n for axis, n in enumerate(table.shape)]

        def one(i, table):
            start: list[Any] = [0] * table.ndim
            inside = jnp.bool_(True)
            for axis, x in zip(axes, at, strict=True):
                inside &= x[i] < table.shape[axis]
                start[axis] = jnp.minimum(x[i], table.shape[axis] - 1)
            old = jax.lax.dynamic_slice(table, start, shape)
            new = rows[i].reshape(shape)
            new = jnp.where(inside, old + new if add else new, old)
            return jax.lax.dynamic_update_slice(table, new, start)

        return jax.lax.fori_loop(0, len(rows), one, table)

    def scatter(table, at, rows):
        index: list[Any] = [slice(None)] * table.ndim
        for axis, x in zip(axes, at, strict=True):
            index[axis] = x
        place = table.at[tuple(index)]
        return place.add(rows, mode="drop") if add else place.set(rows, mode="drop")

    @stores.def_vmap
    def lanes(size, batched, table, at, rows):
        front = jax.tree.map(lambda x: 0 if x else None, tuple(batched))
        return jax.vmap(scatter, front, axis_size=size)(table, at, rows), True

    return stores


def add_episode(model: Model, feedback: SemiBanditFeedback) -> Model:
    """The model after one more episode."""
    at = visited_entries(model, feedback)
    target = _from_one(feedback.next_levels, model.moves.shape[-1])
    fraction = write(model.rewards[1], at, fixed_point(feedback.rewards), add=True)
    whole = model.rewards[0] + (fraction >> FRACTION_BITS)
    return Model(
        visits=write(model.visits, at, 1, add=True),
        moves=write(model.moves, (*at, target), 1, add=True),
        rewards=jnp.stack([whole, fraction & (2**FRACTION_BITS - 1)]),
    )


def fixed_point(rewards: Array) -> Array:
    """Rewards in [0, 1] as int32 multiples of 2^-30; those of an episode sum to at most 1, so a fraction cannot
    overflow."""
    return jnp.round(jnp.clip(rewards.astype(jnp.float32), 0, 1) * 2**FRACTION_BITS).astype(
        jnp.int32
    )


def plan(reward: Array, transition: Array, horizon: int) -> Array:
    """Q [H, k, A] of the model with mean rewards [S, k, A] and probabilities [S, k, A, k] of the levels 1..k; ``horizon``
    is H, which a stationary model does not say.

    Q = r + p min(V, 1) with V = max_a Q: the value of what follows is clipped at 1, the largest total, and Q is not, so
    that clipping makes no ties between actions.

    Example:
        >>> import jax.numpy as jnp
        >>> plan(jnp.full((2, 1, 2), 0.5), jnp.asarray([[[[0.0], [0.5]]], [[[0.0], [0.0]]]]), 2).tolist()
        [[[0.5, 0.75]], [[0.5, 0.5]]]
    """

    def back(tail, i):
        p = of_stage(transition, i)
        q = of_stage(reward, i) + jnp.matmul(p, tail, precision=jax.lax.Precision.HIGHEST)
        return jnp.minimum(jnp.max(q, axis=-1), 1), q

    return scan_stages(back, jnp.zeros(reward.shape[1], reward.dtype), horizon)


def of_stage(table: Array, i: Array | int) -> Array:
    """The row of stage i, from 0, of a table [S, ...]; a table of one stage stands for all stages."""
    return table[0 if len(table) == 1 else i]


def expected_values(transition: Array, i: Array | int, tail: Array) -> Array:
    """sum_s p_i(s | l, a) V(s), [..., k, A], of p [S, k, k, A], which has the next level first, and V [..., k].

    In this order rows are added up one after the other, from p's first number to its last, where they lie: a matrix
    product would copy the stage first. On a GPU it is a matrix product all the same, one launch.
    """
    i = 0 if len(transition) == 1 else i
    if active().straight:
        return jnp.tensordot(tail, transition[i], 1, precision=jax.lax.Precision.HIGHEST)

    def add(s, total):
        return total + jnp.multiply.outer(tail[..., s], transition[i, s])

    total = jnp.zeros((*tail.shape[:-1], *transition.shape[2:]), transition.dtype)
    return jax.lax.fori_loop(0, len(transition[0]), add, total, unroll=4)


def scan_stages(back: Callable, tail: Any, horizon: int) -> Any:
    """The results of ``back(tail, i)`` -> (tail, result) for i = H-1, ..., 0, as one array [H, ...]."""
    stages = range(horizon)
    if active().straight:
        found = []
        for i in reversed(stages):
            tail, result = back(tail, i)
            found.append(result)
        return jnp.stack(found[::-1])
    return jax.lax.scan(back, tail, jnp.asarray(stages, jnp.int32), reverse=True)[1]


def change_if(flag: Array, change: Callable[[Any], Any], value: Any) -> Any:
    """``change(value)`` if ``flag``, else ``value``, as a loop of one turn or none: under vmap a branch would compute both
    sides in every lane."""
    return jax.lax.while_loop(
        lambda turn: turn[0], lambda turn: (jnp.bool_(False), change(turn[1])), (flag, value)
    )[1]


def log_term(problem: Problem, factor: int) -> float:
    """ln(factor H A T / delta) with delta = 1/T, in float64: T^2 itself may overflow."""
    size = factor * problem.horizon * problem.num_actions
    return float(np.log(size) + 2 * np.log(float(problem.num_episodes)))


def greedy(q: Array) -> Array:
    """The policy int32 [H, k+1] that is greedy in Q [H, k, A]; ties go to the first action, level 0
    plays action 0."""
    best = jnp.argmax(q, axis=-1).astype(jnp.int32)
    return jnp.concatenate([jnp.zeros_like(best[:, :1]), best], axis=1)
