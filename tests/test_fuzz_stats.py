"""Every argument of every function of `jb.stats` with every odd value, one at a time: an answer, or an error that names
the argument. And what answers must be, by other formulas."""

import inspect

import fuzzing
import numpy as np
import pytest

import jaxbandit as jb

RUNS = np.random.default_rng(0).gamma(2.0, size=(3, 4))
DS = fuzzing.sweep_results()
USUAL = {
    "ds": DS, "dataset": DS, "learner": "UCB-VI", "instance": "I1", "family": None, "parameter": 0,
    "curves": RUNS.cumsum(1), "episodes": [1, 10, 100, 1000], "values": RUNS[0], "first": RUNS, "second": RUNS + 1,
    "strata": [RUNS], "target": 0.1, "num_resamples": 50,
}  # fmt: skip
"""What an argument of this name gets, in every function that has it."""
OWN = {
    "compare_values": {"learners": ["a", "b", "c", "d"]},
    "format_table": {"rows": jb.stats.final_table(DS)},
    "improvement_table": {"rows": jb.stats.probability_of_improvement(DS, num_resamples=50)},
    "regret_band": {"parameter": None},
    "regret_difference": {"first": "ExpRef", "second": "UCB-VI"},
    "replicates": {"parameter": None},
}
FUNCTIONS = [name for name in jb.stats.__all__ if inspect.isfunction(getattr(jb.stats, name))]


def usual_arguments(name):
    parameters = inspect.signature(getattr(jb.stats, name)).parameters
    given = USUAL | OWN.get(name, {})
    return {parameter: given[parameter] for parameter in parameters if parameter in given}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_values_are_refused_by_name(name):
    function = getattr(jb.stats, name)
    parameters = inspect.signature(function).parameters
    usual = usual_arguments(name)
    function(**usual)
    for parameter in parameters:
        for odd in fuzzing.ODD:
            arguments = usual | {parameter: odd}

            def checked(_, odd=odd, free=parameter != "level" or odd is None):
                return free or 0 < float(odd) < 1

            fuzzing.outcome(fuzzing.Case(name, function, arguments, checked))


HOLES = np.where(RUNS > 1, np.nan, RUNS)


@pytest.mark.parametrize(
    "strata", [[RUNS[:1]], [RUNS[:, :2]], [HOLES], [RUNS, RUNS[0]], [], [["a"] * 4]]
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
