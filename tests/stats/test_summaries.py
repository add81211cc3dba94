"""Growth rates, times to a target and tables."""

import csv
import io

import numpy as np
import pytest
import xarray as xr

from jaxbandit import stats
from jaxbandit.stats import summaries


def test_slope_of_a_power_on_any_grid():
    for episodes in (np.arange(1, 2001) * 1000.0, np.geomspace(1, 2e6, 400)):
        curves = np.outer([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], episodes**0.7)
        estimate = stats.loglog_slope(episodes, curves)
        np.testing.assert_allclose(estimate[:3], 0.7, atol=2e-3)
        assert estimate.n == 6
        assert np.isnan(stats.loglog_slope(episodes, curves[:3]).low)  # too few that agree


def test_slope_is_fitted_on_the_last_part():
    episodes = np.arange(1.0, 1001.0)
    bent = np.where(episodes < 100, episodes, 100 * (episodes / 100) ** 0.5)
    curves = np.outer([1.0, 1.5], bent)
    np.testing.assert_allclose(stats.loglog_slope(episodes, curves).value, 0.5, atol=2e-3)
    np.testing.assert_allclose(
        stats.loglog_slope(episodes, curves, fit_from=500).value, 0.5, atol=1e-3
    )
    assert stats.loglog_slope(episodes, curves, fit_from=10).value > 0.6
    assert np.isnan(stats.loglog_slope(episodes, curves[:1]).low)


def test_slope_interval_covers_the_exponent_of_the_mean():
    """Runs commit at random to a policy of small or large loss, so slopes differ between runs."""
    rng = np.random.default_rng(5)
    episodes = np.linspace(100, 10_000, 60)
    truth = stats.loglog_slope(episodes, (3 * episodes**0.5 + 0.01 * episodes)[None]).value
    hits = 0
    for _ in range(400):
        curves = (
            rng.gamma(9, 1 / 3, (16, 1)) * episodes**0.5 + rng.gamma(2, 0.005, (16, 1)) * episodes
        )
        estimate = stats.loglog_slope(episodes, curves)
        hits += estimate.low <= truth <= estimate.high
    # Skew costs about 2 %; 3 simulation errors (0.011 each) below that: false alarm 0.1 % for a
    # fresh key.
    assert 0.93 - 0.033 < hits / 400 < 0.985


def test_slopes_of_few_or_skewed_replicates_say_so():
    episodes = np.geomspace(10, 1000, 20)
    curves = (
        1 + np.random.default_rng(0).exponential(1.0, (12, 1)) * np.log(episodes)
    ) * episodes**0.5
    few = stats.loglog_slope(episodes, curves[:3])
    assert few.warning == "few"
    assert "few runs: covers less if skewed; 3 seeds)" in str(few)
    assert stats.loglog_slope(episodes, curves[[0] * 3]).warning == ""  # no interval to doubt
    one_far = np.concatenate([curves[:9] * 0.01 + episodes**0.5, 50 * curves[:1] * episodes**0.2])
    assert stats.loglog_slope(episodes, one_far).warning == "skewed"
    even = (1 + np.linspace(0, 1, 32)[:, None] * np.log(episodes)) * episodes**0.5
    assert stats.loglog_slope(episodes, even[::3]).warning == "few"
    assert stats.loglog_slope(episodes, even).warning == ""
    assert str(stats.loglog_slope(episodes, even[:1])).endswith("(no interval; 1 seeds)")


def test_time_is_reached_for_good():
    episodes = np.array([10.0, 20.0, 40.0, 80.0])
    dips_then_rises = [1.0, 10.0, 20.0, 24.0]
    never = [9.0, 18.0, 36.0, 72.0]
    answer = stats.time_to_average_regret(episodes, [dips_then_rises, never], 0.3)
    np.testing.assert_array_equal(answer.times, [80.0, np.nan])
    assert (answer.reached, answer.n) == (1, 2)
    assert answer.median == np.inf


def test_interval_of_the_median_time_is_the_sign_test_interval():
    episodes = np.arange(1.0, 21.0)
    curves = np.stack(
        [np.minimum(episodes, start) * 0.5 for start in range(1, 9)]
    )  # R(t)/t <= 1/4 from t = 2 start
    answer = stats.time_to_average_regret(episodes, curves, 0.25)
    np.testing.assert_array_equal(answer.times, 2.0 * np.arange(1, 9))
    assert answer.median == 9.0
    assert (answer.low, answer.high) == (2.0, 16.0)  # n = 8: smallest and largest, coverage 99.2 %
    few = stats.time_to_average_regret(episodes, curves[:5], 0.25)
    assert (few.low, few.high) == (-np.inf, np.inf)


