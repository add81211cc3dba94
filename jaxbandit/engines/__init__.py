"""Two engines: `episodes` simulates every episode of any learner, `blocks` pushes counts of episodes.

`runner` is what their drivers share, `beginnings` how runs begin, `tables` what is known of an instance, `measuring`
looks at states. From outside: `make_runner` and `ENGINES`.
May import: the model, planning, the contract of learners, `xla`; no learner and no instance by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.engines.blocks.runner import BlockRunner
from jaxbandit.engines.episodes.runner import EpisodeRunner
from jaxbandit.engines.runner import Runner
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP

ENGINES = {"episodes": EpisodeRunner, "blocks": BlockRunner}


def table_sizes(engine: str, mdp: MDP) -> tuple[int, ...]:
    """What the engine's tables of an instance are sized by, beyond H, k, A and M; tiles hold equal ones only."""
    return ENGINES[engine].table_sizes(mdp)


def make_runner(
    engine: str,
    learner: Learner,
    mdps: MDP,
    keys: Any,
    num_episodes: int,
    points: np.ndarray,
    chunk_size: int | None = None,
    devices: Sequence[Any] | None = None,
    workers: int = 1,
    platform: str | None = None,
    metrics: Any = None,
) -> Runner:
    """A runner of one learner over lanes.

    Args:
        engine: "episodes" or "blocks".
        learner: its params' leaves have a leading axis [G].
        mdps: leaves stacked [G, ...]: one MDP for each group.
        keys: typed keys [G, S], one for each lane.
        num_episodes: T.
        points: int64 [W], increasing, the last one T: episodes after which regret is recorded.
        chunk_size: episodes (or, for blocks, stages of a phase) per step; any value gives the same
            numbers.
        devices: jax devices, which take tiles of lanes in turn.
        workers: tiles that run at the same time (on a CPU, one per core).
        platform: "cpu" or "gpu" forces the choices of that kind of device (`jaxbandit.xla.platforms`).
        metrics: name -> function of state and world (`jaxbandit.metrics`), evaluated at the points.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine: {engine!r}; accepted: {', '.join(ENGINES)}")
    how = (chunk_size, devices, workers, platform, metrics)
    return ENGINES[engine](learner, mdps, keys, num_episodes, points, *how)
