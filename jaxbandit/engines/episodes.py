"""The episode engine: a ``lax.scan`` over episodes, the literal simulation. Every learner runs here.

Lanes are G groups (an instance with a parameter setting each) x S seeds, side by side in the two *last* axes of every
array, so that all inner loops run over contiguous lanes. Within a chunk, episodes are scanned in short stretches:
the random words of a stretch are made in one go before it, and its deterministic policies are evaluated in one go
after it.

The regret of an episode is exact: the expected sum of the gaps Opt_{l,i} - Q*_{l,i}(a) along the policy's path
(`jaxbandit.planning.regret`), not a sampled return. A chunk returns the regret of every episode; the host sums them in
float64, in order, so that no total depends on how the episodes were cut into chunks.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import planning
from jaxbandit.engines.compat import x64
from jaxbandit.engines.threefry import fold_in, key_words, threefry, unit_float32
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learners.base import Learner
from jaxbandit.mdp import MDP, transition_kernel

Array = Any
STRETCH = 32


class World(NamedTuple):
    """What the engine knows of the MDPs of G groups; learners never see it."""

    bounds: Array
    """float32 [G * H * (k+1) * A * M]: cumulative probabilities; 2 from the last possible outcome on."""
    reward: Array
    """float32 [G * H * (k+1) * A * M]."""
    next_level: Array
    """int32 [G * H * (k+1) * A * M]."""
    start: Array
    """int32 [G, 1]."""
    gap: Array
    """float32 [H, k, A, G, 1]: Opt_{l,i} - Q*_{l,i}(a), levels 1..k."""
    transition: Array
    """float32 [H, k, A, k, G, 1]: p_i(s | l, a) among the levels 1..k."""


def make_world(mdps: MDP) -> World:
    """Tables for MDPs stacked along a leading axis [G]; gaps are computed in float64 on the way."""
    prob = np.asarray(mdps.prob, np.float64)
    possible = prob > 0
    later = np.flip(np.cumsum(np.flip(possible, -1), -1), -1) - possible > 0
    bounds = np.where(later, np.cumsum(prob, -1), 2.0)
    with x64():
        exact = jax.tree.map(lambda x: jnp.asarray(np.asarray(x, np.float64 if _real(x) else np.int32)), mdps)
        gap, transition = (np.asarray(x) for x in exact_tables(exact))
    lanes_last = partial(np.moveaxis, source=0, destination=-1)
    tables = World(
        bounds.astype(np.float32).ravel(),
        np.asarray(mdps.reward, np.float32).ravel(),
        np.asarray(mdps.next_level, np.int32).ravel(),
        np.asarray(mdps.start, np.int32)[:, None],
        lanes_last(gap.astype(np.float32))[:, 1:, ..., None],
        lanes_last(transition.astype(np.float32))[:, 1:, :, 1:, ..., None],
    )
    return jax.tree.map(jnp.asarray, tables)


@jax.jit
def exact_tables(mdps: MDP) -> tuple[jax.Array, jax.Array]:
    """Gaps [G, H, k+1, A] and kernels [G, H, k+1, A, k+1] of stacked MDPs."""
    return jax.vmap(planning.gaps)(mdps), jax.vmap(transition_kernel)(mdps)


def _real(x: Array) -> bool:
    return np.issubdtype(np.asarray(x).dtype, np.floating)


class Sizes(NamedTuple):
    """The static sizes."""

    horizon: int
    width: int
    num_actions: int
    num_outcomes: int


def lane_functions(rules: Learner):
    """act and update over lanes: as they are for a lanes-last learner, else vmapped, with the state's lanes first."""
    if rules.lanes_last:
        return rules.act, rules.update
    act = jax.vmap(jax.vmap(rules.act, (0, 0), -1), (0, 0), -2)
    update = jax.vmap(jax.vmap(rules.update, (0, -1, -1)), (0, -2, -2))
    return act, update


