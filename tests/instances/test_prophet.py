"""Prophet: thresholds against the unrestricted problem."""

import families
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


def probability_of_staying(mdp, level):
    return np.asarray(jb.transition_kernel(mdp))[:, level, :, level]


def unrestricted_prophet(values, probabilities, capacity):
    """Opt / k of the prophet problem in which any set of values may be taken, by dynamic
    programming."""
    best = np.zeros(capacity + 1)
    for value, p in zip(values[::-1], probabilities[::-1], strict=True):
        take = value[None, :] + best[:-1, None]
        best[1:] = (p[None, :] * np.maximum(take, best[1:, None])).sum(1)
    return best[-1] / capacity


@pytest.mark.parametrize(("horizon", "capacity", "num_values"), [(15, 2, 5), (20, 4, 5), (6, 3, 4)])
def test_thresholds_lose_nothing_on_uniform_values(horizon, capacity, num_values):
    """0 is in the support of I1, so that thresholds can accept everything of value."""
    mdp = make("prophet-uniform", horizon=horizon, capacity=capacity, num_values=num_values)
    values = np.tile(np.linspace(0, 1, num_values), (horizon, 1))
    expected = unrestricted_prophet(values, np.full_like(values, 1 / num_values), capacity)
    np.testing.assert_allclose(jb.optimal(mdp)[0], expected, rtol=1e-6)


def test_prophet_thresholds_are_strict_and_sorted():
    """Unsorted rows; action a is the a-th smallest value, and only larger ones are selected."""
    mdp = make("prophet", values=families.VALUES, probabilities=families.PROBABILITIES, capacity=2)
    # Stage 1 sorted: 0.2 (0.5), 0.5 (0.3), 0.9 (0.2); stage 2 sorted: 0 (0.25), 0.4 (0.5), 1
    # (0.25).
    np.testing.assert_allclose(
        probability_of_staying(mdp, 2), [[0.5, 0.8, 1.0], [0.25, 0.75, 1.0]], rtol=1e-6
    )
    np.testing.assert_allclose(
        jb.mean_reward(mdp)[:, 2] * 2,
        [[0.5 * 0.3 + 0.9 * 0.2, 0.9 * 0.2, 0], [0.2 + 0.25, 0.25, 0]],
        rtol=1e-6,
    )
    assert int(mdp.start) == mdp.width == 2
    assert (np.diff(np.asarray(mdp.rank), axis=-1) == 1).all()
    taken = np.asarray(mdp.reward[:, 1:] > 0)
    levels = np.arange(1, 3)[None, :, None, None]
    np.testing.assert_array_equal(np.asarray(mdp.next_level)[:, 1:], levels - taken)
