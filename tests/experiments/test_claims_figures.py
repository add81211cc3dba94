"""Maps of claims: a dot where a claim holds on all panels."""

import numpy as np
from jaxbandit.experiments.claims_figures import maps
from jaxbandit.experiments.claims_map import BONUS_SCALES, EXPLORATIONS, THRESHOLDS
from synthetic_sweep import texts


def test_cells_with_all_panels_have_a_dot():
    shares = np.full((len(BONUS_SCALES), len(THRESHOLDS), len(EXPLORATIONS)), 0.5)
    shares[1, 2, 0] = 1
    drawn = maps({"a claim": shares}, "title")
    dots = [len(ax.lines) for ax in drawn.axes]
    assert dots == [1] + [0] * (len(EXPLORATIONS) - 1)
    assert "title" in texts(drawn.figure)
