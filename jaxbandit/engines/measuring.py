"""Metrics of learners' states at the recorded episodes: what both engines do the same way.

A metric (`jaxbandit.metrics`) is evaluated on the device, lane by lane, on the learner's state *after* a recorded episode
and the policy that it would play next. Between two blocks of a block learner the state does not change, so there a
recorded episode inside a block shows the state before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbandit.engines.tables import exact_tables, normalised_prob, once_per_instance
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric, World


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
        return {name: metric(state, seen) for name, metric in metrics.items()}

    return jax.vmap(one, (axis, 0, axis))


def blank(values: Mapping[str, np.ndarray], num_points: int) -> dict[str, np.ndarray]:
    """Arrays [W, points, ...] of nan for what `measure_lanes` gave."""
    return {
        name: np.full((len(value), num_points, *value.shape[1:]), np.nan)
        for name, value in values.items()
    }
