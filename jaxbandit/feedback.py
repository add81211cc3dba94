"""What an episode shows a learner: the barrier between learners and the MDP.

A learner declares one kind of feedback and receives exactly that value, never the MDP and no other
field. The kinds are the rungs of a ladder, each showing what the one below it shows, and more:

    "one-bit"      a coin that shows 1 with probability equal to the total reward
    "bandit"       the total reward
    "trajectory"   the levels and actions of the episode, and the total reward
    "segments:m"   the levels and actions, and the total reward of each of m segments of stages
    "semi-bandit"  the levels, actions, rewards and next levels of all stages

With lanes (seeds run side by side), every array has further trailing axes.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import chex
import jax.numpy as jnp

from jaxbandit.types import Array
from jaxbandit.xla.threefry import unit_float32


class Trajectory(NamedTuple):
    """What happened in one episode. Engines make it; learners only ever get what `observe` leaves
    of it."""

    levels: Array
    """int32 [H]: level visited at each stage."""
    actions: Array
    """int32 [H]: action played there."""
    rewards: Array
    """float [H]: reward paid."""
    next_levels: Array
    """int32 [H]: level reached at the next stage."""


class OneBitFeedback(NamedTuple):
    """One bit: a coin flip whose probability of 1 is the total reward of the episode.

    The field has the name of the bandit's, so that learners for bandit feedback read either.

    Fields:
        total: float [], 0 or 1.
    """

    total: Array


class BanditFeedback(NamedTuple):
    """Fully bandit feedback: the total reward of the episode and nothing else.

    Fields:
        total: float [], the sum of the episode's rewards, in [0, 1].
    """

    total: Array


class TrajectoryFeedback(NamedTuple):
    """Trajectory feedback: the states and actions visited, but only the total reward.

    Fields:
        levels: int32 [H], the level visited at each stage.
        actions: int32 [H], the action played there.
        total: float [], the sum of the episode's rewards, in [0, 1].
    """

    levels: Array
    actions: Array
    total: Array


class SegmentsFeedback(NamedTuple):
    """The states and actions visited, and the total reward of each segment of stages.

    Fields:
        levels: int32 [H], the level visited at each stage.
        actions: int32 [H], the action played there.
        totals: float [m], the rewards of each segment; its stages are those of `segment_bounds`.
    """

    levels: Array
    actions: Array
    totals: Array


class SemiBanditFeedback(NamedTuple):
    """Semi-bandit feedback: states, actions, the reward of every stage, and the next levels.

    Fields:
        levels: int32 [H], the level visited at each stage.
        actions: int32 [H], the action played there.
        rewards: float [H], the reward paid there.
        next_levels: int32 [H], the level reached at the next stage.
    """

    levels: Array
    actions: Array
    rewards: Array
    next_levels: Array


Feedback = (
    OneBitFeedback | BanditFeedback | TrajectoryFeedback | SegmentsFeedback | SemiBanditFeedback
)

KINDS = ("one-bit", "bandit", "trajectory", "segments:m", "semi-bandit")
"""The rungs, from the bottom; m stands for a whole number from 1 to H."""

_SEGMENTS = re.compile("segments:([1-9][0-9]*)")


def check_kind(kind: str) -> str:
    """Returns ``kind`` if it names a feedback, else raises ValueError.

    Example:
        >>> check_kind("segments:3")
        'segments:3'
        >>> check_kind("segments")
        Traceback (most recent call last):
        ...
        ValueError: feedback: 'segments'; accepted: one-bit, bandit, trajectory, segments:m, semi-bandit (m: 1, 2, ...)
    """
    known = isinstance(kind, str) and (
        (kind in KINDS and kind != "segments:m") or num_segments(kind) is not None
    )
    if not known:
        raise ValueError(f"feedback: {kind!r}; accepted: {', '.join(KINDS)} (m: 1, 2, ...)")
    return kind


def num_segments(kind: str) -> int | None:
    """m of "segments:m"; None for the other kinds.

    Example:
        >>> num_segments("segments:3"), num_segments("bandit")
        (3, None)
    """
    found = _SEGMENTS.fullmatch(kind)
    return None if found is None else int(found.group(1))


def segment_bounds(horizon: int, count: int) -> list[tuple[int, int]]:
    """First stage and stage after the last of each of ``count`` segments, of lengths that differ by
    at most 1.

    Example:
        >>> segment_bounds(7, 3)
        [(0, 2), (2, 4), (4, 7)]
    """
    if not 1 <= count <= horizon:
        raise ValueError(f"feedback: {count} segments; accepted: 1..{horizon} at this horizon")
    cuts = [j * horizon // count for j in range(count + 1)]
    return list(pairwise(cuts))


def observe(kind: str, episode: Trajectory, word: Array | None = None) -> Feedback:
    """Hides everything of an episode that the kind of feedback does not show.

    ``word`` is a random word, uint32 [*lanes], of the environment. It decides the coin of "one-bit"
    and is not looked at otherwise. The coin's mean is the total, to 2^-23.

    Example:
        >>> import jax.numpy as jnp
        >>> path = jnp.asarray([1, 1, 0])
        >>> episode = Trajectory(path, path, jnp.asarray([0.25, 0.5, 0.0]), path)
        >>> [float(observe("one-bit", episode, jnp.uint32(word)).total) for word in (2**31, 2**32 - 1)]
        [1.0, 0.0]
        >>> observe("segments:2", episode).totals.tolist()
        [0.25, 0.5]
    """
    check_kind(kind)
    chex.assert_equal_shape(list(episode))  # [H, *lanes] each
    if kind == "semi-bandit":
        return SemiBanditFeedback(*episode)
    if (count := num_segments(kind)) is not None:
        bounds = segment_bounds(episode.rewards.shape[0], count)
        totals = jnp.stack([jnp.sum(episode.rewards[a:b], axis=0) for a, b in bounds])
        return SegmentsFeedback(episode.levels, episode.actions, totals)
    total = jnp.sum(episode.rewards, axis=0)
    if kind == "trajectory":
        return TrajectoryFeedback(episode.levels, episode.actions, total)
    if kind == "bandit":
        return BanditFeedback(total)
    if word is None:
        raise ValueError("word: None; accepted: a random uint32 per lane, for feedback 'one-bit'")
    chex.assert_shape(word, total.shape)
    shown = unit_float32(jnp.asarray(word)).astype(total.dtype) < total
    return OneBitFeedback(shown.astype(total.dtype))
