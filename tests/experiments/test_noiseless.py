"""The computation without noise: the worst case over gaps grows as the square root."""

import numpy as np
from jaxbandit.experiments import noiseless, scaling

from jaxbandit import theory

SHAPE = scaling.Shape(False, 2, 2, 2)


def test_noiseless_slope_of_the_worst_case_is_a_half():
    """The square root of the theorem from the noiseless computation, T = 10^7 .. 10^13, and the
    upper bound above it."""
    horizons = np.geomspace(1e7, 1e13, 25)
    gaps = scaling.gaps_of(SHAPE, "ExpRef")
    instances = [
        scaling.exact("hard-general", theta=[1, 1], num_actions=2, gap=float(gap)) for gap in gaps
    ]
    worst = np.array(
        [max(noiseless.noiseless_run(m, False, T)[1][-1] for m in instances) for T in horizons]
    )
    slope = np.polyfit(np.log(horizons), np.log(worst), 1)[0]
    assert 0.48 < slope < 0.56
    assert (worst < theory.upper_bound_general(2, 2, 2, horizons)).all()
    assert (worst > theory.lower_bound_general(2, 2, horizons)).all()
