"""Bands, slopes, times and intervals that hold together: by hand, against scipy, and coverage where the truth is known."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats as scipy_stats

from jaxbandit.stats import compare_values, loglog_slope, time_to_average_regret
from jaxbandit.stats.decisions import paired_differences
from jaxbandit.stats.intervals import (
    FEW_TO_JUDGE,
    KINDS,
    band,
    coverage_warning,
    fewest_runs,
    jackknife_half_width,
    joint_intervals,
    mean_interval,
    method_of_all,
    paired_difference,
    standard_error,
)

REPETITIONS, POINTS, SAMPLES = 400, 30, 2000


def skewed_curves(rng, count):
    """Random walks like regret [repetitions, count, points], and their mean: positive skew (1 in the slope, 2.8 in each
    increment)."""
    weight = (np.arange(POINTS) + 1.0) ** -0.3
    slope = rng.gamma(4.0, 1 / 4.0, (REPETITIONS, count, 1))
    steps = rng.gamma(0.5, 1 / 0.5, (REPETITIONS, count, POINTS))
    return np.cumsum(weight * (slope + steps), axis=-1), 2 * np.cumsum(weight)


def bell_curves(rng, count):
    """Gaussian random walks with a random slope."""
    slope = rng.normal(1.0, 0.3, (REPETITIONS, count, 1))
    steps = rng.normal(1.0, 1.0, (REPETITIONS, count, POINTS))
    return np.cumsum(slope + steps, axis=-1), 2 * np.arange(1.0, POINTS + 1)


@pytest.mark.parametrize("count", [8, 32])
@pytest.mark.parametrize("kind", ["t", "bootstrap"])
def test_pointwise_coverage_is_near_95_percent(kind, count):
    """Skew costs Student-t up to 1 %, the bootstrap errs to the safe side by up to 1.5 %; beyond these, 3 simulation
    errors (about 0.007 each): false alarm 0.3 % for a fresh key, none for this one. All repetitions are points of one band."""
    curves, truth = skewed_curves(np.random.default_rng(11), count)
    b = band(np.moveaxis(curves, 1, 0).reshape(count, -1), kind, num_resamples=200)
    inside = (b.low.reshape(-1, POINTS) <= truth) & (truth <= b.high.reshape(-1, POINTS))
    error = inside.mean(axis=1).std() / np.sqrt(REPETITIONS)
    assert 0.94 - 3 * error < inside.mean() < 0.965 + 3 * error


@pytest.mark.parametrize("count", [7, 8, 32])
@pytest.mark.parametrize("draw", [skewed_curves, bell_curves])
def test_simultaneous_coverage_is_not_below_95_percent(draw, count):
    """2 simulation errors: false alarm at most 2.3 % for a fresh key at exactly 95 %, none for this one. Student-t point by
    point misses a curve far more often."""
    curves, truth = draw(np.random.default_rng(12), count)
    for kind in ("simultaneous", "t") if count == 32 else ("simultaneous",):
        bands = [band(c, kind, num_resamples=300, key=j) for j, c in enumerate(curves)]
        whole = np.mean([((b.low <= truth) & (truth <= b.high)).all() for b in bands])
        assert (whole > 0.95 - 2 * np.sqrt(0.95 * 0.05 / REPETITIONS)) == (kind != "t")


def test_t_band_is_the_textbook_interval():
    curves = np.array([[1.0, 4.0], [2.0, 8.0], [6.0, 6.0]])
    b = band(curves, "t", 0.9)
    low, high = scipy_stats.t.interval(0.9, 2, curves.mean(0), scipy_stats.sem(curves, axis=0))
    np.testing.assert_allclose(b.low, low)
    np.testing.assert_allclose(b.high, high)
    assert (b.n, b.level, b.kind, b.replicates) == (3, 0.9, "t", "seeds")
    estimate = mean_interval([*curves[:, 0], np.nan], 0.9)
    np.testing.assert_allclose(estimate[:4], (3.0, low[0], high[0], 3))


def test_quantile_band_is_named_as_what_it_is():
    b = band(np.arange(101.0)[:, None], "quantile")
    np.testing.assert_allclose([b.low[0], b.center[0], b.high[0]], [10.0, 50.0, 90.0])
    assert b.describe() == "median and central 80 % of the runs, 101 seeds"


@pytest.mark.parametrize("kind", KINDS)
def test_missing_runs_are_not_counted_and_missing_points_are_nan(kind):
    curves = np.random.default_rng(3).gamma(9, size=(12, 3))
    with_gap = np.vstack([curves, np.full((2, 3), np.nan)])
    b = band(with_gap, kind)
    assert b.n == 12
    np.testing.assert_array_equal(b.high, band(curves, kind).high)
    curves[4, 1] = np.nan
    b = band(curves, kind)
    assert b.n == 12
    assert np.isnan([b.center[1], b.low[1], b.high[1]]).all()
    assert np.isfinite(b.high[[0, 2]]).all()
    curves[4, 1] = np.inf
    with pytest.raises(ValueError, match="curves: inf in replicate 4, point 1; accepted: finite"):
        band(curves, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_one_or_no_replicate(kind):
    b = band(np.ones((1, 3)), kind)
    assert b.n == 1
    assert (b.center == 1).all()
    assert kind == "quantile" or np.isnan(b.low).all()
    nothing = band(np.full((2, 3), np.nan), kind)
    assert nothing.n == 0
    assert np.isnan(nothing.center).all()
    assert nothing.describe() == "no data"


def test_pairing_cancels_what_replicates_have_in_common():
    rng = np.random.default_rng(4)
    common = 100 * rng.normal(size=(16, 1))
    first, second = (common + shift + rng.normal(size=(16, 5)) for shift in (3.0, 0.0))
    b = paired_difference(first, second)
    assert (b.high - b.low).max() < 0.1 * (band(first).high - band(first).low).min()
    assert (b.low > 0).all()
    assert paired_difference(first[:, 0], second[:, 0]).center.shape == (1,)


def test_the_interval_for_skewed_runs_by_hand():
    b = band(np.array([[1.0], [2.0], [6.0]]), "skewed")
    half = scipy_stats.t.ppf(0.975, 2) * np.sqrt(7.0) / np.sqrt(3)
    assert b.low[0] == 0
    np.testing.assert_allclose(b.high[0], 3 * np.exp(half / 3))
    assert b.describe() == "mean and 95 % interval for skewed runs, 3 seeds"
    zero = band(np.zeros((6, 2)), "skewed")
    assert (zero.low == 0).all()
    assert (zero.high == 0).all()


def test_an_interval_that_may_cover_less_says_so():
    rng = np.random.default_rng(0)
    for count, kind in [(7, "bootstrap"), (7, "simultaneous"), (7, "t"), (29, "t")]:
        few = band(rng.normal(size=(count, 2)), kind)
        assert few.warning == "few"
        assert "(few runs: covers less if skewed)" in few.describe()
    assert band(rng.normal(size=(32, 2))).warning == band(np.ones((3, 2))).warning == ""
    assert band(rng.exponential(size=(64, 2))).warning == "skewed"
    assert band(rng.exponential(size=(32, 2)), "skewed").warning == ""


@pytest.mark.parametrize("kind", ["bootstrap", "simultaneous"])
def test_random_bands_depend_on_the_key_alone(kind):
    curves = np.random.default_rng(0).normal(size=(32, 5))
    np.testing.assert_array_equal(band(curves, kind).high, band(curves, kind, key=0).high)
    typed = [band(curves, kind, key=jax.random.key(s)).high for s in (1, 1, 2)]
    np.testing.assert_array_equal(typed[0], typed[1])
    assert (typed[0] != typed[2]).any()


@pytest.mark.parametrize("count", [2, 3, 7])
def test_few_replicates_have_students_quantile_for_half_the_error_rate(count):
    curves = np.random.default_rng(1).normal(size=(count, 4))
    for kind, points in (("simultaneous", 4), ("bootstrap", 1)):
        b = band(curves, kind)
        t = scipy_stats.t.ppf(1 - 0.05 / 4 / points, count - 1)
        np.testing.assert_allclose((b.high - b.low) / 2, t * scipy_stats.sem(curves, axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_points_without_spread_have_no_width_and_do_not_widen_the_others(kind):
    moving = np.random.default_rng(2).gamma(9, size=(12, 3))
    still = np.hstack([np.full((12, 1), 5.0), moving])
    b = band(still, kind)
    assert b.low[0] == b.center[0] == b.high[0] == 5.0
    np.testing.assert_allclose(b.high[1:], band(moving, kind).high)


def test_the_jackknife_of_a_mean_is_the_t_interval_and_of_a_ratio_nearly_the_delta_method():
    """2,000 runs: jackknife and delta method differ by terms of order 1/n, far below the 1 % allowed here."""
    random = np.random.default_rng(0)
    x, y = random.normal(3, 1, 2000), random.normal(2, 0.3, 2000)
    t = scipy_stats.t.ppf(0.975, 1999) / np.sqrt(2000)
    mean = jackknife_half_width((x.sum() - x) / 1999, 0.95)
    assert mean == pytest.approx(t * x.std(ddof=1), rel=1e-9)
    ratio = jackknife_half_width((x.sum() - x) / (y.sum() - y), 0.95)
    error = np.std(x - x.mean() / y.mean() * y, ddof=1) / y.mean()
    assert ratio == pytest.approx(t * error, rel=0.01)
    assert np.isnan(jackknife_half_width([1.0], 0.95))


@pytest.mark.parametrize("count", [3, 8, 12, 24, 32])
@pytest.mark.parametrize("data", ["exponential", "lognormal"])
def test_runs_on_which_student_t_covers_less_are_not_silent(data, count):
    """Of all intervals at most 3 % miss the mean of skewed runs and have no warning."""
    rng = np.random.default_rng(count)
    runs = getattr(rng, data)(size=(SAMPLES, count))
    truth = {"exponential": 1.0, "lognormal": np.exp(0.5)}[data]
    low, high = scipy_stats.t.interval(0.95, count - 1, runs.mean(1), scipy_stats.sem(runs, axis=1))
    missed = runs[(low > truth) | (high < truth)]
    assert len(missed) > 0.055 * SAMPLES
    assert sum(coverage_warning(values) == "" for values in missed) < 0.03 * SAMPLES


def test_many_even_runs_get_no_warning():
    """2 % of normal samples of 32 look skewed; 4 standard errors of 2,000 are 1.3 %."""
    runs = np.random.default_rng(0).normal(size=(SAMPLES, 32))
    assert np.mean([coverage_warning(values) == "" for values in runs]) > 0.967
    assert coverage_warning(np.zeros(FEW_TO_JUDGE)) == ""
    far = np.arange(9.0) ** 6
    assert [coverage_warning(x) for x in (far, far[:7], np.arange(9.0))] == ["skewed", "few", "few"]


def test_one_warning_is_enough_for_a_figure():
    even = band(np.arange(32.0)[:, None])
    far = band(np.arange(32.0)[:, None] ** 6)
    few = band(np.arange(3.0)[:, None])
    assert method_of_all([even]) == "mean and 95 % t-interval"
    assert method_of_all([even, far]).endswith("(skewed runs: covers less)")
    assert method_of_all([even, far, few]).endswith("(few or skewed runs: may cover less)")
    assert method_of_all([band(np.ones((1, 2)))]) == "no intervals"


def test_slope_of_a_power_on_any_grid():
    for episodes in (np.arange(1, 2001) * 1000.0, np.geomspace(1, 2e6, 400)):
        curves = np.outer([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], episodes**0.7)
        estimate = loglog_slope(episodes, curves)
        np.testing.assert_allclose(estimate[:3], 0.7, atol=2e-3)
        assert estimate.n == 6
        assert np.isnan(loglog_slope(episodes, curves[:3]).low)  # too few that agree


def test_slope_is_fitted_on_the_last_part():
    episodes = np.arange(1.0, 1001.0)
    bent = np.where(episodes < 100, episodes, 100 * (episodes / 100) ** 0.5)
    curves = np.outer([1.0, 1.5], bent)
    np.testing.assert_allclose(loglog_slope(episodes, curves).value, 0.5, atol=2e-3)
    np.testing.assert_allclose(loglog_slope(episodes, curves, fit_from=500).value, 0.5, atol=1e-3)
    assert loglog_slope(episodes, curves, fit_from=10).value > 0.6
    assert np.isnan(loglog_slope(episodes, curves[:1]).low)


def test_slope_interval_covers_the_exponent_of_the_mean():
    """Runs commit at random to a policy of small or large loss, so slopes differ between runs."""
    rng = np.random.default_rng(5)
    episodes = np.linspace(100, 10_000, 60)
    truth = loglog_slope(episodes, (3 * episodes**0.5 + 0.01 * episodes)[None]).value
    hits = 0
    for _ in range(400):
        roots = rng.gamma(9, 1 / 3, (16, 1)) * episodes**0.5
        curves = roots + rng.gamma(2, 0.005, (16, 1)) * episodes
        estimate = loglog_slope(episodes, curves)
        hits += estimate.low <= truth <= estimate.high
    # Skew costs about 2 %; 3 simulation errors (0.011 each) below that: false alarm 0.1 % for a
    # fresh key.
    assert 0.93 - 0.033 < hits / 400 < 0.985


def test_slopes_of_few_or_skewed_replicates_say_so():
    episodes = np.geomspace(10, 1000, 20)
    runs = np.random.default_rng(0).exponential(1.0, (12, 1))
    curves = (1 + runs * np.log(episodes)) * episodes**0.5
    few = loglog_slope(episodes, curves[:3])
    assert few.warning == "few"
    assert "few runs: covers less if skewed; 3 seeds)" in str(few)
    assert loglog_slope(episodes, curves[[0] * 3]).warning == ""  # no interval to doubt
    one_far = np.concatenate([curves[:9] * 0.01 + episodes**0.5, 50 * curves[:1] * episodes**0.2])
    assert loglog_slope(episodes, one_far).warning == "skewed"
    assert str(loglog_slope(episodes, curves[:1])).endswith("(no interval; 1 seeds)")


def test_time_is_reached_for_good():
    episodes = np.array([10.0, 20.0, 40.0, 80.0])
    dips_then_rises = [1.0, 10.0, 20.0, 24.0]
    never = [9.0, 18.0, 36.0, 72.0]
    answer = time_to_average_regret(episodes, [dips_then_rises, never], 0.3)
    np.testing.assert_array_equal(answer.times, [80.0, np.nan])
    assert (answer.reached, answer.n) == (1, 2)
    assert answer.median == np.inf


def test_interval_of_the_median_time_is_the_sign_test_interval():
    episodes = np.arange(1.0, 21.0)
    curves = 0.5 * np.minimum(episodes, np.arange(1, 9)[:, None])  # R(t)/t <= 1/4 from t = 2 start
    answer = time_to_average_regret(episodes, curves, 0.25)
    np.testing.assert_array_equal(answer.times, 2.0 * np.arange(1, 9))
    assert answer.median == 9.0
    assert (answer.low, answer.high) == (2.0, 16.0)  # n = 8: smallest and largest, coverage 99.2 %
    few = time_to_average_regret(episodes, curves[:5], 0.25)
    assert (few.low, few.high) == (-np.inf, np.inf)


FOUR = ["A", "B", "C", "D"]


def skewed(rng, count):
    """Paired regrets of 4 learners [count, 4] with the means 2, 2, 2, 2: what a seed brings is shared."""
    shared = rng.gamma(2.0, 0.5, (count, 1))
    return shared + rng.gamma([1.0, 2.0, 4.0, 8.0], [1.0, 0.5, 0.25, 0.125], (count, 4))


def coins(rng, count):
    """Regrets of 4 learners that are 0 or 1, and nearly so: what is the same for all runs is not quite."""
    return rng.integers(0, 2, (count, 4)) + 1e-6 * rng.normal(size=(count, 4))


@pytest.mark.parametrize("draw", [skewed, coins])
@pytest.mark.parametrize("sizes", [[3], [8], [9], [32], [6, 6]])
def test_pairs_are_wrongly_decided_no_more_often_than_the_level_says(draw, sizes):
    """All true differences are 0. Allowed: 5 % and 4 simulation errors of 1.1 % (false-alarm rate 3e-5 at exactly 5 %)."""
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
    six = [[[1, 2.0]] * 3, [[5, 6.0]] * 3]  # in two strata
    assert compare_values(["A", "B"], six).decided


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
        strata = paired_differences([values[:count]])
        found = joint_intervals(strata)
        widths.append((found.high - found.low) / 2 / standard_error(strata)[0])
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


ONES, EPISODES = np.ones((3, 2)), np.arange(1.0, 5.0)
FLAT, AT_FIRST, GAP = np.ones((3, 4)), [[0] * 4, [1, 2, 3, 4]], [[1, 2, np.nan, 4], [1, 2, 3, 4]]
REFUSED = [
    (band, (ONES, "bootstrp"), {}, "'bootstrp'; did you mean 'bootstrap'.* accepted: t, b"),
    (band, (np.ones(3),), {}, r"curves: shape \(3,\); accepted: \[n, points\]"),
    (band, (ONES,), {"level": 95}, "level: 95; accepted: a number strictly between 0 and 1"),
    (band, (-ONES, "skewed"), {}, r"curves: -1\.0 for kind 'skewed'; accepted: numbers >= 0"),
    (band, (ONES,), {"key": -1}, "key: -1; accepted: an integer >= 0 or a jax key"),
    (paired_difference, (ONES, np.ones((4, 2))), {}, r"shapes \(3, 2\), \(4, 2\)"),
    (paired_difference, (ONES, ONES, "skewed"), {}, "accepted: t, bootstrap"),
    (paired_difference, ([1.0, np.nan], [np.inf, 1.0]), {}, "second: inf in replicate 0"),
    (mean_interval, (ONES,), {}, r"values: shape \(3, 2\); accepted: \[n\]"),
    (mean_interval, ([1.0, 2.0, -np.inf],), {}, "values: -inf in replicate 2"),
    (mean_interval, ([1.0, -1.0],), {"kind": "skewed"}, r"values: -1.0 for kind 'skewed'"),
    (mean_interval, ([1.0],), {"kind": "bootstrap"}, "kind: 'bootstrap'; accepted: t, skewed"),
    (loglog_slope, (EPISODES[:2], FLAT), {}, r"episodes: shape \(2,\); accepted: positive"),
    (loglog_slope, (EPISODES[::-1], FLAT), {}, "accepted: positive and increasing"),
    (loglog_slope, (EPISODES, 0 * FLAT), {}, "curves: the mean regret, .* is 0 on the fitted part"),
    (loglog_slope, (EPISODES, FLAT, 9), {}, "fit_from: 9; accepted: an episode before the last, 4"),
    (loglog_slope, (EPISODES, AT_FIRST), {}, "without one of them, is 0 .* accepted: positive"),
    (loglog_slope, (EPISODES, GAP), {}, "curves: nan in replicate 0, point 2; accepted: finite"),
    (loglog_slope, (EPISODES, FLAT), {"level": 95}, "level: 95; accepted"),
    (time_to_average_regret, (EPISODES, FLAT, np.nan), {}, "target: nan; accepted"),
    (time_to_average_regret, (EPISODES, FLAT, 0), {}, "target: 0; accepted: a finite number > 0"),
    (joint_intervals, ([ONES, ONES[:1]],), {}, r"strata: \[3, 1\] replicates; accepted: at l"),
]


@pytest.mark.parametrize(("function", "given", "how", "message"), REFUSED)
def test_errors_name_what_is_accepted(function, given, how, message):
    """Odd values one at a time are in `tests/test_fuzz_stats.py`; here is what they are told."""
    with pytest.raises(ValueError, match=message):
        function(*given, **how)
