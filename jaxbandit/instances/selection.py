"""What the prophet inequality and posted pricing share: H independent values, at most k
selections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, Words, remember, value_names
from jaxbandit.types import Array

VALUES, PROBABILITIES = 0, 1
"""Roles of the keys folded in by `random_support`."""


class Support(NamedTuple):
    """The distributions of X_1..X_H, every support in increasing order."""

    values: Array
    """float [H, A]."""
    probabilities: Array
    """float [H, A]."""
    scale: Array
    """float []: what every reward is divided by, besides the capacity."""


def support(values: Any, probabilities: Any, value_scale: Any = None) -> Support:
    """Checks, sorts and scales a user's arrays [H, A]."""
    values = checks.matrix("values", values, "[H, A]")
    probabilities = checks.matrix("probabilities", probabilities, "[H, A]", values.shape)
    checks.nonnegative("values", values)
    checks.magnitudes("values", values)
    checks.distinct("values", values)
    checks.distributions("probabilities", probabilities)
    dtype = checks.float_dtype()
    if value_scale is not None:
        largest = np.max(values) if checks.is_concrete(values) else jnp.max(values)
        checks.scale("value_scale", value_scale, largest, "the largest value")
        value_scale = jnp.asarray(value_scale, dtype)
    return _sorted(jnp.asarray(values, dtype), jnp.asarray(probabilities, dtype), value_scale)


@jax.jit
def _sorted(values: Array, probabilities: Array, value_scale: Array | None) -> Support:
    order = jnp.argsort(values, axis=1, stable=True)
    values, probabilities = (jnp.take_along_axis(x, order, axis=1) for x in (values, probabilities))
    if value_scale is None:
        value_scale = jnp.maximum(jnp.max(values), 1)
    return Support(values, probabilities, value_scale)


def random_support(key: Any, horizon: Any, num_values: Any) -> Support:
    """Values uniform on [0, 1], probabilities uniform on the simplex, all independent."""
    key = checks.single_key(key)
    shape = (checks.whole("horizon", horizon), checks.whole("num_values", num_values, at_least=2))
    checks.table(("horizon", shape[0]), ("num_values", shape[1]), ("num_values", shape[1]))
    return _drawn(key, shape)


@partial(jax.jit, static_argnames="shape")
def _drawn(key: Array, shape: tuple[int, int]) -> Support:
    values = jax.random.uniform(jax.random.fold_in(key, VALUES), shape, checks.float_dtype())
    return _sorted(values, checks.simplex_rows(jax.random.fold_in(key, PROBABILITIES), shape), None)


def selection_mdp(x: Support, taken: Array, pay: Array, capacity: int) -> MDP:
    """The ordered MDP in which a selection uses one unit of capacity.

    Args:
        x: the distributions of X_1..X_H; outcome m is the m-th value.
        taken: bool [H, A, M], whether action a selects value m; a larger action selects no more
        often.
        pay: float [H, A, M], what a selection earns, before it is divided by capacity and scale.
        capacity: k, the level of the start.
    """
    horizon, num_actions, num_outcomes = taken.shape
    shape = (horizon, capacity + 1, num_actions, num_outcomes)
    sizes = ("horizon", "capacity + 1", "num_values", "num_values")
    checks.table(*zip(sizes, shape, strict=True))
    levels = jnp.arange(capacity + 1, dtype=jnp.int32)[None, :, None, None]
    reward = pay / (capacity * x.scale)
    selected = taken[:, None] & (levels > 0)
    return MDP(
        prob=jnp.broadcast_to(x.probabilities[:, None, None, :], shape),
        reward=jnp.where(selected, reward[:, None], 0),
        next_level=levels - selected.astype(jnp.int32),
        rank=jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32)[None, None, :], shape[:3]),
        start=jnp.asarray(capacity, jnp.int32),
    )


def named(mdp: MDP, x: Support, capacity: int, action_names: Callable[[Array], Words]) -> MDP:
    """The MDP with its values as names and rewards in their scale; while it is traced, without."""
    if not checks.is_concrete(x.values, x.scale, mdp.prob):
        return mdp
    words = Labels(
        scale=capacity * float(x.scale),
        actions=action_names(x.values),
        offers=value_names(x.values),
        level="capacity left",
    )
    return remember(mdp, words)
