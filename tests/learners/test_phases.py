"""The schedule as constants is the theory's schedule, padded, with n that an engine's integers hold."""

import numpy as np
import pytest

from jaxbandit.learner import Problem
from jaxbandit.learners.phases import MAX_PHASES, PAPER, phases
from jaxbandit.theory import schedule


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("num_episodes", [1, 50, 10**6, 10**15])
def test_the_paper(width, num_episodes):
    found = phases(Problem(5, 3, 2, num_episodes), {}, width)
    wanted = schedule(5, width, 2, num_episodes=max(num_episodes, 2))
    count = wanted.epsilons.size
    assert found.epsilons.shape == found.episodes_per_arm.shape == (MAX_PHASES,)
    np.testing.assert_array_equal(found.epsilons[:count], wanted.epsilons)
    np.testing.assert_array_equal(found.episodes_per_arm[:count], wanted.episodes_per_arm)
    assert not found.epsilons[count:].any()
    assert int(found.forever) == num_episodes + 1


def test_parameters():
    problem = Problem(2, 2, 2, 2_000_000)
    found = phases(problem, {**PAPER, "first_epsilon": 0.3, "num_phases": 2}, 2)
    np.testing.assert_allclose(found.epsilons[:3], [0.3, 0.15, 0])
    found = phases(problem, {"epsilons": np.pad([0.5, 0.4, 0.2], (0, 29))}, 2)
    np.testing.assert_allclose(found.epsilons[:4], [0.5, 0.4, 0.2, 0])
    found = phases(problem, {"last_epsilon": 0.2}, 2)
    np.testing.assert_allclose(found.epsilons[:4], [1, 0.5, 0.25, 0])
    with pytest.raises(ValueError, match=r"ratio: 0.99, more than 32 phases at T = 2000000; acc"):
        phases(problem, {"ratio": 0.99}, 2)


def test_arms_longer_than_the_run_fit_the_engines_integers():
    found = phases(Problem(2, 2, 2, 1000), {"last_epsilon": 1e-5, "num_phases": 17}, 2)
    assert found.episodes_per_arm.max() == 2**31 - 1
