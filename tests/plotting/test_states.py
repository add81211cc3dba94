"""Maps of active sets, policies and instances, and pictures of episodes."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from synthetic_sweep import clipped_texts, synthetic_sweep, texts

import jaxbandit as jb
from jaxbandit import planning
from jaxbandit.description import small_instance
from jaxbandit.plotting.states import plot_active_sets, plot_policy


def test_active_sets_are_means_over_the_seeds_that_finished(ds):
    drawn = plot_active_sets(ds, "ExpRef")
    assert list(drawn.data) == [1, 2]  # the third phase was never finished
    mean = ds["active_actions"].values[0, 0, :, 1].mean(axis=0)  # [stage, level]
    np.testing.assert_allclose(drawn.data[2], mean[:, 1:].T)
    written = texts(drawn.figure)
    meaning = "actions alive, mean of 8 seeds"
    words = ("phase 1, episode ", "phase 2", "stage", "level", meaning, "ExpRef")
    assert all(wanted in written for wanted in words)
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
    column = plot_policy(synthetic_sweep(horizon=15), learner="ExpRef", size=(3.25, 2.8))
    assert clipped_texts(column.figure) == []
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
    words = ("1 of 8 states differ", "optimal", "seed 3", "action", "stage", "level")
    assert all(wanted in written for wanted in words)
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
    # one unit, two stages: taking it now or later pays the same
    one_level = mdp._replace(start=jnp.int32(1))
    learned = np.array([[0, 1, 1], [0, 1, 1]])
    assert planning.optimal(one_level)[1][0, 1] == 0
    assert not plot_policy(learned, one_level).data["different"].any()
    assert plot_policy(learned, planning.optimal(one_level)[1]).data["different"].sum() == 1


def test_errors_name_what_is_accepted(ds, mdp):
    two = synthetic_sweep(["a", "b"])
    for call, message in [
        (lambda: plot_active_sets(ds, "Expref"), "learner: 'Expref'; did you mean 'ExpRef'"),
        (lambda: plot_active_sets(ds, "UCB-VI"), "'UCB-VI' has finished no phase; accepted: a learner with phases"),
        (lambda: plot_active_sets(ds, "ExpRef", phases=[3]), "phases: 3; accepted: 1, 2"),
        (lambda: plot_active_sets(two, "ExpRef"), "instance: not given; accepted: one of a, b"),
        (lambda: plot_active_sets(two, "ExpRef", "c"), "instance: 'c'; accepted: a, b"),
        (lambda: plot_active_sets(ds, "ExpRef", columns=0), "columns: 0; accepted"),
        (lambda: plot_active_sets(ds[["regret"]], "ExpRef"), "no variable 'active_actions'"),
        (lambda: plot_policy(ds), "learner: None; accepted: ExpRef"),
        (lambda: plot_policy(ds, learner="ExpRef", seed=8), "seed: 8; .*accepted: 0, 1"),
        (lambda: plot_policy(np.zeros((2, 3))), "against: None; accepted: an MDP or a policy"),
        (lambda: plot_policy(np.zeros((4, 3)), mdp), r"shapes \(4, 3\), \(2, 3\); accepted"),
        (lambda: plot_policy(np.zeros((2, 3)), mdp, visitation=[1.0]), r"visitation: shape \(1,\); accepted"),
        (lambda: jb.plot_instance(jax.tree.map(lambda x: np.stack([x, x]), small_instance("prophet-uniform")[0])), "mdp: 2 stacked"),
        (lambda: plot_policy(ds, learner="ExpRef", ax=[None]), "ax: 1 axes; accepted: 2, one per panel"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


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


FAMILIES = ("prophet-uniform", "knapsack-random", "hard-ordered", "bandit-random", "riverswim")
"""With offers, without, with start and levels of their own, of one stage, and from arrays in units."""


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_picture_and_episodes_to_look_at(name):
    mdp, _ = small_instance(name)
    drawn = jb.plot_instance(mdp)
    value, policy = jb.optimal(mdp)
    np.testing.assert_array_equal(drawn.data["action"], np.asarray(policy)[:, 1:].T)
    start = (int(mdp.start) - 1, 0)
    assert drawn.data["value"][start] == pytest.approx(float(value))
    assert drawn.data["reached"][start]
    episode = jb.trace(mdp, policy, jax.random.key(0))
    column = episode.head.index("offered" if "offered" in episode.head else "reward")
    shown = jb.plot_episode(mdp, episode)
    assert shown.data["box"] == [row[column] for row in episode.rows]
    assert clipped_texts(drawn.figure) == clipped_texts(shown.figure) == []


def test_forty_stages_fit_a_notebook():
    """Cells without text have colour bars, and boxes stand in strips."""
    mdp = jb.make_instance("frozen-lake", horizon=40)
    policy = jb.optimal(mdp)[1]
    drawn = jb.plot_instance(mdp)
    assert drawn.figure.get_figwidth() < 8.5
    assert not any(ax.texts for ax in drawn.axes)
    assert all(action in texts(drawn.figure) for action in ("left", "right", "up", "down"))
    episode = jb.trace(mdp, policy, jax.random.key(3))
    shown = jb.plot_episode(mdp, episode)
    assert shown.figure.get_figwidth() < 10
    lived = np.flatnonzero(episode.levels).max() + 1
    assert 0 <= len(shown.axes.patches) - lived < 8
    assert clipped_texts(drawn.figure) == clipped_texts(shown.figure) == []


def test_words_on_policy_maps():
    mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    drawn = jb.plot_policy(np.asarray(jb.optimal(mdp)[1]), mdp)
    written = texts(drawn.figure)
    assert "accept from 0.5" in written  # the same at all stages: on the colour bar
    assert "capacity left" in written
    sizes = {"horizon": 4, "capacity": 2, "num_values": 3}
    other = jb.make_instance("prophet-random", key=jax.random.key(0), **sizes)
    assert "number of the action" in texts(jb.plot_policy(np.zeros((4, 3), int), other).figure)


def test_boxes_are_filled_where_something_was_taken():
    mdp = jb.make_instance("prophet-uniform", horizon=8, capacity=2, num_values=5)
    episode = jb.trace(mdp, jb.optimal(mdp)[1], jax.random.key(28))
    drawn = jb.plot_episode(mdp, episode, title="one episode")
    taken = episode.next_levels < episode.levels
    assert drawn.data["filled"] == taken.tolist()
    assert taken.sum() == 2
    green = [patch.get_facecolor()[1] > 0.5 > patch.get_facecolor()[0] for patch in drawn.axes.patches]  # fmt: skip
    assert green == taken.tolist()
    written = texts(drawn.figure)
    assert all(word in written for word in ("one episode", "capacity left", "accept from 0.75"))


def test_another_mdp_or_a_table_is_refused():
    mdp, _ = small_instance("prophet-uniform")
    other = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
    episode = jb.trace(other, np.zeros((2, 2), int), jax.random.key(0))
    with pytest.raises(ValueError, match="episode: 2 stages; accepted"):
        jb.plot_episode(mdp, episode)
    with pytest.raises(TypeError, match=r"episode: .*accepted: an Episode"):
        jb.plot_episode(mdp, "episode")


def test_dollars_are_no_mathematics():
    mdp = jb.make_instance(
        "posted-pricing", values=[[100, 500]] * 2, probabilities=[[0.5, 0.5]] * 2, capacity=1
    )
    mdp = jb.label(mdp, unit="$", offers=["$100 or $1", "$500"], level="$ left in $")
    episode = jb.trace(mdp, jb.optimal(mdp)[1], jax.random.key(0))
    for line in texts(jb.plot_episode(mdp, episode).figure).splitlines():
        assert line.count("$") == line.count("\\$")
