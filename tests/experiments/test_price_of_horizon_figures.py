"""The figure of `price-of-horizon`: all panels, with lines that rise."""

import numpy as np
from jaxbandit.experiments import price_of_horizon
from jaxbandit.experiments.price_of_horizon_figures import draw_times
from made_up_results import make_up

from jaxbandit.experiment import Options


def test_every_panel_has_its_learners_and_times_rise_with_the_horizon():
    plans = price_of_horizon.sweeps(Options(seeds=2))
    drawn = draw_times({label: make_up(plan) for label, plan in plans.items()})
    drawn.figure.draw_without_rendering()
    assert len(drawn.data) == 6
    for title, lines in drawn.data.items():
        assert set(lines) == ({"ExpRef"} if "general" in title else {"ExpRef", "OrderedExpRef"})
        if "against H" in title:
            assert (np.diff([point.noiseless for point in lines["ExpRef"]]) > 0).all()
