"""The episode engine: a scan over episodes, the literal simulation. Every learner runs here.

A tile's W lanes are side by side in the *last* axis of every array while they run, so that all inner loops run over
contiguous lanes. Episodes are played in *stretches* of a fixed length: the random bits of a stretch are made in one
go before it, and its policies are checked and evaluated in one go after it. How many episodes a call plays is data:
turns beyond it do nothing.

The regret of an episode is exact: the expected sum of the gaps Opt_{l,i} - Q*_{l,i}(a) along the policy's path
(`jaxbandit.planning.regret`), not a sampled return. A call returns the regret of every episode; they are summed in
float64, in order, so that no total depends on how the episodes were cut into calls.

A policy is a table of actions, int [H, k+1, W], or of action probabilities, float [H, k+1, A, W]. Shapes and types are
known before anything runs. Values are checked on the device where they are used: an action out of range, or
probabilities that are negative, nan or do not sum to 1, make the regret of that episode nan (`environment`), and a nan
never becomes a result: the host finds the episode and then the place (`explain`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.episodes.environment import (
    EpisodeWorld,
    Sizes,
    by_levels,
    draw_actions,
    is_randomised,
    randomised_regrets,
    regrets,
    simulate,
)
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import feedback_kind, observe
from jaxbandit.kernels import kernel_or_own
from jaxbandit.learner import Learner, is_policy, wrong_policy
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active, separate, together
from jaxbandit.xla.threefry import fold_in, threefry

STRETCH = 32
ACTIONS = 2**20
"""The counter of the first word that draws an action; horizons are shorter."""
COIN = 2**21
"""The counter of the word that flips the coin of one-bit feedback."""


class Lanes(NamedTuple):
    """What a tile's lanes are, whatever the episode."""

    world: EpisodeWorld
    keys: tuple[Array, Array]
    """uint32 [W] each: the words of the lanes' keys."""
    constants: Any
    """The learner's."""


def scan_live(body: Callable, carry: Any, turns: Any, live: Array) -> tuple[Any, Any]:
    """``jax.lax.scan`` of ``body(carry, turn)`` in which turns that are not live, the last ones, are not taken.

    They keep the carry and give zeros. Without branches it is a loop whose length is data.
    """
    shapes = jax.eval_shape(body, carry, jax.tree.map(lambda x: x[0], turns))[1]
    if active().branches:

        def skip(carry, turn):
            del turn
            return carry, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

        def one(carry, turn):
            return jax.lax.cond(turn[1], body, skip, carry, turn[0])

        return jax.lax.scan(one, carry, (turns, live))

    def put(j, both):
        carry, found = both
        carry, new = body(carry, jax.tree.map(lambda x: x[j], turns))
        place = jax.lax.dynamic_update_index_in_dim
        return carry, jax.tree.map(lambda rows, row: place(rows, row, j, 0), found, new)

    rows = jax.tree.map(lambda x: jnp.zeros((live.size, *x.shape), x.dtype), shapes)
    return jax.lax.fori_loop(0, jnp.sum(live.astype(jnp.int32)), put, (carry, rows))


