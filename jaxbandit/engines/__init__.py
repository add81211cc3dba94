"""Two engines: `episodes` simulates every episode of any learner, `blocks` pushes counts through the stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.engines.block_runner import BlockRunner
from jaxbandit.engines.episode_runner import EpisodeRunner
from jaxbandit.engines.runner import Runner
from jaxbandit.learners.base import Learner
from jaxbandit.mdp import MDP

ENGINES = {"episodes": EpisodeRunner, "blocks": BlockRunner}


def make_runner(
    engine: str,
    learner: Learner,
    mdps: MDP,
    keys: Any,
    num_episodes: int,
    points: np.ndarray,
    chunk_size: int | None = None,
    devices: Sequence[Any] | None = None,
) -> Runner:
    """A runner of one learner over lanes.

    Args:
        engine: "episodes" or "blocks".
        learner: its params' leaves have a leading axis [G].
        mdps: leaves stacked [G, ...]: one MDP for each group.
        keys: typed keys [G, S], one for each lane.
        num_episodes: T.
        points: int64 [W], increasing, the last one T: episodes after which the cumulative regret is recorded.
        chunk_size: episodes (or, for blocks, stages of a phase) per step; any value gives the same numbers.
        devices: jax devices; S must be a multiple of their number.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine: {engine!r}; accepted: {', '.join(ENGINES)}")
    return ENGINES[engine](learner, mdps, keys, num_episodes, points, chunk_size, devices)
