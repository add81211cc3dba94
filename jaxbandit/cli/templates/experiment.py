"""my-experiment: UCB-VI against random policies on one prophet problem.

The first paragraph is what `jaxbandit list` shows; say here what the experiment is about.

Run it:                        jaxbandit run my_experiment.py
"""

import jaxbandit as jb
from jaxbandit.experiment import Experiment


def sweeps(options):
    """Label -> arguments of jb.sweep; each becomes a file LABEL.nc. Nothing is run here."""
    learners = {
        "UCB-VI": jb.make_learner("ucbvi", preset="practical"),
        "uniform": jb.make_learner("uniform"),
    }
    mdp = jb.make_instance("prophet-uniform", horizon=6, capacity=2, num_values=5)
    return {
        "regret": {
            "learners": learners,
            "instances": {"I1": mdp},
            "num_episodes": options.choose_episodes(5_000, full=200_000),
            "num_seeds": options.choose_seeds(8, full=32),
        }
    }


def figures(datasets, options):
    """File name -> figure; datasets by label."""
    return {"regret": jb.plot_regret(datasets["regret"])}


EXPERIMENT = Experiment(
    "my-experiment",
    __doc__,
    sweeps,
    figures,
    outputs={"regret.png": "cumulative regret against episodes"},
    takes="a few seconds",
)
