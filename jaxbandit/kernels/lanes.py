"""A learner over W lanes: what a kernel is, the learner's own functions as one, and learners that take lanes last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.learner import Learner, in_32_bits
from jaxbandit.learners.aggregate_po import aggregate_po
from jaxbandit.learners.bandits import imed, kl_ucb, moss, thompson, ucb1
from jaxbandit.learners.policy_gradient import policy_gradient
from jaxbandit.types import Array


class Kernel(NamedTuple):
    """The functions of a learner over W lanes, with its state in another form while the episodes of a call are played.

    ``state`` and ``constants`` have their lanes in front, [W, ...]; ``inner`` is what the kernel likes; policies and
    feedback have their lanes last.
    """

    enter: Callable
    """enter(state, constants) -> inner, before the first episode of a call."""
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
    one_kernel: bool = False
    """Whether a stretch of episodes is one kernel of a CPU: functions of arithmetic, look-ups and loops, and so little work
    that starting kernels would be much of it."""


def if_live(update: Callable) -> Callable:
    """`Kernel.update` of a function that does not know of ``live``."""

    def updated(inner: Any, policy: Array, feedback: Any, constants: Any, live: Any) -> Any:
        after = update(inner, policy, feedback, constants)
        if live is None:
            return after
        return jax.tree.map(lambda new, old: jnp.where(live, new, old), after, inner)

    return updated


def alone(learner: Learner) -> Kernel:
    """The learner's own functions in one lane, where branches are branches and products those of matrices."""

    def first(tree: Any) -> Any:
        return jax.tree.map(lambda x: x[0], tree)

    def act(state: Any, keys: Any, constants: Any) -> Any:
        return in_32_bits(learner.act(state, keys[0], first(constants)))[..., None]

    def update(state: Any, policy: Any, seen: Any, constants: Any) -> Any:
        policy, seen = jax.tree.map(lambda x: x[..., 0], (policy, seen))
        return learner.update(state, policy, seen, first(constants))

    return Kernel(
        enter=lambda state, constants: first(state),
        act=act,
        update=if_live(update),
        leave=lambda state, constants: jax.tree.map(lambda x: jnp.asarray(x)[None], state),
    )


def vmapped(learner: Learner) -> Kernel:
    """The learner's own functions over lanes."""

    def act(state: Any, key: Any, constants: Any) -> Any:
        return in_32_bits(learner.act(state, key, constants))

    return Kernel(
        enter=lambda state, constants: state,
        act=jax.vmap(act, out_axes=-1),
        update=if_live(jax.vmap(learner.update, (0, -1, -1, 0))),
        leave=lambda state, constants: state,
    )


def lanes_last(act: Callable, update: Callable) -> Kernel:
    """Of functions that take arrays with trailing lanes: only the state and the constants are turned around."""

    def updated(inner: Any, policy: Array, feedback: Any, _: Any) -> Any:
        state, constants = inner
        return update(state, policy, feedback, constants), constants

    return Kernel(
        enter=lambda *inner: jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), inner),
        act=lambda inner, keys, _: act(inner[0], keys, inner[1]),
        update=if_live(updated),
        leave=lambda inner, _: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), inner[0]),
    )


WIDE = 64
"""Lanes of a tile where an episode is so little work that the fixed cost of a step is most of it."""
KERNELS = [
    (
        learner,
        platform,
        lanes_last(learner.act, learner.update)._replace(lanes=lanes, one_kernel=lanes == WIDE),
    )
    for learner, platforms, lanes in [
        *[(learner, ("cpu", "gpu"), None) for learner in (policy_gradient(), aggregate_po())],
        *[(learner, ("cpu",), WIDE) for learner in (ucb1(), moss())],
        *[(learner, ("cpu",), None) for learner in (kl_ucb(), imed(), thompson())],
    ]
    for platform in platforms
]
