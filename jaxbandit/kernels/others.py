"""Kernels of learners whose own functions run with lanes in the last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.kernels.kernel import Kernel
from jaxbandit.learners.aggregate_po import aggregate_po
from jaxbandit.learners.bandits import imed, kl_ucb, moss, thompson, ucb1
from jaxbandit.learners.policy_gradient import policy_gradient
from jaxbandit.types import Array


def lanes_last(act: Callable, update: Callable) -> Kernel:
    """Of functions that take arrays with trailing lanes: only the state is turned around."""

    def enter(state: Any, keys: Array, constants: Any) -> Any:
        del keys
        return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (state, constants))

    def updated(inner: Any, policy: Array, feedback: Any, constants: Any, live: Any) -> Any:
        state, constants = inner
        after = update(state, policy, feedback, constants)
        if live is not None:
            after = jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)
        return after, constants

    return Kernel(
        enter=enter,
        act=lambda inner, keys, _: act(inner[0], keys, inner[1]),
        update=updated,
        leave=lambda inner, _: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), inner[0]),
    )


WIDE = 64
"""Lanes of a tile where an episode is so little work that the fixed cost of a step is most of it."""
KERNELS = [
    (learner, platform, lanes_last(learner.act, learner.update)._replace(lanes=lanes))
    for learner, platforms, lanes in [
        *[(learner, ("cpu", "gpu"), None) for learner in (policy_gradient(), aggregate_po())],
        *[(learner, ("cpu",), WIDE) for learner in (ucb1(), moss())],
        *[(learner, ("cpu",), None) for learner in (kl_ucb(), imed(), thompson())],
    ]
    for platform in platforms
]
