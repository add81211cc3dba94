"""Runs of a few lanes: each with its own learner and MDP, whatever runs beside it."""

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.testing.lanes import run_lanes


def test_a_lane_of_several_is_the_lane_alone():
    learners = [jb.make_learner("ucbvi", bonus_scale=scale) for scale in (0.1, 1.0)]
    mdps = [
        jb.make_instance(
            "prophet-random", key=jax.random.key(j), horizon=2, capacity=1, num_values=3
        )
        for j in (0, 1)
    ]
    keys = jax.random.split(jax.random.key(5), (2, 2))
    both, states = run_lanes("episodes", learners, mdps, keys, 12, points=[3, 12])
    assert both["regret"].shape == (2, 2, 2)
    one, state = run_lanes("episodes", learners[1:], mdps[1:], keys[1:, :1], 12, points=[3, 12])
    np.testing.assert_array_equal(one["regret"][0, 0], both["regret"][1, 0])
    np.testing.assert_array_equal(state.policy[..., 0, 0], states.policy[..., 1, 0])
