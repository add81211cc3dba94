"""The block engine: n episodes of a randomised Markov policy, exactly in law, as counts pushed through the stages.

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


class Outcomes(NamedTuple):
    """MDPs of G groups with the outcomes of each state merged: U different (reward, next level) pairs whatever the action."""

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
    merged = {}
    for g, i, l in np.ndindex(G, H, levels):
        pairs: dict[tuple[float, int], np.ndarray] = {}
        for a, m in np.ndindex(A, M):
            if prob[g, i, l, a, m] > 0:
                pair = (float(reward[g, i, l, a, m]), int(target[g, i, l, a, m]))
                pairs.setdefault(pair, np.zeros(A))[a] += prob[g, i, l, a, m]
        merged[g, i, l] = sorted(pairs.items(), key=lambda item: (-item[1].sum(), item[0]))
    U = max(map(len, merged.values()))
    out = Outcomes(
        np.zeros((G, H, levels, A, U)), np.zeros((G, H, levels, U)), np.zeros((G, H, levels, U), np.int32),
        np.asarray(mdps.start, np.int32),
    )  # fmt: skip
    for (g, i, l), pairs in merged.items():
        for u, ((pay, to), weight) in enumerate(pairs):
            out.prob[g, i, l, :, u], out.reward[g, i, l, u], out.next_level[g, i, l, u] = weight, pay, to
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
    """Where each arm stands; N arms, and the last draw not yet acted on."""

    stage: Array
    """int32 [N]; H when the arm is finished."""
    level: Array
    outcome: Array
    left: Array
    """float64 [N]: episodes at (level, stage) not yet assigned to an outcome."""
    here: Array
    """float64 [k+1, N]: episodes at each level of the stage (levels already pushed on are 0)."""
    there: Array
    """float64 [k+1, N]: episodes at each level of the next stage."""
    total: Array
    """float64 [N]: sum of rewards."""
    tries: Array
    """uint32 []: iterations, the counter of the random words."""
    drawn: Array
    """float64 [N]: result of the last draw, or -1 if it was rejected."""


def push_arms(outcomes: Outcomes, blocks: Blocks, episodes: Array, keys: tuple[Array, Array]) -> jax.Array:
    """Sums of the total rewards of ``episodes`` [G, S, B] episodes of every arm of ``blocks`` (leaves [G, S, ...]).

    ``keys`` are the uint32 words [G, S] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    G, S, B = episodes.shape
    _, H, levels, _, U = outcomes.prob.shape
    chance, following = splits(blocks.policy, outcomes.prob[:, None])
    at_stage = jnp.take_along_axis(outcomes.prob[:, None], blocks.stage[:, :, None, None, None, None], axis=2)
    row_chance, row_following = splits(blocks.rows, at_stage)
    # Tables of a lane: H rows of the shared policy, then the B rows of the arms.
    chance = jnp.concatenate([chance, row_chance], 2).reshape(-1)
    following = jnp.concatenate([following, row_following], 2).reshape(-1)
    reward, target = outcomes.reward.reshape(-1), outcomes.next_level.reshape(-1)

    N = G * S * B
    lane = jnp.repeat(jnp.arange(G * S, dtype=jnp.int32), B)
    group = jnp.repeat(jnp.arange(G, dtype=jnp.int32), S * B)
    arm = jnp.tile(jnp.arange(B, dtype=jnp.int32), G * S)
    own = jnp.repeat(blocks.stage.reshape(-1), B)
    key = fold_in(tuple(jnp.repeat(k.reshape(-1), B) for k in keys), arm.astype(jnp.uint32))

    def look(table, index):
        return table.at[index].get(mode="promise_in_bounds")

    def state_of(stage, level, outcome):
        """Index of (stage, level, outcome) in the lane's tables and in the group's."""
        stage = jnp.minimum(stage, H - 1)
        row = jnp.where(stage == own, H + arm, stage)
        mine = ((lane * (H + B) + row) * levels + level) * U + outcome
        theirs = ((group * H + stage) * levels + level) * U + outcome
        return mine, theirs

    def highest(counts):
        """The highest level 1..k with a positive count, or 0."""
        level = jnp.zeros(N, jnp.int32)
        for l in range(1, levels):
            level = jnp.where(counts[l] > 0, l, level)
        return level

    def at(counts, level):
        value = jnp.zeros(N)
        for l in range(1, levels):
            value = jnp.where(level == l, counts[l], value)
        return value

    level_index = jnp.arange(levels, dtype=jnp.int32)[:, None]

    def enter(p: Push) -> Push:
        """Steps to the next level with episodes in it (or the next stage, or the end) and to its first possible outcome."""
        stay = highest(p.here) > 0
        here = jnp.where(stay[None], p.here, p.there)
        there = jnp.where(stay[None], p.there, 0)
        stage = p.stage + jnp.where(stay, 0, 1)
        level = highest(here)
        stage = jnp.where(level == 0, H, stage).astype(jnp.int32)
        left = at(here, level)
        mine, _ = state_of(stage, level, 0)
        first = jnp.where(look(chance, mine) > 0, 0, look(following, mine))
        here = jnp.where(level_index == level[None], 0, here)
        return p._replace(stage=stage, level=level, outcome=first, left=left, here=here, there=there)

    def act_on(p: Push) -> Push:
        """Moves the drawn episodes on, and the rest too if only one outcome is possible for them."""
        mine, theirs = state_of(p.stage, p.level, p.outcome)
        after = look(following, mine)
        mine_after, theirs_after = state_of(p.stage, p.level, after)
        rest = p.left - p.drawn
        certain = (look(chance, mine_after) == 1) & (after != p.outcome)
        tail = jnp.where(certain, rest, 0)
        total = p.total + p.drawn * look(reward, theirs) + tail * look(reward, theirs_after)
        there = p.there + jnp.where(level_index == look(target, theirs)[None], p.drawn[None], 0)
        there = there + jnp.where(level_index == look(target, theirs_after)[None], tail[None], 0)
        on = p._replace(total=total, there=there, left=rest - tail, outcome=after)
        entered = enter(on)
        over = on.left == 0
        pick = lambda x, y: jnp.where(over if x.ndim == 1 else over[None], x, y)  # noqa: E731
        new = jax.tree.map(pick, entered._replace(tries=on.level, drawn=on.left), on._replace(tries=on.level, drawn=on.left))
        good = (p.drawn >= 0) & (p.stage < H)
        pick = lambda x, y: jnp.where(good if x.ndim == 1 else good[None], x, y)  # noqa: E731
        new = jax.tree.map(pick, new, p._replace(tries=p.level, drawn=p.left))
        return new._replace(tries=p.tries, drawn=p.drawn)

    def draw(p: Push) -> jax.Array:
        """One attempt at the pending binomial of every arm."""
        mine, _ = state_of(p.stage, p.level, p.outcome)
        chances = look(chance, mine)
        counter = jnp.full(N, p.tries * jnp.uint32(2))
        u = unit_float64(*threefry(key, (jnp.zeros_like(counter), counter)))
        v = unit_float64(*threefry(key, (jnp.zeros_like(counter), counter + jnp.uint32(1))))
        sure = chances >= 1
        accepted, x = binomial.attempt(jnp.maximum(p.left, 1), jnp.where(sure, 0.5, chances), u, v)
        return jnp.where(sure, p.left, jnp.where(accepted, x, -1.0))

    def body(p: Push) -> Push:
        # The draw is the last thing of an iteration and acted on in the next, so that XLA computes it once.
        p = act_on(p)
        return p._replace(drawn=draw(p), tries=p.tries + jnp.uint32(1))

    zero, none = jnp.zeros(N), jnp.zeros(N, jnp.int32)
    start = jnp.repeat(outcomes.start, S * B)[None]
    begin = jnp.where(level_index == start, episodes.reshape(1, -1), 0.0)
    p = Push(none, none, none, zero, begin, jnp.zeros((levels, N)), zero, jnp.uint32(0), zero - 1)
    p = enter(p._replace(stage=none))
    p = p._replace(drawn=draw(p), tries=jnp.uint32(1))
    return jax.lax.while_loop(lambda p: jnp.any(p.stage < H), body, p).total.reshape(G, S, B)


