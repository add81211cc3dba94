"""Kernels of learners whose own functions run with lanes in the last axis, or nearly so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.kernels.kernel import Kernel
from jaxbandit.learner import Learner
from jaxbandit.learners.aggregate_po import aggregate_po
from jaxbandit.learners.from_blocks import Adapter, AdapterState
from jaxbandit.learners.policy_gradient import policy_gradient
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active


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


def adapter_kernel(learner: Learner) -> Kernel | None:
    """The kernel of a learner of `from_blocks`, if its functions are those of one: one branch for all lanes."""
    adapter = getattr(learner.update, "__self__", None)
    if not isinstance(adapter, Adapter) or (learner.init, learner.act, learner.update) != (
        adapter.init,
        adapter.act,
        adapter.update,
    ):
        return None
    if learner.constants is not adapter.form.constants:
        return None

    def turn(state: AdapterState, constants: Any) -> AdapterState:
        moved = adapter.turn(state, constants)
        return jax.tree.map(lambda x, y: jnp.where(state.left == 0, x, y), moved, state)

    def update(state: AdapterState, policy: Array, feedback: Any, constants: Any) -> AdapterState:
        del policy
        state = adapter.add(state, feedback.total)
        move = jax.vmap(turn, (-1, -1), -1)
        if not active().branches:
            return move(state, constants)
        # Arms are long: most episodes end none in any lane.
        ended = jnp.any(state.left == 0)
        return jax.lax.cond(ended, move, lambda state, _: state, state, constants)

    return lanes_last(adapter.act, update)


KERNELS = [
    (learner, platform, lanes_last(learner.act, learner.update))
    for learner in (policy_gradient(), aggregate_po())
    for platform in ("cpu", "gpu")
]
