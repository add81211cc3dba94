"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) over all deterministic policies: the natural first
attempt under bandit feedback, and what the paper's learners improve on.

Every assignment of actions to states is an arm. After each was played once, the arm of largest

    mean total reward + c sqrt(2 ln t / (times played))

is played in episode t, with c = ``bonus_scale`` (1 in the reference); ties go to the first arm. There are A^n arms for n
states, so it is for tiny MDPs only and refuses others. Without further knowledge all states of
levels 1..k count; ``reachable`` leaves out states that no policy visits, where actions do not
matter.

Deviations from the reference: none beyond c.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import Learner, Problem
from jaxbandit.specs import Real, as_params, takes
from jaxbandit.types import Array

MOST_ARMS = 2**16


class UCBState(NamedTuple):
    """What each of the P arms has paid."""

    played: Array
    """int32 [P]."""
    total: Array
    """float32 [P]: sum of total rewards, and in ``lost`` what rounding dropped from it."""
    lost: Array
    policy: Array
    """int32 [H, k+1]: the next arm, as a policy."""
    arm: Array
    """int32 []: its number."""
    episodes: Array
    """int32 []: episodes so far."""


class UCBConstants(NamedTuple):
    """The scale of the bonus, and how an arm's number says its policy."""

    scale: Array
    """float32 []: c."""
    values: Array
    """int32 [H, k+1]: the action of arm x at a state is x // value % A; 0 where there is no choice."""
    num_actions: Array
    """int32 []: A."""


@takes(bonus_scale=Real(low=0))
def ucb_policies(bonus_scale: float = 1.0, reachable: Any = None) -> Learner:
    """UCB1 with an arm for every deterministic policy; at most 65,536 of them.

    Args:
        bonus_scale: c >= 0.
        reachable: bool [H, k+1], the states whose actions matter, such as
            ``jb.visitation(mdp, uniform_policy) > 0``; all states of levels 1..k if not given.

    Example:
        >>> ucb_policies(reachable=[[False, True], [False, True]]).feedback
        'bandit'
    """
    table = None
    if reachable is not None:
        array = np.asarray(reachable)
        if array.dtype != bool or array.ndim != 2:
            raise ValueError(
                f"reachable: {array.dtype} {list(array.shape)}; accepted: bool [H, k+1]"
            )
        table = tuple(map(tuple, array.tolist()))
    constants, init = _functions(table)
    return Learner(
        init=init,
        act=act,
        update=update,
        name="ucb-policies",
        constants=constants,
        **as_params(ucb_policies.specs, bonus_scale=bonus_scale),  # type: ignore[attr-defined]
    )


def act(state: UCBState, key: Array, constants: UCBConstants) -> Array:
    """The arm of the largest index."""
    del key, constants
    return state.policy


def index(state: UCBState, scale: Array) -> Array:
    """Upper confidence bounds [P]; inf for arms that were never played."""
    times = jnp.maximum(state.played, 1).astype(jnp.float32)
    log_t = jnp.log(jnp.maximum(state.episodes, 1).astype(jnp.float32))
    bound = state.total / times + scale * jnp.sqrt(2 * log_t / times)
    return jnp.where(state.played == 0, jnp.inf, bound)


def place_values(shape: tuple[int, int], num_actions: int, reachable: Any = None) -> np.ndarray:
    """The place value of every state in the number of an arm, int [H, k+1].

    Example:
        >>> place_values((2, 3), 3).tolist()
        [[0, 1, 3], [0, 9, 27]]
        >>> place_values((9, 3), 5)
        Traceback (most recent call last):
        ...
        ValueError: ucb-policies: 5^18 = 3,814,697,265,625 policies; accepted: at most 65,536 (name the reachable states, or take a smaller MDP)
    """
    open_ = np.ones(shape, bool)
    if reachable is not None:
        if np.shape(reachable) != shape:
            raise ValueError(
                f"reachable: {list(np.shape(reachable))}; accepted: {list(shape)} in this MDP"
            )
        open_ = np.array(reachable)
    open_[:, 0] = False
    count = int(open_.sum())
    if num_actions**count > MOST_ARMS:
        raise ValueError(
            f"ucb-policies: {num_actions}^{count} = {num_actions**count:,} policies; accepted: "
            f"at most {MOST_ARMS:,} (name the reachable states, or take a smaller MDP)"
        )
    values = np.zeros(shape, np.int64)
    values[open_] = num_actions ** np.arange(count)
    return values


@cache
def _functions(reachable: tuple[tuple[bool, ...], ...] | None):
    """constants and init for a table of states; the same objects for the same table."""

    def constants(problem: Problem, params: Any) -> UCBConstants:
        """c, and the place values."""
        shape = (problem.horizon, problem.width + 1)
        values = place_values(shape, problem.num_actions, reachable)
        return UCBConstants(
            scale=np.float32(params["bonus_scale"]),
            values=values.astype(np.int32),
            num_actions=np.int32(problem.num_actions),
        )

    def init(problem: Problem, constants: Any, key: Array) -> UCBState:
        """No arm was played."""
        del constants, key
        shape = (problem.horizon, problem.width + 1)
        values = place_values(shape, problem.num_actions, reachable)
        arms = problem.num_actions ** int((values > 0).sum())
        zeros = jnp.zeros(arms, jnp.float32)
        return UCBState(
            played=jnp.zeros(arms, jnp.int32),
            total=zeros,
            lost=zeros,
            policy=jnp.zeros(shape, jnp.int32),
            arm=jnp.int32(0),
            episodes=jnp.int32(0),
        )

    return constants, init


def update(
    state: UCBState, policy: Array, feedback: BanditFeedback, constants: UCBConstants
) -> UCBState:
    """Counts the episode; the next arm is that of the largest index."""
    del policy
    chex.assert_shape(feedback.total, ())
    here = jnp.arange(state.played.size, dtype=jnp.int32) == state.arm
    term = jnp.where(here, feedback.total.astype(jnp.float32) - state.lost, 0)
    total = state.total + term
    state = state._replace(
        played=state.played + here.astype(jnp.int32),
        total=total,
        lost=jnp.where(here, (total - state.total) - term, state.lost),
        episodes=state.episodes + 1,
    )
    arm = jnp.argmax(index(state, constants.scale)).astype(jnp.int32)
    digit = arm // jnp.maximum(constants.values, 1) % constants.num_actions
    return state._replace(arm=arm, policy=jnp.where(constants.values > 0, digit, 0))
