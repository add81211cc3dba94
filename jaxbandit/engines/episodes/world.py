"""The MDPs of a tile's lanes as tables that the episode engine looks up; learners never see them."""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import numpy as np

from jaxbandit.engines.tables import exact_tables, fingerprint, normalised_prob, once_per_instance
from jaxbandit.mdp import MDP
from jaxbandit.types import Array

MOST_OUTCOMES = 256
MOST_LEVELS = 16
"""Levels, level 0 among them, that a word of `EpisodeWorld.route` can name."""


class EpisodeWorld(NamedTuple):
    """What the engine knows of the MDPs of W lanes."""

    alias: Array
    """uint32 [W * H * (k+1) * A * M]: alias tables of the outcomes, see `alias_tables`."""
    route: Array
    """uint32, the same with the next levels of both sides of a column (4 bits each) in place of the other outcome;
    not filled with more than `MOST_LEVELS` levels."""
    paid: Array
    """float32 [2 * W * H * (k+1) * A * M]: the rewards of both sides of a column, the other outcome's first."""
    reward: Array
    """float32 [W * H * (k+1) * A * M]."""
    next_level: Array
    """int32 [W * H * (k+1) * A * M]."""
    chance: Array
    """float32 [W * H * (k+1) * A * M]: the probability of each outcome."""
    start: Array
    """int32 [W]: the level of the first stage."""
    row: Array
    """int32 [H, W]: where the tables of a lane's stage begin; lanes with the same MDP share them, and so the cache."""
    gap: Array
    """float32 [H, k, A, W]: Opt_{l,i} - Q*_{l,i}(a), levels 1..k."""
    transition: Array
    """float32 [H, k, A, k, W]: p_i(s | l, a) among the levels 1..k; [0] where outcomes are looked up instead
    (`by_outcomes`)."""


def by_outcomes(width: int, num_outcomes: int) -> bool:
    """Whether regrets are computed outcome by outcome: from some levels on, if few of them can follow."""
    return width >= MOST_LEVELS and 4 * num_outcomes <= width


class InstanceTables(NamedTuple):
    """The tables of one MDP, made from it alone."""

    alias: np.ndarray
    route: np.ndarray
    paid: np.ndarray
    reward: np.ndarray
    next_level: np.ndarray
    chance: np.ndarray
    gap: np.ndarray
    transition: np.ndarray


def make_episode_world(mdps: MDP) -> EpisodeWorld:
    """The tables of MDPs stacked along a leading axis [W], numpy."""
    lanes, size, horizon = len(mdps.prob), mdps.prob[0].size, mdps.horizon
    each = [jax.tree.map(lambda x, lane=lane: x[lane], mdps) for lane in range(lanes)]
    fingerprints = [fingerprint(mdp) for mdp in each]
    first = np.asarray([fingerprints.index(one) for one in fingerprints], np.int32)
    tables = [_tables(mdp) for mdp in each]
    return EpisodeWorld(
        alias=np.concatenate([table.alias for table in tables]),
        route=np.concatenate([table.route for table in tables]),
        paid=np.concatenate([table.paid for table in tables]),
        reward=np.concatenate([table.reward for table in tables]),
        next_level=np.concatenate([table.next_level for table in tables]),
        chance=np.concatenate([table.chance for table in tables]),
        start=np.asarray(mdps.start, np.int32),
        row=first[None] * size + np.arange(horizon, dtype=np.int32)[:, None] * (size // horizon),
        gap=np.stack([table.gap for table in tables], axis=-1),
        transition=np.zeros(0, np.float32)
        if by_outcomes(mdps.width, mdps.num_outcomes)
        else np.stack([table.transition for table in tables], axis=-1),
    )


@once_per_instance
def _tables(mdp: MDP) -> InstanceTables:
    gap, transition = exact_tables(mdp)
    chex.assert_equal_shape([mdp.prob, mdp.reward, mdp.next_level])
    prob = normalised_prob(mdp)
    alias = alias_tables(prob)
    target = np.asarray(mdp.next_level, np.int32)
    reward = np.asarray(mdp.reward, np.float32)
    other = np.take_along_axis(reward, (alias & 255).astype(np.int64), axis=-1)
    return InstanceTables(
        alias=alias.ravel(),
        route=_routes(alias, target).ravel(),
        paid=np.stack([other, reward], axis=-1).ravel(),
        reward=reward.ravel(),
        next_level=target.ravel(),
        chance=prob.astype(np.float32).ravel(),
        gap=gap.astype(np.float32)[:, 1:],
        transition=transition.astype(np.float32)[:, 1:, :, 1:],
    )


def _routes(alias: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The words of `EpisodeWorld.route`."""
    other = np.take_along_axis(target, (alias & 255).astype(np.int64), axis=-1)
    sides = (target.astype(np.uint32) << 4) | other.astype(np.uint32)
    return (alias & ~np.uint32(255)) | (sides & 255)


def alias_tables(prob: np.ndarray) -> np.ndarray:
    """Walker's alias tables of distributions [..., M], as uint32 [..., M]: a draw costs one look-up.

    Column j holds outcome j with a probability in its upper 24 bits, and otherwise the outcome in
    its lower 8. A draw takes a column and then a side, both from one word; probabilities are right
    to 2^-24, and impossible outcomes never come up. The table depends on the probabilities alone,
    so states that share them see the same outcome for one word.
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