@pytest.fixture
def ds():
    regret = np.stack([np.full((3, 4, 2), 1234.5), np.arange(24.0).reshape(3, 4, 2)])
    return xr.Dataset(
        {"regret": (("learner", "instance", "seed", "episode"), regret)},
        coords={
            "learner": ["ExpRef", "UCB-VI"],
            "instance": ["I1", "I2/0", "I2/1"],
            "family": ("instance", ["I1", "I2", "I2"]),
            "episode": [10, 20],
        },
    )


def test_final_table_counts_seeds_or_instances(ds):
    rows = stats.final_table(ds)
    assert [(r.family, r.learner, r.n, r.replicates) for r in rows] == [
        ("I1", "ExpRef", 4, "seeds"),
        ("I1", "UCB-VI", 4, "seeds"),
        ("I2", "ExpRef", 2, "instances"),
        ("I2", "UCB-VI", 2, "instances"),
    ]
    expected = stats.mean_interval(ds["regret"].values[1, 0, :, -1])
    assert expected.low < 0  # which the table, knowing that this is regret, leaves out
    np.testing.assert_allclose((rows[1].mean, rows[1].high), (expected.value, expected.high))
    assert rows[1].low == 0
    assert [r.family for r in stats.final_table(ds, ["UCB-VI"], ["I2"])] == ["I2"]
    with pytest.raises(ValueError, match="panels: 'I3'; accepted: I1, I2"):
        stats.final_table(ds, panels=["I3"])


def test_table_text_is_aligned(ds):
    lines = stats.format_table(stats.final_table(ds)).splitlines()
    assert lines[0].split("  ")[0] == "family"
    assert lines[1].split() == ["I1", "ExpRef", "1,234", "none", "4", "seeds"]
    assert len({line.index("ins" if "ins" in line else "see") for line in lines[1:-1]}) == 1
    assert lines[-1] == summaries.NOTE
    assert stats.format_table([]) == "no runs"
    one = stats.format_table(stats.final_table(ds.isel(seed=[0]), panels=["I1"]))
    assert "none" in one
    assert one.endswith("1 seed")


def test_tables_for_papers_and_for_programs(ds):
    rows = stats.final_table(ds)
    markdown, latex = (stats.format_table(rows, format) for format in ("markdown", "latex"))
    assert markdown.startswith("| family")
    assert markdown.endswith(f" |\n\n{summaries.NOTE}")
    assert "\\toprule" in latex
    assert latex.endswith(f"\\end{{tabular}}\n% {summaries.NOTE}")
    sure = [row._replace(warning="") for row in rows]
    assert summaries.NOTE not in "".join(stats.format_table(sure, f) for f in ("text", "markdown"))
    head, *lines = csv.reader(io.StringIO(stats.format_table(rows, "csv")))
    assert head[2:5] == ["mean", "low", "high"]
    assert [line[head.index("warning")] for line in lines] == [row.warning for row in rows]
    assert [float(line[2]) for line in lines] == [row.mean for row in rows]


def test_table_lists_the_parameter_grid():
    regret = np.ones((1, 1, 2, 3, 2))
    coords = {
        "learner": ["UCB-VI"],
        "instance": ["I1"],
        "scale": (("learner", "parameter"), [[0.5, 2.0]]),
    }
    ds = xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)}, coords=coords
    )
    assert [(r.label, r.parameter) for r in stats.final_table(ds)] == [
        ("UCB-VI, scale = 0.5", 0),
        ("UCB-VI, scale = 2", 1),
    ]


def test_errors_name_what_is_accepted():
    episodes, curves = np.arange(1.0, 5.0), np.ones((3, 4))
    for call, message in [
        (
            lambda: stats.loglog_slope(episodes[:2], curves),
            r"episodes: shape \(2,\); accepted: positive and increasing",
        ),
        (lambda: stats.loglog_slope(episodes[::-1], curves), "accepted: positive and increasing"),
        (lambda: stats.loglog_slope(episodes, 0 * curves), "mean regret is 0"),
        (
            lambda: stats.loglog_slope(episodes, curves, fit_from=9),
            "fit_from: 9; accepted: an episode before the last, 4",
        ),
        (
            lambda: stats.loglog_slope(episodes, [[0, 0, 0, 0], [1, 2, 3, 4]]),
            "without one of them the mean regret is 0",
        ),
        (
            lambda: stats.loglog_slope(episodes, [[1, 2, np.nan, 4], [1, 2, 3, 4]]),
            "curves: nan in replicate 0, point 2; accepted: finite numbers",
        ),
        (lambda: stats.loglog_slope(episodes, curves, level=95), "level: 95; accepted"),
        (lambda: stats.time_to_average_regret(episodes, curves, np.nan), "target: nan; accepted"),
        (
            lambda: stats.time_to_average_regret(episodes, curves, 0),
            "target: 0; accepted: a positive",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
