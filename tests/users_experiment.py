"""An experiment in a file of a user's own."""

MINE = '''"""A tiny experiment of a user (nowhere in the paper)."""

import jaxbandit as jb
from jaxbandit.experiment.contract import Experiment


def sweeps(options):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    learners = {"UCB-VI": jb.make_learner("ucbvi"), "uniform": jb.make_learner("uniform")}
    return {
        "regret": dict(
            learners=learners, instances={"I1": mdp}, record=jb.record.linear(4),
            num_episodes=options.choose_episodes(400, full=800), num_seeds=options.choose_seeds(2, full=3),
        )
    }


def figures(datasets, options):
    return {"regret": jb.plot_regret(datasets["regret"])}


EXPERIMENT = Experiment("mine", __doc__, sweeps, figures)
'''
