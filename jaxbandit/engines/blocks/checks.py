"""What a learner in block form must return, checked where it is used: shapes when a program is traced, values on the
device, every block.

A tile only learns that a block is wrong (`sound`); the lane stays before it, and the host asks the learner for the same
block again to say what is wrong with it (`complaint`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.errors import LearnerError
from jaxbandit.learner import Blocks
from jaxbandit.learner.fitting import check_absorbed, check_blocks, named

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
        check_absorbed(state, after)


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
