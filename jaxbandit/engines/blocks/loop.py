"""The block engine: a learner in block form, block after block, with exact regrets and exact-in-law sums.

The regret of an arm is its number of episodes times an exactly known number, and its rewards are summed by pushing
counts through the stages (`counts.push_arms`) or, where a bit is shown, drawn at once (`bits.push_bits`), so a run
costs a number of blocks, not of episodes. Everything is float64 (whole numbers are exact to 2^53) and needs x64.

A call plays at most BLOCKS blocks in every lane of a tile and says of each arm when it began, how long it was and what
an episode of it costs; the host makes curves of that (`curve`). So neither T nor the recorded episodes are sizes of
the program.

A tile only learns that a block is wrong (`sound`); the lane stays before it, and the host asks the learner for the
same block again to say what is wrong with it (`complaint`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks.machine import push_arms, push_bits
from jaxbandit.engines.blocks.outcomes import Outcomes
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import feedback_kind
from jaxbandit.learner import Blocks, check_blocks, check_same_state, in_32_bits, named
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import fold_in

BLOCKS = 32
"""Blocks (stages of a phase) that one call plays at most."""


class BlockWorld(NamedTuple):
    """What the engine knows of the MDPs of L lanes."""

    outcomes: Outcomes
    gap: Array
    """float64 [L, H, k+1, A]: Opt_{l,i} - Q*_{l,i}(a)."""
    transition: Array
    """float64 [L, H, k+1, A, k+1]."""
    optimum: Array
    """float64 [L]: the optimal value."""


class Standing(NamedTuple):
    """Where each lane stands; leaves [L, ...]."""

    state: Any
    """The learner's."""
    played: Array
    """float64: episodes so far, at most T."""
    block: Array
    """uint32: blocks so far, the counter of the block's key."""
    wrong: Array
    """bool: the next block is none that may be played; the lane stays before it."""


class PlayedArms(NamedTuple):
    """The arms that were played: [BLOCKS + 1, L, B], blocks in order; the last row is never one."""

    begin: Array
    """float64: episodes before the arm, at most T."""
    length: Array
    """float64: episodes of it, those after T left out."""
    regret: Array
    """float64: exact, of one episode."""


class NextBlocks(NamedTuple):
    """What the lanes would play next."""

    blocks: Blocks
    """Leaves [L, ...]."""
    regret: Array
    """float64 [L, B]: exact, of one episode of every arm."""


class Turn(NamedTuple):
    """What a call hands from block to block."""

    more: Array
    """bool []: whether another turn comes."""
    count: Array
    """int32 []: blocks that were played."""
    standing: Standing
    arms: PlayedArms
    following: NextBlocks
    """What the lanes would have played, or did, in the turn before."""


def arm_regrets(gap: Array, transition: Array, start: Array, blocks: Blocks) -> jax.Array:
    """Exact regret per episode of every arm of one lane, float64 [B], from one pass forward and one backward."""
    H, levels = gap.shape[:2]
    unroll = H if active().straight else 1
    cost = jnp.sum(blocks.policy * gap, axis=-1)
    move = sum(blocks.policy[:, :, a, None] * transition[:, :, a] for a in range(gap.shape[2]))

    def forward(visits, x):
        cost, move = x
        return jnp.sum(visits[:, None] * move, axis=0), (visits, jnp.sum(visits * cost))

    def backward(tail, x):
        cost, move = x
        return cost + jnp.sum(move * tail[None], axis=-1), tail

    begin = (jnp.arange(levels, dtype=jnp.int32) == start).astype(gap.dtype)
    _, (visits, paid) = jax.lax.scan(forward, begin, (cost, move), unroll=unroll)
    _, tails = jax.lax.scan(
        backward, jnp.zeros(levels, gap.dtype), (cost, move), reverse=True, unroll=unroll
    )
    before = jnp.sum(jnp.where(jnp.arange(H, dtype=jnp.int32) < blocks.stage, paid, 0))
    ahead = gap[blocks.stage] + jnp.sum(
        transition[blocks.stage] * tails[blocks.stage][None, None], axis=-1
    )
    value = visits[blocks.stage][:, None] * ahead
    return before + jnp.sum(blocks.rows * value[None], axis=(1, 2))


def regrets(world: BlockWorld, blocks: Blocks) -> jax.Array:
    """`arm_regrets` of all lanes, [L, B]."""
    return jax.vmap(arm_regrets)(world.gap, world.transition, world.outcomes.start, blocks)


