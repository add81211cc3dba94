"""An MDP as tables of outcomes: pairs merged, moves pooled, sizes that are its own."""

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.engines.blocks.machine import block_sizes, merge_outcomes


def test_merged_outcomes():
    """Equal (reward, next level) pairs become one, whatever the action; impossible ones vanish; the
    likeliest is first."""
    prob = np.zeros((1, 2, 2, 3))
    prob[0, 0, :, 0] = 1
    prob[0, 1] = [[0.25, 0.25, 0.5], [0.0, 0.9, 0.1]]
    reward, next_level = np.zeros((1, 2, 2, 3)), np.zeros((1, 2, 2, 3), np.int32)
    reward[0, 1] = [[0.5, 1.0, 0.5], [0.75, 0.5, 0.5]]
    next_level[0, 1] = [[1, 0, 1], [1, 1, 0]]
    merged = merge_outcomes(jb.MDP(prob, reward, next_level, None, np.int32(1)))
    assert merged.prob.shape == (1, 2, 2, 3)
    assert merged.reward[0, 1].tolist() == [0.5, 1.0, 0.5]
    assert merged.next_level[0, 1].tolist() == [1, 0, 0]
    np.testing.assert_allclose(merged.prob[0, 1], [[0.75, 0.25, 0], [0.9, 0, 0.1]])
    assert merged.start == 1
    assert merged.kind.shape[-1] == 0
    assert not merged.pool.any()


def test_pooled_outcomes():
    """Moves from two levels that can pay the same rewards: where episodes go at the levels, what
    they are paid in pools."""
    mdp = jb.make_instance(
        "prophet", values=[[0.0, 1.0, 3.0]] * 2, probabilities=[[0.25, 0.25, 0.5]] * 2, capacity=2
    )
    merged = merge_outcomes(mdp)
    assert merged.prob.shape == (2, 5, 3, 2)  # nowhere, two pools, two levels
    assert merged.level[0].tolist() == [0, 1, 2, 1, 2]
    assert merged.kind[0, 0] == merged.kind[0, 1]
    rewards = sorted({float(x) for x in np.asarray(mdp.reward).ravel()} - {0.0})
    for level in (1, 2):
        assert merged.reward[0, level].tolist() == rewards
        taken = merged.pool[0, 2 + level].tolist().index(level)
        assert merged.next_level[0, 2 + level, taken] == level - 1
        assert merged.reward[0, 2 + level, taken] == 0
        np.testing.assert_allclose(merged.prob[0, 2 + level].sum(-1), 1)
        np.testing.assert_allclose(
            merged.prob[0, level].sum(-1), merged.prob[0, 2 + level, :, taken]
        )


def test_sizes_are_those_of_the_instance_alone():
    prophet = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    general = jb.make_instance(
        "random-general", key=jax.random.key(0), horizon=4, width=2, num_actions=3
    )
    assert block_sizes(prophet) == (2, 2)
    known = merge_outcomes(general)
    assert block_sizes(general) == (known.kind.shape[-1], known.reward.shape[-1])
    assert block_sizes(general) != block_sizes(prophet)
    assert merge_outcomes(prophet) is merge_outcomes(jax.tree.map(np.array, prophet))