class World(NamedTuple):
    """What the engine knows of the MDPs of G groups."""

    outcomes: Outcomes
    gap: Array
    """float64 [G, H, k+1, A]: Opt_{l,i} - Q*_{l,i}(a)."""
    transition: Array
    """float64 [G, H, k+1, A, k+1]."""


def arm_regrets(gap: Array, transition: Array, start: Array, blocks: Blocks) -> jax.Array:
    """Exact regret per episode of every arm of one lane, float64 [B], from one pass forward and one backward."""
    H, levels = gap.shape[:2]
    cost = jnp.sum(blocks.policy * gap, axis=-1)
    move = jnp.sum(blocks.policy[..., None] * transition, axis=2)

    def forward(visits, x):
        cost, move = x
        return jnp.sum(visits[:, None] * move, axis=0), (visits, jnp.sum(visits * cost))

    def backward(tail, x):
        cost, move = x
        return cost + jnp.sum(move * tail[None], axis=-1), tail

    begin = (jnp.arange(levels, dtype=jnp.int32) == start).astype(gap.dtype)
    _, (visits, paid) = jax.lax.scan(forward, begin, (cost, move))
    _, tails = jax.lax.scan(backward, jnp.zeros(levels, gap.dtype), (cost, move), reverse=True)
    before = jnp.sum(jnp.where(jnp.arange(H, dtype=jnp.int32) < blocks.stage, paid, 0))
    ahead = gap[blocks.stage] + jnp.sum(transition[blocks.stage] * tails[blocks.stage][None, None], axis=-1)
    value = visits[blocks.stage][:, None] * ahead
    return before + jnp.sum(blocks.rows * value[None], axis=(1, 2))


