"""Block learners, episode by episode: the arms are played in order and absorbed when the last one
is complete."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial, reduce
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
from jaxbandit.learner.protocols import Check, Pad
from jaxbandit.types import Array, State
from jaxbandit.xla.platforms import active


class AdapterState(NamedTuple):
    """State of a block learner that is run episode by episode (with lanes, every leaf has trailing
    lane axes)."""

    inner: State
    blocks: Blocks
    policy: Array
    """float [H, k+1, A]: the policy of the current arm."""
    renewed: Array
    """bool []: whether this policy is played for the first time."""
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
        return start_arm(inner, blocks, totals, _first(blocks.episodes > 0))

    def turn(state: AdapterState, constants: Any) -> AdapterState:
        """After an arm's last episode: the next arm, or the next block. Other lanes stay as they
        are."""
        arms = jnp.arange(state.totals.shape[0], dtype=jnp.int32)
        totals = jnp.where(arms == state.arm, state.total, state.totals)
        waiting = (state.blocks.episodes > 0) & (arms > state.arm)
        along = start_arm(state.inner, state.blocks, totals, _first(waiting))
        more = _any(waiting)
        inner = form.absorb(state.inner, state.blocks.episodes, totals, constants)
        check_absorbed(state.inner, inner)
        onward = begin(inner, constants)
        moved = jax.tree.map(lambda x, y: jnp.where(more, x, y), along, onward)
        return jax.tree.map(lambda x, y: jnp.where(state.left == 0, x, y), moved, state)

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
        state = state._replace(
            total=total, lost=lost, left=left, renewed=jnp.zeros_like(state.renewed)
        )
        move = turn
        for _ in left.shape:
            move = jax.vmap(move, in_axes=-1, out_axes=-1)
        if not active().branches:
            return move(state, constants)
        # With lanes this is a real branch: arms are long, so most episodes end no arm in any lane.
        return jax.lax.cond(jnp.any(left == 0), move, lambda state, _: state, state, constants)

    def pad(inner_pad: Pad, state: AdapterState, constants: Any) -> AdapterState:
        """There are more arms, in another order: the first block is made anew."""
        return begin(inner_pad(state.inner, constants), constants)

    def renewed(state: AdapterState) -> Array:
        return state.renewed

    def report(state: AdapterState) -> dict[str, Array]:
        return {} if form.report is None else form.report(state.inner)

    return Learner(
        init=init,
        act=act,
        update=update,
        blocks=form,
        lanes_last=True,
        renewed=renewed,
        report=report,
        constants=form.constants,
        pad=None if form.pad is None else partial(pad, form.pad),
    )


def start_arm(inner: State, blocks: Blocks, totals: Array, arm: Array) -> AdapterState:
    """The state of one lane before the first episode of an arm."""
    here = jnp.arange(blocks.policy.shape[0], dtype=jnp.int32) == blocks.stage
    zero = jnp.zeros((), totals.dtype)
    return AdapterState(
        inner=inner,
        blocks=blocks,
        policy=jnp.where(here[:, None, None], _pick(blocks.rows, arm)[None], blocks.policy),
        renewed=jnp.bool_(True),
        arm=arm,
        left=_pick(blocks.episodes, arm).astype(jnp.int32),
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
    return stage & ~_any(~whole) & _any(episodes > 0)


# Where nothing branches this runs every episode: written out entry by entry it is one with what stands around it, while a
# gather or a reduction is a kernel of its own.


def _pick(rows: Array, arm: Array) -> Array:
    """rows[arm]."""
    if active().branches:
        return rows[arm]
    found = rows[0]
    for b in range(1, rows.shape[0]):
        found = jnp.where(arm == b, rows[b], found)
    return found


def _any(wanted: Array) -> Array:
    """Whether any arm is wanted, bool []."""
    return jnp.any(wanted) if active().branches else reduce(jnp.logical_or, list(wanted))


def _first(wanted: Array) -> Array:
    """The first arm that is wanted, int32; 0 if none is."""
    if active().branches:
        return jnp.argmax(wanted).astype(jnp.int32)
    found = jnp.int32(0)
    for b in reversed(range(wanted.shape[0])):
        found = jnp.where(wanted[b], jnp.int32(b), found)
    return found
