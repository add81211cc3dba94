"""The phases of the doubling scheme (Algorithm 2) as constants of a learner in block form.

ExpRef, its shared form and prophet-bandit run phases of accuracy eps = e_0, e_0 r, e_0 r^2, ... while
eps > sqrt(H w A ln T / T), and play an arm of a phase n = ceil(12 s ln T / eps^2) times. They differ
in w: k where every level of a stage has arms of its own, 1 where one set of arms serves the stage.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxbandit.learner import Problem
from jaxbandit.theory import schedule
from jaxbandit.types import Array

MAX_PHASES = 32
"""Phases that there is room for: with halved accuracies enough for any T up to 2^53."""

PAPER: dict[str, Any] = {
    "episodes_scale": 1.0, "threshold_scale": 1.0, "threshold": np.nan, "first_epsilon": 1.0, "ratio": 0.5,
    "last_epsilon": np.nan, "num_phases": np.inf, "epsilons": np.full(MAX_PHASES, np.nan),
}  # fmt: skip
"""The paper's parameters: nan is "as in the paper", inf "no limit"."""


class Phases(NamedTuple):
    """The whole schedule, exact integers; R = `MAX_PHASES`."""

    epsilons: Array
    """float64 [R]: accuracy of each phase; 0 for phases that are not in the schedule."""
    episodes_per_arm: Array
    """int64 [R]: n of each phase."""
    forever: Array
    """int64 []: T + 1, more episodes than there are."""


def phases(problem: Problem, params: Any, width: int) -> Phases:
    """The schedule of one run; parameters that are not given are the paper's, and ``width`` is w.

    Example:
        >>> from jaxbandit.learner import Problem
        >>> found = phases(Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000), {}, 2)
        >>> found.epsilons[:6].tolist(), found.episodes_per_arm[:3].tolist()
        ([1.0, 0.5, 0.25, 0.125, 0.0625, 0.0], [175, 697, 2786])
    """
    T = int(problem.num_episodes)
    p = {name: np.asarray(value, np.float64) for name, value in {**PAPER, **params}.items()}
    listed = p["epsilons"][p["epsilons"] > 0]  # nan is "not given", and 0 fills the array up
    unlimited = np.isinf(p["num_phases"])
    found = schedule(
        problem.horizon,
        width,
        problem.num_actions,
        num_episodes=max(T, 2),  # ln 1 = 0 would be phases of no episodes
        episodes_scale=float(p["episodes_scale"]),
        first_epsilon=float(p["first_epsilon"]),
        ratio=float(p["ratio"]),
        max_phases=MAX_PHASES + 1 if unlimited else int(p["num_phases"]),
        last_epsilon=None if np.isnan(p["last_epsilon"]) else float(p["last_epsilon"]),
        epsilons=listed if listed.size else None,
    )
    count = found.epsilons.size
    if count > MAX_PHASES:
        raise ValueError(
            f"ratio: {float(p['ratio'])}, more than {MAX_PHASES} phases at T = {T}; accepted: at most "
            f"{MAX_PHASES} (num_phases={MAX_PHASES} ends the schedule there)"
        )
    # No arm of more than T episodes is ever complete, so n need not be kept beyond that.
    most = np.float64(max(T + 1, 2**31 - 1))
    padding = (0, MAX_PHASES - count)
    return Phases(
        epsilons=np.pad(found.epsilons, padding),
        episodes_per_arm=np.pad(np.minimum(found.episodes_per_arm, most).astype(np.int64), padding),
        forever=np.int64(T + 1),
    )
