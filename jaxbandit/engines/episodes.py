"""The episode engine: a ``lax.scan`` over episodes, the literal simulation. Every learner runs here.

Lanes are G groups (an instance with a parameter setting each) x S seeds, side by side in the *last* axis of every array
while they run, so that all inner loops run over contiguous lanes. Within a chunk, episodes are scanned in short stretches:
the random words of a stretch are made in one go before it, and its deterministic policies are evaluated in one go
after it.

The regret of an episode is exact: the expected sum of the gaps Opt_{l,i} - Q*_{l,i}(a) along the policy's path
(`jaxbandit.planning.regret`), not a sampled return. A chunk returns the regret of every episode; the host sums them in
float64, in order, so that no total depends on how the episodes were cut into chunks.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.engines.threefry import fold_in, key_words, threefry, unit_float32
from jaxbandit.engines.world import World, per_lane
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learners.base import Learner

Array = Any
STRETCH = 32


class Sizes(NamedTuple):
    """The static sizes."""

    horizon: int
    width: int
    num_actions: int
    num_outcomes: int


def lane_functions(rules: Learner):
    """act and update over lanes [L]: as they are for a lanes-last learner, else vmapped, with the state's lanes first."""
    if rules.lanes_last:
        return rules.act, rules.update
    return jax.vmap(rules.act, (0, 0), -1), jax.vmap(rules.update, (0, -1, -1))


def one_axis(rules: Learner, state: Any) -> Any:
    """The state with its lanes [G, S] as one axis [G S]."""
    if rules.lanes_last:
        return jax.tree.map(lambda x: x.reshape(*x.shape[:-2], -1), state)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), state)


def two_axes(rules: Learner, state: Any, lanes: tuple[int, int]) -> Any:
    """And back."""
    if rules.lanes_last:
        return jax.tree.map(lambda x: x.reshape(*x.shape[:-1], *lanes), state)
    return jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[1:]), state)


@partial(jax.jit, static_argnames=("rules", "sizes", "num"))
def run_chunk(
    rules: Learner, sizes: Sizes, world: World, keys: Array, state: Any, first: Array, num: int
) -> tuple[Any, jax.Array]:
    """``num`` episodes from number ``first`` on, in all lanes: the new state and the regrets, float32 [num, G, S].

    ``keys`` [G, S] are the lanes' keys. Episode t of a lane uses the words (t, 0), (t, 1), ... of fold_in(key, 0) for the
    environment and fold_in(fold_in(key, 1), t) for the learner, so any cut into chunks gives the same bits.
    """
    act, update = lane_functions(rules)
    lanes, keys = keys.shape, keys.reshape(-1)
    world, state = per_lane(world, lanes[1]), one_axis(rules, state)
    environment = fold_in(key_words(keys), jnp.zeros(keys.shape, jnp.uint32))
    private = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    episode_key = jax.vmap(jax.random.fold_in, (0, None))
    shape = jax.eval_shape(act, state, private)
    randomised = not jnp.issubdtype(shape.dtype, jnp.integer)

    def play(state, t, words):
        policy = act(state, episode_key(private, t))
        episode = simulate(sizes, world, policy, words)
        return update(state, policy, observe(rules.feedback, episode)), policy

    def stretch(carry, start, length):
        state, regret = carry
        times = start + jnp.arange(length, dtype=jnp.uint32)
        words = episode_words(environment, times, sizes.horizon * (2 if randomised else 1))

        def one(carry, x):
            state, last = carry
            t, w = x
            if not randomised:
                state, policy = play(state, t, w)
                return (state, last), policy.astype(jnp.int8 if sizes.num_actions < 128 else jnp.int32)
            fresh = None if rules.renewed is None else rules.renewed(state)
            state, policy = play(state, t, w)
            value = partial(randomised_regret, world, policy)
            last = value() if fresh is None else jax.lax.cond(jnp.any(fresh), value, lambda: last)
            return (state, last), last

        (state, regret), out = jax.lax.scan(one, (state, regret), (times, words))
        regrets = out if randomised else deterministic_regret(world, out)
        return (state, regret), regrets

    carry = (state, jnp.zeros(keys.shape, jnp.float32))
    if randomised and rules.renewed is not None:
        carry = (state, randomised_regret(world, act(state, private)))
    whole, rest = divmod(num, STRETCH)
    parts = []
    if whole:
        starts = first + jnp.arange(whole, dtype=jnp.uint32) * jnp.uint32(STRETCH)
        carry, regrets = jax.lax.scan(lambda c, s: stretch(c, s, STRETCH), carry, starts)
        parts.append(regrets.reshape(whole * STRETCH, *keys.shape))
    if rest:
        carry, regrets = stretch(carry, first + jnp.uint32(whole * STRETCH), rest)
        parts.append(regrets)
    return two_axes(rules, carry[0], lanes), jnp.concatenate(parts).reshape(num, *lanes)


