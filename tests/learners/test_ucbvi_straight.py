"""Planning as straight-line code gives the values of the other way."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.learners.ucbvi_planning import optimistic_values
from jaxbandit.learners.ucbvi_straight import plan_by_lanes
from jaxbandit.learners.ucbvi_values import Plan, UCBVIConstants


@pytest.mark.parametrize("bernstein", [False, True])
def test_both_ways_of_planning_agree(bernstein):
    """Values are at most 1 and add up five stages: equal to a few units in the last place of float32."""
    random = np.random.default_rng(0)
    model = jnp.asarray(random.random((3 + bernstein, 2, 2, 5, 3)) / 3, jnp.float32)
    doubts = jnp.asarray(random.random((2, 5, 3)) / 100, jnp.float32) if bernstein else None
    ceiling = jnp.asarray(random.random((2, 2, 5, 3)), jnp.float32)
    plan = Plan(model, doubts, ceiling)
    constants = UCBVIConstants(
        scale=jnp.tile(jnp.float32([0.1, 0.5, 1.0]), (5, 1)),
        log_term=jnp.tile(jnp.float32([2.0, 2.0, 3.0]), (5, 1)),
    )
    values = optimistic_values(plan, constants, jnp.zeros((2, 6, 3), jnp.float32))
    np.testing.assert_allclose(plan_by_lanes(plan, constants), values[:, :5], rtol=1e-5)
