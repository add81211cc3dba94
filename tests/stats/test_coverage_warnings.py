"""Whether an interval gets a warning where it covers too little, and none where it does not."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from jaxbandit.stats.coverage_warnings import FEW_TO_JUDGE, coverage_warning, warning_line
from jaxbandit.stats.intervals import band, method_of_all

REPETITIONS = 2000


@pytest.mark.parametrize("count", [3, 8, 12, 24, 32])
@pytest.mark.parametrize("data", ["exponential", "lognormal"])
def test_runs_on_which_student_t_covers_less_are_not_silent(data, count):
    """Of all intervals at most 3 % miss the mean of skewed runs and have no warning."""
    rng = np.random.default_rng(count)
    runs = getattr(rng, data)(size=(REPETITIONS, count))
    truth = {"exponential": 1.0, "lognormal": np.exp(0.5)}[data]
    low, high = scipy_stats.t.interval(0.95, count - 1, runs.mean(1), scipy_stats.sem(runs, axis=1))
    missed = runs[(low > truth) | (high < truth)]
    assert len(missed) > 0.055 * REPETITIONS
    assert sum(coverage_warning(values) == "" for values in missed) < 0.03 * REPETITIONS


def test_many_even_runs_get_no_warning():
    """2 % of normal samples of 32 look skewed; 4 standard errors of 2,000 are 1.3 %."""
    runs = np.random.default_rng(0).normal(size=(REPETITIONS, 32))
    assert np.mean([coverage_warning(values) == "" for values in runs]) > 0.967
    assert coverage_warning(np.zeros(FEW_TO_JUDGE)) == ""


def test_kinds():
    far = np.arange(9.0) ** 6
    assert coverage_warning(far) == coverage_warning(far, "bootstrap") == "skewed"
    assert coverage_warning(far, "simultaneous") == ""
    assert coverage_warning(far[:7], "simultaneous") == "few"
    assert coverage_warning(np.arange(9.0)) == "few"


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
