"""Twins show the same under a feedback and differ in what it hides."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.testing.lookalikes import WORD, play_episode, twin_episode, twin_mdps
from jaxbandit.testing.trees import differing

MDP = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
HIDING = ["one-bit", "bandit", "trajectory", "segments:2"]


@pytest.mark.parametrize("kind", HIDING)
def test_twins_of_episodes(kind):
    policy = np.asarray(jb.optimal(MDP)[1])
    random = np.random.default_rng(1)
    hidden = False
    for _ in range(20):
        episode = play_episode(MDP, policy, random)
        twin = twin_episode(kind, episode, MDP)
        shown = [observe(kind, each, WORD) for each in (episode, twin)]
        assert differing(*shown) is None
        hidden |= differing(episode, twin) is not None
    assert hidden


def test_twins_of_mdps_are_valid_and_not_the_same():
    one, two = (jb.validate(mdp) for mdp in twin_mdps(MDP))
    assert differing(tuple(one), tuple(two)) is not None
    policy = np.asarray(jb.optimal(MDP)[1])
    values = [float(jb.evaluate(mdp, policy)) for mdp in (one, two)]
    assert abs(values[0] - values[1]) < 1e-6  # sums of at most four float32 below 1


def test_episodes_on_the_host_earn_the_value():
    """2,000 episodes, a z-test at 5 standard errors (rewards in [0, 1]): false-alarm rate below 6e-7."""
    value, policy = jb.optimal(MDP)
    random = np.random.default_rng(2)
    totals = [
        float(jax.numpy.sum(play_episode(MDP, np.asarray(policy), random).rewards))
        for _ in range(2000)
    ]
    assert abs(np.mean(totals) - float(value)) < 5 * np.std(totals) / np.sqrt(2000)