def episode_words(key: tuple[Array, Array], times: Array, count: int) -> jax.Array:
    """Random words uint32 [episodes, count, *lanes]: word c of episode t is threefry(key, (t, c)), whatever the chunk.

    Only the first word of every block is used: XLA would compute the block again for the second.
    """
    lanes = key[0].shape
    shape = (times.size, count, *lanes)
    spread = [1] * len(lanes)
    counter = jnp.broadcast_to(jnp.arange(count, dtype=jnp.uint32).reshape(1, count, *spread), shape)
    time = jnp.broadcast_to(times.reshape(-1, 1, *spread), shape)
    return threefry((key[0][None, None], key[1][None, None]), (time, counter))[0]


def simulate(sizes: Sizes, world: World, policy: Array, words: Array) -> Trajectory:
    """One episode in every lane, from words [H, *lanes] (a randomised policy's actions take another H of them)."""
    H, k, A, M = sizes
    lanes = words.shape[1:]
    base = jnp.broadcast_to(world.base, lanes)
    if not jnp.issubdtype(policy.dtype, jnp.integer):
        policy = _draw_actions(policy, words[H:])

    def look(table, index):
        return table.at[index].get(mode="promise_in_bounds")

    def step(before, x):
        # The only thing carried is the outcome, as an index; two results would be two kernels that do all the work.
        i, row, word = x
        level = look(world.next_level, before)
        index = base + ((i * (k + 1) + level) * A + _at_level(row, level)) * M
        place = (word >> jnp.uint32(8)) * jnp.uint32(M)
        column = (place >> jnp.uint32(24)).astype(jnp.int32)
        entry = look(world.alias, index + column)
        own = (place & jnp.uint32(0xFFFFFF)) < (entry >> jnp.uint32(8))
        outcome = index + jnp.where(own, column, (entry & jnp.uint32(255)).astype(jnp.int32))
        return outcome, outcome

    start = jnp.broadcast_to(world.start, lanes)
    origin = jnp.broadcast_to(world.origin, lanes)
    _, outcome = jax.lax.scan(step, origin, (jnp.arange(H, dtype=jnp.int32), policy, words[:H]))
    following = look(world.next_level, outcome)
    levels = jnp.concatenate([start[None], following[:-1]])
    actions = _at_level(jnp.moveaxis(policy, 1, 0), levels)
    return Trajectory(levels, actions, look(world.reward, outcome), following)


def _draw_actions(policy: Array, words: Array) -> jax.Array:
    """Actions int32 [H, k+1, *lanes] of a randomised policy [H, k+1, A, *lanes]; a stage's levels share its word."""
    num_actions = policy.shape[2]
    passed = policy[:, :, 0]
    # Not jnp.sum, which XLA hands to a library that is slow for a few numbers.
    target = unit_float32(words)[:, None] * reduce(jnp.add, [policy[:, :, a] for a in range(num_actions)])
    action = jnp.zeros(passed.shape, jnp.int32)
    for a in range(1, num_actions):
        action = action + (target >= passed).astype(jnp.int32)
        passed = passed + policy[:, :, a]
    return action


def _at_level(row: Array, level: Array) -> jax.Array:
    """row[level] with levels in front: row [k+1, ..., *lanes], level [*lanes]."""
    value = row[0]
    for one in range(1, row.shape[0]):
        value = jnp.where(level == one, row[one], value)
    return value


def deterministic_regret(world: World, policies: Array) -> jax.Array:
    """Exact regret of policies int [E, H, k+1, *lanes], as float32 [E, *lanes]."""
    width, num_actions = world.gap.shape[1:3]

    def back(tail, i):
        row = jnp.moveaxis(policies[:, i, 1:], 1, 0)
        value = jnp.zeros_like(tail)
        for a in range(num_actions):
            here = world.gap[i, :, a][:, None]
            for s in range(width):
                here = here + world.transition[i, :, a, s][:, None] * tail[s][None]
            value = jnp.where(row == a, here, value)
        return value, None

    episodes, horizon = policies.shape[:2]
    lanes = policies.shape[3:]
    tail = jnp.zeros((width, episodes, *lanes), jnp.float32)
    tail, _ = jax.lax.scan(back, tail, jnp.arange(horizon - 1, -1, -1, dtype=jnp.int32))
    return _from_start(world, tail)


def randomised_regret(world: World, policy: Array) -> jax.Array:
    """Exact regret of a randomised policy float [H, k+1, A, *lanes], as float32 [*lanes]."""
    width, num_actions = world.gap.shape[1:3]

    def back(tail, x):
        gap, transition, row = x
        value = jnp.zeros_like(tail)
        for a in range(num_actions):
            here = jnp.broadcast_to(gap[:, a], tail.shape)
            for s in range(width):
                here = here + transition[:, a, s] * tail[s][None]
            value = value + row[:, a] * here
        return value, None

    tail = jnp.zeros((width, *policy.shape[3:]), jnp.float32)
    tail, _ = jax.lax.scan(back, tail, (world.gap, world.transition, policy[:, 1:]), reverse=True)
    return _from_start(world, tail[:, None])[0]


def _from_start(world: World, tail: Array) -> jax.Array:
    """tail[start - 1] for tail [k, E, *lanes]: float32 [E, *lanes]."""
    value = tail[0]
    for level in range(1, tail.shape[0]):
        value = jnp.where((world.start == level + 1)[None], tail[level], value)
    return value
