"""The optimistic Q of UCB-VI by hand: clipped at 1, bounded by the Q before, doubt 0 at the end."""

import jax.numpy as jnp
import numpy as np

from jaxbandit.learners.ucbvi_values import PlanTables, doubt, q_of

SCALE, LOG = jnp.float32(1), jnp.float32(2)


def test_hoeffding_q_is_clipped_and_bounded():
    """Two actions, one level, one next level: fields are r + b and p."""
    model = jnp.asarray([[[0.2], [0.9]], [[0.5], [0.5]]], jnp.float32)
    tails = [jnp.float32(0.6)]
    q = q_of(PlanTables(model, None, None), tails, SCALE, LOG)
    np.testing.assert_allclose([x.item() for x in q], [0.5, 1.0], rtol=1e-6)
    ceiling = jnp.asarray([[0.4], [0.7]], jnp.float32)
    bounded = q_of(PlanTables(model, None, ceiling), tails, SCALE, LOG)
    np.testing.assert_allclose([x.item() for x in bounded], [0.4, 0.7], rtol=1e-6)


def test_bernstein_q_of_an_action_never_tried_is_one_that_it_was_given():
    """Fields r, p, 1/N: with N = 0 the model has r = 1 and no bonus; with certain outcomes only the last terms stay."""
    model = jnp.asarray([[[1.0], [0.0]], [[0.0], [1.0]], [[0.0], [1e-3]]], jnp.float32)
    zero = jnp.zeros((1,), jnp.float32)
    never, sure = q_of(PlanTables(model, zero, None), [jnp.float32(0.5)], SCALE, LOG)
    assert never.item() == 1.0
    assert abs(sure.item() - (0.5 + 14 / 3 * 2 * 1e-3)) < 1e-6  # float32 of numbers below 1


def test_doubt_falls_with_arrivals_and_ends_at_zero():
    visits = jnp.ones((2, 1, 3), jnp.int32).at[:, :, 2].set(2**29)
    found = np.asarray(doubt(visits, jnp.float32(1)))[0]
    assert found[0] == 1
    np.testing.assert_allclose(found[1], 1e4 * 3 * 2 / 2**30, rtol=1e-5)
    assert found[2] == 0
