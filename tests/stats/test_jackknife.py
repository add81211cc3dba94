"""The jackknife against what is known: of a mean it is the t-interval, of a ratio nearly the delta method."""

import numpy as np
import pytest
from scipy import stats

from jaxbandit.stats.jackknife import half_width


@pytest.mark.parametrize("count", [2, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_of_a_mean_it_is_the_t_interval(count, level):
    runs = np.random.default_rng(count).exponential(size=count)
    low, high = stats.t.interval(level, count - 1, runs.mean(), stats.sem(runs))
    found = half_width((runs.sum() - runs) / (count - 1), level)
    assert found == pytest.approx((high - low) / 2, rel=1e-9)


def test_of_a_ratio_it_is_nearly_the_delta_method():
    """2,000 runs: the two differ by terms of order 1/n, far below the 1 % allowed here."""
    random = np.random.default_rng(0)
    x, y = random.normal(3, 1, 2000), random.normal(2, 0.3, 2000)
    ratio = x.mean() / y.mean()
    error = np.std(x - ratio * y, ddof=1) / y.mean() / np.sqrt(2000)
    found = half_width((x.sum() - x) / (y.sum() - y), 0.95)
    assert found == pytest.approx(stats.t.ppf(0.975, 1999) * error, rel=0.01)


def test_one_run_says_nothing():
    assert np.isnan(half_width([1.0], 0.95))
