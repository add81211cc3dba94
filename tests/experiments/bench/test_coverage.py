"""Measured coverage: the interval for skewed runs covers where Student-t does not.

Shares of R repetitions are off by 4 standard errors, 4 sqrt(0.95 0.05 / R), once in 16,000 fresh
keys; the keys here are fixed.
"""

import numpy as np
import pytest
from jaxbandit.experiments.bench import coverage

OTHERS = [data for data in coverage.DATA if data != "coins"]
REPETITIONS = 4000
SLACK = 4 * np.sqrt(0.95 * 0.05 / REPETITIONS)


@pytest.mark.parametrize("count", coverage.COUNTS)
@pytest.mark.parametrize("data", OTHERS)
def test_the_interval_for_skewed_runs_covers(data, count):
    share = coverage.of_a_mean("skewed", *coverage.DATA[data], count, REPETITIONS)
    # exponential data cost it up to 0.8 %, lognormal ones 6 %, and normal ones gain 0.8 %
    low = 0.89 if data == "lognormal" else 0.942
    assert low - SLACK < share < 0.96 + SLACK


@pytest.mark.parametrize("count", coverage.COUNTS)
def test_student_t_covers_normal_and_clustered_data_but_not_few_skewed(count):
    for data in ("normal", "clustered"):
        share = coverage.of_a_mean("t", *coverage.DATA[data], count, REPETITIONS)
        assert abs(share - 0.95) < SLACK
    skewed = coverage.of_a_mean("t", *coverage.DATA["skewed"], count, REPETITIONS)
    assert skewed < 0.94
    much = coverage.of_a_mean("t", *coverage.DATA["lognormal"], count, REPETITIONS)
    assert much < 0.9
    assert coverage.of_runs_as_replicates(count, REPETITIONS) < 0.85


@pytest.mark.parametrize("data", OTHERS)
def test_shares_of_few_runs_cover(data):
    """Percentiles of the bootstrap cover 73 % here; 150 repetitions, 4 standard errors are 7.1 %."""
    improvement, profile = coverage.of_shares(data, 3, 150)
    assert improvement > 0.95 - 0.071
    # the best learner of an instance is a guess: where instances differ, profiles cover 90 %
    low = {"clustered": 0.90, "lognormal": 0.87}
    assert profile > low.get(data, 0.95) - 0.071


def test_all_pairs_are_covered():
    at_once, by_looks = coverage.of_pairs(*coverage.DATA["normal"], 6, 150)
    assert min(at_once, by_looks) > 0.95 - 0.071


def test_compare_decides_more_and_is_not_wider_with_more_runs():
    """Pairs of coins of equal means, at most 5 % of 200 repetitions decided: all pairs are right together, and
    4 standard errors are 6 %."""
    found = [coverage.of_pairs_at(coverage.normal, 5.0, n, 40) for n in coverage.PAIR_COUNTS]
    widths, decided = [x.width for x in found], [x.decided for x in found]
    assert widths == sorted(widths, reverse=True)
    assert decided[:3] == [0, 0, 0]  # the fewest runs for six pairs are 8
    assert decided[3:] == sorted(decided[3:])
    for count in (3, 8, 9):
        assert coverage.of_pairs_at(coverage.coins, 0.5, count, 200, np.ones(4)).covered > 0.89


def test_the_table_has_a_row_for_every_interval():
    found = coverage.measured(20)
    lines = coverage.table(found).splitlines()
    assert len(lines) == 2 + len(found)
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.slow
def test_every_interval_of_the_package():
    """2,000 and 1,000 repetitions: 4 standard errors are 2 and 3 %."""
    found = coverage.measured(20_000)
    for name, shares in found.items():
        for (data, count), share in shares.items():
            loses = "runs counted" in name or (
                data in ("skewed", "lognormal") and "median" not in name
            )
            least = 0.7 if loses else 0.87 if "profiles" in name else 0.92
            assert share > least, (name, data, count)
