"""Intervals that hold together: against scipy, by simulation, and no decision from too few runs."""

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from jaxbandit.stats import band, compare_values, fewest_runs, mean_interval
from jaxbandit.stats.intervals import joint_intervals, standard_error

REPETITIONS = 300
FOUR = ["A", "B", "C", "D"]


def skewed(rng, count):
    """Paired regrets of 4 learners [count, 4] with the means 2, 2, 2, 2: what a seed brings is shared."""
    shared = rng.gamma(2.0, 0.5, (count, 1))
    return shared + rng.gamma([1.0, 2.0, 4.0, 8.0], [1.0, 0.5, 0.25, 0.125], (count, 4))


def coins(rng, count):
    """Regrets of 4 learners that are 0 or 1, and nearly so: what is the same for all runs is not quite."""
    return rng.integers(0, 2, (count, 4)) + 1e-6 * rng.normal(size=(count, 4))


def differences(values):
    first, second = np.triu_indices(values.shape[1], 1)
    return values[:, second] - values[:, first]


@pytest.mark.parametrize("draw", [skewed, coins])
@pytest.mark.parametrize("sizes", [[3], [8], [9], [32], [6, 6]])
def test_pairs_are_wrongly_decided_no_more_often_than_the_level_says(draw, sizes):
    """All true differences are 0. Allowed: 5 % and 4 simulation errors of 1.3 % (false-alarm rate 3e-5 at exactly 5 %)."""
    rng = np.random.default_rng(21)
    wrong = 0
    for _ in range(REPETITIONS):
        found = compare_values(FOUR, [draw(rng, count) for count in sizes])
        wrong += any(pair.decided for pair in found.pairs)
    assert wrong / REPETITIONS < 0.05 + 4 * np.sqrt(0.05 * 0.95 / REPETITIONS)


def test_few_equal_differences_decide_nothing():
    """N equal differences of P pairs decide if and only if P 2^(1-N) <= 1 - level."""
    for learners, level, count in itertools.product((2, 4), (0.8, 0.95), range(2, 10)):
        rows = np.arange(count)[:, None] + np.arange(learners) * [[1.0]]
        found = compare_values(FOUR[:learners], [rows], level)
        pairs = len(found.pairs)
        can = pairs * 2.0 ** (1 - count) <= 1 - level + 1e-12
        assert found.decided is can is (count >= fewest_runs(level, pairs))
        assert all(pair.p_value >= min(1, pairs * 2.0 ** (1 - count)) for pair in found.pairs)
        assert all(np.isinf(pair.high) is not can for pair in found.pairs)
        assert ("decide nothing" in found.method) is not can
        assert ("none" in found.table()) is not can
    assert not compare_values(["A", "B"], [[[1, 2], [3, 4]]]).decided
    assert compare_values(
        ["A", "B"], [[[1, 2.0]] * 3, [[5, 6.0]] * 3]
    ).decided  # 6 runs in two strata


def test_few_equal_runs_have_no_interval():
    for count in range(2, 9):
        estimate, b = mean_interval([3.0] * count), band(np.ones((count, 2)), "simultaneous")
        assert np.isfinite([estimate.low, b.low[0]]).all() == (count >= fewest_runs())
        assert estimate.value == 3.0


def test_intervals_do_not_widen_when_runs_are_added():
    """The half-width in standard errors falls with every run, from 2 on."""
    values = np.random.default_rng(0).exponential(size=(64, 4)) * [1, 1.5, 2, 3]
    widths = []
    for count in range(2, 65):
        found = joint_intervals([differences(values[:count])])
        widths.append((found.high - found.low) / 2 / found.error)
    assert (np.diff(widths, axis=0) < 0).all()


@pytest.mark.parametrize("kind", ["t", "bootstrap", "simultaneous", "skewed"])
def test_bands_do_not_widen_when_runs_are_added(kind):
    """Mean half-width in standard errors at the end of a normal or an exponential curve; 3 % are left for the resamples."""
    rng = np.random.default_rng(1)
    for runs in (rng.normal(5.0, 1.0, (40, 10, 100)), rng.exponential(1.0, (40, 10, 100))):
        widths = []
        for count in (3, 6, 7, 8, 9, 10):
            curves = np.cumsum(np.abs(runs[:, :count]), axis=2)[..., ::20]
            bands = [band(each, kind, key=j, num_resamples=200) for j, each in enumerate(curves)]
            error = curves.std(axis=1, ddof=1)[:, -1] / np.sqrt(count)
            widths.append(np.mean([(b.high - b.low)[-1] for b in bands] / error / 2))
        assert (np.diff(widths) < 0.03 * np.array(widths[1:])).all(), widths


def test_one_quantity_is_the_paired_t_test():
    values = np.random.default_rng(22).normal(1.0, 1.0, (6, 1))
    found = joint_intervals([values], 0.9)
    by_scipy = scipy_stats.ttest_1samp(values[:, 0], 0.0)
    low, high = by_scipy.confidence_interval(0.9)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high])
    np.testing.assert_allclose(found.p_value[0], max(by_scipy.pvalue, 2**-5))


def test_two_strata_are_welchs_test():
    rng = np.random.default_rng(23)
    one, other = rng.normal(0.0, 1.0, 5), rng.normal(1.0, 3.0, 7)
    found = joint_intervals([one[:, None], -other[:, None]])
    by_scipy = scipy_stats.ttest_ind(one, other, equal_var=False)
    np.testing.assert_allclose(found.p_value[0], by_scipy.pvalue)
    np.testing.assert_allclose(standard_error([one[:, None], other[:, None]])[1], by_scipy.df)


def test_p_values_agree_with_intervals():
    values = np.random.default_rng(26).normal([0.0, 0.4, 0.6, 2.0], 1.0, (24, 4))
    for level in (0.8, 0.95, 0.99):
        found = joint_intervals([values], level)
        outside = (found.low > 0) | (found.high < 0)
        np.testing.assert_array_equal(outside, found.p_value < 1 - level)


def test_errors_name_what_is_accepted():
    with pytest.raises(ValueError, match=r"strata: \[3, 1\] replicates; accepted: at least 2"):
        joint_intervals([np.ones((3, 1)), np.ones((1, 1))])
    with pytest.raises(ValueError, match=r"level: 1.5; accepted"):
        joint_intervals([np.ones((3, 1))], 1.5)
