"""What both engines know of one instance: probabilities that sum to 1, exact gaps, exact kernels.

Everything is float64, made on the host for one MDP alone and kept by the bytes of its arrays: no number depends on
what an instance is stacked with, and equal instances share the work.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import chex
import jax
import numpy as np

from jaxbandit.mdp import MDP
from jaxbandit.metrics import World

KEPT = 1024
"""Instances of which each function keeps its value."""

Value = TypeVar("Value")


def fingerprint(mdp: MDP) -> bytes:
    """A digest of all that an engine sees of an MDP: equal for equal arrays.

    Example:
        >>> import jaxbandit as jb
        >>> one, two = (jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3) for _ in range(2))
        >>> fingerprint(one) == fingerprint(two)
        True
    """
    digest = hashlib.blake2b(digest_size=16)
    for leaf in (mdp.prob, mdp.reward, mdp.next_level, mdp.start):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def once_per_instance(function: Callable[[MDP], Value]) -> Callable[[MDP], Value]:
    """``function`` of an MDP, called once for equal MDPs while its value is kept; threads may share it.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> shape = once_per_instance(lambda mdp: list(mdp.prob.shape))
        >>> shape(mdp) is shape(mdp)
        True
    """
    kept: OrderedDict[bytes, Value] = OrderedDict()
    lock = threading.Lock()

    @wraps(function)
    def call(mdp: MDP) -> Value:
        name = fingerprint(mdp)
        with lock:
            if name in kept:
                kept.move_to_end(name)
                return kept[name]
        value = function(mdp)
        with lock:
            kept[name] = value
            while len(kept) > KEPT:
                kept.popitem(last=False)
        return value

    return call


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
    return _solved(mdp)[2]


@once_per_instance
def _solved(mdp: MDP) -> tuple[np.ndarray, np.ndarray, float]:
    """Gaps, kernels and the optimal value, by backward induction."""
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    following = np.asarray(mdp.next_level)
    chex.assert_equal_shape([prob, reward, following])
    H, levels, A, _ = prob.shape
    transition = np.stack([np.where(following == s, prob, 0).sum(-1) for s in range(levels)], -1)
    pay = (prob * reward).sum(-1)
    gap, tail = np.zeros((H, levels, A)), np.zeros(levels)
    for i in reversed(range(H)):
        value = pay[i] + (transition[i] * tail).sum(-1)
        tail = value.max(-1)
        gap[i] = tail[:, None] - value
    for table in (gap, transition):
        table.setflags(write=False)
    return gap, transition, float(tail[int(mdp.start)])


def optimal_policy(mdp: MDP) -> np.ndarray:
    """The optimal policy, int32 [H, k+1], ties to the first action: its gaps in `exact_tables` are exactly 0.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> int(optimal_policy(mdp)[0, 1])
        1
    """
    return np.argmin(exact_tables(mdp)[0], axis=-1).astype(np.int32)


@once_per_instance
def _optimal_values(mdp: MDP) -> np.ndarray:
    """Opt_{l,i}, float64 [H+1, k+1]: the tail values of a policy without gaps."""
    gap, transition = exact_tables(mdp)
    pay = (normalised_prob(mdp) * np.asarray(mdp.reward, np.float64)).sum(-1)
    values = np.zeros((len(gap) + 1, gap.shape[1]))
    for i in reversed(range(len(gap))):
        values[i] = (pay[i] + (transition[i] * values[i + 1]).sum(-1)).max(-1)
    return values


def metric_worlds(mdps: MDP, policy: np.ndarray, constants: Any, real: Any) -> World:
    """What the metrics of W lanes may look at, leaves [W, ...]."""
    each = [jax.tree.map(lambda x, j=j: x[j], mdps) for j in range(len(mdps.prob))]
    gaps, kernels = zip(*(exact_tables(mdp) for mdp in each), strict=True)
    return World(
        transition=np.stack(kernels).astype(real),
        gap=np.stack(gaps).astype(real),
        optimal_values=np.stack([_optimal_values(mdp) for mdp in each]).astype(real),
        start=np.asarray(mdps.start, np.int32),
        policy=policy,
        constants=constants,
    )
