"""Heat maps of active sets and policies."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from synthetic_sweep import clipped_texts, synthetic_sweep, texts

from jaxbandit import planning
from jaxbandit.plotting.states import plot_active_sets, plot_policy


def test_active_sets_are_means_over_the_seeds_that_finished(ds):
    drawn = plot_active_sets(ds, "ExpRef")
    assert list(drawn.data) == [1, 2]  # the third phase was never finished
    mean = ds["active_actions"].values[0, 0, :, 1].mean(axis=0)  # [stage, level]
    np.testing.assert_allclose(drawn.data[2], mean[:, 1:].T)
    written = texts(drawn.figure)
    for wanted in (
        "phase 1, episode ",
        "phase 2",
        "stage",
        "level",
        "actions alive, mean of 8 seeds",
        "ExpRef",
    ):
        assert wanted in written
    assert clipped_texts(drawn.figure) == []


def test_active_sets_into_given_axes(ds):
    figure, axes = plt.subplots(1, 2)
    try:
        assert plot_active_sets(ds, "ExpRef", ax=axes).figure is figure
        assert plot_active_sets(ds, "ExpRef", phases=[1], ax=axes[0]).axes == [axes[0]]
    finally:
        plt.close(figure)


def test_large_sets_fit():
    sweep = synthetic_sweep(horizon=20, width=4)
    wide = plot_policy(sweep, learner="ExpRef")
    smallest = min(text.get_fontsize() for ax in wide.axes for text in ax.texts)
    assert smallest >= 7  # points, in a figure of the width of a notebook
    assert wide.figure.get_figwidth() < 8.5
    for columns in (1, 2):
        assert clipped_texts(plot_active_sets(sweep, "OrderedExpRef", columns=columns).figure) == []


def test_policy_of_a_run_against_the_stored_optimal_one(ds):
    drawn = plot_policy(ds, learner="ExpRef", seed=3)
    expected = np.zeros((2, 4), bool)
    expected[0, 1] = True  # level 1, stage 2
    np.testing.assert_array_equal(drawn.data["different"], expected)
    np.testing.assert_array_equal(drawn.data["optimal"], ds["optimal_policy"].values[0, :, 1:].T)
    written = texts(drawn.figure)
    for wanted in ("1 of 8 states differ", "optimal", "seed 3", "action", "stage", "level"):
        assert wanted in written
    assert len(drawn.axes[0].patches) == 1
    assert clipped_texts(drawn.figure) == []


def test_unreached_states_are_grey_and_never_count_as_different(mdp):
    learned = np.array([[0, 0, 1], [0, 0, 0]])  # falls to level 1 at once, then stays and loses
    drawn = plot_policy(learned, mdp, title="by hand")
    np.testing.assert_array_equal(drawn.data["reached"], [[False, True], [True, False]])
    np.testing.assert_array_equal(drawn.data["different"], [[False, True], [False, False]])
    assert len(drawn.axes[0].images) == 2
    assert drawn.caption == "framed: 1 of 2 states lose something; grey: never reached"
    assert "lose something" in texts(drawn.figure)
    given = plot_policy(learned, planning.optimal(mdp)[1], visitation=np.ones((2, 3)))
    assert given.data["reached"].all()
    assert given.data["different"].sum() == 2  # both levels of stage 2


def test_another_optimal_action_does_not_count_as_different(mdp):
    one_level = mdp._replace(
        start=jnp.int32(1)
    )  # one unit, two stages: taking it now or later pays the same
    learned = np.array([[0, 1, 1], [0, 1, 1]])
    assert planning.optimal(one_level)[1][0, 1] == 0
    assert not plot_policy(learned, one_level).data["different"].any()
    assert plot_policy(learned, planning.optimal(one_level)[1]).data["different"].sum() == 1


def test_errors_name_what_is_accepted(ds, mdp):
    two = synthetic_sweep(["a", "b"])
    for call, message in [
        (lambda: plot_active_sets(ds, "Expref"), "learner: 'Expref'; did you mean 'ExpRef'"),
        (
            lambda: plot_active_sets(ds, "UCB-VI"),
            "'UCB-VI' has finished no phase; accepted: a learner with phases",
        ),
        (lambda: plot_active_sets(ds, "ExpRef", phases=[3]), "phases: 3; accepted: 1, 2"),
        (lambda: plot_active_sets(two, "ExpRef"), "instance: not given; accepted: one of a, b"),
        (lambda: plot_active_sets(two, "ExpRef", "c"), "instance: 'c'; accepted: a, b"),
        (lambda: plot_active_sets(ds, "ExpRef", columns=0), "columns: 0; accepted"),
        (lambda: plot_active_sets(ds[["regret"]], "ExpRef"), "no variable 'active_actions'"),
        (lambda: plot_policy(ds), "learner: None; accepted: ExpRef"),
        (lambda: plot_policy(ds, learner="ExpRef", seed=8), "seed: 8; .*accepted: 0, 1"),
        (lambda: plot_policy(np.zeros((2, 3))), "against: None; accepted: an MDP or a policy"),
        (lambda: plot_policy(np.zeros((4, 3)), mdp), r"shapes \(4, 3\), \(2, 3\); accepted"),
        (
            lambda: plot_policy(np.zeros((2, 3)), mdp, visitation=[1.0]),
            r"visitation: shape \(1,\); accepted",
        ),
        (
            lambda: plot_policy(ds, learner="ExpRef", ax=[None]),
            "ax: 1 axes; accepted: 2, one per panel",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
