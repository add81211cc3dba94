"""The episode engine: a scan over episodes, the literal simulation. Every learner runs here.

A tile's W lanes are side by side in the *last* axis of every array while they run, so that all inner loops run over
contiguous lanes. Episodes are played in *stretches* of a fixed length: the random bits of a stretch are made in one
go before it, and its policies are checked and evaluated in one go after it. How many episodes a call plays is data:
turns beyond it do nothing.

The regret of an episode is exact: the expected sum of the gaps Opt_{l,i} - Q*_{l,i}(a) along the policy's path
(`jaxbandit.planning.regret`), not a sampled return. A call returns the regret of every episode; they are summed in
float64, in order, so that no total depends on how the episodes were cut into calls.

Every policy is checked where it is used, at no cost: an invalid policy has regret nan, which the host sees.

A policy is a table of actions, int [H, k+1, W], or of action probabilities, float [H, k+1, A, W]. Shapes and types are
known before anything runs. Values are checked on the device where they are used: an action out of range, or
probabilities that are negative, nan or do not sum to 1, make the regret of that episode nan (`regrets`), and a nan
never becomes a result: the host finds the episode and then the place (`explain`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.episodes.regrets import deterministic_regret, randomised_regrets
from jaxbandit.engines.episodes.simulation import Sizes, simulate
from jaxbandit.engines.episodes.world import EpisodeWorld, by_outcomes
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import feedback_kind, observe
from jaxbandit.kernels import Kernel, find_kernel
from jaxbandit.learner import Learner, in_32_bits, is_policy, wrong_policy
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together
from jaxbandit.xla.platforms import active
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


def lane_functions(learner: Learner, sizes: Sizes, lanes: int) -> Kernel:
    """The learner over lanes: its kernel for the platform, or its own functions under ``vmap``; a single lane as it is."""
    kernel = find_kernel(learner, sizes, active().name)
    return kernel or (alone(learner) if lanes == 1 else vmapped(learner))


def alone(learner: Learner) -> Kernel:
    """The learner's own functions in one lane, where branches are branches and products those of matrices."""

    def act(state: Any, keys: Any, constants: Any) -> Any:
        return in_32_bits(learner.act(state, keys[0], _first(constants)))[..., None]

    def update(state: Any, policy: Any, seen: Any, constants: Any, live: Any) -> Any:
        policy, seen = jax.tree.map(lambda x: x[..., 0], (policy, seen))
        after = learner.update(state, policy, seen, _first(constants))
        if live is None:
            return after
        return jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)

    return Kernel(
        enter=lambda state, keys, constants: _first(state),
        act=act,
        update=update,
        leave=lambda state, constants: jax.tree.map(lambda x: jnp.asarray(x)[None], state),
    )


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[0], tree)


def vmapped(learner: Learner) -> Kernel:
    """The learner's own functions over lanes."""
    given: Any = learner.act

    def one(state: Any, key: Any, constants: Any) -> Any:
        return in_32_bits(given(state, key, constants))

    each: Any = jax.vmap(learner.update, (0, -1, -1, 0))

    def update(state: Any, policy: Any, seen: Any, constants: Any, live: Any) -> Any:
        after = each(state, policy, seen, constants)
        if live is None:
            return after
        return jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)

    return Kernel(
        enter=lambda state, keys, constants: state,
        act=jax.vmap(one, (0, 0, 0), -1),
        update=update,
        leave=lambda state, constants: state,
    )


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
    kernel = lane_functions(learner, sizes, *lanes.keys[0].shape)
    world, width, constants = lanes.world, lanes.keys[0].shape, lanes.constants
    check_lanes(sizes, lanes)
    chex.assert_shape([first, count], ())
    # Two streams: whatever a learner draws, the environment's bits stay, and all learners meet the same ones.
    public = fold_in(lanes.keys, jnp.zeros_like(lanes.keys[0]))
    private = learner_keys(lanes.keys)
    inner = kernel.enter(state, episode_keys(private, first), constants)
    form = PolicyForm(learner.name, sizes, jax.eval_shape(kernel.act, inner, private, constants))
    outcomes = sizes.num_outcomes if by_outcomes(sizes.width, sizes.num_outcomes) else 0
    drawn = (sizes.horizon, form.randomised, feedback_kind(learner.feedback).random_bits)

    @together
    def environment(world, policy, bits):
        """Plays an episode; and its policy in few bytes."""
        policy = form.from_levels(policy)
        episode = simulate(sizes, world, policy, bits.reshape(-1, *width))
        return episode, form.packed(policy)

    def play(inner, turn, live):
        time, bits = turn
        policy = kernel.act(inner, episode_keys(private, time), constants)
        episode, packed = environment(world, form.by_levels(form.numbers(policy)), bits)
        chex.assert_shape(list(episode), (sizes.horizon, *width))
        seen = observe(learner.feedback, episode, bits[-width[0] :])
        return kernel.update(inner, policy, seen, constants, live), packed

    def play_stretch(inner, start):
        """`STRETCH` episodes, then the regrets of their policies [STRETCH, W]."""
        numbers = start + jnp.arange(STRETCH, dtype=jnp.int32)
        times = first + numbers.astype(jnp.uint32)
        turns = (times, _stretch_bits(*drawn)(public, times).reshape(STRETCH, -1))
        if active().branches:
            one = lambda inner, turn: play(inner, turn, None)  # noqa: E731
            inner, policies = scan_live(one, inner, turns, numbers < count)
        else:  # a branch would ask the host: dead turns are played, and change nothing
            inner, policies = jax.lax.scan(
                lambda inner, turn: play(inner, *turn), inner, (turns, numbers < count)
            )
        return inner, regrets_of(policies)

    def regrets_of(policies):
        if form.randomised:
            return randomised_regrets(world, policies, outcomes)
        return deterministic_regret(world, form.unpacked(policies, *width), outcomes)

    starts = jnp.arange(0, active().chunk, STRETCH, dtype=jnp.int32)
    inner, regrets = scan_live(play_stretch, inner, starts, starts < count)
    following = episode_keys(private, first + count.astype(jnp.uint32))
    policy = form.numbers(kernel.act(inner, following, constants))
    gap = regrets_of(form.packed(policy)[None])[0]
    return kernel.leave(inner, constants), regrets.reshape(-1, *width), policy, gap


