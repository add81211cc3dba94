"""Backward induction of UCB-VI against a plain loop, unrolled and as a scan; ties go to the first action."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.learners.ucbvi_planning import (
    LONGEST_UNROLLED,
    WRITTEN_FROM,
    planned,
)
from jaxbandit.learners.ucbvi_values import PlanTables, UCBVIConstants


def plan_once(plan):
    """V [k, H+1, 1] and the greedy actions [k, H, 1]."""
    width, horizon = plan.model.shape[2:4]
    constants = UCBVIConstants(
        scale=jnp.ones((horizon, 1), jnp.float32), log_term=jnp.full((horizon, 1), 2, jnp.float32)
    )
    # What stood there before must not matter, but for the zeros after the last stage.
    before = jnp.full((width, horizon + 1, 1), 0.5, jnp.float32).at[:, horizon].set(0)
    return planned(plan, constants, before)


def random_model(horizon, width=2, num_actions=3):
    """Fields r + b and p(s) as float32 [1 + k, A, k, H, 1]."""
    random = np.random.default_rng(horizon)
    moves = random.dirichlet(np.ones(width + 1), size=(num_actions, width, horizon))[..., :width]
    rewards = random.random((1, num_actions, width, horizon)) / horizon
    fields = np.concatenate([rewards, np.moveaxis(moves, -1, 0)])
    return fields[..., None].astype(np.float32)


@pytest.mark.parametrize("width", [2, WRITTEN_FROM])
@pytest.mark.parametrize("horizon", [1, 5, LONGEST_UNROLLED + 1])
def test_values_are_those_of_a_plain_loop(horizon, width):
    model = random_model(horizon, width)
    plan = PlanTables(jnp.asarray(model), None, None)
    values, actions, _ = plan_once(plan)
    np.testing.assert_array_equal(values[:, horizon], 0)
    tail = np.zeros(width)
    for i in reversed(range(horizon)):
        q = np.minimum(
            model[0, :, :, i, 0] + np.einsum("sal,s->al", model[1:, :, :, i, 0], tail), 1
        )
        tail = q.max(0)
        np.testing.assert_allclose(values[:, i, 0], tail, rtol=1e-5)
        np.testing.assert_array_equal(actions[:, i, 0], q.argmax(0))


@pytest.mark.parametrize("width", [2, WRITTEN_FROM])
def test_ties_go_to_the_first_action(width):
    plan = PlanTables(jnp.ones((1 + width, 2, width, 4, 1), jnp.float32), None, None)
    _, actions, kept = plan_once(plan)
    assert kept is None
    np.testing.assert_array_equal(actions, np.zeros((width, 4, 1)))
