"""The tables of the episode engine: alias tables draw what they should, equal MDPs share them."""

import jax
import numpy as np
from lanes_by_hand import stack

import jaxbandit as jb
from jaxbandit.engines.episodes.environment import (
    MOST_OUTCOMES,
    alias_tables,
    make_episode_world,
)


def chances(table):
    """The probabilities that an alias table [..., M] stands for, by adding up its columns."""
    M = table.shape[-1]
    own = (table >> 8) / 2.0**24
    other = (table & 255).astype(int)
    found = own.copy()
    for j in range(M):
        np.put_along_axis(
            found,
            other[..., j : j + 1],
            np.take_along_axis(found, other[..., j : j + 1], -1) + 1 - own[..., j : j + 1],
            -1,
        )
    return found / M


def test_alias_tables_stand_for_their_distributions():
    random = np.random.default_rng(0)
    for outcomes in (1, 2, 5, MOST_OUTCOMES):
        prob = random.exponential(size=(20, outcomes)) * (random.random((20, outcomes)) < 0.7)
        prob[prob.sum(-1) == 0, 0] = 1
        prob[0] = np.eye(outcomes)[-1]
        prob /= prob.sum(-1, keepdims=True)
        table = alias_tables(prob)
        assert table.dtype == np.uint32
        found = chances(table)
        np.testing.assert_allclose(found, prob, atol=2.0**-23)
        assert (found[prob == 0] == 0).all()


def test_equal_mdps_share_tables():
    one, other = (
        jb.make_instance(
            "prophet-random", key=jax.random.key(seed), horizon=2, capacity=1, num_values=3
        )
        for seed in (1, 2)
    )
    world = make_episode_world(stack(one, other, one, other))
    size = one.prob.size
    assert world.row.tolist() == [
        [0, size, 0, size],
        [size // 2, size + size // 2, size // 2, size + size // 2],
    ]
    assert world.start.tolist() == [1] * 4
