"""The picture of an instance shows what planning computes, and policy maps speak the labels' words."""

import jax
import numpy as np
import pytest
from synthetic_sweep import clipped_texts, texts

import jaxbandit as jb
from jaxbandit.description import names, small_instance


@pytest.mark.parametrize("name", names("instance"))
def test_every_family_has_a_picture(name):
    mdp, _ = small_instance(name)
    drawn = jb.plot_instance(mdp)
    assert clipped_texts(drawn.figure) == []
    _, policy = jb.optimal_values(mdp)
    np.testing.assert_array_equal(drawn.data["action"], np.asarray(policy)[:, 1:].T)
    start = drawn.data["value"][int(mdp.start) - 1, 0]
    assert start == pytest.approx(float(jb.optimal(mdp)[0]))
    assert drawn.data["reached"][int(mdp.start) - 1, 0]


def test_words_on_policy_maps():
    mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    drawn = jb.plot_policy(np.asarray(jb.optimal(mdp)[1]), mdp)
    written = texts(drawn.figure)
    assert "accept from 0.5" in written  # the same at all stages: on the colour bar
    assert "capacity left" in written
    other = jb.make_instance(
        "prophet-random", key=jax.random.key(0), horizon=4, capacity=2, num_values=3
    )
    assert "number of the action" in texts(jb.plot_policy(np.zeros((4, 3), int), other).figure)


def test_stacks_are_refused():
    mdp, _ = small_instance("prophet-uniform")
    with pytest.raises(ValueError, match="mdp: 2 stacked"):
        jb.plot_instance(jax.tree.map(lambda x: np.stack([x, x]), mdp))
