"""The choices for a kind of device: its own, or those that are forced; barriers change the cost of a program, never its values."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.xla.platforms import (
    CPU,
    GPU,
    VARIABLE,
    active,
    platform_of,
    separate,
    together,
    tracing_for,
    use,
)
from jaxbandit.xla.programs import Programs


def test_an_argument_wins_over_the_environment_and_that_over_use(monkeypatch):
    device = jax.devices("cpu")[0]
    assert platform_of(device) is CPU
    with use("gpu"):
        assert platform_of(device) is GPU
        monkeypatch.setenv(VARIABLE, "cpu")
        assert platform_of(device) is CPU
        assert platform_of(device, "gpu") is GPU
    monkeypatch.delenv(VARIABLE)
    assert platform_of(device) is CPU


def test_an_unknown_kind_is_refused(monkeypatch):
    device = jax.devices("cpu")[0]
    for name in ("tpu", "abacus"):
        monkeypatch.setenv(VARIABLE, name)
        with pytest.raises(ValueError, match=r"platform: '.*'; accepted: cpu, gpu"):
            platform_of(device)


def test_what_is_traced_for_ends_with_the_tracing():
    with tracing_for(GPU):
        assert active() is GPU
    assert active() is CPU


CALL = 'xla_cpu_small_call = "true"'


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


@together
def steps(pair, unused, count):
    """Doubles and shifts, in a loop that holds a kernel of its own."""
    turn = separate(lambda x, y: jnp.roll(2 * x, 1) + y)
    return jax.lax.fori_loop(0, count, lambda i, x: turn(x, pair[1]), pair[0]), pair[1]


def program(platform):
    args = ((jnp.arange(8, dtype=jnp.float32), jnp.ones(8)), jnp.zeros(3), jnp.int32(3))
    compiled = Programs().get("steps", partial(steps), args, jax.devices()[0], platform)
    return compiled.call, args


def test_the_numbers_are_those_of_the_function():
    compiled, args = program(CPU)
    plain = steps(*args)  # outside of a program nothing is put together
    for one, other in zip(jax.tree.leaves(compiled(*args)), jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_is_one_call_in_programs_for_a_cpu_and_none_elsewhere():
    args = program(CPU)[1]
    for platform in (CPU, GPU):
        with tracing_for(platform):
            text = jax.jit(partial(steps)).lower(*args).as_text()
        assert (CALL in text) == (platform is CPU)
    assert CALL not in jax.jit(partial(steps)).lower(*args).as_text()
