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


def test_phases_are_circles_on_their_curves_at_medians(ds):
    drawn = plots.plot_regret(ds)
    marks = [c.get_offsets() for c in drawn.axes.collections if len(c.get_offsets()) > 1]
    expected = np.median(ds["phase_end"].sel(learner="OrderedExpRef").values[0], axis=0)
    assert [len(found) for found in marks] == [2, 3]  # ExpRef's third phase is never finished
    np.testing.assert_allclose(marks[1][:, 0], expected)
    center = np.interp(expected, ds["episode"].values, drawn.data["OrderedExpRef"].center)
    np.testing.assert_allclose(marks[1][:, 1], center)
    assert "circles: phase ends" in drawn.caption
    assert "phase ends" not in plots.plot_regret(ds, phases=False).caption


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


def test_flat_curves_are_shown_by_an_inset_or_on_a_symlog_axis(ds):
    far = ds.copy(deep=True)
    far["regret"][2] *= 0.01
    (small,) = plots.plot_regret(far, inset=True).axes.child_axes
    assert small.get_ylim()[1] < 1000
    assert "inset: UCB-VI" in plots.plot_regret(far, inset=True).caption
    assert all(len(ax.child_axes) == 1 for ax in plots.plot_panels(far, inset=True).axes)
    assert not plots.plot_regret(far).axes.child_axes
    near = ds.copy(deep=True)
    near["regret"][2] = near["regret"][0]
    assert not plots.plot_regret(near, inset=True).axes.child_axes  # nothing to enlarge
    axes = plots.plot_regret(far, scale="symlog").axes
    low, high = axes.transAxes.inverted().transform(
        axes.transData.transform([(0, 0), (0, far["regret"].values[2, ..., -1].mean())])
    )[:, 1]
    assert high - low > 0.15  # of the height of the panel


def test_the_subtitle_is_left_out_and_the_caption_stays(ds):
    for draw in (plots.plot_regret, plots.plot_panels):
        with_text, without = draw(ds), draw(ds, subtitle=False)
        assert with_text.caption == without.caption
        assert "t-interval" in texts(with_text.figure)
        assert "t-interval" not in texts(without.figure)
