"""What prophet and pricing share: scales, padding, capacity."""

import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


@pytest.mark.parametrize("name", ["prophet", "posted-pricing"])
def test_value_scale(name):
    one = {"probabilities": [[0.5, 0.5]], "capacity": 2}
    assert make(name, values=[[0, 0.5]], **one).reward.max() == 0.25  # values within [0, 1]: X / k
    assert make(name, values=[[0, 5]], **one).reward.max() == 0.5  # else X / (k * largest)
    assert make(name, values=[[0, 5]], value_scale=10, **one).reward.max() == 0.25
    assert make(name, values=[[0, 0]], **one).reward.max() == 0


@pytest.mark.parametrize("name", ["prophet", "posted-pricing"])
def test_smaller_supports_are_padded_with_probability_zero(name):
    """Repeating the last value with probability 0 adds an action that does what the last value
    does."""
    short = make(name, values=[[0.2, 0.7]] * 3, probabilities=[[0.4, 0.6]] * 3, capacity=2)
    padded = jb.validate(
        make(name, values=[[0.2, 0.7, 0.7]] * 3, probabilities=[[0.4, 0.6, 0.0]] * 3, capacity=2)
    )
    np.testing.assert_allclose(jb.optimal(padded)[0], jb.optimal(short)[0], rtol=1e-6)
    for array in (jb.transition_kernel(padded), jb.mean_reward(padded)):
        np.testing.assert_array_equal(array[:, :, 1], array[:, :, 2])


def test_capacity_beyond_the_horizon_is_accepted():
    jb.validate(make("prophet-uniform", horizon=2, capacity=5, num_values=3))
