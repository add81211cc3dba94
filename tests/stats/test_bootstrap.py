"""How far bands extend: seeded, with Bonferroni for few replicates, and nothing where nothing varies."""

import jax
import numpy as np
import pytest
from scipy import stats as scipy_stats

from jaxbandit.stats.intervals import KINDS, band


@pytest.mark.parametrize("kind", ["bootstrap", "simultaneous"])
def test_random_bands_depend_on_the_key_alone(kind):
    curves = np.random.default_rng(0).gamma(2.0, size=(10, 5))
    np.testing.assert_array_equal(band(curves, kind).high, band(curves, kind, key=0).high)
    typed = [band(curves, kind, key=jax.random.key(s)).high for s in (1, 1, 2)]
    np.testing.assert_array_equal(typed[0], typed[1])
    assert (typed[0] != typed[2]).any()


@pytest.mark.parametrize("count", [2, 3, 7])
def test_few_replicates_get_bonferroni_and_finite_bands(count):
    curves = np.random.default_rng(1).normal(size=(count, 4))
    b = band(curves, "simultaneous")
    t = scipy_stats.t.ppf(1 - 0.05 / 8, count - 1)
    np.testing.assert_allclose((b.high - b.low) / 2, t * scipy_stats.sem(curves, axis=0))
    assert np.isfinite(band(curves, "bootstrap").high).all()


@pytest.mark.parametrize("kind", KINDS)
def test_points_without_spread_have_no_width_and_do_not_widen_the_others(kind):
    moving = np.random.default_rng(2).gamma(9, size=(12, 3))
    still = np.hstack([np.full((12, 1), 5.0), moving])
    b = band(still, kind)
    assert b.low[0] == b.center[0] == b.high[0] == 5.0
    np.testing.assert_allclose(b.high[1:], band(moving, kind).high)
