"""What H, k and A cost: crossovers and times of known curves."""

import pytest
from jaxbandit.experiments import price_of_horizon

from jaxbandit import theory


def test_crossovers():
    assert price_of_horizon.crossover(1, 2, largest=5)[2:] == (3, 2, 2)
    assert price_of_horizon.crossover(2, 2, largest=7)[2:] == (5, 5, 5)


def test_time_of_a_bound():
    time = price_of_horizon.bound_time(lambda T: theory.upper_bound_general(2, 1, 2, T))
    assert theory.upper_bound_general(2, 1, 2, time) == pytest.approx(
        price_of_horizon.TARGET * time, rel=1e-6
    )
