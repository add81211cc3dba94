"""Drives the block engine: blocks of all lanes side by side, in float64, with x64 switched on for these calls only."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import blocks, outcomes
from jaxbandit.engines.compat import x64
from jaxbandit.engines.runner import Carry, Runner, one_hot_actions
from jaxbandit.engines.threefry import fold_in, key_words
from jaxbandit.engines.world import exact_tables

STEPS = 32
"""Blocks (stages of a phase) per step by default."""


class BlockRunner(Runner):
    """Runs a learner that has a block form."""

    def __init__(self, *args: Any, **kwargs: Any):
        """See `jaxbandit.engines.make_runner`."""
        super().__init__(*args, **kwargs)
        form = self.rules.blocks
        if form is None:
            raise ValueError(
                f"engine: 'blocks'; learner {self.rules.name!r} has no block form and runs on the 'episodes' engine"
            )
        if not 1 <= self.num_episodes <= 2**53:
            raise ValueError(f"num_episodes: {self.num_episodes}; accepted on the block engine: 1..2^53")
        # The learner's functions in block form, seen by the base class as a learner.
        self.rules = self.rules._replace(init=form.init)
        self.form = form
        self.outcomes = blocks.merge_outcomes(self.mdps)
        _check_sizes(*self.outcomes.prob.shape[-3::2])

    @cached_property
    def world(self) -> blocks.World:
        """What the engine knows of the MDPs."""
        with x64():
            exact = self.mdps._replace(
                prob=jnp.asarray(_normalised(self.mdps.prob)), reward=jnp.asarray(np.asarray(self.mdps.reward, np.float64))
            )
            return blocks.World(jax.tree.map(jnp.asarray, self.outcomes), *exact_tables(exact))

    @cached_property
    def words(self) -> Any:
        """The words of the lanes' keys."""
        with x64():
            return _block_keys(key_words(self.keys))

    @property
    def bytes_per_lane(self) -> int:
        """Estimate: the learner's state, the curve, and the arms' tables and counts."""
        with x64():
            state = jax.eval_shape(self.first_state)
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)) // self.groups
        _, H, levels, A, U = self.outcomes.prob.shape
        arms = (levels - 1) * A
        return 3 * size + 16 * arms * self.points.size + 24 * (H + arms) * levels * U * A + 8 * arms * (2 * levels + 16)

    def start(self) -> Carry:
        """The carry before the first episode."""
        lanes = (self.groups, self.seeds)
        with x64():
            state = jax.tree.map(
                lambda x: np.broadcast_to(np.asarray(x)[:, None], (*lanes, *x.shape[1:])).copy(), self.first_state()
            )
        curve = np.zeros((*lanes, self.points.size))
        return {"state": state, "played": np.zeros(lanes), "block": np.zeros(lanes, np.uint32), "curve": curve}

    def step(self, carry: Carry) -> Carry:
        """At most ``chunk_size`` blocks in every lane."""
        progress = blocks.Progress(carry["state"], carry["played"], carry["block"], carry["curve"])
        with x64():
            (progress,) = self.execute(
                ("blocks", self.form.next_block, self.form.absorb),
                partial(_advance, self.form),
                (
                    self.world, self.words, jnp.asarray(self.points, jnp.float64), jnp.float64(self.num_episodes),
                    jnp.int32(self.chunk_size or STEPS), progress,
                ),
                (None, 1, None, None, None, 1),
                (1,),
            )  # fmt: skip
        before, after = np.asarray(carry["played"]), np.asarray(progress.played)
        if np.any((after == before) & (after < self.num_episodes)):
            raise ValueError(
                f"learner {self.rules.name!r}: next_block gives no arm any episodes; accepted: at least one arm with some"
            )
        return progress._asdict()

    def episodes_done(self, carry: Carry) -> int:
        """Episodes finished in every lane."""
        return int(np.min(np.asarray(carry["played"])))

    def result(self, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, lanes first."""
        with x64():
            state = jax.tree.map(jnp.asarray, carry["state"])
            world = self.world
            following, gap = _final(self.form, world, state)
            found = {
                "regret": np.asarray(carry["curve"]),
                "final_gap": np.asarray(gap),
                "final_policy": one_hot_actions(np.asarray(following)),
            }
            report = self.form.report
            if report is not None:
                for name, value in jax.vmap(jax.vmap(report))(state).items():
                    found[name] = np.asarray(value)
        return found


def _advance(form, world, keys, points, num_episodes, steps, progress):
    return (blocks.advance(form, world, keys, points, num_episodes, steps, progress),)


@jax.jit
def _block_keys(words):
    """fold_in(key, 2) of every lane; the episode engine folds in 0 and 1."""
    return fold_in(words, jnp.full(words[0].shape, 2, jnp.uint32))


@partial(jax.jit, static_argnames=("form",))
def _final(form, world, state):
    """The policy that would be played next and its regret per episode, lanes first."""

    def one(gap, transition, start, state):
        block = form.next_block(state)
        arm = jnp.argmax(block.episodes > 0)
        here = jnp.arange(block.policy.shape[0], dtype=jnp.int32) == block.stage
        policy = jnp.where(here[:, None, None], block.rows[arm][None], block.policy)
        return policy, blocks.arm_regrets(gap, transition, start, block)[arm]

    lanes = jax.vmap(jax.vmap(one, (None, None, None, 0)))
    return lanes(world.gap, world.transition, world.outcomes.start, state)


def _check_sizes(levels: int, num_outcomes: int) -> None:
    if levels > outcomes.MAX_STATES or num_outcomes > outcomes.MAX_OUTCOMES:
        raise ValueError(
            f"MDP: {levels} levels with {num_outcomes} different outcomes; accepted on the block engine: at most "
            f"{outcomes.MAX_STATES} and {outcomes.MAX_OUTCOMES} (the episode engine takes any)"
        )


def _normalised(prob: Any) -> np.ndarray:
    prob = np.asarray(prob, np.float64)
    return prob / prob.sum(-1, keepdims=True)
