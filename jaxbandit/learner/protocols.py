"""The signatures of a learner's functions, and what engines hand to them: `Problem` and `Blocks`.

`Learner` and `BlockForm` are tuples of these functions. Arguments are positional, so any names will
do. Functions are pure: they read their arguments and nothing else that changes. They see one
lane (seed) at a time; engines vmap them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax

from jaxbandit.types import Array, State

Params = Mapping[str, Array]
"""Hyper-parameters by name."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["num_episodes", "rank", "optimal_policy"],
    meta_fields=["horizon", "width", "num_actions"],
)
@dataclass(frozen=True)
class Problem:
    """Static problem information available to ``constants`` and ``init``.

    Example:
        >>> import jaxbandit as jb
        >>> problem = jb.Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000)
        >>> (problem.horizon, problem.width + 1)          # the shape of a deterministic policy
        (15, 3)
    """

    horizon: int
    """H, the number of stages (static: it may be used in shapes)."""
    width: int
    """k, the number of levels besides level 0 (static)."""
    num_actions: int
    """A (static)."""
    num_episodes: Any
    """T. In ``constants`` a Python int, exact however large; in ``init``, which engines compile, a
    float scalar of the engine's precision."""
    rank: Array | None = None
    """int32 [H, k+1, A], the order of Assumption 3.2: larger is likelier to stay. Only for learners
    with "rank" in ``requires``."""
    optimal_policy: Array | None = None
    """int32 [H, k+1]; only for learners with "optimal_policy" in ``requires`` (the oracle)."""


class Blocks(NamedTuple):
    """Arms to be played one after the other, independent of each other given what is known so far.

    Arm b plays ``episodes[b]`` episodes of the randomised policy ``policy`` with the row of stage
    ``stage`` replaced by ``rows[b]``. Arms of 0 episodes are skipped. A single policy is one arm
    whose row repeats the policy's own.

    Example:
        >>> import jax.numpy as jnp, jaxbandit as jb
        >>> policy = jnp.full((3, 2, 2), 0.5)             # H = 3, k = 1, A = 2
        >>> rows = jnp.eye(2)[:, None].repeat(2, axis=1)  # at stage 2 one arm for each action
        >>> block = jb.Blocks(policy, jnp.int32(1), rows, jnp.asarray([100, 100]))
        >>> block.rows.shape
        (2, 2, 2)
    """

    policy: Array
    """float [H, k+1, A]: action probabilities, shared by all arms."""
    stage: Array
    """int32 []: index 0..H-1 of the stage at which the arms differ."""
    rows: Array
    """float [B, k+1, A]: action probabilities of each arm at that stage."""
    episodes: Array
    """[B]: whole numbers of episodes. Integers are exact on every engine; a float32 is exact to
    2^24."""


class Init(Protocol):
    """The state before the first episode: a tree of arrays whose shapes and dtypes never change."""

    def __call__(self, problem: Problem, constants: Any, key: Array, /) -> State:
        """``problem``: sizes and T; ``constants``: the learner's; ``key``: a key of the lane. Compiled."""


class Act(Protocol):
    """The policy of the next episode."""

    def __call__(self, state: State, key: Array, constants: Any, /) -> Array:
        """Int [H, k+1], or a randomised Markov policy float [H, k+1, A]; ``key``: the episode's."""


class Update(Protocol):
    """The state after an episode."""

    def __call__(self, state: State, policy: Array, feedback: Any, constants: Any, /) -> State:
        """``policy``: what ``act`` returned; ``feedback``: exactly what ``learner.feedback`` names,
        see `jaxbandit.feedback`."""


class Constants(Protocol):
    """What never changes during a run.

    Plain Python on the host, never compiled: once for each instance and parameter setting, in
    float64 and exact integers (`num_episodes` is a Python int), so numpy is at home here. Engines
    round reals to their own precision and refuse whole numbers that do not fit theirs.
    """

    def __call__(self, problem: Problem, params: Params, /) -> Any:
        """A tree of numbers and arrays."""


class NextBlock(Protocol):
    """The arms to play next, at least one of them with some episodes."""

    def __call__(self, state: State, constants: Any, /) -> Blocks:
        """One lane at a time."""


class Absorb(Protocol):
    """The state after all arms of a block."""

    def __call__(self, state: State, episodes: Array, totals: Array, constants: Any, /) -> State:
        """``episodes`` [B]: whole numbers, as integers or reals; ``totals`` float [B]: the sum of
        the total rewards of each arm."""


class Report(Protocol):
    """Diagnostics of a run, for results and plots."""

    def __call__(self, state: State, /) -> dict[str, Array]:
        """Arrays by name, for one lane; called once, after the last episode, with 64-bit types
        available. Names of results (`jaxbandit.learner.RESERVED`) are refused."""


class Check(Protocol):
    """Refuses parameter values that the learner cannot mean."""

    def __call__(self, params: Mapping[str, Any], /) -> None:
        """``params``: all of them, as numbers and numpy arrays of one setting; raises ValueError
        that names the parameter, its value and what is accepted."""
