"""jaxbandit: regret experiments in episodic MDPs under bandit feedback, many seeds and instances at
once, in JAX.

Names are loaded on first use, so that the command line answers ``--help`` without starting jax;
type checkers read the imports below.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jaxbandit import distributed as distributed
    from jaxbandit import engines as engines
    from jaxbandit import errors as errors
    from jaxbandit import experiment as experiment
    from jaxbandit import feedback as feedback
    from jaxbandit import instances as instances
    from jaxbandit import learner as learner
    from jaxbandit import learners as learners
    from jaxbandit import mdp as mdp
    from jaxbandit import metrics as metrics
    from jaxbandit import planning as planning
    from jaxbandit import plotting as plotting
    from jaxbandit import record as record
    from jaxbandit import results as results
    from jaxbandit import stats as stats
    from jaxbandit import studies as studies
    from jaxbandit import sweeps as sweeps
    from jaxbandit import testing as testing
    from jaxbandit import theory as theory
    from jaxbandit import types as types
    from jaxbandit import xla as xla
    from jaxbandit.errors import CheckpointError, SweepInterrupted
    from jaxbandit.experiments.ladder_own import ladder
    from jaxbandit.explaining.describing import describe
    from jaxbandit.inspect.episode import trace
    from jaxbandit.inspect.hardness import hardness
    from jaxbandit.inspect.run import lane_key, run
    from jaxbandit.instances import INSTANCES, make_instance, register_instance
    from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
    from jaxbandit.learners import LEARNERS, from_blocks, make_learner, one_bit, register_learner
    from jaxbandit.mdp import (
        MDP,
        from_arrays,
        from_gymnasium,
        label,
        labels_of,
        mean_reward,
        to_arrays,
        to_gymnax,
        transition_kernel,
        validate,
    )
    from jaxbandit.planning import (
        evaluate,
        gaps,
        optimal,
        optimal_values,
        policy_values,
        regret,
        visitation,
    )
    from jaxbandit.plotting import (
        plot_active_sets,
        plot_comparison,
        plot_episode,
        plot_final,
        plot_instance,
        plot_metric,
        plot_panels,
        plot_parameter,
        plot_policy,
        plot_profiles,
        plot_regret,
    )
    from jaxbandit.results import load, save
    from jaxbandit.results import references as references
    from jaxbandit.results.references import reference, reference_sweep
    from jaxbandit.results.selection import final_policy, in_units, instance_of, select
    from jaxbandit.studies import Range, Tuner, tune, until_decided
    from jaxbandit.studies import hooks as hooks
    from jaxbandit.sweeps import Plan, family, grid, merge, plan, points, sweep

_HOME = {
    "experiments.ladder_own": ["ladder"],
    "errors": ["CheckpointError", "SweepInterrupted"],
    "explaining.describing": ["describe"],
    "inspect": ["hardness", "lane_key", "run", "trace"],
    "instances": ["INSTANCES", "make_instance", "register_instance"],
    "learner": ["BlockForm", "Blocks", "Learner", "Problem"],
    "learners": ["LEARNERS", "from_blocks", "make_learner", "one_bit", "register_learner"],
    "mdp": [
        "MDP",
        "from_arrays",
        "from_gymnasium",
        "label",
        "labels_of",
        "mean_reward",
        "to_arrays",
        "to_gymnax",
        "transition_kernel",
        "validate",
    ],
    "planning": [
        "evaluate",
        "gaps",
        "optimal",
        "optimal_values",
        "policy_values",
        "regret",
        "visitation",
    ],
    "plotting": [
        "plot_active_sets",
        "plot_comparison",
        "plot_episode",
        "plot_final",
        "plot_metric",
        "plot_instance",
        "plot_panels",
        "plot_parameter",
        "plot_policy",
        "plot_profiles",
        "plot_regret",
    ],
    "results": ["load", "references", "save"],
    "results.references": ["reference", "reference_sweep"],
    "results.selection": ["final_policy", "in_units", "instance_of", "select"],
    "studies": ["Range", "Tuner", "hooks", "tune", "until_decided"],
    "sweeps": ["Plan", "family", "grid", "merge", "plan", "points", "sweep"],
}
_ROOMS = [
    "distributed",
    "engines",
    "errors",
    "experiment",
    "feedback",
    "inspect",
    "instances",
    "learner",
    "learners",
    "mdp",
    "metrics",
    "planning",
    "plotting",
    "record",
    "results",
    "stats",
    "studies",
    "sweeps",
    "testing",
    "theory",
    "types",
    "xla",
]
_NAMES = {name: room for room, names in _HOME.items() for name in names}

__all__ = [
    "INSTANCES",
    "LEARNERS",
    "MDP",
    "BlockForm",
    "Blocks",
    "CheckpointError",
    "Learner",
    "Plan",
    "Problem",
    "Range",
    "SweepInterrupted",
    "Tuner",
    "describe",
    "evaluate",
    "family",
    "final_policy",
    "from_arrays",
    "from_blocks",
    "from_gymnasium",
    "gaps",
    "grid",
    "hardness",
    "hooks",
    "in_units",
    "instance_of",
    "label",
    "labels_of",
    "ladder",
    "lane_key",
    "load",
    "make_instance",
    "make_learner",
    "mean_reward",
    "merge",
    "metrics",
    "one_bit",
    "optimal",
    "optimal_values",
    "plan",
    "plot_active_sets",
    "plot_comparison",
    "plot_episode",
    "plot_final",
    "plot_instance",
    "plot_metric",
    "plot_panels",
    "plot_parameter",
    "plot_policy",
    "plot_profiles",
    "plot_regret",
    "points",
    "policy_values",
    "record",
    "reference",
    "reference_sweep",
    "register_instance",
    "register_learner",
    "regret",
    "run",
    "save",
    "select",
    "stats",
    "sweep",
    "testing",
    "theory",
    "to_arrays",
    "to_gymnax",
    "trace",
    "transition_kernel",
    "tune",
    "until_decided",
    "validate",
    "visitation",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            home = importlib.import_module(f"jaxbandit.{_NAMES[name]}")
            if not hasattr(home, name):  # a module that its room does not load by itself
                importlib.import_module(f"{home.__name__}.{name}")
            return getattr(home, name)
        if name in _ROOMS:
            return importlib.import_module(f"jaxbandit.{name}")
        raise AttributeError(f"module 'jaxbandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
