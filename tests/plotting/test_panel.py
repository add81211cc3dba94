"""One panel of regret curves: bounds, phase marks, gaps, single seeds, zeros."""

import numpy as np
import pytest
from synthetic_sweep import synthetic_sweep, texts

from jaxbandit.plotting import curves as plots


@pytest.fixture(scope="module")
def ds():
    return synthetic_sweep()


def test_bounds_far_above_a_linear_panel_do_not_flatten_it(ds):
    drawn = plots.plot_regret(ds, bounds={"theorem": lambda t: 1e9 + t, "near": lambda t: 0.05 * t})
    assert drawn.axes.get_ylim()[1] < 3e5
    assert "above the axes: theorem" in texts(drawn.figure)
    assert "\nnear" in texts(drawn.figure)


def test_phases_are_marked_at_medians(ds):
    drawn = plots.plot_regret(ds)
    marks = [
        c
        for c in drawn.axes.collections
        if c.get_transform() != drawn.axes.transData and len(c.get_paths()) < 4
    ]
    expected = np.median(ds["phase_end"].sel(learner="OrderedExpRef").values[0], axis=0)
    found = [np.sort([path.vertices[0, 0] for path in c.get_paths()]) for c in marks]
    assert any(len(f) == 3 and np.allclose(f, expected) for f in found)
    assert any(len(f) == 2 for f in found)  # ExpRef's third phase is never finished
    assert "phase ends" not in texts(plots.plot_regret(ds, phases=False).figure)


def test_missing_points_and_missing_learners_are_drawn_around(ds):
    gaps = ds.copy(deep=True)
    gaps["regret"][0, :, 2, 10:12] = np.nan
    gaps["regret"][1] = np.nan
    drawn = plots.plot_regret(gaps)
    assert list(drawn.data) == ["ExpRef", "UCB-VI"]
    assert np.isnan(drawn.data["ExpRef"].high[10:12]).all()
    gaps["regret"][:] = np.nan
    with pytest.raises(ValueError, match="no runs of ExpRef"):
        plots.plot_regret(gaps)


def test_one_seed_has_a_line_and_no_band(ds):
    drawn = plots.plot_regret(ds.isel(seed=[0]), phases=False)
    assert not drawn.axes.collections
    assert "no intervals, 1 seed" in texts(drawn.figure)


def test_zero_regret_is_drawn_on_both_scales(ds):
    zero = ds.copy(deep=True)
    zero["regret"][2] = 0.0
    zero["regret"][0, :, :, :3] = 0.0
    assert plots.plot_regret(zero).axes.get_ylim()[0] == 0
    assert plots.plot_regret(zero, scale="loglog").axes.get_ylim()[0] > 0
