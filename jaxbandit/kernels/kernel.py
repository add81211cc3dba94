"""What a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Kernel(NamedTuple):
    """The functions of a learner over W lanes, with its state in another form while the episodes of a call are played.

    ``state`` and ``constants`` have their lanes in front, [W, ...]; ``inner`` is what the kernel likes; policies and
    feedback have their lanes last.
    """

    enter: Callable
    """enter(state, keys, constants) -> inner, before the first episode of a call, with the keys [W] of that episode."""
    act: Callable
    """act(inner, keys, constants) -> the policy of the next episode, int [H, k+1, W] or float [H, k+1, A, W]."""
    update: Callable
    """update(inner, policy, feedback, constants, live) -> inner after it. ``live`` is None, and every episode counts; but
    where a branch would ask the host it is a bool [], and inner stays as it is if it is false."""
    leave: Callable
    """leave(inner, constants) -> state, after the last episode of a call."""
    fits: Callable[[int, int, int], bool] = lambda horizon, width, num_actions: True
    """fits(H, k, A): whether the kernel is used at these sizes."""
    lanes: int | None = None
    """The width of a tile, where it is not the platform's."""
