"""Every argument of every function of `jb.stats` with every odd value, one at a time: an answer, or an error that names
the argument. And what answers must be, by other formulas."""

import inspect

import fuzzing
import numpy as np
import pytest

import jaxbandit as jb

RUNS = np.random.default_rng(0).gamma(2.0, size=(3, 4))
DS = fuzzing.sweep_results()
AT = {"ds": DS, "instance": "I1", "family": None}
PLACE = AT | {"learner": "UCB-VI"}
CALLS = {
    "band": {"curves": RUNS.cumsum(1)},
    "compare": {"ds": DS},
    "compare_values": {"learners": ["a", "b", "c", "d"], "strata": [RUNS]},
    "curve_names": {"ds": DS},
    "families": {"ds": DS},
    "fewest_runs": {},
    "final_table": {"ds": DS},
    "format_table": {"rows": jb.stats.final_table(DS)},
    "improvement_table": {"rows": jb.stats.probability_of_improvement(DS, num_resamples=50)},
    "loglog_slope": {"episodes": [1, 10, 100, 1000], "curves": RUNS.cumsum(1)},
    "mean_interval": {"values": RUNS[0]},
    "paired_difference": {"first": RUNS, "second": RUNS + 1},
    "parameter_names": {"dataset": DS},
    "parameter_values": {"ds": DS, "learner": "UCB-VI", "parameter": 0},
    "performance_profiles": {"ds": DS},
    "probability_of_improvement": {"ds": DS},
    "regret_band": PLACE,
    "regret_difference": AT | {"first": "ExpRef", "second": "UCB-VI"},
    "replicate_kind": AT,
    "replicates": PLACE,
    "time_to_average_regret": {"episodes": [1, 10, 100, 1000], "curves": RUNS, "target": 0.1},
}


def test_all_are_there():
    functions = {name for name in jb.stats.__all__ if inspect.isfunction(getattr(jb.stats, name))}
    assert functions == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_odd_values_are_refused_by_name(name):
    function = getattr(jb.stats, name)
    parameters = inspect.signature(function).parameters
    usual = CALLS[name] | ({"num_resamples": 50} if "num_resamples" in parameters else {})
    function(**usual)
    for parameter in parameters:
        for odd in fuzzing.ODD:
            arguments = usual | {parameter: odd}
            if parameter == "level" and odd is not None:
                checked = lambda _, odd=odd: 0 < float(odd) < 1  # noqa: E731
            else:
                checked = lambda _: True  # noqa: E731
            fuzzing.outcome(fuzzing.Case(name, function, arguments, checked))


@pytest.mark.parametrize(
    "strata",
    [
        [RUNS[:1]],
        [RUNS[:, :2]],
        [np.where(RUNS > 1, np.nan, RUNS)],
        [RUNS, RUNS[0]],
        [],
        [["a"] * 4],
    ],
)
def test_values_that_cannot_be_compared(strata):
    with pytest.raises(ValueError, match=r"strata: .*accepted: a list of arrays \[n, 4\]"):
        jb.stats.compare_values(["a", "b", "c", "d"], strata)


@pytest.mark.parametrize("count", [6, 7, 20])
def test_the_median_of_times(count):
    """Regret stops growing at episode n: from 2 n on its average is at most half of what it was."""
    ends = np.random.default_rng(count).integers(5, 400, count)
    episodes = np.arange(1, 1001)
    curves = np.minimum(episodes, ends[:, None]).astype(float)
    found = jb.stats.time_to_average_regret(episodes, curves, 0.5)
    assert found.median == np.median(2 * ends)
    assert found.low <= found.median <= found.high
