"""What both engines know of one instance: probabilities that sum to 1, exact gaps, exact kernels.

Everything is float64, made on the host for one MDP alone and kept by the bytes of its arrays: no number depends on
what an instance is stacked with, and equal instances share the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import chex
import jax
import numpy as np

from jaxbandit.mdp import MDP, digest
from jaxbandit.metrics import World

KEPT = 1024
"""Instances of which each function keeps its value."""

Value = TypeVar("Value")


def once_per_instance(function: Callable[[MDP], Value]) -> Callable[[MDP], Value]:
    """``function`` of an MDP, called once for equal MDPs while its value is kept; threads may share it.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> shape = once_per_instance(lambda mdp: list(mdp.prob.shape))
        >>> shape(mdp) is shape(mdp)
        True
    """
    kept: dict[str, Value] = {}

    @wraps(function)
    def call(mdp: MDP) -> Value:
        name = digest(mdp)
        if (value := kept.get(name)) is None:
            value = kept[name] = function(mdp)
            for old in list(kept)[:-KEPT]:
                kept.pop(old, None)
        return value

    return call


def unstacked(mdps: MDP) -> list[MDP]:
    """The MDPs of a stack [W, ...], one by one."""
    return [jax.tree.map(lambda x, lane=lane: x[lane], mdps) for lane in range(len(mdps.prob))]


def normalised_prob(mdp: MDP) -> np.ndarray:
    """The probabilities of the outcomes, float64 [H, k+1, A, M], divided by their sums.

    An MDP's may be float32, whose sums are off by 1e-7; whatever is drawn or computed is made from these.

    Example:
        >>> import jaxbandit as jb, numpy as np
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> float(abs(normalised_prob(mdp).sum(-1) - 1).max()) < 1e-15
        True
    """
    prob = np.asarray(mdp.prob, np.float64)
    return prob / prob.sum(-1, keepdims=True)


def exact_tables(mdp: MDP) -> tuple[np.ndarray, np.ndarray]:
    """Gaps Opt_{l,i} - Q*_{l,i}(a) as [H, k+1, A] and kernels p_i(s | l, a) as [H, k+1, A, k+1].

    Gaps are exactly 0 at optimal actions. The arrays are shared: they cannot be written to.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> gap, transition = exact_tables(mdp)
        >>> [f"{x:.3f}" for x in gap[0, 1]], [f"{x:.3f}" for x in transition[0, 1, :, 1]]
        (['0.000', '0.000', '0.167'], ['0.333', '0.667', '1.000'])
    """
    return _solved(mdp)[:2]


def optimal_value(mdp: MDP) -> float:
    """The optimal value from the start level, in float64.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> round(optimal_value(mdp), 4)
        0.7778
    """
    return float(_solved(mdp)[2][0, int(mdp.start)])


@once_per_instance
def _solved(mdp: MDP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaps, kernels and Opt_{l,i} [H+1, k+1], by backward induction."""
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    following = np.asarray(mdp.next_level)
    chex.assert_equal_shape([prob, reward, following])
    H, levels, A, _ = prob.shape
    transition = np.stack([np.where(following == s, prob, 0).sum(-1) for s in range(levels)], -1)
    pay = (prob * reward).sum(-1)
    gap, values = np.zeros((H, levels, A)), np.zeros((H + 1, levels))
    for i in reversed(range(H)):
        value = pay[i] + (transition[i] * values[i + 1]).sum(-1)
        values[i] = value.max(-1)
        gap[i] = values[i][:, None] - value
    for table in (gap, transition, values):
        table.setflags(write=False)
    return gap, transition, values


def optimal_policy(mdp: MDP) -> np.ndarray:
    """The optimal policy, int32 [H, k+1], ties to the first action: its gaps in `exact_tables` are exactly 0.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> int(optimal_policy(mdp)[0, 1])
        1
    """
    return np.argmin(exact_tables(mdp)[0], axis=-1).astype(np.int32)


def metric_worlds(mdps: MDP, policy: np.ndarray, constants: Any, real: Any) -> World:
    """What the metrics of W lanes may look at, leaves [W, ...]."""
    gaps, kernels, values = zip(*map(_solved, unstacked(mdps)), strict=True)
    return World(
        transition=np.stack(kernels).astype(real),
        gap=np.stack(gaps).astype(real),
        optimal_values=np.stack(values).astype(real),
        start=np.asarray(mdps.start, np.int32),
        policy=policy,
        constants=constants,
    )
