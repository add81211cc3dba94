"""Cells of states: padding is cropped, unknown ones are blank, titles stay apart."""

import numpy as np
from synthetic_sweep import texts

from jaxbandit.plotting.states import plot_active_sets, plot_policy


def test_unfinished_seeds_are_counted_and_padding_is_cropped(ds):
    padded = ds.copy(deep=True)
    padded["active_actions"][1, 0, :3, 1] = np.nan
    padded["active_actions"][:, :, :, :, 3] = np.nan
    padded["active_actions"][:, :, :, :, :, 2] = np.nan
    drawn = plot_active_sets(padded, "OrderedExpRef", phases=[2])
    assert drawn.data[2].shape == (1, 3)
    assert "(5 of 8 seeds)" in texts(drawn.figure)


def test_titles_of_small_panels_do_not_run_into_each_other(ds, mdp):
    drawn = plot_policy(np.array([[0, 0, 1], [0, 0, 0]]), mdp)
    drawn.figure.draw_without_rendering()
    first, second = (ax._left_title.get_window_extent() for ax in drawn.axes)
    assert first.x1 < second.x0
    three = plot_active_sets(ds, "OrderedExpRef", columns=2)
    labelled = [bool(ax.get_xlabel()) for ax in three.axes]
    assert labelled == [False, True, True]  # the second panel of the first row has none below it


def test_unknown_actions_are_blank(ds, mdp):
    partly = ds.copy(deep=True)
    partly["final_policy"][0, 0, 0, 0] = np.nan
    drawn = plot_policy(partly, learner="ExpRef")
    assert np.isnan(drawn.data["learned"][:, 0]).all()
    assert not drawn.data["different"][:, 0].any()
    unknown = plot_policy(np.full((2, 3), np.nan), mdp)
    assert unknown.data["reached"].all()
