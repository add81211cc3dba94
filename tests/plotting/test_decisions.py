"""Pictures of decisions show what was computed, inside the figure."""

import numpy as np
import pytest
from synthetic_sweep import clipped_texts, synthetic_sweep, texts, with_parameter_grid

from jaxbandit import stats
from jaxbandit.plotting import plot_comparison, plot_final, plot_profiles


@pytest.fixture(scope="module")
def ds():
    return synthetic_sweep()


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
