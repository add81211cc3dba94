"""Learners learn: their regret falls far below uniform play's."""

import jax
import numpy as np
import pytest

import jaxbandit as jb

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


def late_regret(learner, num_episodes, num_seeds, mdp=MDP):
    """That of the second half of the episodes, on average."""
    keys = jax.random.split(jax.random.key(0), (1, num_seeds))
    points = [num_episodes // 2, num_episodes]
    found, _ = jb.testing.run_lanes("episodes", [learner], [mdp], keys, num_episodes, points)
    return np.diff(found["regret"][0], axis=-1).mean()


@pytest.mark.parametrize(
    ("name", "options", "num_episodes", "num_seeds", "factor"),
    [
        ("psrl", {}, 2000, 4, 5),
        ("q-learning", {"bonus_scale": 0.03}, 20_000, 8, 4),
        ("aggregate-po", {"learning_rate": 4}, 20_000, 8, 3),
        ("trajectory-ts", {"noise_scale": 0.2, "bonus_scale": 0.05}, 4000, 4, 3),
    ],
)
def test_regret_falls_far_below_uniform_plays(name, options, num_episodes, num_seeds, factor):
    ours, uniform = (
        late_regret(each, num_episodes, num_seeds)
        for each in (jb.make_learner(name, **options), jb.make_learner("uniform"))
    )
    assert ours < uniform / factor


def test_structure_helps():
    """2,000 episodes, 8 seeds, the same bonus scale: `prophet_optimism` against UCB-VI."""
    values = np.asarray([[0.1, 0.4, 0.9], [0.0, 0.5, 1.0], [0.2, 0.3, 0.8]])
    law = np.asarray([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1]])
    mdp = jb.make_instance("prophet", values=values, probabilities=law, capacity=2)
    ours = jb.make_learner("prophet-optimism", values=values, bonus_scale=0.1)
    ucbvi = jb.make_learner("ucbvi", bonus_scale=0.1)
    assert late_regret(ours, 2000, 8, mdp) < late_regret(ucbvi, 2000, 8, mdp)


@pytest.mark.parametrize(("name", "options"), [("q-learning", {"bonus_scale": 0.03}), ("psrl", {})])
def test_pooled_counts_learn_a_stationary_problem_faster(name, options):
    """RiverSwim, 2,000 episodes, 4 seeds: half the regret at most."""
    mdp = jb.make_instance("riverswim", horizon=8)
    one, pooled = (
        late_regret(jb.make_learner(name, stationary=each, **options), 2000, 4, mdp)
        for each in (False, True)
    )
    assert pooled < one / 2
