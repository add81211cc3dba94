"""Shapes and types of policies are refused before anything runs, values explained after."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.engines.episodes.loop import PolicyForm, explain
from jaxbandit.errors import LearnerError

SIZES = (3, 2, 4, 5)
"""H, k, A, M."""


def form(dtype, *shape):
    return PolicyForm("mine", SIZES, jax.ShapeDtypeStruct(shape, dtype))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        (jnp.int32, (3, 2)),
        (jnp.int32, (3, 3, 4)),
        (jnp.float32, (3, 3)),
        (jnp.float32, (3, 3, 5)),
        (bool, (3, 3)),
        (jnp.complex64, (3, 3, 4)),
    ],
)
def test_wrong_shapes_and_types(dtype, shape):
    with pytest.raises(
        LearnerError, match=r"learner 'mine': act gives .*; accepted: actions, integers \[H, k\+1\]"
    ):
        form(dtype, *shape, 16)


def test_packed_actions_stay_wrong():
    actions = jnp.asarray([-(2**31), -1, 0, 3, 4, 127, 300, 2**31 - 1], jnp.int32)
    made = form(jnp.int32, 3, 3, 16)
    packed = made.packed(jnp.zeros((3, 3, 8), jnp.int32).at[1, 2].set(actions))
    assert packed.dtype == jnp.int8
    assert packed.shape == (2, 24)
    assert packed[1, 8:16].tolist() == [-1, -1, 0, 3, 4, 4, 4, 4]
    assert int(jnp.abs(packed).sum()) == int(jnp.abs(packed[1, 8:16]).sum())


def test_many_actions_are_packed_wider():
    made = PolicyForm("mine", (3, 2, 127, 5), jax.ShapeDtypeStruct((3, 3, 16), jnp.int32))
    policy = jnp.asarray([126, 127, 500], jnp.int32)[None, None].repeat(3, 0).repeat(3, 1)
    assert made.packed(policy)[0, :3].tolist() == [126, 127, 127]


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
