"""jaxbandit: regret experiments in episodic MDPs under bandit feedback, many seeds and instances at once, in JAX.

Names are loaded on first use, so that the command line answers ``--help`` without starting jax.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "mdp": ["MDP", "validate", "transition_kernel", "mean_reward"],
    "planning": ["optimal", "optimal_values", "evaluate", "policy_values", "gaps", "regret", "visitation"],
    "instances": ["make_instance", "register_instance", "INSTANCES"],
    "learners": [
        "make_learner",
        "register_learner",
        "LEARNERS",
        "Learner",
        "Problem",
        "BlockForm",
        "Blocks",
        "from_blocks",
    ],
    "sweeps": ["sweep", "grid", "family"],
    "results": ["save", "load"],
    "plots": ["plot_regret", "plot_panels", "plot_parameter"],
    "heatmaps": ["plot_active_sets", "plot_policy"],
}
_MODULES = [
    "feedback", "theory", "record", "stats", "plots", "heatmaps", "testing", "checkpoint", "results", "engines",
    "instances", "learners", "mdp", "planning", "distributed",
]  # fmt: skip
_NAMES = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_NAMES, "record", "stats", "testing", "theory"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"jaxbandit.{_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"jaxbandit.{name}")
    raise AttributeError(f"module 'jaxbandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
