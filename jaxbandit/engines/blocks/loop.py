"""The loop over blocks: a learner in block form, block after block, with exact regrets and exact-in-law sums.

The regret of an arm is its number of episodes times an exactly known number, and its rewards are summed by pushing
counts through the stages (`machine.push_arms`) or, where a bit is shown, drawn at once (`machine.push_bits`), so a run
costs a number of blocks, not of episodes. Everything is float64 (whole numbers are exact to 2^53) and needs x64.

A call plays at most BLOCKS blocks in every lane of a tile and says of each arm when it began, how long it was and what
an episode of it costs; the host makes curves of that (`runner.extend`). So neither T nor the recorded episodes are sizes
of the program.

What a block may be is said once (`examine`). A tile only learns that one is wrong, and the lane stays before it; the
host looks at the same block again to say what is wrong with it (`complaint`)."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks.machine import Outcomes, push_arms, push_bits
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import feedback_kind
from jaxbandit.learner import Blocks, check_blocks, check_same_state, in_32_bits, named
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64
from jaxbandit.xla.platforms import active
from jaxbandit.xla.threefry import fold_in

BLOCKS = 32
"""Blocks (stages of a phase) that one call plays at most."""
KEY_ROLE = 2
"""Lanes fold this into their key; the episode engine folds in 0 and 1, ``init`` gets 3 on both."""
TOLERANCE = 1e-6
"""How far from 1 probabilities may sum: those that were rounded to float32 pass, A 2^-24 < 1e-6 for up to 16 actions,
while a regret would be off by less than one part in a million."""


PlayedArms = tuple[Array, Array, Array]
"""The arms that were played, float64 [BLOCKS + 1, L, B] each, blocks in order; the last row is never one: episodes before
the arm, at most T; episodes of it, those after T left out; the exact regret of one episode."""


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


def next_blocks(form: Any, world: BlockWorld, constants: Any, state: Any) -> tuple[Blocks, Array]:
    """The next block of every lane, in the types that the engine computes with, and the regrets of its arms [L, B]."""
    blocks = jax.vmap(form.next_block)(state, constants)
    real = jnp.float64
    blocks = Blocks(
        policy=blocks.policy.astype(real),
        stage=in_32_bits(blocks.stage).astype(jnp.int32),
        rows=blocks.rows.astype(real),
        episodes=blocks.episodes.astype(real),
    )
    known = world.gap, world.transition, world.outcomes.start
    return blocks, jax.vmap(arm_regrets)(*known, blocks)


def advance(
    form: Any,
    feedback: str,
    world: BlockWorld,
    constants: Any,
    words: Array,
    num_episodes: Array,
    limit: Array,
    standing: Standing,
) -> tuple[Standing, Array, tuple[Blocks, Array], PlayedArms, Array]:
    """At most ``limit`` blocks (BLOCKS or fewer) in every lane: where it stands, whether its next block is wrong, that
    block with the regrets of its arms, what was played, and how many blocks.

    ``words`` uint32 [L, 2] are those of the lanes' keys. Lanes that have played T episodes stay as they are, and so do
    those whose next block is wrong. The last turn plays nothing: it says what would be next, by the instructions that
    would play it.
    """
    role = jnp.full(standing.played.shape, KEY_ROLE, jnp.uint32)
    keys = fold_in((words[:, 0], words[:, 1]), role)
    ahead = partial(next_blocks, form, world, constants)
    shapes = jax.eval_shape(jax.vmap(form.next_block), standing.state, constants)
    counted = shapes.episodes.dtype  # the learner gets back the type of number that it gave

    def one(turn):
        _, count, p, wrong, _, arms = turn
        following = blocks, regret = ahead(p.state)
        unfinished = (p.played < num_episodes) & ~wrong
        more = (count < limit) & jnp.any(unfinished)
        unfinished = unfinished & more
        # Looked at on the device, before anything of it is played: the host sees a block only when the call is over.
        wrong = wrong | (unfinished & ~jax.vmap(sound)(blocks))
        playing = unfinished & ~wrong
        # Whatever goes on from here must be harmless where the block is not played.
        blocks = blocks._replace(
            stage=jnp.where(playing, blocks.stage, 0),
            episodes=jnp.where(playing[:, None], blocks.episodes, 0),
        )
        begin = _begin(p.played, blocks.episodes, num_episodes)
        length = jnp.minimum(num_episodes - begin, blocks.episodes)
        regret = jnp.where(playing[:, None], regret, 0)
        played = begin, length, regret
        arms = jax.tree.map(lambda all_, now: all_.at[count].set(now), arms, played)
        left, wanted = num_episodes - p.played, jnp.sum(blocks.episodes, -1)
        # A block that T cuts short is never absorbed, so its sums are not needed.
        whole = playing & (wanted <= left)
        pushed = jnp.where(whole[:, None], blocks.episodes, 0)
        # By the number of the block, so that a cut into calls changes no number.
        lane_keys = fold_in(keys, p.block)
        if feedback_kind(feedback).sums == "coins":
            totals = push_bits(world.optimum[:, None] - regret, pushed, lane_keys)
        else:
            totals = push_arms(world.outcomes, blocks, pushed, lane_keys)
        given = blocks.episodes.astype(counted)
        state = jax.vmap(form.absorb)(p.state, given, totals, constants)
        p = Standing(
            state=jax.tree.map(partial(jax.vmap(jnp.where), whole), state, p.state),
            played=p.played + jnp.minimum(wanted, left),
            block=p.block + playing.astype(jnp.uint32),
        )
        return more, count + more.astype(jnp.int32), p, wrong, following, arms

    shapes = jax.eval_shape(ahead, standing.state)
    blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    arms = (jnp.zeros((BLOCKS + 1, *shapes[1].shape)),) * 3
    wrong = jnp.zeros(standing.played.shape, bool)
    first = jnp.bool_(True), jnp.int32(0), standing, wrong, blank, arms
    _, count, *found = jax.lax.while_loop(lambda turn: turn[0], one, first)
    return *found, count


def _begin(played: Array, episodes: Array, num_episodes: Array) -> jax.Array:
    """Episodes before each arm, [L, B], at most T.

    Exact: sums that pass 2^53, and so are rounded, are beyond T.
    """
    left = (num_episodes - played)[:, None]
    short = jnp.minimum(episodes, left)
    before = jnp.cumsum(short, -1)[:, :-1]
    before = jnp.concatenate([jnp.zeros_like(short[:, :1]), before], -1)
    return played[:, None] + jnp.minimum(before, left)


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


def examine(blocks: Blocks) -> tuple[Array, Array, Array, Array, Array]:
    """What is right in a block, bools: numbers of episodes [B], the stage [], that some arm has episodes [], probabilities
    of the policy [H, k+1] and of the arms that have episodes [B, k+1]."""
    episodes = blocks.episodes
    # nan fails every comparison
    whole = (episodes >= 0) & (episodes < jnp.inf) & (episodes == jnp.floor(episodes))
    stage = (blocks.stage >= 0) & (blocks.stage < blocks.policy.shape[0])
    policy, rows = (
        jnp.all(p >= 0, axis=-1) & (jnp.abs(jnp.sum(p, axis=-1) - 1) <= TOLERANCE)
        for p in (blocks.policy, blocks.rows)
    )
    played = episodes > 0
    return whole, stage, jnp.any(played), policy, rows | ~played[:, None]


def sound(blocks: Blocks) -> jax.Array:
    """Whether a block may be played, bool []."""
    return jnp.all(jnp.stack([jnp.all(right) for right in examine(blocks)]))


def complaint(name: str, played: int, block: int, blocks: Blocks) -> LearnerError:
    """What is wrong with a block (numpy leaves) that is not `sound`, as an error."""
    with x64():
        whole, stage, some, policy, rows = map(np.asarray, examine(blocks))
    episodes, H = blocks.episodes, blocks.policy.shape[0]
    if not whole.all():
        b = int(np.argmin(whole))
        seen = f"has episodes[{b}]: {episodes[b]}; accepted: whole finite numbers from 0 on"
    elif not stage:
        seen = f"has stage: {int(blocks.stage)}; accepted: 0..{H - 1}"
    elif not some:
        seen = "gives no arm any episodes; accepted: at least one arm with some"
    else:
        right, table = (rows, blocks.rows) if policy.all() else (policy, blocks.policy)
        i, level = (int(j) for j in np.unravel_index(np.argmin(right), right.shape))
        at = (
            f"rows of arm {i} (stage {int(blocks.stage) + 1})"
            if policy.all()
            else f"policy at stage {i + 1}"
        )
        row = table[i, level]
        shown = ", ".join(f"{p:.6g}" for p in row[:8]) + (", ..." if row.size > 8 else "")
        seen = (
            f"has {at}, level {level}: [{shown}] (sum {row.sum():.9g}); accepted: probabilities, at least 0, "
            f"that sum to 1 within {TOLERANCE:g}"
        )
    return LearnerError(
        f"learner {name!r}, after {played} episodes: block {block} of next_block {seen}"
    )
