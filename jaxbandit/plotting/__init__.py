"""Figures: regret against episodes or parameters, learned policies, active sets. Nothing is
computed here.

`curves`, `parameter`, `metric`, `decisions`, `heatmaps`, `instance` and `episode` are what people call; `figures`,
`panel`, `colours`, `files` and `state_cells` do their parts.
From outside: the names below, and `figures` for experiments. May import: `stats`, `planning` and
the model.
"""

from jaxbandit.plotting.curves import plot_panels, plot_regret
from jaxbandit.plotting.decisions import plot_comparison, plot_final, plot_profiles
from jaxbandit.plotting.episode import plot_episode
from jaxbandit.plotting.figures import Drawn
from jaxbandit.plotting.heatmaps import plot_active_sets, plot_policy
from jaxbandit.plotting.instance import plot_instance
from jaxbandit.plotting.metric import plot_metric
from jaxbandit.plotting.parameter import plot_parameter

__all__ = [
    "Drawn",
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
]
