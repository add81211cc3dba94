"""Exploration against exact planning."""

import numpy as np
import pytest
from jaxbandit.experiments import exploration, noiseless

import jaxbandit as jb


def test_exploration_agrees_with_planning():
    mdp = jb.make_instance("prophet-uniform", horizon=5, capacity=2, num_values=3)
    for ordered in (False, True):
        eta = noiseless.exploration_policy(mdp, ordered)
        kernel, _ = noiseless.tables_of(mdp)
        theirs = np.asarray(jb.visitation(mdp, eta.astype(np.float32)))
        np.testing.assert_allclose(noiseless.visits_of(kernel, eta, 2), theirs, atol=1e-6)
        mean, deviation = exploration.moments(mdp, eta)
        assert mean == pytest.approx(float(jb.evaluate(mdp, eta.astype(np.float32))), abs=1e-6)
        assert 0 < deviation <= 0.5


def test_maps_of_exact_planning():
    drawn = exploration.draw_maps()
    assert set(drawn.data) == {
        "optimal policy", "uniform exploration", "ordered exploration",
        "signal, uniform exploration", "signal, ordered exploration",
    }  # fmt: skip
    assert drawn.data["ordered exploration"][-1, 3] > 100 * drawn.data["uniform exploration"][-1, 3]
