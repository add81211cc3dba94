"""The episode engine: a loop over episodes, the literal simulation. Every learner runs here.

A tile's W lanes are side by side in the *last* axis of every array while they run, so that all inner loops run over
contiguous lanes. Episodes are played in *stretches* of a fixed length: the random words of a stretch are made in one
go before it, and its deterministic policies are checked and evaluated in one go after it. How many episodes a call
plays is data: the last stretch of a call runs the same compiled body for fewer turns.

The regret of an episode is exact: the expected sum of the gaps Opt_{l,i} - Q*_{l,i}(a) along the policy's path
(`jaxbandit.planning.regret`), not a sampled return. A call returns the regret of every episode; they are summed in
float64, in order, so that no total depends on how the episodes were cut into calls.

Every policy is checked where it is used, at no cost: the regret of what is no policy is nan, which the host sees.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.engines.episodes.policies import PolicyForm
from jaxbandit.engines.episodes.regrets import deterministic_regret, randomised_regret
from jaxbandit.engines.episodes.simulation import Sizes, simulate
from jaxbandit.engines.episodes.world import EpisodeWorld
from jaxbandit.feedback import feedback_kind, observe
from jaxbandit.learner import Learner, StraightForm
from jaxbandit.learner.fitting import in_32_bits
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


def lane_functions(rules: Learner) -> StraightForm:
    """The learner over lanes, in the form that the platform wants."""
    if active().straight and rules.straight is not None:
        return rules.straight
    if not active().straight and rules.lanes_last and rules.staged is not None:
        return rules.staged
    given: Any = rules.act
    update: Any = rules.update

    def act(state: Any, keys: Any, constants: Any) -> Any:
        return in_32_bits(given(state, keys, constants))

    if not rules.lanes_last:
        act = jax.vmap(act, (0, 0, 0), -1)
        update = jax.vmap(update, (0, -1, -1, 0))

    def kept(state, policy, seen, constants, live):
        after = update(state, policy, seen, constants)
        if live is None:
            return after
        return jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)

    return StraightForm(
        enter=lambda state, keys, constants: state,
        act=act,
        update=kept,
        leave=lambda state, constants: state,
    )


def run_chunk(
    rules: Learner, sizes: Sizes, lanes: Lanes, state: Any, first: Array, count: Array
) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
    """``count`` episodes from number ``first`` on: the new state, and the regrets float32 [chunk, W].

    And the policies [H, k+1, (A,) W] that would be played next, with their regrets float32 [W].

    Episode t of a lane uses the words (t, 0), (t, 1), ... of fold_in(key, 0) for the environment and
    fold_in(fold_in(key, 1), t) for the learner, so any cut into calls gives the same bits. Regrets beyond ``count``
    mean nothing; the regret of what is no policy is nan.
    """
    enter, act, update, leave, _ = lane_functions(rules)
    world, width = lanes.world, lanes.keys[0].shape
    check_lanes(sizes, lanes)
    chex.assert_shape([first, count], ())
    # Two streams: whatever a learner draws, the environment's words stay, and all learners meet the same ones.
    public = fold_in(lanes.keys, jnp.zeros_like(lanes.keys[0]))
    private = learner_keys(lanes.keys)
    state = enter(state, episode_keys(private, first), lanes.constants)
    shape = jax.eval_shape(act, state, private, lanes.constants)
    form = PolicyForm(rules.name, sizes, shape)

    @together
    def environment(world, policy, words, e, policies):
        """Plays episode e of a stretch, and keeps its policy among ``policies`` (None: it is not kept)."""
        policy = form.from_levels(policy)
        episode = simulate(sizes, world, policy, words[e].reshape(-1, *width))
        return episode, None if policies is None else put(policies, form.packed(policy), e)

    def play(state, times, words, e, length, policies=None):
        policy = act(state, episode_keys(private, times[e]), lanes.constants)
        played = form.numbers(policy)
        episode, policies = environment(world, form.by_levels(played), words, e, policies)
        chex.assert_shape(list(episode), (sizes.horizon, *width))
        seen = observe(rules.feedback, episode, words[e, -width[0] :])
        live = e < length if active().straight else None  # see `repeat`
        return update(state, policy, seen, lanes.constants, live), played, policies

    def deterministic(state, times, words, length):
        """Plays a stretch, then evaluates its policies in one go."""

        def one(e, carry):
            state, policies = carry
            state, _, policies = play(state, times, words, e, length, policies)
            return state, policies

        H, levels, W = shape.shape
        # Policies are kept and not their regrets: evaluated together they are one pass over long loops, and packed they
        # are a byte a state.
        blank = jnp.zeros((STRETCH, levels - 1, H * W), form.packed_type)
        state, policies = repeat(one, length, (state, blank))
        return state, deterministic_regret(world, policies.reshape(STRETCH, -1, H, W))

    def randomised(state, times, words, length):
        """Plays a stretch, evaluating every policy that may be new."""

        def one(e, carry):
            state, last, regrets = carry
            # Asked before the update: it speaks of the policy that is played now.
            fresh = None if rules.renewed is None else rules.renewed(state)
            state, policy, _ = play(state, times, words, e, length)
            if fresh is None:
                last = randomised_regret(world, policy)
            else:
                # A block learner plays one policy for many episodes: most turns evaluate nothing in any lane.
                value = partial(randomised_regret, world, policy)
                last = jax.lax.cond(jnp.any(fresh), value, lambda: last)
            return state, last, put(regrets, last, e)

        last = jnp.zeros(width, jnp.float32)
        if (
            rules.renewed is not None
        ):  # the first policy may be an old one, whose regret no turn computes
            last = randomised_regret(world, form.numbers(act(state, private, lanes.constants)))
        blank = jnp.zeros((STRETCH, *width), jnp.float32)
        state, _, regrets = repeat(one, length, (state, last, blank))
        return state, regrets

    def all_randomised(state, times, words, length):
        """Plays a stretch, then evaluates its policies in one go: in the loop every stage would be a launch."""

        def one(e, carry):
            state, policies = carry
            state, policy, _ = play(state, times, words, e, length)
            return state, put(policies, policy, e)

        blank = jnp.zeros((STRETCH, *shape.shape), jnp.float32)
        state, policies = repeat(one, length, (state, blank))
        return state, jax.vmap(partial(randomised_regret, world))(policies)

    play_stretch = deterministic
    if form.randomised:
        play_stretch = all_randomised if active().straight else randomised
    drawn = (sizes.horizon, form.randomised, feedback_kind(rules.feedback).random_bits)

    def stretch(j, carry):
        state, regrets = carry
        start = j * STRETCH
        times = first + start.astype(jnp.uint32) + jnp.arange(STRETCH, dtype=jnp.uint32)
        words = _stretch_words(*drawn)(public, times).reshape(STRETCH, -1)
        state, new = play_stretch(state, times, words, jnp.minimum(count - start, STRETCH))
        chex.assert_shape(new, (STRETCH, *width))
        return state, jax.lax.dynamic_update_slice(regrets, new, (start, jnp.int32(0)))

    blank = jnp.zeros((active().chunk, *width), jnp.float32)
    stretches = (count + (STRETCH - 1)) // STRETCH
    state, regrets = jax.lax.fori_loop(0, stretches, stretch, (state, blank))
    following = episode_keys(private, first + count.astype(jnp.uint32))
    policy = form.numbers(act(state, following, lanes.constants))
    state = leave(state, lanes.constants)
    if form.randomised:
        return state, regrets, policy, randomised_regret(world, policy)
    policies = form.packed(policy).reshape(1, -1, sizes.horizon, *width)
    return state, regrets, policy, deterministic_regret(world, policies)[0]


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
    chex.assert_shape(world.transition, (H, k, A, k, *width))


def repeat(one: Any, length: Array, carry: Any) -> Any:
    """``one(e, carry)`` for e = 0..length-1, where length is at most a stretch.

    Where a loop whose length is data would ask the host after every turn, all turns of a stretch are taken: those
    beyond its length leave the learner's state, and the rows that they fill mean nothing.
    """
    return jax.lax.fori_loop(0, STRETCH if active().straight else length, one, carry)


def put(rows: Array, row: Array, e: Array) -> jax.Array:
    """rows with row e replaced, in place."""
    return jax.lax.dynamic_update_index_in_dim(rows, row, e, 0)


def learner_keys(keys: tuple[Array, Array]) -> jax.Array:
    """fold_in(key, 1) of every lane, as typed keys [W]."""
    high, low = fold_in(keys, jnp.ones_like(keys[0]))
    return jax.random.wrap_key_data(jnp.stack([high, low], -1), impl="threefry2x32")


def episode_keys(private: jax.Array, episode: Array) -> jax.Array:
    """The learner's keys [W] for an episode."""
    return jax.vmap(jax.random.fold_in, (0, None))(private, episode)


@cache
def _stretch_words(horizon: int, actions: bool, coin: bool):
    """`episode_words` as a kernel of its own: made where they are read, XLA would make them one by one."""
    return separate(lambda key, times: episode_words(key, times, horizon, actions, coin))


def episode_words(
    key: tuple[Array, Array], times: Array, horizon: int, actions: bool = False, coin: bool = False
) -> jax.Array:
    """Random words uint32 [episodes, words, W]: word c of episode t is threefry(key, (t, c)), whatever the chunk.

    The outcome of stage i takes c = i. If there are ``actions`` to draw, that of stage i takes c = `ACTIONS` + i, and if a
    ``coin`` is flipped after the episode (one-bit feedback), it takes c = `COIN`: no word depends on H.
    Only the first word of every block is used: XLA would compute the block again for the second.
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