class Progress(NamedTuple):
    """Where each lane stands; leaves [G, S, ...]."""

    state: Any
    """The learner's."""
    played: Array
    """float64: episodes so far, at most T."""
    block: Array
    """uint32: blocks so far, the counter of the block's key."""
    curve: Array
    """float64 [G, S, W]: cumulative regret after each recorded number of episodes, as far as played."""


def advance(form: Any, world: World, keys: tuple[Array, Array], points: Array, num_episodes: Array, steps: Array, progress: Progress):
    """At most ``steps`` blocks in every lane; lanes that have played T episodes stay as they are."""
    next_block = jax.vmap(jax.vmap(form.next_block))
    absorb = jax.vmap(jax.vmap(form.absorb))
    regrets = jax.vmap(jax.vmap(arm_regrets, (None, None, None, 0)))

    def one(carry):
        count, p = carry
        blocks = next_block(p.state)
        begin = p.played[..., None] + jnp.cumsum(blocks.episodes, -1) - blocks.episodes
        length = jnp.clip(num_episodes - begin, 0, blocks.episodes)
        per_episode = regrets(world.gap, world.transition, world.outcomes.start, blocks)
        inside = jnp.clip(points - begin[..., None], 0, length[..., None])
        curve = p.curve + jnp.sum(per_episode[..., None] * inside, axis=2)
        end = p.played + jnp.sum(blocks.episodes, -1)
        # A block that T cuts short is never absorbed, so its sums are not needed.
        whole = (end <= num_episodes) & (p.played < num_episodes)
        lane_keys = fold_in(keys, p.block)
        totals = push_arms(world.outcomes, blocks, jnp.where(whole[..., None], blocks.episodes, 0), lane_keys)
        state = absorb(p.state, blocks.episodes, totals)
        state = jax.tree.map(
            lambda new, old: jnp.where(whole.reshape(whole.shape + (1,) * (new.ndim - 2)), new, old), state, p.state
        )
        return count + 1, Progress(state, jnp.minimum(end, num_episodes), p.block + jnp.uint32(1), curve)

    def unfinished(carry):
        count, p = carry
        return (count < steps) & jnp.any(p.played < num_episodes)

    return jax.lax.while_loop(unfinished, one, (jnp.int32(0), progress))[1]
