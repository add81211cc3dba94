"""Regret experiments in episodic MDPs under bandit feedback, many seeds and instances at once, in JAX.

A problem is an MDP (`make_instance`, `from_arrays`, `from_gymnasium`), an algorithm a `Learner` (`make_learner`, or your
own); `sweep` runs learners x instances x parameters x seeds and returns a labelled Dataset, which `stats`,
`plot_regret` and the other figures read. `describe` explains a name.
"""

# The imports below are the public names, each written once: type checkers read them as they stand, and at run time each
# is carried out when its name is first used, so that the command line answers --help without starting jax. Figures are
# found in jaxbandit.plotting.FIGURES.

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandit.plotting import FIGURES

__version__ = "0.2.0"

if TYPE_CHECKING:
    from jaxbandit import distributed as distributed
    from jaxbandit import engines as engines
    from jaxbandit import errors as errors
    from jaxbandit import experiment as experiment
    from jaxbandit import feedback as feedback
    from jaxbandit import inspect as inspect
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
    from jaxbandit.description import describe as describe
    from jaxbandit.errors import CheckpointError as CheckpointError
    from jaxbandit.errors import SweepInterrupted as SweepInterrupted
    from jaxbandit.experiments.ladder import ladder as ladder
    from jaxbandit.inspect import hardness as hardness
    from jaxbandit.inspect import lane_key as lane_key
    from jaxbandit.inspect import run as run
    from jaxbandit.inspect import trace as trace
    from jaxbandit.instances import INSTANCES as INSTANCES
    from jaxbandit.instances import make_instance as make_instance
    from jaxbandit.instances import register_instance as register_instance
    from jaxbandit.learner import BlockForm as BlockForm
    from jaxbandit.learner import Blocks as Blocks
    from jaxbandit.learner import Learner as Learner
    from jaxbandit.learner import Problem as Problem
    from jaxbandit.learners import LEARNERS as LEARNERS
    from jaxbandit.learners import make_learner as make_learner
    from jaxbandit.learners import one_bit as one_bit
    from jaxbandit.learners import register_learner as register_learner
    from jaxbandit.learners.from_blocks import from_blocks as from_blocks
    from jaxbandit.mdp import MDP as MDP
    from jaxbandit.mdp import from_arrays as from_arrays
    from jaxbandit.mdp import from_gymnasium as from_gymnasium
    from jaxbandit.mdp import label as label
    from jaxbandit.mdp import labels_of as labels_of
    from jaxbandit.mdp import mean_reward as mean_reward
    from jaxbandit.mdp import to_arrays as to_arrays
    from jaxbandit.mdp import to_gymnax as to_gymnax
    from jaxbandit.mdp import transition_kernel as transition_kernel
    from jaxbandit.mdp import validate as validate
    from jaxbandit.planning import evaluate as evaluate
    from jaxbandit.planning import gaps as gaps
    from jaxbandit.planning import optimal as optimal
    from jaxbandit.planning import optimal_values as optimal_values
    from jaxbandit.planning import policy_values as policy_values
    from jaxbandit.planning import regret as regret
    from jaxbandit.planning import visitation as visitation
    from jaxbandit.plotting.curves import plot_comparison as plot_comparison
    from jaxbandit.plotting.curves import plot_final as plot_final
    from jaxbandit.plotting.curves import plot_metric as plot_metric
    from jaxbandit.plotting.curves import plot_panels as plot_panels
    from jaxbandit.plotting.curves import plot_parameter as plot_parameter
    from jaxbandit.plotting.curves import plot_profiles as plot_profiles
    from jaxbandit.plotting.curves import plot_regret as plot_regret
    from jaxbandit.plotting.states import plot_active_sets as plot_active_sets
    from jaxbandit.plotting.states import plot_episode as plot_episode
    from jaxbandit.plotting.states import plot_instance as plot_instance
    from jaxbandit.plotting.states import plot_policy as plot_policy
    from jaxbandit.results import load as load
    from jaxbandit.results import references as references
    from jaxbandit.results import save as save
    from jaxbandit.results.dataset import final_policy as final_policy
    from jaxbandit.results.dataset import in_units as in_units
    from jaxbandit.results.dataset import instance_of as instance_of
    from jaxbandit.results.dataset import select as select
    from jaxbandit.results.references import reference as reference
    from jaxbandit.results.references import reference_sweep as reference_sweep
    from jaxbandit.studies import Range as Range
    from jaxbandit.studies import Tuner as Tuner
    from jaxbandit.studies import hooks as hooks
    from jaxbandit.studies import tune as tune
    from jaxbandit.studies import until_decided as until_decided
    from jaxbandit.sweeps.arguments import family as family
    from jaxbandit.sweeps.arguments import grid as grid
    from jaxbandit.sweeps.arguments import points as points
    from jaxbandit.sweeps.lanes import Plan as Plan
    from jaxbandit.sweeps.loop import plan as plan
    from jaxbandit.sweeps.loop import sweep as sweep
    from jaxbandit.sweeps.shards import merge as merge


_SOURCE = Path(__file__).read_text(encoding="utf-8")
_NAMED = re.findall(r"^    from (\S+) import (\w+) as", _SOURCE, re.MULTILINE)
_HOME = {name: home for home, name in _NAMED}
"""Name -> the module that has it, of the imports above and of all figures."""
_HOME |= {name: f"jaxbandit.plotting.{figure.module}" for name, figure in FIGURES.items()}
__all__ = sorted(_HOME)  # noqa: PLE0605

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'jaxbandit' has no attribute {name!r}")
        home = importlib.import_module(_HOME[name])
        if home.__name__ == "jaxbandit" or not hasattr(home, name):
            return importlib.import_module(f"{home.__name__}.{name}")
        return getattr(home, name)


def __dir__() -> list[str]:
    return __all__
