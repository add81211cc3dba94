"""Feedback shows exactly what it says, one episode or many lanes at once."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit import feedback

EPISODE = feedback.Trajectory(
    levels=jnp.asarray([2, 2, 1], jnp.int32),
    actions=jnp.asarray([0, 3, 1], jnp.int32),
    rewards=jnp.asarray([0.25, 0.0, 0.5], jnp.float32),
    next_levels=jnp.asarray([2, 1, 0], jnp.int32),
)


def test_bandit_shows_the_total_alone():
    shown = feedback.observe("bandit", EPISODE)
    assert type(shown) is feedback.BanditFeedback
    assert shown._fields == ("total",)
    assert float(shown.total) == 0.75


def test_trajectory_shows_states_actions_and_the_total():
    shown = feedback.observe("trajectory", EPISODE)
    assert type(shown) is feedback.TrajectoryFeedback
    assert shown._fields == ("levels", "actions", "total")
    np.testing.assert_array_equal(shown.levels, EPISODE.levels)
    np.testing.assert_array_equal(shown.actions, EPISODE.actions)
    assert float(shown.total) == 0.75


def test_semi_bandit_shows_every_stage():
    shown = feedback.observe("semi-bandit", EPISODE)
    assert type(shown) is feedback.SemiBanditFeedback
    assert shown._fields == ("levels", "actions", "rewards", "next_levels")
    for name in shown._fields:
        np.testing.assert_array_equal(getattr(shown, name), getattr(EPISODE, name))


@pytest.mark.parametrize("kind", feedback.KINDS)
def test_lanes_trail(kind):
    lanes = feedback.Trajectory(*(jnp.stack([x, x[::-1]], -1) for x in EPISODE))
    together = feedback.observe(kind, lanes)
    for lane, order in enumerate([slice(None), slice(None, None, -1)]):
        alone = feedback.observe(kind, feedback.Trajectory(*(x[order] for x in EPISODE)))
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, many[..., lane])


def test_unknown_kind():
    with pytest.raises(ValueError, match="feedback: 'full'; accepted: bandit, trajectory, semi-bandit"):
        feedback.observe("full", EPISODE)
    assert feedback.check_kind("bandit") == "bandit"
