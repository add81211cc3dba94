"""Policies in few bytes, and what is wrong with one in words."""

import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.episodes.loop import _pack, explain


def test_packed_actions_stay_wrong():
    actions = jnp.asarray([[-(2**31), -1, 0, 3, 4, 127, 300, 2**31 - 1]], jnp.int32)
    packed = _pack(4)(actions)
    assert (packed.dtype, packed.tolist()) == (jnp.int8, [[-1, -1, 0, 3, 4, 4, 4, 4]])
    assert _pack(127)(actions).tolist() == [[-1, -1, 0, 3, 4, 127, 127, 127]]


def test_explanations_name_learner_episode_stage_and_level():
    policy = np.zeros((3, 3), np.int32)
    policy[0, 0] = 9  # level 0 does not matter
    policy[1, 2] = 4
    assert str(explain("mine", policy, 4, 17)) == (
        "learner 'mine', episode 17, stage 2, level 2: action 4; accepted: 0..3"
    )
    shares = np.full((3, 3, 4), 0.25, np.float32)
    shares[2, 1] = [0.5, 0.5, 0.5, -0.5]
    assert str(explain("mine", shares, 4, 1)) == (
        "learner 'mine', episode 1, stage 3, level 1: probabilities [0.5, 0.5, 0.5, -0.5]; "
        "accepted: 4 probabilities >= 0 that sum to 1"
    )
    assert "though its policy is one" in str(explain("mine", np.zeros((3, 3), np.int32), 4, 2))
