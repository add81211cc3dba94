"""Sums of bits are binomial: exact moments at every n, sure arms, and numbers of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.engines.blocks.machine import push_bits
from jaxbandit.xla.compat import x64
from jaxbandit.xla.platforms import KNOWN, tracing_for

LANES = 2000
VALUES = np.array([0.003, 0.4, 0.97])
"""Means below and above 10 for n up to 1,000: both ways of drawing."""


def sums(values, episodes, seed, lanes=LANES, platform="cpu"):
    words = np.random.default_rng(seed).integers(0, 2**32, (2, lanes), np.uint32)
    shape = (lanes, len(values))
    with x64(), tracing_for(KNOWN[platform]):
        arguments = (
            jnp.broadcast_to(jnp.asarray(x, jnp.float64), shape) for x in (values, episodes)
        )
        return np.asarray(jax.jit(push_bits)(*arguments, tuple(jnp.asarray(w) for w in words)))


@pytest.mark.parametrize("n", [1, 7, 1000, 10**12, 2**53])
def test_mean_and_variance_are_those_of_the_binomial(n):
    """5 n x (3 arms x 2 z-tests and 3 correlations) at 5 standard errors: false-alarm rate 2.6e-5 in all (the kurtosis
    of few coins is in the error of the variance)."""
    found = sums(VALUES, n, seed=n % 97)
    assert (found == np.floor(found)).all()
    assert ((found >= 0) & (found <= n)).all()
    variance = n * VALUES * (1 - VALUES)
    z = (found - n * VALUES) / np.sqrt(variance)
    fourth = 3 + (1 - 6 * VALUES * (1 - VALUES)) / variance
    assert (np.abs(z.mean(0)) < 5 / LANES**0.5).all()
    assert (np.abs(np.mean(z**2, 0) - 1) < 5 * np.sqrt((fourth - 1) / LANES)).all()
    assert np.abs(np.corrcoef(z.T)[np.triu_indices(3, 1)]).max() < 5 / LANES**0.5


def test_arms_that_are_sure_or_empty_draw_nothing():
    found = sums(np.array([0.0, 1.0, 0.5, 1 + 1e-15]), np.array([10**12, 10**12, 0, 9]), 1, 5)
    assert (found == [0, 10**12, 0, 9]).all()


def test_an_arm_has_numbers_of_its_own():
    """Neither the other lanes nor the kind of device change them; other lanes have others."""
    whole = sums(VALUES, 10**12, seed=3, lanes=64)
    np.testing.assert_array_equal(sums(VALUES, 10**12, 3, 64, "gpu"), whole)
    assert len(np.unique(whole[:, 1])) == 64
    words = np.random.default_rng(3).integers(0, 2**32, (2, 64), np.uint32)
    with x64():
        alone = push_bits(
            jnp.asarray(VALUES)[None],
            jnp.full((1, 3), 1e12),
            tuple(jnp.asarray(w[7:8]) for w in words),
        )
    np.testing.assert_array_equal(np.asarray(alone)[0], whole[7])
