"""Common sizes: instances of different H and k in one program, with stages and levels that change no number.

On a GPU a step takes as long for a few lanes as for a thousand, so sizes that run one after the other leave it idle. A
learner that can be padded (`Learner.pad`) runs there in the next larger sizes of a ladder (`Platform.room`), which
depend on the instance's own sizes and the kind of device alone: a lane's bits do not depend on what else is in a sweep.

Stages that are added come after the last one and are spent at level 0, where nothing is paid; levels that are added are
never reached. What a learner computes before the first episode it computes in the instance's own sizes; its arrays are
then filled up with zeros. What is told of a run (policies, reports, metrics) is cut out of them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.types import Array
from jaxbandit.xla.platforms import Platform

Own = tuple[int, int]
"""H and k of an instance itself."""


def room_for(learner: Learner, mdp: MDP, platform: Platform) -> Own | None:
    """H and k in which the episode engine runs a learner on an instance; None: in the instance's own.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.xla.platforms import CPU, GPU
        >>> mdp = jb.make_instance("prophet-uniform", horizon=15, capacity=2, num_values=5)
        >>> ucbvi = jb.make_learner("ucbvi")
        >>> room_for(ucbvi, mdp, GPU), room_for(ucbvi, mdp, CPU)
        ((20, 4), None)
    """
    if learner.rules.pad is None or ":" in learner.feedback:
        return None  # segments are cut out of H stages
    return platform.room(mdp.horizon, mdp.width)


def grown(mdp: MDP, room: Own) -> MDP:
    """The MDP with stages and levels up to H and k, in which every outcome pays nothing and leads to level 0.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> grown(mdp, (5, 4))
        MDP(H=5, k=4, A=3, ordered)
        >>> round(float(jb.optimal(grown(mdp, (5, 4)))[0] - jb.optimal(mdp)[0]), 6)
        0.0
    """
    stages, levels = room[0] - mdp.horizon, room[1] - mdp.width

    def more(leaf: Array) -> np.ndarray:
        array = np.asarray(leaf)
        return np.pad(array, [(0, stages), (0, levels), *[(0, 0)] * (array.ndim - 2)])

    prob, rank = more(mdp.prob), None if mdp.rank is None else more(mdp.rank)
    for added in (np.s_[mdp.horizon :], np.s_[:, mdp.width + 1 :]):
        prob[added][..., 0] = 1
        if rank is not None:  # all actions are alike there: any order is right
            rank[added] = np.arange(mdp.num_actions)
    return MDP(
        prob=prob,
        reward=more(mdp.reward),
        next_level=more(mdp.next_level),
        rank=rank,
        start=np.asarray(mdp.start),
    )


def shrunk(mdp: MDP, own: Own) -> MDP:
    """The MDP that was `grown`; a stack of them is a stack."""
    H, k = own
    axes = np.ndim(mdp.start)
    place = (*[slice(None)] * axes, slice(H), slice(k + 1))
    prob, reward, next_level = (table[place] for table in mdp[:3])
    rank = None if mdp.rank is None else mdp.rank[place]
    return MDP(prob=prob, reward=reward, next_level=next_level, rank=rank, start=mdp.start)


def alike(own: Sequence[Own]) -> dict[Own, np.ndarray]:
    """Lanes by their own sizes.

    Example:
        >>> {own: lanes.tolist() for own, lanes in alike([(3, 1), (4, 2), (3, 1)]).items()}
        {(3, 1): [0, 2], (4, 2): [1]}
    """
    return {
        one: np.flatnonzero([other == one for other in own]).astype(np.int32)
        for one in dict.fromkeys(own)
    }


def whole_tile(lanes: np.ndarray, width: int) -> np.ndarray:
    """Lanes and, up to ``width``, the first of them again: programs have one shape.

    Example:
        >>> whole_tile(np.array([3, 5]), 4).tolist()
        [3, 5, 3, 3]
    """
    return np.concatenate([lanes, np.full(width - len(lanes), lanes[0], lanes.dtype)])


def filled(tree: Any, like: Any) -> Any:
    """Arrays [W, ...] with zeros up to the shapes of ``like``, which have no lanes."""

    def more(leaf: np.ndarray, room: Any) -> np.ndarray:
        extra = [
            (0, large - small) for small, large in zip(leaf.shape[1:], room.shape, strict=True)
        ]
        return np.pad(leaf, [(0, 0), *extra])

    return jax.tree.map(more, tree, like)


def without_lanes(tree: Any) -> Any:
    """The shapes and types of arrays [W, ...] of one lane."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tree)


def placed(parts: Mapping[Own, tuple[np.ndarray, Any]], width: int) -> Any:
    """Trees of arrays whose rows begin with the lanes beside them, as one tree of arrays [W, ...]."""

    def one(*leaves: Array) -> np.ndarray:
        whole = np.empty((width, *leaves[0].shape[1:]), leaves[0].dtype)
        for (lanes, _), leaf in zip(parts.values(), leaves, strict=True):
            whole[lanes] = np.asarray(leaf)[: len(lanes)]
        return whole

    return jax.tree.map(one, *(tree for _, tree in parts.values()))


def cut(tree: Any, like: Any, lanes: Array, axis: int) -> Any:
    """Some lanes of arrays whose lanes are on ``axis``, 0 or -1, cut down to the shapes of ``like``, which have none."""

    def less(leaf: Array, small: Any) -> Array:
        sizes = tuple(slice(size) for size in small.shape)
        found = jnp.take(leaf, lanes, axis=axis, mode="clip")
        return found[(slice(None), *sizes) if axis == 0 else sizes]

    return jax.tree.map(less, tree, like)


def joined(parts: Mapping[Any, tuple[np.ndarray, Any]], width: int) -> dict[str, np.ndarray]:
    """What was found of lanes in several parts, float64 [W, ...]; nan beyond the sizes of each part.

    Args:
        parts: anything -> lanes, and name -> array whose rows begin with those lanes.
        width: W.

    Example:
        >>> parts = {(1, 1): (np.array([1]), {"x": np.ones((2, 1))}), (2, 1): (np.array([0]), {"x": np.zeros((2, 2))})}
        >>> joined(parts, 2)["x"].tolist()
        [[0.0, 0.0], [1.0, nan]]
    """
    found: dict[str, np.ndarray] = {}
    for name in next(iter(parts.values()))[1]:
        shapes = [np.shape(values[name])[1:] for _, values in parts.values()]
        tail = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
        found[name] = np.full((width, *tail), np.nan)
        for (lanes, values), shape in zip(parts.values(), shapes, strict=True):
            place: Any = (lanes, *(slice(size) for size in shape))
            found[name][place] = np.asarray(values[name], np.float64)[: len(lanes)]
    return found


def cut_policies(policies: np.ndarray, own: Sequence[Own]) -> np.ndarray:
    """Policies [W, H, k+1] as float64, nan beyond the sizes of each lane's MDP.

    Example:
        >>> cut_policies(np.ones((2, 3, 2), np.int32), [(1, 1), (2, 1)]).tolist()
        [[[1.0, 1.0], [nan, nan]], [[1.0, 1.0], [1.0, 1.0]]]
    """
    parts = {}
    for one, lanes in alike(own).items():
        H, k = one
        parts[one] = (lanes, {"policy": policies[lanes, :H, : k + 1]})
    return joined(parts, len(policies))["policy"]