def next_blocks(form: Any, constants: Any, state: Any) -> Blocks:
    """The next block of every lane, in the types that the engine computes with."""
    blocks = jax.vmap(form.next_block)(state, constants)
    (L, _, levels, A), (_, B) = blocks.policy.shape, blocks.episodes.shape
    chex.assert_shape([blocks.stage, blocks.rows], [(L,), (L, B, levels, A)])
    real = jnp.float64
    return Blocks(
        policy=blocks.policy.astype(real),
        stage=in_32_bits(blocks.stage).astype(jnp.int32),
        rows=blocks.rows.astype(real),
        episodes=blocks.episodes.astype(real),
    )


def check_world(world: BlockWorld, keys: tuple[Array, Array], standing: Standing) -> None:
    """That tables, keys and counters belong to the same lanes: a wrong one would be broadcast in silence.

    Looks at shapes alone, so it costs nothing in a compiled program.
    """
    L, H, levels, A = world.gap.shape
    chex.assert_shape(world.transition, (L, H, levels, A, levels))
    counters = (standing.played, standing.block, standing.wrong)
    chex.assert_shape([*keys, *counters, world.optimum, world.outcomes.start], (L,))


def advance(
    form: Any,
    feedback: str,
    world: BlockWorld,
    constants: Any,
    keys: tuple[Array, Array],
    num_episodes: Array,
    limit: Array,
    standing: Standing,
) -> tuple[Standing, PlayedArms, Array, NextBlocks]:
    """At most ``limit`` blocks (BLOCKS or fewer) in every lane: standing, what was played, how many blocks, what is next.

    Lanes that have played T episodes stay as they are, and so do those whose next block is wrong. The last turn plays
    nothing: it says what would be next, by the instructions that would play it.
    """
    check_world(world, keys, standing)
    shapes = jax.eval_shape(jax.vmap(form.next_block), standing.state, constants)
    counted = shapes.episodes.dtype  # the learner gets back the type of number that it gave
    empty = jnp.zeros((BLOCKS + 1, standing.played.size, shapes.episodes.shape[1]))

    def one(turn):
        count, p, arms = turn.count, turn.standing, turn.arms
        blocks = next_blocks(form, constants, p.state)
        following = NextBlocks(blocks=blocks, regret=regrets(world, blocks))
        unfinished = (p.played < num_episodes) & ~p.wrong
        more = (count < limit) & jnp.any(unfinished)
        unfinished = unfinished & more
        # Looked at on the device, before anything of it is played: the host sees a block only when the call is over.
        wrong = p.wrong | (unfinished & ~jax.vmap(sound)(blocks))
        playing = unfinished & ~wrong
        # Whatever goes on from here must be harmless where the block is not played.
        blocks = blocks._replace(
            stage=jnp.where(playing, blocks.stage, 0),
            episodes=jnp.where(playing[:, None], blocks.episodes, 0),
        )
        begin = _begin(p.played, blocks.episodes, num_episodes)
        played = PlayedArms(
            begin=begin,
            length=jnp.minimum(num_episodes - begin, blocks.episodes),
            regret=jnp.where(playing[:, None], following.regret, 0),
        )
        arms = jax.tree.map(lambda all_, now: all_.at[count].set(now), arms, played)
        left = num_episodes - p.played
        # A block that T cuts short is never absorbed, so its sums are not needed.
        whole = playing & (jnp.sum(blocks.episodes, -1) <= left)
        pushed = jnp.where(whole[:, None], blocks.episodes, 0)
        # By the number of the block, so that a cut into calls changes no number.
        lane_keys = fold_in(keys, p.block)
        chex.assert_equal_shape([*played, pushed])
        if feedback_kind(feedback).sums == "coins":
            totals = push_bits(world.optimum[:, None] - played.regret, pushed, lane_keys)
        else:
            totals = push_arms(world.outcomes, blocks, pushed, lane_keys)
        chex.assert_shape(totals, pushed.shape)
        given = blocks.episodes.astype(counted)
        state = jax.vmap(form.absorb)(p.state, given, totals, constants)
        return Turn(
            more=more,
            count=count + more.astype(jnp.int32),
            standing=Standing(
                state=jax.tree.map(lambda new, old: _choose(whole, new, old), state, p.state),
                played=p.played + jnp.minimum(jnp.sum(blocks.episodes, -1), left),
                block=p.block + playing.astype(jnp.uint32),
                wrong=wrong,
            ),
            arms=arms,
            following=following,
        )

    blank = jax.eval_shape(lambda: next_blocks(form, constants, standing.state))
    first = Turn(
        more=jnp.bool_(True),
        count=jnp.int32(0),
        standing=standing,
        arms=PlayedArms(empty, empty, empty),
        following=NextBlocks(
            blocks=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank), regret=empty[0]
        ),
    )
    last = jax.lax.while_loop(lambda turn: turn.more, one, first)
    return last.standing, last.arms, last.count, last.following


