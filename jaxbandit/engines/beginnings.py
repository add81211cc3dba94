"""How runs begin: the constants and first states of the lanes of a tile.

Constants are evaluated on the host, exactly, for each lane alone: they are what a program cannot change, so
their digits must not depend on what XLA does with them. First states are computed in 64 bits by one program for
all lanes; an engine that runs in 32 bits rounds their reals once and refuses whole numbers that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.tables import optimal_policy
from jaxbandit.errors import LearnerError
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learner.fitting import check_first_state, described, named
from jaxbandit.mdp import MDP

KEY_ROLE = 3
"""``init`` gets fold_in(key, KEY_ROLE) of its lane's key. Environments fold in 0 (episodes) and 2 (blocks), ``act`` 1."""


def beginning(
    rules: Any,
    requires: tuple[str, ...],
    mdps: MDP,
    params: dict[str, np.ndarray],
    keys: np.ndarray,
    num_episodes: int,
    name: str = "learner",
) -> tuple[Callable, tuple]:
    """The function that makes the first states of W lanes, and its arguments; the last are the constants. Needs x64.

    Args:
        rules: a learner or a block form.
        requires: what the learner asks for beyond sizes and T.
        mdps: leaves [W, ...].
        params: the learner's parameters, leaves [W, ...].
        keys: uint32 [W, 2], the words of each lane's key.
        num_episodes: T.
        name: the learner's, for errors.
    """
    rank = mdps.rank if "rank" in requires else None
    best = optimal_policies(mdps) if "optimal_policy" in requires else None
    sizes, width = (mdps.horizon, mdps.width, mdps.num_actions), len(mdps.prob)

    def one(num_episodes, words, rank, best, constants):
        problem = Problem(*sizes, num_episodes=num_episodes, rank=rank, optimal_policy=best)
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        with named(name, "init"):
            first = rules.init(problem, constants, jax.random.fold_in(key, KEY_ROLE))
            return check_first_state(first)

    def lanes(num_episodes, words, rank, best, constants):
        each = (None if x is None else 0 for x in (rank, best))
        every = (num_episodes, words, rank, best, constants)
        return jax.vmap(one, (None, 0, *each, 0), axis_size=width)(*every)

    constants = _constants(rules, params, num_episodes, sizes, (rank, best), width, name)
    return lanes, (jnp.asarray(num_episodes, jnp.float64), keys, rank, best, constants)


def _constants(
    rules: Any,
    params: dict[str, np.ndarray],
    num_episodes: int,
    sizes: tuple[int, int, int],
    known: tuple[Any, Any],
    width: int,
    name: str,
) -> Any:
    """Leaves [W, ...]; lanes with the same problem and parameters share them. ``known`` is (rank, optimal policy)."""
    made: dict[bytes, Any] = {}
    found = []
    for lane in range(width):
        own = [None if x is None else np.ascontiguousarray(x[lane]) for x in known]
        here = {name: np.asarray(value)[lane] for name, value in params.items()}
        parts = [*own, *(here[name] for name in sorted(here))]
        same = b"|".join(b"" if part is None else part.tobytes() for part in parts)
        if same not in made:
            rank, best = own
            problem = Problem(*sizes, num_episodes=num_episodes, rank=rank, optimal_policy=best)
            with named(name, "constants"):
                made[same] = make_constants(rules, problem, here)
        found.append(made[same])
    kinds = dict.fromkeys(described(values) for values in made.values())
    if len(kinds) > 1:
        raise LearnerError(
            f"learner {name!r}: constants gives {' and '.join(kinds)}; accepted: arrays of the same shapes and "
            "types for all parameter values of one sweep"
        )
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)


def to_32_bits(name: str, tree: Any) -> Any:
    """Arrays as a 32-bit engine has them: reals rounded, whole numbers checked."""

    def cast(leaf: np.ndarray) -> np.ndarray:
        if leaf.dtype == np.float64:
            with np.errstate(over="ignore"):
                small = leaf.astype(np.float32)
            if (lost := leaf[np.isfinite(leaf) & ~np.isfinite(small)]).size:
                raise ValueError(
                    f"learner {name!r}: init gives {lost[0]:g}; accepted on the episode engine: numbers that "
                    "float32 holds, or inf"
                )
            return small
        if leaf.dtype in (np.int64, np.uint64):
            limits = np.iinfo(np.int32 if leaf.dtype == np.int64 else np.uint32)
            if (large := leaf[(leaf < limits.min) | (leaf > limits.max)]).size:
                raise ValueError(
                    f"learner {name!r}: init gives the whole number {large[0]}; "
                    f"accepted on the episode engine: {limits.min}..{limits.max}"
                )
            return leaf.astype(limits.dtype)
        return leaf

    return jax.tree.map(cast, tree)


def optimal_policies(mdps: MDP) -> np.ndarray:
    """Optimal policies int32 [W, H, k+1] of stacked MDPs, each found alone."""
    lanes = range(len(mdps.prob))
    return np.stack([optimal_policy(jax.tree.map(lambda x, j=j: x[j], mdps)) for j in lanes])
