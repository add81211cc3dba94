"""64-bit types exist inside the context and nowhere else."""

import jax.numpy as jnp

from jaxbandit.xla.compat import x64


def test_x64_holds_inside_and_ends_outside():
    before = jnp.asarray(1.0).dtype
    with x64():
        assert jnp.asarray(1.0).dtype == jnp.float64
        with x64(False):
            assert jnp.asarray(1.0).dtype == jnp.float32
        assert jnp.asarray(1.0).dtype == jnp.float64
    assert jnp.asarray(1.0).dtype == before
