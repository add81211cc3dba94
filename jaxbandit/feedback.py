"""What an episode shows a learner: the barrier between learners and the MDP.

A learner declares one of three kinds of feedback and receives exactly that value, never the MDP and no other field.
With lanes (seeds run side by side), every array has further trailing axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

Array = Any


class Trajectory(NamedTuple):
    """What happened in one episode. Engines make it; learners only ever get what `observe` leaves of it."""

    levels: Array
    """int32 [H]: level visited at each stage."""
    actions: Array
    """int32 [H]: action played there."""
    rewards: Array
    """float [H]: reward paid."""
    next_levels: Array
    """int32 [H]: level reached at the next stage."""


class BanditFeedback(NamedTuple):
    """Fully bandit feedback: the total reward of the episode and nothing else."""

    total: Array
    """float []."""


class TrajectoryFeedback(NamedTuple):
    """Trajectory feedback: the states and actions visited, but only the total reward."""

    levels: Array
    actions: Array
    total: Array


class SemiBanditFeedback(NamedTuple):
    """Semi-bandit feedback: states, actions, the reward of every stage, and the next levels."""

    levels: Array
    actions: Array
    rewards: Array
    next_levels: Array


KINDS = ("bandit", "trajectory", "semi-bandit")


def check_kind(kind: str) -> str:
    """Returns ``kind`` if it names a feedback, else raises ValueError."""
    if kind not in KINDS:
        raise ValueError(f"feedback: {kind!r}; accepted: {', '.join(KINDS)}")
    return kind


def observe(kind: str, episode: Trajectory) -> BanditFeedback | TrajectoryFeedback | SemiBanditFeedback:
    """Hides everything of an episode that the kind of feedback does not show."""
    check_kind(kind)
    if kind == "semi-bandit":
        return SemiBanditFeedback(*episode)
    total = jnp.sum(episode.rewards, axis=0)
    if kind == "trajectory":
        return TrajectoryFeedback(episode.levels, episode.actions, total)
    return BanditFeedback(total)