def check_lanes(sizes: Sizes, lanes: Lanes) -> None:
    """That tables and keys belong to the same lanes and sizes: a wrong one would be broadcast in silence.

    Looks at shapes alone, so it costs nothing in a compiled program.
    """
    H, k, A = sizes[:3]
    world, width = lanes.world, lanes.keys[0].shape
    chex.assert_rank(lanes.keys[0], 1)
    chex.assert_shape([*lanes.keys, world.start], width)
    chex.assert_shape(world.row, (H, *width))
    chex.assert_shape(world.gap, (H, k, A, *width))
    if not by_outcomes(k, sizes.num_outcomes):
        chex.assert_shape(world.transition, (H, k, A, k, *width))


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
    count = horizon * (2 if actions else 1) + coin
    shape = (times.size, count, *key[0].shape)
    place = jax.lax.broadcasted_iota(jnp.uint32, shape, 1)
    counter = place
    if actions:
        counter = jnp.where(place < horizon, place, place + jnp.uint32(ACTIONS - horizon))
    if coin:
        counter = jnp.where(place == count - 1, jnp.uint32(COIN), counter)
    time = jnp.broadcast_to(times[:, None, None], shape)
    return threefry((key[0][None, None], key[1][None, None]), (time, counter))[0]


class PolicyForm:
    """The kind of policies that a learner plays on MDPs of one size."""

    def __init__(self, name: str, sizes: Any, policy: Any):
        """``policy`` is one with lanes last, or its shape: a wrong shape or type is an error at once."""
        H, k, A = sizes[:3]
        self.horizon, self.num_actions = H, A
        self.randomised = not jnp.issubdtype(policy.dtype, jnp.integer)
        wanted = (H, k + 1, A) if self.randomised else (H, k + 1)
        seen = tuple(policy.shape[:-1])
        if (self.randomised and not jnp.issubdtype(policy.dtype, jnp.floating)) or seen != wanted:
            raise LearnerError(
                f"learner {name!r}: act gives {policy.dtype}{list(seen)}; accepted: actions, integers "
                f"[H, k+1] = {[H, k + 1]}, or probabilities, floats [H, k+1, A] = {[H, k + 1, A]}"
            )
        self.packed_type = jnp.int8 if A < 127 else jnp.int32

    def numbers(self, policy: Array) -> jax.Array:
        """What the learner gave, as the engine computes with it: int32 or float32. Sums of half floats would be
        rounded to 1, and bounds such as -1 have no meaning in unsigned types."""
        return jnp.asarray(policy).astype(jnp.float32 if self.randomised else jnp.int32)

    def by_levels(self, policy: Array) -> jax.Array:
        """Actions [k+1, HW], so that kernels run over stages and lanes as one axis; probabilities as they are."""
        if self.randomised:
            return policy
        return jnp.moveaxis(policy, 1, 0).reshape(policy.shape[1], -1)

    def from_levels(self, policy: Array) -> jax.Array:
        """What `by_levels` has taken apart."""
        if self.randomised:
            return policy
        return jnp.moveaxis(policy.reshape(policy.shape[0], self.horizon, -1), 0, 1)

    def packed(self, policy: Array) -> jax.Array:
        """The actions [k, HW] from level 1 on in few bytes; those out of range become -1 or A. Probabilities as they are."""
        if self.randomised:
            return policy
        return _pack(self.num_actions, self.packed_type)(self.by_levels(policy)[1:])

    def unpacked(self, policies: Array, lanes: int) -> jax.Array:
        """Packed actions [E, k, HW] as [E, k, H, W]."""
        return policies.reshape(*policies.shape[:2], self.horizon, lanes)


@cache
def _pack(num_actions: int, packed_type: Any):
    @separate
    def pack(actions):
        return jnp.clip(actions, -1, num_actions).astype(packed_type)

    return pack


def explain(name: str, policy: np.ndarray, num_actions: int, episode: int) -> LearnerError:
    """The error for a policy [H, k+1] or [H, k+1, A] that is none, of an episode that counts from 1."""
    if not np.asarray(is_policy(jnp.asarray(policy), num_actions)).all():
        return wrong_policy(name, policy, num_actions, episode)
    return LearnerError(
        f"learner {name!r}: the regret of episode {episode} is not a number, though its policy is "
        "one; accepted: MDPs and learners whose numbers are finite"
    )
