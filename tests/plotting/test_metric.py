"""A metric over the episodes."""

import numpy as np
import pytest
from synthetic_sweep import clipped_texts, synthetic_sweep, texts, with_parameter_grid

import jaxbandit as jb
from jaxbandit.plotting.curves import metric_names


@pytest.fixture(scope="module")
def ds():
    made = synthetic_sweep()
    rng = np.random.default_rng(0)
    regret = made["regret"]
    optimism = 0.3 * rng.gamma(9, 1 / 9, (*regret.shape[:3], 1)) / np.arange(1, 41) ** 0.5
    optimism[:2] = np.nan
    visits = rng.integers(0, 100, (*regret.shape, 4, 3)).astype(float)
    visits[..., 0] = np.nan
    return made.assign(
        optimism=(regret.dims, optimism), visits=((*regret.dims, "stage", "level"), visits)
    )


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_bands_are_those_of_the_runs(ds, scale):
    drawn = jb.plot_metric(ds, "optimism", scale=scale)
    assert list(drawn.data) == ["UCB-VI"]
    expected = jb.stats.band(ds["optimism"].values[2, 0])
    np.testing.assert_array_equal(drawn.data["UCB-VI"].low, expected.low)
    written = texts(drawn.figure)
    assert "optimism" in written
    assert "mean and 95 % t-interval (" in written
    assert "8 seeds" in written
    assert clipped_texts(drawn.figure) == []


def test_axes_of_its_own_are_chosen_or_averaged(ds):
    chosen = jb.plot_metric(ds, "visits", at={"stage": 2, "level": 1})
    np.testing.assert_allclose(
        chosen.data["ExpRef"].center, ds["visits"].values[0, 0, :, :, 1, 1].mean(axis=0)
    )
    assert "visits at stage 2, level 1" in texts(chosen.figure)
    averaged = jb.plot_metric(ds, "visits")
    np.testing.assert_allclose(
        averaged.data["ExpRef"].center, ds["visits"].values[0, 0, :, :, :, 1:].mean(axis=(0, 2, 3))
    )


def test_parameter_points_are_lines():
    grid = with_parameter_grid(synthetic_sweep())
    drawn = jb.plot_metric(grid.assign(mine=grid["regret"] + 1), "mine")
    assert len(drawn.data) == 5


def test_errors_name_what_is_accepted(ds):
    assert metric_names(ds) == ["optimism", "visits"]
    for call, message in [
        (lambda: jb.plot_metric(ds, "regret"), "name: 'regret'; accepted: optimism, visits"),
        (lambda: jb.plot_metric(ds, "optimism", ["ExpRef"]), "nan for these learners"),
        (lambda: jb.plot_metric(ds, "visits", at={"phase": 1}), "at: 'phase'; accepted: stage, level"),
        (lambda: jb.plot_metric(ds, "visits", at={"stage": 9}), r"at\['stage'\]: 9; accepted: 1, 2, 3, 4"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
