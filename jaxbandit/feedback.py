"""What an episode shows a learner: the barrier between learners and the MDP.

A learner declares one kind of feedback and receives exactly that value, never the MDP and no other
field. The kinds are the rungs of a ladder, each showing what the one below it shows, and more:

    "one-bit"      a coin that shows 1 with probability equal to the total reward
    "bandit"       the total reward
    "trajectory"   the levels and actions of the episode, and the total reward
    "segments:m"   the levels and actions, and the total reward of each of m segments of stages
    "semi-bandit"  the levels, actions, rewards and next levels of all stages

A kind is a value, `Feedback`, and is registered once; engines, learners' checks, `describe` and the
conformance suite read it. To add one, write it as those below and call `register_feedback`.

With lanes (seeds run side by side), every array has further trailing axes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp

from jaxbandit.errors import HiddenFieldError
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


class Feedback(NamedTuple):
    """A kind of feedback: what an episode shows, and how.

    Example:
        >>> kind = feedback_kind("segments:2")
        >>> kind.name, kind.fields._fields, kind.random_bits, kind.sums
        ('segments:2', ('levels', 'actions', 'totals'), False, None)
    """

    name: str
    """Such as "bandit"; one that ends in ":m" takes a whole number m in its place."""
    fields: type
    """The NamedTuple that learners get; its docstring describes the fields."""
    show: Callable[..., Any]
    """show(episode) -> fields, of a `Trajectory` of arrays [H, *lanes]. Further arguments: a random
    uint32 [*lanes] if ``random_bits``, then m if the name has one."""
    random_bits: bool = False
    """Whether ``show`` draws something of its own."""
    sums: str | None = None
    """The law of the sums over n episodes, for learners in block form: "rewards" (of the total
    rewards), "coins" (Binomial(n, V) at the policy's value V), or None: it has no such sums."""


FEEDBACKS: dict[str, Feedback] = {}
"""All kinds by name; `register_feedback` adds one."""


def register_feedback(kind: Feedback) -> Feedback:
    """Adds a kind of feedback; learners name it in ``feedback``.

    A field that the kind does not have is refused by name where a learner reads it.
    """
    if not isinstance(kind, Feedback):
        raise TypeError(f"kind: {kind!r}; accepted: a jb.feedback.Feedback")
    if kind.name in FEEDBACKS:
        raise ValueError(f"feedback {kind.name!r} is registered already; choose another name")
    if kind.sums not in (None, "rewards", "coins"):
        raise ValueError(f"sums: {kind.sums!r}; accepted: None, rewards, coins")
    names: tuple[str, ...] = kind.fields._fields  # type: ignore[attr-defined]

    def hidden(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise HiddenFieldError(
            f"{kind.name} feedback has {', '.join(names)}; {name!r} is not among them"
        )

    kind.fields.__getattr__ = hidden  # type: ignore[attr-defined]
    FEEDBACKS[kind.name] = kind
    return kind


def kinds() -> tuple[str, ...]:
    """The names of all kinds, from the one that shows least.

    Example:
        >>> kinds()[:5]
        ('one-bit', 'bandit', 'trajectory', 'segments:m', 'semi-bandit')
    """
    return tuple(FEEDBACKS)


def feedback_kind(kind: str) -> Feedback:
    """The kind of that name; an unknown one is an error that lists the known.

    Example:
        >>> feedback_kind("segments")
        Traceback (most recent call last):
        ...
        ValueError: feedback: 'segments'; accepted: one-bit, bandit, trajectory, segments:m, semi-bandit (m: 1, 2, ...)
    """
    name = kind if isinstance(kind, str) else ""
    if name in FEEDBACKS and ":" not in name:
        return FEEDBACKS[name]
    numbered = re.fullmatch("(.*):([1-9][0-9]*)", name)
    found = FEEDBACKS.get(f"{numbered[1]}:m") if numbered else None
    if numbered is None or found is None:
        raise ValueError(f"feedback: {kind!r}; accepted: {', '.join(FEEDBACKS)} (m: 1, 2, ...)")
    show, m = found.show, int(numbered[2])
    return found._replace(name=kind, show=lambda *given: show(*given, m))


def check_kind(kind: str) -> str:
    """Returns ``kind`` if it names a feedback, else raises ValueError.

    Example:
        >>> check_kind("segments:3")
        'segments:3'
    """
    return feedback_kind(kind).name


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


def observe(kind: str, episode: Trajectory, word: Array | None = None) -> Any:
    """Hides everything of an episode that the kind of feedback does not show.

    ``word`` is a random uint32 [*lanes] of the environment, for kinds with ``random_bits``: it
    decides the coin of "one-bit", whose mean is the total, to 2^-23.

    Example:
        >>> import jax.numpy as jnp
        >>> path = jnp.asarray([1, 1, 0])
        >>> episode = Trajectory(path, path, jnp.asarray([0.25, 0.5, 0.0]), path)
        >>> [float(observe("one-bit", episode, jnp.uint32(word)).total) for word in (2**31, 2**32 - 1)]
        [1.0, 0.0]
        >>> observe("segments:2", episode).totals.tolist()
        [0.25, 0.5]
    """
    known = feedback_kind(kind)
    chex.assert_equal_shape(list(episode))  # [H, *lanes] each
    if not known.random_bits:
        return known.show(episode)
    if word is None:
        raise ValueError(f"word: None; accepted: a random uint32 per lane, for feedback {kind!r}")
    chex.assert_shape(word, episode.rewards.shape[1:])
    return known.show(episode, jnp.asarray(word))


def _total(episode: Trajectory) -> Array:
    return jnp.sum(episode.rewards, axis=0)


def _one_bit(episode: Trajectory, word: Array) -> OneBitFeedback:
    total = _total(episode)
    shown = unit_float32(word).astype(total.dtype) < total
    return OneBitFeedback(shown.astype(total.dtype))


def _segments(episode: Trajectory, m: int) -> SegmentsFeedback:
    bounds = segment_bounds(episode.rewards.shape[0], m)
    totals = jnp.stack([jnp.sum(episode.rewards[a:b], axis=0) for a, b in bounds])
    return SegmentsFeedback(episode.levels, episode.actions, totals)


for _kind in (
    Feedback("one-bit", OneBitFeedback, _one_bit, random_bits=True, sums="coins"),
    Feedback("bandit", BanditFeedback, lambda x: BanditFeedback(_total(x)), sums="rewards"),
    Feedback(
        "trajectory",
        TrajectoryFeedback,
        lambda x: TrajectoryFeedback(x.levels, x.actions, _total(x)),
    ),
    Feedback("segments:m", SegmentsFeedback, _segments),
    Feedback("semi-bandit", SemiBanditFeedback, lambda x: SemiBanditFeedback(*x)),
):
    register_feedback(_kind)