def _begin(played: Array, episodes: Array, num_episodes: Array) -> jax.Array:
    """Episodes before each arm, [L, B], at most T.

    Exact: sums that pass 2^53, and so are rounded, are beyond T.
    """
    left = (num_episodes - played)[:, None]
    short = jnp.minimum(episodes, left)
    before = jnp.cumsum(short, -1)[:, :-1]
    before = jnp.concatenate([jnp.zeros_like(short[:, :1]), before], -1)
    return played[:, None] + jnp.minimum(before, left)


def _choose(condition: Array, new: Array, old: Array) -> jax.Array:
    return jnp.where(condition.reshape(condition.shape + (1,) * (new.ndim - 1)), new, old)


TOLERANCE = 1e-6
"""How far from 1 probabilities may sum: those that were rounded to float32 pass, A 2^-24 < 1e-6 for up to 16 actions,
while a regret would be off by less than one part in a million."""


def check_shapes(
    name: str, form: Any, state: Any, constants: Any, sizes: tuple[int, int, int]
) -> None:
    """Raises LearnerError unless the functions of a block form fit together; ``state`` is that of one lane."""
    with named(name, "next_block"):
        # the functions themselves: jax remembers their traces
        blocks = jax.eval_shape(form.next_block, state, constants)
        check_blocks(blocks, sizes)
    with named(name, "absorb"):
        totals = jax.ShapeDtypeStruct(blocks.episodes.shape, jnp.float64)
        after = jax.eval_shape(form.absorb, state, blocks.episodes, totals, constants)
        check_same_state(state, after)


def sound(blocks: Blocks) -> jax.Array:
    """Whether a block may be played, bool []: probabilities of the policy and of the arms that have episodes, the stage,
    and the numbers of episodes."""
    H = blocks.policy.shape[0]
    played = blocks.episodes > 0
    rows = _distributions(blocks.rows) | ~played[:, None]
    stage = (blocks.stage >= 0) & (blocks.stage < H)
    # nan fails every comparison
    whole = (blocks.episodes >= 0) & (blocks.episodes < jnp.inf)
    whole = whole & (blocks.episodes == jnp.floor(blocks.episodes))
    policy = jnp.all(_distributions(blocks.policy))
    return policy & jnp.all(rows) & stage & jnp.all(whole) & jnp.any(played)


def _distributions(rows: jax.Array) -> jax.Array:
    """Whether [..., A] are probabilities, bool [...]."""
    return jnp.all(rows >= 0, axis=-1) & (jnp.abs(jnp.sum(rows, axis=-1) - 1) <= TOLERANCE)


def complaint(name: str, played: int, block: int, blocks: Blocks) -> LearnerError:
    """What is wrong with a block (numpy leaves) that is not `sound`, as an error."""
    where = f"learner {name!r}, after {played} episodes: block {block} of next_block"
    H = blocks.policy.shape[0]
    episodes = blocks.episodes
    bad = ~((episodes >= 0) & (episodes < np.inf) & (episodes == np.floor(episodes)))
    if bad.any():
        b = int(np.argmax(bad))
        return LearnerError(
            f"{where} has episodes[{b}]: {episodes[b]}; accepted: whole finite numbers from 0 on"
        )
    if not 0 <= blocks.stage < H:
        return LearnerError(f"{where} has stage: {int(blocks.stage)}; accepted: 0..{H - 1}")
    if not (episodes > 0).any():
        return LearnerError(
            f"{where} gives no arm any episodes; accepted: at least one arm with some"
        )
    found = _first_wrong(blocks.policy)
    if found is not None:
        (i, level), seen = found
        return LearnerError(
            f"{where} has policy at stage {i + 1}, level {level}: {seen}; accepted: {_ACCEPTED}"
        )
    rows = np.where((episodes > 0)[:, None, None], blocks.rows, 1 / blocks.rows.shape[-1])
    (b, level), seen = _first_wrong(rows) or ((0, 0), "nothing that the host can see")
    return LearnerError(
        f"{where} has rows of arm {b} (stage {int(blocks.stage) + 1}), level {level}: {seen}; "
        f"accepted: {_ACCEPTED}"
    )


_ACCEPTED = f"probabilities, at least 0, that sum to 1 within {TOLERANCE:g}"


def _first_wrong(rows: np.ndarray) -> tuple[tuple[int, int], str] | None:
    """The first of [n, k+1, A] that are no probabilities, and what they are."""
    wrong = ~((rows >= 0).all(-1) & (np.abs(rows.sum(-1) - 1) <= TOLERANCE))
    if not wrong.any():
        return None
    i, level = (int(j) for j in np.argwhere(wrong)[0])
    row = rows[i, level]
    shown = ", ".join(f"{p:.6g}" for p in row[:8]) + (", ..." if row.size > 8 else "")
    return (i, level), f"[{shown}] (sum {row.sum():.9g})"
