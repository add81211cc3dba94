"""Two engines: `episodes` simulates every episode of any learner, `blocks` pushes counts of episodes.

`runner` is what their drivers share, `tables` what is known of an instance. From outside: `make_runner` and `ENGINES`.
May import: the model, planning, the contract of learners, `xla`; no learner and no instance by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbandit.engines.blocks.runner import BlockRunner
from jaxbandit.engines.episodes.runner import EpisodeRunner
from jaxbandit.engines.runner import Runner
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP

__all__ = ["ENGINES", "make_runner", "table_sizes"]

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
    **how: Any,
) -> Runner:
    """A runner of one learner over lanes.

    Args:
        engine: "episodes" or "blocks".
        learner: its params' leaves have a leading axis [G].
        mdps: leaves stacked [G, ...]: one MDP for each group.
        keys: typed keys [G, S], one for each lane; or their words, uint32 [G, S, 2] of numpy.
        num_episodes: T.
        points: int64 [W], increasing, the last one T: episodes after which regret is recorded.
        how: how it is run; see `jaxbandit.engines.runner.Runner`.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine: {engine!r}; accepted: {', '.join(ENGINES)}")
    return ENGINES[engine](learner, mdps, keys, num_episodes, points, **how)
