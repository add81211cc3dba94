"""Block learners, episode by episode: the arms are played in order and absorbed when the last one
is complete."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxbandit.checks import typed
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import (
    BlockForm,
    Blocks,
    Learner,
    Problem,
    bound,
    check_contract,
)
from jaxbandit.learner.fitting import check_absorbed, check_blocks
from jaxbandit.learner.protocols import Check
from jaxbandit.types import Array, State
from jaxbandit.xla.barriers import rarely


class AdapterState(NamedTuple):
    """State of a block learner that is run episode by episode."""

    inner: State
    blocks: Blocks
    policy: Array
    """float [H, k+1, A]: the policy of the current arm."""
    arm: Array
    """int32 []: the arm being played."""
    left: Array
    """int32 []: episodes of it still to play."""
    total: Array
    """float []: sum of its rewards so far."""
    lost: Array
    """float []: what rounding dropped from it (compensated summation)."""
    totals: Array
    """float [B]: sums of the arms that are complete."""


def from_blocks(
    form: BlockForm,
    *,
    name: str,
    params: Mapping[str, Array],
    requires: tuple[str, ...] = (),
    check: Check | None = None,
) -> Learner:
    """The episodic learner of a block form: plays the arms in order and absorbs them when the last
    one is complete.

    Example:
        >>> import jax.numpy as jnp, jaxbandit as jb
        >>> def init(problem, constants, key):                    # the state is a policy, played for ever
        ...     shape = (problem.horizon, problem.width + 1, problem.num_actions)
        ...     return jnp.full(shape, 1 / problem.num_actions)
        >>> def next_block(policy, constants):
        ...     return jb.Blocks(policy, jnp.int32(0), policy[:1], jnp.full(1, 100))
        >>> def absorb(policy, episodes, totals, constants):
        ...     return policy
        >>> form = jb.BlockForm(init, next_block, absorb)
        >>> jb.from_blocks(form, name="shuffle", params={})
        Learner('shuffle', bandit)
    """
    typed("form", form, BlockForm, "a jb.BlockForm")
    made = _adapter(form)._replace(params=params, name=name, requires=requires, check=check)
    return bound(check_contract(made))


@cache
def _adapter(form: BlockForm) -> Learner:
    """The functions of `from_blocks`, made once per form so that learners of one program share
    compilations."""

    def begin(inner: State, constants: Any) -> AdapterState:
        """Starts the first arm of the next block."""
        blocks = form.next_block(inner, constants)
        check_blocks(blocks)
        blocks = Blocks(*map(jnp.asarray, blocks))
        # What cannot be played has no policy: engines stop at the episode that would begin it.
        nothing = jnp.asarray(jnp.nan, blocks.policy.dtype)
        blocks = blocks._replace(policy=jnp.where(_can_begin(blocks), blocks.policy, nothing))
        small = blocks.policy.dtype.itemsize < 4  # half floats are no place for sums
        real = jnp.float32 if small else blocks.policy.dtype
        totals = jnp.zeros(blocks.episodes.shape, real)
        return start_arm(inner, blocks, totals, jnp.argmax(blocks.episodes > 0).astype(jnp.int32))

    @rarely  # arms are long: most episodes end none
    def turn(state: AdapterState, constants: Any) -> AdapterState:
        """After an arm's last episode: the next arm, or the next block."""
        arms = jnp.arange(state.totals.shape[0], dtype=jnp.int32)
        totals = jnp.where(arms == state.arm, state.total, state.totals)
        waiting = (state.blocks.episodes > 0) & (arms > state.arm)
        along = start_arm(state.inner, state.blocks, totals, jnp.argmax(waiting).astype(jnp.int32))
        inner = form.absorb(state.inner, state.blocks.episodes, totals, constants)
        check_absorbed(state.inner, inner)
        onward = begin(inner, constants)
        return jax.tree.map(lambda x, y: jnp.where(jnp.any(waiting), x, y), along, onward)

    def init(problem: Problem, constants: Any, key: Array) -> AdapterState:
        return begin(form.init(problem, constants, key), constants)

    def act(state: AdapterState, key: Array, constants: Any) -> Array:
        del key, constants
        return state.policy

    def update(
        state: AdapterState, policy: Array, feedback: BanditFeedback, constants: Any
    ) -> AdapterState:
        del policy
        chex.assert_equal_shape([feedback.total, state.total])
        term = feedback.total - state.lost
        total = state.total + term
        left = state.left - 1
        lost = (total - state.total) - term
        state = state._replace(total=total, lost=lost, left=left)
        return turn(left == 0, state, constants)

    def report(state: AdapterState) -> dict[str, Array]:
        return {} if form.report is None else form.report(state.inner)

    return Learner(
        init=init, act=act, update=update, blocks=form, report=report, constants=form.constants
    )


def start_arm(inner: State, blocks: Blocks, totals: Array, arm: Array) -> AdapterState:
    """The state before the first episode of an arm."""
    here = jnp.arange(blocks.policy.shape[0], dtype=jnp.int32) == blocks.stage
    zero = jnp.zeros((), totals.dtype)
    return AdapterState(
        inner=inner,
        blocks=blocks,
        policy=jnp.where(here[:, None, None], blocks.rows[arm][None], blocks.policy),
        arm=arm,
        left=blocks.episodes[arm].astype(jnp.int32),
        total=zero,
        lost=zero,
        totals=totals,
    )


def _can_begin(blocks: Blocks) -> Array:
    """Whether a stage and numbers of episodes are some, bool []; probabilities are looked at when they are played."""
    episodes = blocks.episodes
    whole = episodes >= 0
    if jnp.issubdtype(episodes.dtype, jnp.floating):  # nan fails every comparison
        whole = whole & (episodes < jnp.inf) & (episodes == jnp.floor(episodes))
    stage = (blocks.stage >= 0) & (blocks.stage < blocks.policy.shape[0])
    return stage & jnp.all(whole) & jnp.any(episodes > 0)
