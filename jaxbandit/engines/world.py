"""The MDPs of G groups as tables that the episode engine looks up; learners never see them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import planning
from jaxbandit.engines.compat import x64
from jaxbandit.mdp import MDP, transition_kernel

Array = Any


class World(NamedTuple):
    """What the engine knows of the MDPs of G groups; learners never see it."""

    alias: Array
    """uint32 [G * H * (k+1) * A * M]: alias tables of the outcomes, see `alias_tables`."""
    reward: Array
    """float32 [G * H * (k+1) * A * M]."""
    next_level: Array
    """int32 [G * H * (k+1) * A * M + G]: of each outcome, and at the end the level that each group starts at."""
    start: Array
    """int32 [G, 1]."""
    base: Array
    """int32 [G, 1]: where the group's tables begin."""
    origin: Array
    """int32 [G, 1]: where in ``next_level`` its start is."""
    gap: Array
    """float32 [H, k, A, G, 1]: Opt_{l,i} - Q*_{l,i}(a), levels 1..k."""
    transition: Array
    """float32 [H, k, A, k, G, 1]: p_i(s | l, a) among the levels 1..k."""


def make_world(mdps: MDP) -> World:
    """Tables for MDPs stacked along a leading axis [G]; gaps are computed in float64 on the way."""
    prob = np.asarray(mdps.prob, np.float64)
    if prob.shape[-1] > 256:
        raise ValueError(f"MDP: {prob.shape[-1]} outcomes per state and action; accepted on the episode engine: at most 256")
    with x64():
        exact = jax.tree.map(lambda x: jnp.asarray(np.asarray(x, np.float64 if _real(x) else np.int32)), mdps)
        gap, transition = (np.asarray(x) for x in exact_tables(exact))
    lanes_last = partial(np.moveaxis, source=0, destination=-1)
    first = first_alike(mdps)[:, None]  # groups with the same MDP share its tables, and so the cache
    tables = World(
        alias_tables(prob).ravel(),
        np.asarray(mdps.reward, np.float32).ravel(),
        np.concatenate([np.asarray(mdps.next_level, np.int32).ravel(), np.asarray(mdps.start, np.int32)]),
        np.asarray(mdps.start, np.int32)[:, None],
        first * np.int32(prob[0].size),
        first + np.int32(prob.size),
        lanes_last(gap.astype(np.float32))[:, 1:, ..., None],
        lanes_last(transition.astype(np.float32))[:, 1:, :, 1:, ..., None],
    )
    return jax.tree.map(jnp.asarray, tables)


def first_alike(mdps: MDP) -> np.ndarray:
    """For each of G stacked MDPs the first one that is the same, int32 [G]."""
    known: dict[bytes, int] = {}
    parts = [np.asarray(x) for x in (mdps.prob, mdps.reward, mdps.next_level, mdps.start)]
    found = [known.setdefault(b"".join(part[g].tobytes() for part in parts), g) for g in range(len(parts[0]))]
    return np.asarray(found, np.int32)


def alias_tables(prob: np.ndarray) -> np.ndarray:
    """Walker's alias tables of distributions [..., M], as uint32 [..., M]: a draw costs one look-up.

    Column j holds outcome j with a probability in its upper 24 bits, and otherwise the outcome in its lower 8. A draw
    takes a column and then a side, both from one word; probabilities are right to 2^-24, and impossible outcomes never
    come up. The table depends on the probabilities alone, so states that share them see the same outcome for one word.
    """
    *shape, M = prob.shape
    weight = (prob / prob.sum(-1, keepdims=True) * M).reshape(-1, M)
    rows = np.arange(len(weight))
    keep = np.ones_like(weight)
    other = np.tile(np.arange(M), (len(weight), 1))
    open_ = np.ones(weight.shape, bool)
    for _ in range(M - 1):
        poor = np.where(open_, weight, np.inf).argmin(-1)
        rich = np.where(open_, weight, -np.inf).argmax(-1)
        short = np.minimum(weight[rows, poor], 1)
        keep[rows, poor], other[rows, poor] = short, rich
        weight[rows, rich] -= 1 - short
        open_[rows, poor] = False
    side = np.minimum(np.round(keep * 2**24), 2**24 - 1).astype(np.uint32)
    # A column that is sure of its outcome names it on both sides.
    other = np.where(keep >= 1, np.arange(M), other).astype(np.uint32)
    return ((side << 8) | other).reshape(*shape, M)


@jax.jit
def exact_tables(mdps: MDP) -> tuple[jax.Array, jax.Array]:
    """Gaps [G, H, k+1, A] and kernels [G, H, k+1, A, k+1] of stacked MDPs."""
    return jax.vmap(planning.gaps)(mdps), jax.vmap(transition_kernel)(mdps)


def _real(x: Array) -> bool:
    return np.issubdtype(np.asarray(x).dtype, np.floating)


def per_lane(world: World, seeds: int) -> World:
    """The world with lanes [G S] in place of [G, 1]."""

    def spread(x):
        return jnp.broadcast_to(x, (*x.shape[:-1], seeds)).reshape(*x.shape[:-2], -1)

    kept = ("alias", "reward", "next_level")
    return World(**{name: x if name in kept else spread(x) for name, x in world._asdict().items()})
