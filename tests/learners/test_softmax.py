"""Product distributions over policies: against jax's own softmax and derivative, alone and with lanes."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learners import softmax

LANES = 4
LOGITS = np.random.default_rng(0).normal(0, 3, (3, 2, 5, LANES)).astype(np.float32)


def test_probabilities_are_those_of_jax_however_large_the_logits():
    for scale in (1.0, 1000.0):
        found = softmax.softmax(scale * LOGITS)
        np.testing.assert_allclose(found, jax.nn.softmax(scale * LOGITS, axis=2), atol=1e-6)


def test_the_gradient_is_that_of_the_log_probability():
    """gain * d/d theta of log Pr(policy), by jax's differentiation, lane by lane."""
    keys = jax.random.split(jax.random.key(1), LANES)
    policy = softmax.drawn_policy(LOGITS, keys)
    gain = jax.random.normal(jax.random.key(2), (3, 2, LANES))
    found = softmax.score_gradient(LOGITS, policy, gain)

    def chance(logits, policy, gain):
        logs = jax.nn.log_softmax(logits, axis=-1)
        picked = jnp.take_along_axis(logs, policy[:, 1:, None], axis=-1)[:, :, 0]
        return jnp.sum(gain * picked)

    exact = jax.vmap(jax.grad(chance), -1, -1)(LOGITS, policy, gain)
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_a_lane_draws_what_it_draws_alone_and_in_a_larger_table():
    keys = jax.random.split(jax.random.key(3), LANES)
    together = np.asarray(softmax.drawn_policy(LOGITS, keys))
    assert together.shape == (3, 3, LANES)
    assert not together[:, 0].any()
    larger = jnp.pad(LOGITS, ((0, 2), (0, 1), (0, 0), (0, 0)))
    np.testing.assert_array_equal(softmax.drawn_policy(larger, keys)[:3, :3], together)
    for lane in range(LANES):
        alone = softmax.drawn_policy(LOGITS[..., lane], keys[lane])
        np.testing.assert_array_equal(alone, together[..., lane])


def test_actions_without_a_chance_are_never_drawn():
    """Also at the ends, and where a word falls between two others."""
    logits = jnp.asarray([[[-200.0, 0, -200, 0, -200]]])
    keys = jax.random.split(jax.random.key(4), 5000)
    drawn = jax.vmap(softmax.drawn_policy, (None, 0))(logits, keys)[:, 0, 1]
    counts = np.bincount(np.asarray(drawn), minlength=5)
    assert counts[[0, 2, 4]].sum() == 0
    assert abs(counts[1] - 2500) <= 5 * np.sqrt(1250)  # false alarms: 6e-7
