"""n episodes of a randomised Markov policy, exactly in law, as counts pushed through the stages.

Of the n episodes of an arm, the number at level l of stage i that see outcome (reward, next level) is binomial given
how many are there and have not been assigned yet, so an arm costs a number of binomial draws that depends on the
sizes of the MDP and not on n: T = 10^12 costs little more than T = 10^6. A block learner only looks at the sum
of the rewards, and the regret of an arm is n times an exactly known number, so nothing else is needed.

All arms of all lanes are pushed side by side, and each at its own pace: an arm whose rejection sampler needs another
attempt (`binomial.attempt`) does not hold up the others, and outcomes of probability 0, splits that are certain and
levels that nobody reaches are passed over. Everything is float64 (whole numbers are exact to 2^53) and needs x64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import binomial
from jaxbandit.engines.threefry import fold_in, threefry, unit_float64
from jaxbandit.learners.base import Blocks
from jaxbandit.mdp import MDP

Array = Any
MAX_LEVELS, MAX_OUTCOMES = 63, 2**18
"""Levels are bits of a signed word, outcomes fields of one."""


class Outcomes(NamedTuple):
    """MDPs of G groups with the outcomes of each state merged into U different (reward, next level) pairs."""

    prob: Array
    """float64 [G, H, k+1, A, U]; sums to 1 over U."""
    reward: Array
    """float64 [G, H, k+1, U]."""
    next_level: Array
    """int32 [G, H, k+1, U]."""
    start: Array
    """int32 [G]."""


def merge_outcomes(mdps: MDP) -> Outcomes:
    """The outcome tables of MDPs stacked along a leading axis [G]. The likeliest pairs come first."""
    prob = np.asarray(mdps.prob, np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    reward, target = np.asarray(mdps.reward, np.float64), np.asarray(mdps.next_level)
    G, H, levels, A, M = prob.shape
    merged: dict[tuple[int, ...], list[tuple[tuple[float, int], np.ndarray]]] = {}
    for g, i, level in np.ndindex(G, H, levels):
        pairs: dict[tuple[float, int], np.ndarray] = {}
        for a, m in np.ndindex(A, M):
            if prob[g, i, level, a, m] > 0:
                pair = (float(reward[g, i, level, a, m]), int(target[g, i, level, a, m]))
                pairs.setdefault(pair, np.zeros(A))[a] += prob[g, i, level, a, m]
        merged[g, i, level] = sorted(pairs.items(), key=lambda item: (-item[1].sum(), item[0]))
    U = max(map(len, merged.values()))
    out = Outcomes(
        np.zeros((G, H, levels, A, U)), np.zeros((G, H, levels, U)), np.zeros((G, H, levels, U), np.int32),
        np.asarray(mdps.start, np.int32),
    )  # fmt: skip
    for (g, i, level), listed in merged.items():
        for u, ((pay, to), weight) in enumerate(listed):
            state = (g, i, level)
            out.prob[*state, :, u], out.reward[*state, u], out.next_level[*state, u] = weight, pay, to
    return out


def splits(policy: Array, prob: Array) -> tuple[jax.Array, jax.Array]:
    """The chain of binomial splits of a policy: policy [..., k+1, A], prob [..., k+1, A, U], both of the same rank less 1.

    Returns ``chance`` [..., k+1, U], the probability of outcome u given that it is none of the earlier ones (exactly 1 at
    the last possible outcome, 0 at impossible ones), and ``following`` int32, the next possible outcome after u.
    """
    U = prob.shape[-1]
    weight = jnp.sum(policy[..., None] * prob, axis=-2)
    left = jnp.flip(jnp.cumsum(jnp.flip(weight, -1), -1), -1)
    after = jnp.concatenate([left[..., 1:], jnp.zeros_like(left[..., :1])], -1)
    chance = jnp.where(weight > 0, jnp.where(after > 0, weight / jnp.maximum(left, 1e-300), 1), 0)
    index = jnp.where(weight > 0, jnp.arange(U, dtype=jnp.int32), U - 1)
    first = jnp.flip(jax.lax.cummin(jnp.flip(index, -1), axis=index.ndim - 1), -1)
    following = jnp.concatenate([first[..., 1:], first[..., -1:]], -1)
    return chance, following


class Push(NamedTuple):
    """Where each of N arms stands; ``drawn`` is not yet acted on."""

    stage: Array
    """int32 [N]; H when the arm is finished."""
    level: Array
    """int32 [N]."""
    outcome: Array
    """int32 [N]: the outcome whose count is being drawn."""
    left: Array
    """float64 [N]: episodes at (level, stage) not yet assigned to an outcome."""
    here: Array
    """float64 [k+1, N]: episodes at each level of the stage."""
    there: Array
    """float64 [k+1, N]: episodes at each level of the next stage."""
    waiting: Array
    """int [N]: bit l is set while level l of the stage has episodes to be pushed on."""
    arrived: Array
    """int [N]: bit l is set when level l of the next stage has episodes."""
    total: Array
    """float64 [N]: sum of rewards."""
    drawn: Array
    """float64 [N]: the last draw, or -1 if it was rejected."""
    tries: Array
    """uint32 []: iterations, the counter of the random words."""


def push_arms(outcomes: Outcomes, blocks: Blocks, episodes: Array, keys: tuple[Array, Array]) -> jax.Array:
    """Sums of the total rewards of ``episodes`` [G, S, B] episodes of every arm of ``blocks`` (leaves [G, S, ...]).

    ``keys`` are the uint32 words [G, S] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    G, S, B = episodes.shape
    _, H, levels, _, U = outcomes.prob.shape
    N = G * S * B
    whole = jnp.int32 if levels < 32 else jnp.int64
    chance, code = _tables(outcomes, blocks)
    reward = outcomes.reward.reshape(-1)
    lane = jnp.repeat(jnp.arange(G * S, dtype=jnp.int32), B)
    group = jnp.repeat(jnp.arange(G, dtype=jnp.int32), S * B)
    arm = jnp.tile(jnp.arange(B, dtype=jnp.int32), G * S)
    own = jnp.repeat(blocks.stage.reshape(-1), B)
    high, low = (jnp.repeat(words.reshape(-1), B) for words in keys)
    key = fold_in((high, low), arm.astype(jnp.uint32))
    index = jnp.arange(levels, dtype=jnp.int32)[:, None]

    def look(table, where):
        return table.at[where].get(mode="promise_in_bounds")

    def of_lane(p: Push):
        stage = jnp.minimum(p.stage, H - 1)
        return ((lane * (H + B) + jnp.where(stage == own, H + arm, stage)) * levels + p.level) * U + p.outcome

    def moves(p: Push):
        """What the last draw moves: the state's code, the episodes, the rest of them if it is certain, and the pay."""
        packed = look(code, of_lane(p))
        good = (p.drawn >= 0) & (p.stage < H)
        moved = jnp.where(good, p.drawn, 0)
        rest = jnp.where(good & (_certain(packed) == 1), p.left - p.drawn, 0)
        state = ((group * H + jnp.minimum(p.stage, H - 1)) * levels + p.level) * U
        pay = moved * look(reward, state + p.outcome) + rest * look(reward, state + _following(packed))
        return packed, moved, rest, pay

    def enter(p: Push) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Where an arm with nothing left goes: (whether to the next stage, level, the waiting levels)."""
        leave = p.waiting == 0
        waiting = jnp.where(leave, p.arrived, p.waiting)
        level = (waiting.dtype.itemsize * 8 - 1) - jax.lax.clz(waiting | 1)
        return leave, level.astype(jnp.int32), waiting & ~(jnp.ones_like(waiting) << level)

    def draw(p: Push, chances: Array) -> jax.Array:
        """One attempt at the pending count of every arm; free of look-ups, so that it vectorises."""
        counter = jnp.full(N, p.tries * jnp.uint32(2))
        u = unit_float64(*threefry(key, (jnp.zeros_like(counter), counter)))
        v = unit_float64(*threefry(key, (jnp.zeros_like(counter), counter + jnp.uint32(1))))
        sure = (chances >= 1) | (chances <= 0)
        accepted, x = binomial.attempt(jnp.maximum(p.left, 1), jnp.where(sure, 0.5, chances), u, v)
        return jnp.where(sure, p.left * chances, jnp.where(accepted, x, -1.0))

    def bit(level, there):
        return jnp.where(there > 0, jnp.ones_like(level, whole) << level.astype(whole), 0)

    def body(p: Push) -> Push:
        # Each part is computed once and stored: a conditional is the one border that XLA does not fuse across.
        busy = p.tries < jnp.uint32(2**31)
        packed, moved, rest, pay = _stored(busy, moves, p)
        to, rest_to = _target(packed), _rest_target(packed)
        there = p.there + jnp.where(index == to[None], moved[None], 0)
        there = there + jnp.where(index == rest_to[None], rest[None], 0)
        p = p._replace(
            left=p.left - moved - rest,
            there=there,
            # Level 0 pays nothing and goes nowhere: its bit is never set.
            arrived=p.arrived | ((bit(to, moved) | bit(rest_to, rest)) & ~jnp.ones((), whole)),
            total=p.total + pay,
            outcome=jnp.where(p.drawn >= 0, _following(packed), p.outcome),
        )
        leave, level, waiting = _stored(busy, enter, p)
        over = (p.left == 0) & (p.stage < H)
        leave = over & leave
        here = jnp.where(leave[None], p.there, p.here)
        stage = jnp.where(over & (level == 0), H, p.stage + leave.astype(jnp.int32)).astype(jnp.int32)
        p = p._replace(
            stage=stage,
            level=jnp.where(over, level, p.level),
            outcome=jnp.where(over, 0, p.outcome),
            left=jnp.where(over, _at(here, level), p.left),
            here=here,
            there=jnp.where(leave[None], 0, p.there),
            waiting=jnp.where(over, waiting, p.waiting),
            arrived=jnp.where(leave, 0, p.arrived),
        )
        chances = _stored(busy, lambda p: look(chance, of_lane(p)), p)
        return p._replace(drawn=draw(p, chances), tries=p.tries + jnp.uint32(1))

    zero, none = jnp.zeros(N), jnp.zeros(N, jnp.int32)
    start = jnp.repeat(outcomes.start, S * B)
    number = episodes.reshape(-1)
    empty = jnp.zeros((levels, N))
    stage = jnp.where(number > 0, 0, H).astype(jnp.int32)
    off = jnp.zeros(N, whole)
    p = Push(stage, start, none, number, empty, empty, off, off, zero, zero, jnp.uint32(0))
    p = p._replace(drawn=draw(p, look(chance, of_lane(p))), tries=jnp.uint32(1))
    return jax.lax.while_loop(lambda p: jnp.any(p.stage < H), body, p).total.reshape(G, S, B)


def _tables(outcomes: Outcomes, blocks: Blocks) -> tuple[jax.Array, jax.Array]:
    """Flat tables [G, S, H + B, k+1, U]: the shared policy's H rows, then the B rows of the arms.

    The chances of `splits`, and a code of four fields: the outcome's level (6 bits), the following outcome (18 bits),
    whether that one is certain (the last possible), and its level.
    """
    at_stage = jnp.take_along_axis(outcomes.prob[:, None], blocks.stage[:, :, None, None, None, None], axis=2)
    row_to = jnp.take_along_axis(outcomes.next_level[:, None], blocks.stage[:, :, None, None, None], axis=2)
    tables = []
    for policy, prob, targets in (
        (blocks.policy, outcomes.prob[:, None], outcomes.next_level[:, None]),
        (blocks.rows, at_stage, row_to),
    ):
        chance, following = splits(policy, prob)
        to = jnp.broadcast_to(targets, chance.shape)
        own = jax.lax.broadcasted_iota(jnp.int32, chance.shape, chance.ndim - 1)
        certain = (jnp.take_along_axis(chance, following, -1) >= 1) & (following != own)
        rest_to = jnp.take_along_axis(to, following, -1)
        code = to | (following << 6) | (certain.astype(jnp.int32) << 24) | (rest_to << 25)
        tables.append((chance, code))
    (chance, code), (row_chance, row_code) = tables
    return (
        jnp.concatenate([chance, row_chance], 2).reshape(-1),
        jnp.concatenate([code, row_code], 2).reshape(-1),
    )


def _target(code: Array) -> jax.Array:
    return code & 63


def _following(code: Array) -> jax.Array:
    return (code >> 6) & (2**18 - 1)


def _certain(code: Array) -> jax.Array:
    return (code >> 24) & 1


def _rest_target(code: Array) -> jax.Array:
    return code >> 25


def _at(counts: Array, level: Array) -> jax.Array:
    """counts[level] for counts [k+1, N]; 0 at level 0."""
    value = jnp.zeros(level.shape, counts.dtype)
    for one in range(1, counts.shape[0]):
        value = jnp.where(level == one, counts[one], value)
    return value


def _stored(true: Array, function, p: Push):
    """function(p), behind a branch that is always taken, so that its results are stored and not computed again."""
    shapes = jax.eval_shape(function, p)
    nothing = lambda p: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)  # noqa: E731
    return jax.lax.cond(true, function, nothing, p)
