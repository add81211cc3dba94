"""Bands: values by hand, and coverage measured on curves whose mean is known."""

import jax
import numpy as np
import pytest
from scipy import stats as scipy_stats

from jaxbandit.stats.intervals import (
    FEW_TO_JUDGE,
    KINDS,
    band,
    coverage_warning,
    jackknife_half_width,
    mean_interval,
    method_of_all,
    paired_difference,
    warning_line,
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


def test_mean_interval_leaves_missing_values_out():
    estimate = mean_interval([1.0, np.nan, 2.0, 3.0])
    low, high = scipy_stats.t.interval(0.95, 2, 2.0, scipy_stats.sem([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(estimate[:4], (2.0, low, high, 3))


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
    assert band(rng.normal(size=(7, 2)), "bootstrap").warning == "few"
    assert band(rng.normal(size=(7, 2)), "simultaneous").warning == "few"
    assert band(rng.normal(size=(29, 2))).warning == "few"
    assert band(rng.normal(size=(7, 2))).warning == "few"
    assert band(rng.normal(size=(32, 2))).warning == ""
    assert band(rng.exponential(size=(64, 2))).warning == "skewed"
    assert band(rng.exponential(size=(32, 2)), "skewed").warning == ""
    assert band(np.ones((3, 2))).warning == ""
    assert "(few runs: covers less if skewed)" in band(rng.normal(size=(7, 2))).describe()


def test_errors_name_what_is_accepted():
    """Odd values one at a time are in `tests/test_fuzz_stats.py`; here is what they are told."""
    ones = np.ones((3, 2))
    for call, message in [
        (lambda: band(ones, "bootstrp"), "'bootstrp'; did you mean 'bootstrap'.* accepted: t, b"),
        (lambda: band(np.ones(3)), r"curves: shape \(3,\); accepted: \[n, points\]"),
        (lambda: band(ones, level=95), "level: 95; accepted: a number strictly between 0 and 1"),
        (lambda: band(-ones, "skewed"), r"curves: -1\.0 for kind 'skewed'; accepted: numbers >= 0"),
        (lambda: band(ones, key=-1), "key: -1; accepted: an integer >= 0 or a jax key"),
        (lambda: paired_difference(ones, np.ones((4, 2))), r"shapes \(3, 2\), \(4, 2\)"),
        (lambda: paired_difference(ones, ones, "skewed"), "accepted: t, bootstrap"),
        (lambda: paired_difference([1.0, np.nan], [np.inf, 1.0]), "second: inf in replicate 0"),
        (lambda: mean_interval(ones), r"values: shape \(3, 2\); accepted: \[n\]"),
        (lambda: mean_interval([1.0, 2.0, -np.inf]), "values: -inf in replicate 2"),
        (lambda: mean_interval([1.0, -1.0], kind="skewed"), r"values: -1.0 for kind 'skewed'"),
        (lambda: mean_interval([1.0], kind="bootstrap"), "kind: 'bootstrap'; accepted: t, skewed"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


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


def test_skewed_before_few():
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


def test_a_line_under_a_table():
    assert warning_line([]) == warning_line(["", ""]) == ""
    assert warning_line(["", "skewed"]).startswith(
        " Intervals of few or skewed runs may cover less"
    )
