"""Metrics of learners' states at the recorded episodes: what both engines do the same way.

A metric (`jaxbandit.metrics`) is evaluated on the device, lane by lane, on the learner's state *after* a recorded episode
and the policy that it would play next. Between two blocks of a block learner the state does not change, so there a
recorded episode inside a block shows the state before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.tables import exact_tables, normalised_prob, once_per_instance
from jaxbandit.learner.checks import REAL
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric, World, dims_of


@once_per_instance
def _values(mdp: MDP) -> np.ndarray:
    """Opt_{l,i}, float64 [H+1, k+1]: the tail values of a policy without gaps."""
    gap, transition = exact_tables(mdp)
    pay = (normalised_prob(mdp) * np.asarray(mdp.reward, np.float64)).sum(-1)
    values = np.zeros((len(gap) + 1, gap.shape[1]))
    for i in reversed(range(len(gap))):
        values[i] = (pay[i] + (transition[i] * values[i + 1]).sum(-1)).max(-1)
    return values


def worlds(mdps: MDP, policy: np.ndarray, constants: Any, real: Any) -> World:
    """What the metrics of W lanes may look at, leaves [W, ...]."""
    each = [jax.tree.map(lambda x, j=j: x[j], mdps) for j in range(len(mdps.prob))]
    gaps, kernels = zip(*(exact_tables(mdp) for mdp in each), strict=True)
    return World(
        transition=np.stack(kernels).astype(real),
        gap=np.stack(gaps).astype(real),
        optimal_values=np.stack([_values(mdp) for mdp in each]).astype(real),
        start=np.asarray(mdps.start, np.int32),
        policy=policy,
        constants=constants,
    )


def measure_lanes(metrics: Mapping[str, Metric], axis: int) -> Any:
    """A function of (state, world, constants) that gives all metrics of all lanes, leaves [W, ...].

    The lanes of the state and of the constants are on ``axis``, those of the world in front.
    """

    def one(state, world, constants):
        seen = world._replace(constants=constants)
        found = {}
        for name, metric in metrics.items():
            try:
                found[name] = check_value(name, metric, metric(state, seen), seen)
            except Exception as error:
                error.add_note(f"in metrics[{name!r}]")
                raise
        return found

    return jax.vmap(one, (axis, 0, axis))


def check_value(name: str, metric: Metric, value: Any, world: World) -> jax.Array:
    """What a metric gave for one run, if it is real numbers with the axes that `dims` named; else an error.

    Example:
        >>> check_value("mine", len, {"a": 1.0}, None)
        Traceback (most recent call last):
        ...
        ValueError: metrics['mine']: gives dict; accepted: a real number or an array of them
    """
    if not isinstance(value, bool | int | float) and not hasattr(value, "dtype"):
        shown = type(value).__name__
    else:
        dtype = jnp.result_type(value)
        shown = f"{dtype}{list(jnp.shape(value))}"
        if any(jnp.issubdtype(dtype, kind) for kind in REAL):
            shown = ""
    if shown:
        raise ValueError(
            f"metrics[{name!r}]: gives {shown}; accepted: a real number or an array of them"
        )
    named = dims_of(metric)
    known = dict(zip(("stage", "level", "action"), world.gap.shape[-3:], strict=True))
    seen = jnp.shape(value)
    if named is not None and (
        len(named) != len(seen)
        or any(known.get(dim, size) != size for dim, size in zip(named, seen, strict=True))
    ):
        wanted = [f"{dim}{f' ({known[dim]})' if dim in known else ''}" for dim in named]
        raise ValueError(
            f"metrics[{name!r}]: gives {dtype}{list(seen)}; accepted: the axes of its dims, "
            f"{', '.join(wanted) or 'none'}"
        )
    if isinstance(
        value, int | np.ndarray | np.generic
    ):  # jax would wrap a large whole number around
        value = np.asarray(value, np.float64)
    return jnp.asarray(value)


def blank(values: Mapping[str, np.ndarray], num_points: int) -> dict[str, np.ndarray]:
    """Arrays [W, points, ...] of nan for what `measure_lanes` gave."""
    return {
        name: np.full((len(value), num_points, *value.shape[1:]), np.nan)
        for name, value in values.items()
    }
