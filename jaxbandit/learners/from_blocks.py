"""Learners made of others: block learners episode by episode, and bandit learners on one bit an episode.

`from_blocks`: the arms are played in order and absorbed when the last one is complete.

`one_bit`: instead of the total reward X of an episode the learner is shown a coin B that falls on 1 with
probability X, given everything that happened. E[B | policy] = E[X | policy], and B lies in [0, 1]
as X does. So whatever is proved of a bandit learner from

    the mean of an episode's feedback is the value of its policy,
    the feedback of different episodes is independent given their policies, and
    the feedback lies in [0, 1] (Hoeffding's inequality)

holds unchanged. That is all that the analysis of ExpRef (Theorem 3.1) and OrderedExpRef (Theorem
3.11) uses: Phi is the mean, and Lemma 3.6 is Hoeffding's inequality for the mean of n episodes. The
bounds are those of bandit feedback to the last constant. What is lost is variance: V (1 - V) of a
coin is the largest that feedback in [0, 1] with mean V can have. It carries over to whatever else
rests on these three alone, such as `expref_shared` and `prophet_bandit` with their "theory" presets.

In block form n episodes of a policy of value V are one draw from Binomial(n, V), exactly: the
cheapest runs that there are, for any T up to 2^53 (`jaxbandit.engines.blocks.machine`).
"""

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
    Check,
    Learner,
    Problem,
    check_blocks,
    check_contract,
    check_same_state,
)
from jaxbandit.types import Array, State


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
    adapter = _adapter(form)
    made = Learner(
        adapter.init,
        adapter.act,
        adapter.update,
        params=params,
        name=name,
        requires=requires,
        blocks=form,
        report=adapter.report,
        constants=form.constants,
        check=check,
    )
    return check_contract(made)


def one_bit(learner: Learner) -> Learner:
    """The same learner, shown one bit an episode instead of the total reward.

    A block form is kept: it is told how many of an arm's bits are 1, where it was told the sum of
    the totals.

    Example:
        >>> import jaxbandit as jb
        >>> one_bit(jb.make_learner("expref", preset="practical")).feedback
        'one-bit'
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> learners = {"ExpRef": one_bit(jb.make_learner("expref"))}
        >>> long = jb.sweep(learners, {"I1": mdp}, num_episodes=10**12, num_seeds=1, progress=False)
        >>> float(long["regret"][0, 0, 0, -1]) < 1e-4 * 10**12
        True
        >>> one_bit(jb.make_learner("ucbvi"))
        Traceback (most recent call last):
        ...
        ValueError: learner: 'ucbvi' with feedback 'semi-bandit'; accepted: learners with feedback 'bandit'
    """
    typed("learner", learner, Learner, "a Learner, as make_learner gives it")
    if learner.feedback != "bandit":
        raise ValueError(
            f"learner: {learner.name!r} with feedback {learner.feedback!r}; "
            "accepted: learners with feedback 'bandit'"
        )
    return learner._replace(feedback="one-bit")


class Adapter:
    """The functions of `from_blocks`."""

    def __init__(self, form: BlockForm):
        """Of one block form."""
        self.form = form

    def init(self, problem: Problem, constants: Any, key: Array) -> AdapterState:
        """Before the first episode of the first block."""
        return self.begin(self.form.init(problem, constants, key), constants)

    def act(self, state: AdapterState, key: Array, constants: Any) -> Array:
        """The policy of the current arm."""
        del key, constants
        return state.policy

    def update(
        self, state: AdapterState, policy: Array, feedback: BanditFeedback, constants: Any
    ) -> AdapterState:
        """One more episode of the arm; after its last one, the next arm or the next block."""
        del policy
        chex.assert_equal_shape([feedback.total, state.total])
        term = feedback.total - state.lost
        total = state.total + term
        lost = (total - state.total) - term
        state = state._replace(total=total, lost=lost, left=state.left - 1)
        # A loop of no turn or one and not a branch, which under vmap would take the turn after every episode.
        ended = (state.left == 0, state)
        return jax.lax.while_loop(
            lambda ended: ended[0],
            lambda ended: (jnp.bool_(False), self.turn(ended[1], constants)),
            ended,
        )[1]

    def turn(self, state: AdapterState, constants: Any) -> AdapterState:
        """After an arm's last episode: the next arm, or the next block."""
        arms = jnp.arange(state.totals.shape[0], dtype=jnp.int32)
        totals = jnp.where(arms == state.arm, state.total, state.totals)
        waiting = (state.blocks.episodes > 0) & (arms > state.arm)
        along = start_arm(state.inner, state.blocks, totals, waiting)
        inner = self.form.absorb(state.inner, state.blocks.episodes, totals, constants)
        check_same_state(state.inner, inner)
        onward = self.begin(inner, constants)
        return jax.tree.map(lambda x, y: jnp.where(jnp.any(waiting), x, y), along, onward)

    def begin(self, inner: State, constants: Any) -> AdapterState:
        """Starts the first arm of the next block."""
        blocks = self.form.next_block(inner, constants)
        check_blocks(blocks)
        blocks = Blocks(*map(jnp.asarray, blocks))
        # What cannot be played has no policy: engines stop at the episode that would begin it.
        nothing = jnp.asarray(jnp.nan, blocks.policy.dtype)
        blocks = blocks._replace(policy=jnp.where(_can_begin(blocks), blocks.policy, nothing))
        small = blocks.policy.dtype.itemsize < 4  # half floats are no place for sums
        totals = jnp.zeros(blocks.episodes.shape, jnp.float32 if small else blocks.policy.dtype)
        return start_arm(inner, blocks, totals, blocks.episodes > 0)

    def report(self, state: AdapterState) -> dict[str, Array]:
        """That of the block form."""
        return {} if self.form.report is None else self.form.report(state.inner)


_adapter = cache(Adapter)
"""Made once per form, so that learners of one program share compilations."""


def start_arm(inner: State, blocks: Blocks, totals: Array, waiting: Array) -> AdapterState:
    """The state before the first episode of the first arm that is ``waiting``, bool [B]."""
    here = jnp.arange(blocks.policy.shape[0], dtype=jnp.int32) == blocks.stage
    arm = jnp.argmax(waiting).astype(jnp.int32)
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
    # In float32 they are still whole or not; nan fails every comparison.
    episodes = blocks.episodes.astype(jnp.float32)
    whole = (episodes >= 0) & (episodes < jnp.inf) & (episodes == jnp.floor(episodes))
    stage = (blocks.stage >= 0) & (blocks.stage < blocks.policy.shape[0])
    return stage & jnp.all(whole) & jnp.any(episodes > 0)
