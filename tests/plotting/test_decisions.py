"""Pictures of decisions and of parameters show what was computed, inside the figure."""

import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import clipped_texts, synthetic_sweep, texts, with_parameter_grid

from jaxbandit import stats
from jaxbandit.plotting import plot_comparison, plot_final, plot_parameter, plot_profiles


@pytest.mark.parametrize("x_scale", ["linear", "log"])
def test_every_run_is_a_dot(ds, x_scale):
    drawn = plot_final(ds, x_scale=x_scale)
    dots = [line for line in drawn.axes.lines if line.get_marker() == "o"]
    shown = np.sort(np.concatenate([line.get_xdata() for line in dots]))
    np.testing.assert_array_equal(shown, np.sort(ds["regret"].values[..., -1].ravel()))
    for label, (runs, band) in drawn.data.items():
        expected = stats.band(runs[:, None])
        assert (band.low[0], band.high[0]) == (expected.low[0], expected.high[0])
        assert label in texts(drawn.figure)
    assert "mean and 95 % t-interval (" in texts(drawn.figure)
    assert "cover less), 8 seeds" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []


def test_a_seed_has_one_height_in_all_rows(ds):
    heights = [
        line.get_ydata() - row
        for row, line in enumerate(
            line for line in plot_final(ds).axes.lines if line.get_marker() == "o"
        )
    ]
    assert len({tuple(np.round(h, 12)) for h in heights}) == 1


def test_drawn_families_count_instances_and_missing_runs_are_no_dots():
    ds = synthetic_sweep(instances=tuple(f"I2/{j}" for j in range(5)), num_seeds=3)
    ds["regret"][0, 0, 0] = np.nan
    runs, band = plot_final(ds, family="I2").data["ExpRef"]
    assert runs.size == 14
    assert (band.n, band.replicates) == (5, "instances")
    assert "5 instances x 3 seeds" in texts(plot_final(ds).figure)
    assert len(plot_final(with_parameter_grid(synthetic_sweep())).data) == 5


def test_pairs_and_ranking():
    found = stats.compare(synthetic_sweep(num_seeds=12))
    drawn = plot_comparison(found)
    assert list(drawn.data.values()) == list(found.pairs)
    written = texts(drawn.figure)
    assert "ExpRef − UCB-VI" in written
    assert "1. UCB-VI; 2. OrderedExpRef; 3. ExpRef" in written
    assert "paired over 12 seeds" in written
    assert clipped_texts(drawn.figure) == []


def test_profiles_are_drawn_with_their_sizes():
    ds = synthetic_sweep(instances=("I1", "I2"))
    drawn = plot_profiles(stats.performance_profiles(ds))
    assert set(drawn.data) == {"ExpRef", "OrderedExpRef", "UCB-VI"}
    assert "2 instances x 8 seeds" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []


def test_errors_name_what_is_accepted(ds):
    with pytest.raises(ValueError, match="x_scale: 'sqrt'; accepted: linear, log"):
        plot_final(ds, x_scale="sqrt")
    with pytest.raises(ValueError, match="x_scale: 'log' with regret 0; accepted: 'linear'"):
        plot_final(ds * 0, x_scale="log")


@pytest.fixture(scope="module")
def grid():
    return with_parameter_grid(synthetic_sweep())


@pytest.mark.parametrize("y_scale", ["linear", "log"])
def test_values_intervals_and_level_lines(grid, y_scale):
    drawn = plot_parameter(grid, "bonus_scale", y_scale=y_scale)
    values, band = drawn.data["UCB-VI"]
    np.testing.assert_array_equal(values, [0.1, 0.5, 2.0])
    expected = stats.mean_interval(grid["regret"].values[2, 0, 1, :, -1])
    np.testing.assert_allclose((band.center[1], band.low[1], band.high[1]), expected[:3])
    assert np.isnan(drawn.data["ExpRef"][0]).all()
    assert drawn.axes.get_xscale() == "log"
    assert drawn.axes.get_yscale() == y_scale
    written = texts(drawn.figure)
    words = (
        "ExpRef",
        "UCB-VI",
        "bonus_scale",
        "2,000,000 episodes",
        "(few or skewed runs: may cover less), 8 seeds",
        "0.5",
    )
    assert all(wanted in written for wanted in words)
    assert clipped_texts(drawn.figure) == []


def test_intervals_do_not_reach_below_0_and_one_doubtful_value_is_enough(grid):
    """Regret is at least 0; and every value of the parameter has runs of its own, not only the last."""
    regret = np.random.default_rng(0).normal(100.0, 1.0, (1, 1, 3, 32, 1))
    regret[0, 0, 0, :, 0] = np.r_[np.ones(31), 1e6]
    ds = xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)},
        coords={"learner": ["A"], "instance": ["I1"], "episode": [9], "scale": (("learner", "parameter"), [[1.0, 2.0, 3.0]])},
        attrs={"parameters": "scale"},
    )  # fmt: skip
    drawn = plot_parameter(ds, "scale")
    assert (drawn.data["A"][1].low >= 0).all()
    assert "skewed runs: covers less" in texts(drawn.figure)


def test_values_are_sorted_and_other_parameters_make_lines(grid):
    regret = np.arange(1.0, 1 + 4 * 3).reshape(1, 1, 4, 3, 1)
    two = xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)},
        coords={
            "learner": ["UCB-VI"],
            "instance": ["I1"],
            "episode": [10],
            "scale": (("learner", "parameter"), [[2.0, 1.0, 2.0, 1.0]]),
            "delta": (("learner", "parameter"), [[0.1, 0.1, 0.2, 0.2]]),
        },
    )
    drawn = plot_parameter(two, "scale")
    assert list(drawn.data) == ["UCB-VI, delta = 0.1", "UCB-VI, delta = 0.2"]
    values, band = drawn.data["UCB-VI, delta = 0.1"]
    assert values.tolist() == [1.0, 2.0]
    assert band.center.tolist() == [5.0, 2.0]
    with pytest.raises(ValueError, match="parameter: not given; accepted: one of scale, delta"):
        plot_parameter(two)


def test_errors_of_parameters(grid):
    negative = grid.assign_coords(bonus_scale=-grid["bonus_scale"])
    uneven = grid.copy(deep=True)
    uneven["regret"][2, 0, 1, 0] = np.nan
    for call, message in [
        (lambda: plot_parameter(synthetic_sweep()), "no parameter grid"),
        (lambda: plot_parameter(grid, "bonus"), "parameter: 'bonus'; did you mean 'bonus_scale'"),
        (lambda: plot_parameter(grid, y_scale="loglog"), "y_scale: 'loglog'; did you mean 'log'"),
        (
            lambda: plot_parameter(grid, learners=["UCBVI"]),
            "learner: 'UCBVI'; did you mean 'UCB-VI'",
        ),
        (lambda: plot_parameter(negative), "accepted: positive values"),
        (
            lambda: plot_parameter(0 * grid, y_scale="log"),
            "y_scale: 'log' with regret 0; accepted: 'linear'",
        ),
        (
            lambda: plot_parameter(uneven),
            "UCB-VI has 8, 7, 8 replicates; accepted: the same number",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
