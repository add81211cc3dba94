"""K-armed bandits as MDPs, their Lai-Robbins constants, and what others call them."""

import jax
import numpy as np
import pytest
from scipy import optimize

import jaxbandit as jb
from jaxbandit import theory


def test_rewards_keep_their_law_and_their_units():
    bernoulli = jb.make_instance("bandit", means=[0.25, 0.5])
    assert (bernoulli.horizon, bernoulli.width, bernoulli.num_actions) == (1, 1, 2)
    np.testing.assert_allclose(jb.mean_reward(bernoulli)[0], [[0, 0], [0.25, 0.5]])
    chances = [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]
    for values in ([0.0, 0.3, 1.0], [1, 2, 10], [-3, 1, 2], [[-1, 0, 1], [0, 2, 4]]):
        mdp = jb.validate(jb.make_instance("bandit", values=values, probabilities=chances))
        words = jb.labels_of(mdp)
        means = (np.broadcast_to(values, (2, 3)) * chances).sum(axis=1)
        ours = np.asarray(jb.mean_reward(mdp))[0, 1]
        np.testing.assert_allclose(words.scale * ours + sum(words.offsets), means, rtol=1e-5)
        assert bool(words.offsets) == (np.min(values) < 0)


def test_drawn_means_are_uniform_and_stack():
    many = jb.family(
        "bandit-random", count=500, key=jax.random.key(0), num_arms=4, low=0.2, high=0.6
    )
    means = np.asarray(many.prob)[:, 0, 1, :, 1]
    assert means.shape == (500, 4)
    assert 0.2 <= means.min() < 0.21
    assert 0.59 < means.max() <= 0.6


def kl(p, q):
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def test_the_constant_of_lai_and_robbins():
    tenths = np.arange(1, 10) / 10
    assert round(theory.lai_robbins(tenths), 3) == 7.517
    assert round(theory.lai_robbins([0.9, 0.8]), 3) == 2.252
    by_hand = sum((0.9 - p) / kl(p, 0.9) for p in tenths[:-1])
    np.testing.assert_allclose(theory.lai_robbins(tenths), by_hand, rtol=1e-9)
    np.testing.assert_allclose(
        jb.hardness(jb.make_instance("bandit", means=tenths)).lai_robbins, by_hand, rtol=1e-5
    )
    assert theory.lai_robbins([1, 0.5]) == theory.lai_robbins([0.5, 0.5]) == 0
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    assert np.isnan(jb.hardness(mdp).lai_robbins)


def test_with_several_values_it_is_the_smallest_divergence():
    """Against a direct minimisation over distributions on the same values and 1."""
    values, p = np.array([0.0, 0.4, 1.0]), np.array([0.5, 0.3, 0.2])
    best = 0.6

    def divergence(q):
        return float(np.sum(p * np.log(p / q)))

    found = optimize.minimize(
        divergence,
        np.array([0.2, 0.3, 0.5]),
        bounds=[(1e-9, 1)] * 3,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "eq", "fun": lambda q: q @ values - best},
        ],
    )
    chances = [p, [1 - best, 0, best]]
    expected = (best - p @ values) / found.fun
    np.testing.assert_allclose(
        theory.lai_robbins(values=values, probabilities=chances), expected, rtol=1e-4
    )


def test_what_others_call_them_leads_to_our_names():
    for make, name, hint in [
        (jb.make_learner, "UCB", "did you mean 'ucb1' or 'ucbvi'?"),
        (jb.make_learner, "UCBVI", "did you mean 'ucbvi'?"),
        (jb.make_learner, "TS", "did you mean 'thompson' or 'psrl'?"),
        (jb.make_learner, "bernoulli", "did you mean the instance 'bandit'"),
        (jb.make_instance, "bernoulli", "did you mean 'bandit' or 'bandit-random'?"),
        (jb.make_instance, "ucb1", "did you mean the learner 'ucb1'"),
        (jb.describe, "TS", "did you mean 'thompson' or 'psrl'?"),
        (jb.describe, "bernoulli", "did you mean 'bandit' or 'bandit-random'?"),
    ]:
        with pytest.raises(ValueError, match=name) as error:
            make(name)
        assert hint in str(error.value)
    described = jb.describe("bandit")
    assert [entry.kind for entry in described.entries] == ["instance", "feedback"]
    assert all(name in str(described) for name in ("ucb1", "thompson", "kl-ucb"))


def test_regret_figures_know_the_bound():
    mdps = {f"b{gap}": jb.make_instance("bandit", means=[0.5, 0.5 + gap]) for gap in (0.1, 0.3)}
    mdps["b0.3"] = jb.label(mdps["b0.3"], unit="$", scale=5.0)
    mdps["b0.1"] = jb.label(mdps["b0.1"], unit="$", scale=2.0)
    uniform = jb.make_learner("uniform")
    ds = jb.sweep({"uniform": uniform}, mdps, num_episodes=50, num_seeds=2, progress=False)
    for shown, unit in ((ds, 1.0), (jb.in_units(ds), 5.0), (jb.in_units(jb.in_units(ds)), 5.0)):
        drawn = jb.plot_regret(shown, instance="b0.3", bound="lai-robbins")
        line = next(line for line in drawn.axes.get_lines() if line.get_color() == "#595959")
        constant = unit * theory.lai_robbins([0.5, 0.8])
        np.testing.assert_allclose(line.get_ydata()[-1], constant * np.log(50), rtol=1e-5)
    assert jb.plot_final(shown, instance="b0.3").axes.get_xlabel().endswith("50 episodes (\\$)")
    jb.plot_panels(ds, bound="lai-robbins")
    with pytest.raises(ValueError, match="bound: 'gittins'"):
        jb.plot_regret(ds, instance="b0.3", bound="gittins")
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    ds = jb.sweep({"uniform": uniform}, {"I": mdp}, num_episodes=50, num_seeds=2, progress=False)
    with pytest.raises(ValueError, match="accepted: K-armed bandits"):
        jb.plot_regret(ds, bound="lai-robbins")
