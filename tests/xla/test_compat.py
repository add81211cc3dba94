"""64-bit types exist inside the context and nowhere else; what jax has been told is known."""

import jax
import jax.numpy as jnp

from jaxbandit.xla.compat import settings, x64


def test_x64_holds_inside_and_ends_outside():
    before = jnp.asarray(1.0).dtype
    with x64():
        assert jnp.asarray(1.0).dtype == jnp.float64
        with x64(False):
            assert jnp.asarray(1.0).dtype == jnp.float32
        assert jnp.asarray(1.0).dtype == jnp.float64
    assert jnp.asarray(1.0).dtype == before


def test_settings_are_those_in_force():
    before = settings()
    with jax.default_matmul_precision("highest"), x64():
        inside = settings()
    assert inside == before | {"default_matmul_precision": "highest"}
    assert before["default_prng_impl"] == "threefry2x32"
    assert settings() == before