def run_chunk(
    learner: Learner, sizes: Sizes, lanes: Lanes, state: Any, first: Array, count: Array
) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
    """``count`` episodes from number ``first`` on: the new state [W, ...], and the regrets float32 [chunk, W].

    And the policies [H, k+1, (A,) W] that would be played next, with their regrets float32 [W].

    Episode t of a lane uses the random bits (t, 0), (t, 1), ... of fold_in(key, 0) for the environment and
    fold_in(fold_in(key, 1), t) for the learner, so any cut into calls gives the same numbers. Regrets beyond ``count``
    mean nothing; the regret of an invalid policy is nan.
    """
    world, keys, constants = lanes
    (H, _, A, _), width = sizes, len(keys[0])
    chex.assert_shape([*keys, world.start], (width,))
    kernel = kernel_or_own(learner, sizes, active().name, width)
    # Two streams: whatever a learner draws, the environment's bits stay, and all learners meet the same ones.
    public = fold_in(keys, jnp.zeros_like(keys[0]))
    private = learner_keys(keys)
    inner = kernel.enter(state, constants)
    randomised = is_randomised(jax.eval_shape(kernel.act, inner, private, constants))
    bits_of = _stretch_bits(H, randomised, feedback_kind(learner.feedback).random_bits)

    def act(inner, time):
        return kernel.act(inner, episode_keys(private, time), constants)

    def numbers(policy):
        """As the engine computes with it: sums of half floats would be rounded to 1, and bounds such as -1 have no meaning
        in unsigned types."""
        return policy.astype(jnp.float32 if randomised else jnp.int32)

    def flat(policy):
        return numbers(policy) if randomised else by_levels(numbers(policy))

    def packed(policy):
        return policy if randomised else _pack(A)(policy[1:])

    @together
    def environment(world, policy, bits):
        """Plays an episode; and its policy in few bytes."""
        bits = bits.reshape(-1, width)
        actions = by_levels(draw_actions(policy, bits[H : 2 * H])) if randomised else policy
        return simulate(sizes, world, actions, bits[:H]), packed(policy)

    def play(inner, turn, live):
        time, bits = turn
        policy = act(inner, time)
        episode, few_bytes = environment(world, flat(policy), bits)
        seen = observe(learner.feedback, episode, bits[-width:])
        return kernel.update(inner, policy, seen, constants, live), few_bytes

    def regrets_of(policies):
        if randomised:
            return randomised_regrets(sizes, world, policies)
        return regrets(sizes, world, policies.reshape(*policies.shape[:2], H, width))

    def play_stretch(inner, start):
        """`STRETCH` episodes, then the regrets of their policies [STRETCH, W]."""
        number = start + jnp.arange(STRETCH, dtype=jnp.int32)
        times = first + number.astype(jnp.uint32)
        turns = (times, bits_of(public, times).reshape(STRETCH, -1))
        if active().branches:
            episodes = partial(scan_live, partial(play, live=None))
            episodes = together(episodes) if kernel.one_kernel else episodes
            inner, policies = episodes(inner, turns, number < count)
        else:  # a branch would ask the host: dead turns are played, and change nothing
            inner, policies = jax.lax.scan(
                lambda inner, turn: play(inner, *turn), inner, (turns, number < count)
            )
        return inner, regrets_of(policies)

    starts = jnp.arange(0, active().chunk, STRETCH, dtype=jnp.int32)
    inner, regret = scan_live(play_stretch, inner, starts, starts < count)
    policy = act(inner, first + count.astype(jnp.uint32))
    gap = regrets_of(packed(flat(policy))[None])[0]
    return kernel.leave(inner, constants), regret.reshape(-1, width), numbers(policy), gap


def learner_keys(keys: tuple[Array, Array]) -> jax.Array:
    """fold_in(key, 1) of every lane, as typed keys [W]."""
    high, low = fold_in(keys, jnp.ones_like(keys[0]))
    return jax.random.wrap_key_data(jnp.stack([high, low], -1), impl="threefry2x32")


def episode_keys(private: jax.Array, episode: Array) -> jax.Array:
    """The learner's keys [W] for an episode."""
    return jax.vmap(jax.random.fold_in, (0, None))(private, episode)


@cache
def _stretch_bits(horizon: int, actions: bool, coin: bool):
    """`episode_bits` as a kernel of its own: made where they are read, XLA would make them one by one."""
    return separate(lambda key, times: episode_bits(key, times, horizon, actions, coin))


def episode_bits(
    key: tuple[Array, Array], times: Array, horizon: int, actions: bool = False, coin: bool = False
) -> jax.Array:
    """Random bits uint32 [episodes, numbers, W]: number c of episode t is threefry(key, (t, c)), whatever the chunk.

    The outcome of stage i takes c = i. If there are ``actions`` to draw, that of stage i takes c = `ACTIONS` + i, and if a
    ``coin`` is flipped after the episode (one-bit feedback), it takes c = `COIN`: none depends on H.
    Only the first half of every block is used: XLA would compute the block again for the second.
    """
    stages = np.arange(horizon, dtype=np.uint32)
    counters = [stages, stages + np.uint32(ACTIONS)][: 1 + actions]
    counter = np.concatenate([*counters, np.full(int(coin), COIN, np.uint32)])
    words = (key[0][None, None], key[1][None, None])
    return threefry(words, (times[:, None, None], jnp.asarray(counter)[None, :, None]))[0]


@cache
def _pack(num_actions: int):
    """Actions in few bytes; those out of range become -1 or A."""

    @separate
    def pack(actions):
        few_bytes = jnp.int8 if num_actions < 127 else jnp.int32
        return jnp.clip(actions, -1, num_actions).astype(few_bytes)

    return pack


def explain(name: str, policy: np.ndarray, num_actions: int, episode: int) -> LearnerError:
    """The error for a policy [H, k+1] or [H, k+1, A] that is none, of an episode that counts from 1."""
    if not np.asarray(is_policy(jnp.asarray(policy), num_actions)).all():
        return wrong_policy(name, policy, num_actions, episode)
    return LearnerError(
        f"learner {name!r}: the regret of episode {episode} is not a number, though its policy is "
        "one; accepted: MDPs and learners whose numbers are finite"
    )
