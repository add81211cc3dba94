"""What H, k and A cost: crossovers and times of known curves."""

import numpy as np
import pytest
from jaxbandit.experiments import price_of_horizon
from jaxbandit.experiments.price_of_horizon import draw_times
from made_up_results import make_up

from jaxbandit import theory
from jaxbandit.experiment import Options


def test_crossovers():
    assert price_of_horizon.crossover(1, 2, largest=5)[2:] == (3, 2, 2)
    assert price_of_horizon.crossover(2, 2, largest=7)[2:] == (5, 5, 5)


def test_time_of_a_bound():
    time = price_of_horizon.bound_time(lambda T: theory.upper_bound_general(2, 1, 2, T))
    assert theory.upper_bound_general(2, 1, 2, time) == pytest.approx(
        price_of_horizon.TARGET * time, rel=1e-6
    )


def test_every_panel_has_its_learners_and_times_rise_with_the_horizon():
    plans = price_of_horizon.sweeps(Options(seeds=2))
    drawn = draw_times({label: make_up(plan) for label, plan in plans.items()})
    drawn.figure.draw_without_rendering()
    assert len(drawn.data) == 6
    for title, lines in drawn.data.items():
        assert set(lines) == ({"ExpRef"} if "general" in title else {"ExpRef", "OrderedExpRef"})
        if "against H" in title:
            assert (np.diff([point.noiseless for point in lines["ExpRef"]]) > 0).all()
