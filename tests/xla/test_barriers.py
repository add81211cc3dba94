"""Separate units change the cost of a program, never its values."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.xla.barriers import separate
from jaxbandit.xla.platforms import CPU, GPU, tracing_for


def pieces_for(platform):
    """A new function for each platform, so that none is traced for another."""

    def pieces(x):
        squares = separate(lambda y: y * y + 1)(x)
        return squares, jnp.sum(squares)

    return pieces


def test_values_are_those_of_the_function_on_every_platform():
    x = jnp.arange(5, dtype=jnp.float32)
    for platform in (CPU, GPU):
        with tracing_for(platform):
            one, total = jax.jit(pieces_for(platform))(x)
        np.testing.assert_array_equal(one, [1, 2, 5, 10, 17])
        assert float(total) == 35


def test_a_unit_is_a_call_where_barriers_help():
    x = jnp.zeros(3, jnp.float32)
    texts = {}
    for platform in (CPU, GPU):
        with tracing_for(platform):
            texts[platform.name] = jax.jit(pieces_for(platform)).lower(x).as_text()
    assert "inlineable" in texts["cpu"]
    assert "inlineable" not in texts["gpu"]
