"""The picture of an episode holds what its table says."""

import jax
import numpy as np
import pytest
from synthetic_sweep import clipped_texts, texts

import jaxbandit as jb
from jaxbandit.description import names, small_instance


@pytest.mark.parametrize("name", names("instance"))
def test_every_family_has_episodes_to_look_at(name):
    mdp, _ = small_instance(name)
    episode = jb.trace(mdp, jb.optimal(mdp)[1], jax.random.key(0))
    drawn = jb.plot_episode(mdp, episode)
    assert clipped_texts(drawn.figure) == []
    column = episode.head.index("offered" if "offered" in episode.head else "reward")
    assert drawn.data["box"] == [row[column] for row in episode.rows]


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
