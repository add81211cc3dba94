"""Plain NumPy against the Numba loops."""

import numpy as np
import pytest
from peers_compared import LIMIT, PRACTICAL, z_score

pytest.importorskip("numba")

from jaxbandit.experiments.bench import peers, peers_numpy


def test_numba_and_numpy_ucbvi_agree(instance):
    points = [60, 300]
    compiled = peers.ucbvi(instance, 300, points, np.arange(400), bonus_scale=0.2)
    plain = peers_numpy.ucbvi(instance, 300, points, np.arange(32), bonus_scale=0.2)
    assert z_score(compiled[:, 0], plain[:, 0]) < LIMIT
    assert z_score(compiled[:, 1], plain[:, 1]) < LIMIT


@pytest.mark.parametrize("ordered", [False, True])
def test_numba_and_numpy_expref_agree(instance, ordered):
    """With constants under which actions are eliminated and the schedule ends before T."""
    points = [2_000, 12_000]
    plan = peers.schedule(instance, 12_000, ordered=ordered, **PRACTICAL)
    assert plan.episodes.sum() * instance.gap.size < 20_000
    compiled = peers.expref(instance, 12_000, points, np.arange(400), plan)
    plain = peers_numpy.expref(instance, 12_000, points, np.arange(32), plan)
    assert np.std(compiled[:, 1]) > 0
    assert z_score(compiled[:, 0], plain[:, 0]) < LIMIT
    assert z_score(compiled[:, 1], plain[:, 1]) < LIMIT
