"""The contract: a learner is a NamedTuple of pure functions.

    init(problem, params)           -> state      the state before the first episode
    act(state, key)                 -> policy     int [H, k+1], or a randomised Markov policy float [H, k+1, A]
    update(state, policy, feedback) -> state      the feedback is exactly what ``learner.feedback`` names

The state is a NamedTuple of arrays. Hyper-parameters are array leaves in ``params``, so a sweep over them is a
``vmap`` and compiles once; whatever changes the *program* (a variant, a schedule's length) is fixed when the learner
is made. A learner is made without the MDP: an engine hands ``init`` the `Problem`, which holds the sizes, the number
of episodes and, only for a learner that asks for it in ``needs``, the known order of the actions.

Learners that only ever play a fixed randomised policy n times and look at the sum are written in *block form*
(`BlockForm`) and turned into episodic ones by `from_blocks`; the block engine runs them without simulating episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.feedback import BanditFeedback
from jaxbandit.registry import Registry

Array = Any
State = Any


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["num_episodes", "rank", "optimal_policy"],
    meta_fields=["horizon", "width", "num_actions"],
)
@dataclass(frozen=True)
class Problem:
    """All that a learner is told before the first episode."""

    horizon: int
    """H (static)."""
    width: int
    """k (static)."""
    num_actions: int
    """A (static)."""
    num_episodes: Array
    """T, a float scalar."""
    rank: Array | None = None
    """int32 [H, k+1, A], the order of Assumption 3.2; only for learners with "rank" in ``needs``."""
    optimal_policy: Array | None = None
    """int32 [H, k+1]; only for learners with "optimal_policy" in ``needs`` (the oracle)."""


class Blocks(NamedTuple):
    """Arms to be played one after the other, independent of each other given what is known so far.

    Arm b plays ``episodes[b]`` episodes of the randomised policy ``policy`` with the row of stage ``stage`` replaced
    by ``rows[b]``. Arms of 0 episodes are skipped. A single policy is one arm whose row repeats the policy's own.
    """

    policy: Array
    """float [H, k+1, A]: action probabilities, shared by all arms."""
    stage: Array
    """int32 []: index 0..H-1 of the stage at which the arms differ."""
    rows: Array
    """float [B, k+1, A]: action probabilities of each arm at that stage."""
    episodes: Array
    """float [B]: whole numbers of episodes."""


class BlockForm(NamedTuple):
    """A learner that needs nothing but the sums of its blocks.

    An engine calls ``next_block``, plays the arms, and calls ``absorb`` when all of them are complete. Blocks that the
    end of the run cuts short are never absorbed.
    """

    init: Callable[[Problem, Any], State]
    next_block: Callable[[State], Blocks]
    absorb: Callable[[State, Array, Array], State]
    """absorb(state, episodes [B], totals [B]): totals are the sums of the total rewards of each arm."""
    report: Callable[[State], dict[str, Array]] | None = None
    """report(state) -> diagnostics by name, for results and plots."""


class Learner(NamedTuple):
    """A learner: three pure functions, the feedback they need, and the hyper-parameters."""

    init: Callable[[Problem, Any], State]
    act: Callable[[State, Array], Array]
    update: Callable[[State, Array, Any], State]
    feedback: str = "bandit"
    """"bandit", "trajectory" or "semi-bandit"."""
    params: Mapping[str, Array] = {}
    """Hyper-parameters by name, as array leaves."""
    name: str = "learner"
    needs: tuple[str, ...] = ()
    """Fields of `Problem` beyond the sizes: "rank", "optimal_policy"."""
    blocks: BlockForm | None = None
    """The block form, if there is one."""
    lanes_last: bool = False
    """True if act and update accept arrays with trailing lane axes (seeds side by side); else engines vmap them."""
    renewed: Callable[[State], Array] | None = None
    """renewed(state) -> bool: whether act's policy may differ from the last episode's. Optional; saves evaluations."""
    report: Callable[[State], dict[str, Array]] | None = None
    """report(state) -> diagnostics by name, for results and plots."""

    @property
    def rules(self) -> Learner:
        """The learner without its parameters: hashable, and equal for all parameter values of one program."""
        return self._replace(params=())  # type: ignore[arg-type]


class AdapterState(NamedTuple):
    """State of a block learner that is run episode by episode (with lanes, every leaf has trailing lane axes)."""

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
    """float []: sum of its rewards so far, and in ``lost`` what rounding dropped from it (compensated summation)."""
    lost: Array
    totals: Array
    """float [B]: sums of the arms that are complete."""


def from_blocks(
    form: BlockForm, *, name: str, params: Mapping[str, Array], needs: tuple[str, ...] = ()
) -> Learner:
    """The episodic learner of a block form: plays the arms in order and absorbs them when the last one is complete.

    Example:
        >>> import jax.numpy as jnp, jaxbandit as jb
        >>> def next_block(policy):                               # the state is a policy, played for ever
        ...     return jb.Blocks(policy, jnp.int32(0), policy[:1], jnp.full(1, 100.0))
        >>> def init(problem, params):
        ...     shape = (problem.horizon, problem.width + 1, problem.num_actions)
        ...     return jnp.full(shape, 1 / problem.num_actions)
        >>> form = jb.BlockForm(init, next_block, lambda policy, episodes, totals: policy)
        >>> jb.from_blocks(form, name="shuffle", params={}).feedback
        'bandit'
    """
    init, act, update, renewed, report = _adapter(form)
    return Learner(init, act, update, "bandit", params, name, needs, form, True, renewed, report)


@cache
def _adapter(form: BlockForm):
    """The functions of `from_blocks`, made once per form so that learners of one program share compilations."""

    def enter(inner: State, blocks: Blocks, totals: Array, arm: Array) -> AdapterState:
        """Starts an arm."""
        here = jnp.arange(blocks.policy.shape[0], dtype=jnp.int32) == blocks.stage
        policy = jnp.where(here[:, None, None], blocks.rows[arm][None], blocks.policy)
        zero = jnp.zeros((), totals.dtype)
        left = blocks.episodes[arm].astype(jnp.int32)
        return AdapterState(inner, blocks, policy, jnp.bool_(True), arm, left, zero, zero, totals)

    def begin(inner: State) -> AdapterState:
        """Starts the first arm of the next block."""
        blocks = form.next_block(inner)
        totals = jnp.zeros(blocks.episodes.shape, blocks.policy.dtype)
        return enter(inner, blocks, totals, jnp.argmax(blocks.episodes > 0).astype(jnp.int32))

    def turn(state: AdapterState) -> AdapterState:
        """After an arm's last episode: the next arm, or the next block. Other lanes stay as they are."""
        arms = jnp.arange(state.totals.shape[0], dtype=jnp.int32)
        totals = jnp.where(arms == state.arm, state.total, state.totals)
        waiting = (state.blocks.episodes > 0) & (arms > state.arm)
        along = enter(state.inner, state.blocks, totals, jnp.argmax(waiting).astype(jnp.int32))
        onward = begin(form.absorb(state.inner, state.blocks.episodes, totals))
        moved = jax.tree.map(lambda x, y: jnp.where(jnp.any(waiting), x, y), along, onward)
        return jax.tree.map(lambda x, y: jnp.where(state.left == 0, x, y), moved, state)

    def init(problem: Problem, params: Any) -> AdapterState:
        return begin(form.init(problem, params))

    def act(state: AdapterState, key: Array) -> Array:
        del key
        return state.policy

    def update(state: AdapterState, policy: Array, feedback: BanditFeedback) -> AdapterState:
        del policy
        term = feedback.total - state.lost
        total = state.total + term
        left = state.left - 1
        lost = (total - state.total) - term
        state = state._replace(total=total, lost=lost, left=left, renewed=jnp.zeros_like(state.renewed))
        move = turn
        for _ in left.shape:
            move = jax.vmap(move, in_axes=-1, out_axes=-1)
        # With lanes this is a real branch: arms are long, so most episodes end no arm in any lane.
        return jax.lax.cond(jnp.any(left == 0), move, lambda s: s, state)

    def renewed(state: AdapterState) -> Array:
        return state.renewed

    def report(state: AdapterState) -> dict[str, Array]:
        return {} if form.report is None else form.report(state.inner)

    return init, act, update, renewed, report


LEARNERS = Registry("learner")


def make_learner(name: str, **parameters: Any) -> Learner:
    """A registered learner by name.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ucbvi", bonus_scale=0.5).feedback
        'semi-bandit'
    """
    return LEARNERS.make(name, **parameters)


def register_learner(name: str, constructor: Callable[..., Learner]) -> Callable[..., Learner]:
    """Makes ``make_learner(name, ...)`` call your constructor.

    Example:
        >>> import jaxbandit as jb
        >>> def eager():
        ...     return jb.make_learner("ucbvi", bonus_scale=0.05)
        >>> _ = jb.register_learner("eager", eager)
        >>> jb.make_learner("eager").name
        'ucbvi'
        >>> _ = jb.LEARNERS.constructors.pop("eager")      # only to leave the registry as it was
    """
    return LEARNERS.register(name, constructor)