@partial(jax.jit, static_argnames=("rules", "sizes", "num"))
def run_chunk(
    rules: Learner, sizes: Sizes, world: World, keys: Array, state: Any, first: Array, num: int
) -> tuple[Any, jax.Array]:
    """``num`` episodes from number ``first`` on, in all lanes: the new state and the regrets, float32 [num, G, S].

    ``keys`` [G, S] are the lanes' keys. Episode t of a lane uses fold_in(fold_in(key, 0), t) for the environment and
    fold_in(fold_in(key, 1), t) for the learner, so any cut into chunks gives the same bits.
    """
    act, update = lane_functions(rules)
    environment = fold_in(key_words(keys), jnp.zeros(keys.shape, jnp.uint32))
    private = jax.vmap(jax.vmap(lambda key: jax.random.fold_in(key, 1)))(keys)
    episode_key = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (0, None))
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
    return carry[0], jnp.concatenate(parts)


def episode_words(key: tuple[Array, Array], times: Array, count: int) -> jax.Array:
    """Random words uint32 [episodes, count, *lanes]; words of an episode depend on its key and number alone."""
    lanes = key[0].shape
    spread = (Ellipsis, *[None] * len(lanes))
    k0, k1 = fold_in((key[0][None], key[1][None]), jnp.broadcast_to(times[spread], (times.size, *lanes)))
    pairs = (count + 1) // 2
    counter = jnp.arange(pairs, dtype=jnp.uint32)[(None, *spread)]
    counter = jnp.broadcast_to(counter, (times.size, pairs, *lanes))
    x0, x1 = threefry((k0[:, None], k1[:, None]), (jnp.zeros_like(counter), counter))
    return jnp.concatenate([x0, x1], axis=1)[:, :count]


def simulate(sizes: Sizes, world: World, policy: Array, words: Array) -> Trajectory:
    """One episode in every lane: inverse-cdf draws of the joint outcome (and of the action, for a randomised policy)."""
    H, k, A, M = sizes
    lanes = words.shape[1:]
    group = jnp.arange(world.start.shape[0], dtype=jnp.int32) * jnp.int32(H * (k + 1) * A * M)
    base = jnp.broadcast_to(group[:, None], lanes)
    deterministic = jnp.issubdtype(policy.dtype, jnp.integer)

    def look(table, index):
        return table.at[index].get(mode="promise_in_bounds")

    def step(level, x):
        i, row, word = x
        if deterministic:
            action = _at_level(row, level)
            u = unit_float32(word)
        else:
            chances = _at_level(row, level)
            v = unit_float32(word[1]) * jnp.sum(chances, axis=0)
            passed = [v >= sum(chances[: a + 1]) for a in range(A - 1)]
            action = sum((b.astype(jnp.int32) for b in passed), jnp.zeros(lanes, jnp.int32))
            u = unit_float32(word[0])
        index = base + ((i * (k + 1) + level) * A + action) * M
        outcome = index
        for m in range(M - 1):
            outcome = outcome + (u >= look(world.bounds, index + m)).astype(jnp.int32)
        return look(world.next_level, outcome), outcome

    inputs = words if deterministic else jnp.stack([words[:H], words[H:]], axis=1)
    start = jnp.broadcast_to(world.start, lanes)
    stages = jnp.arange(H, dtype=jnp.int32)
    _, outcome = jax.lax.scan(step, start, (stages, policy, inputs))
    state = (outcome - base[None]) // M
    return Trajectory(
        (state // A) % (k + 1), state % A, look(world.reward, outcome), look(world.next_level, outcome)
    )


def _at_level(row: Array, level: Array) -> jax.Array:
    """row[level] with levels in front: row [k+1, ..., *lanes], level [*lanes]."""
    value = row[0]
    for l in range(1, row.shape[0]):
        value = jnp.where(level == l, row[l], value)
    return value


def deterministic_regret(world: World, policies: Array) -> jax.Array:
    """Exact regret of policies int [E, H, k+1, G, S], as float32 [E, G, S]."""
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
    """Exact regret of a randomised policy float [H, k+1, A, G, S], as float32 [G, S]."""
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
    """tail[start - 1] for tail [k, E, G, S]: float32 [E, G, S]."""
    value = tail[0]
    for l in range(1, tail.shape[0]):
        value = jnp.where((world.start == l + 1)[None], tail[l], value)
    return value
