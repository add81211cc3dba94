"""The engines' random words are those of jax's own Threefry, word for word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.xla import threefry
from jaxbandit.xla.compat import x64

KEYS = jax.random.split(jax.random.key(3), 5)
DATA = np.array([0, 1, 2, 12345, 2**32 - 1], np.uint32)


def test_words_are_those_of_jax():
    threefry_2x32 = pytest.importorskip("jax.extend.random").threefry_2x32
    random = np.random.default_rng(0)
    keys = random.integers(0, 2**32, (7, 2), dtype=np.uint32)
    counters = random.integers(0, 2**32, (7, 2), dtype=np.uint32)
    keys[0], counters[0] = 0, 0
    for key, counter in zip(keys, counters, strict=True):
        ours = threefry.threefry(tuple(jnp.asarray(key)), tuple(jnp.asarray(counter)))
        theirs = threefry_2x32(jnp.asarray(key), jnp.asarray(counter))
        np.testing.assert_array_equal(np.stack(ours), theirs)


def test_published_vector():
    # Random123's known answer for Threefry-2x32 with 20 rounds, key 0 and counter 0.
    zero = jnp.zeros((), jnp.uint32)
    assert [int(word) for word in threefry.threefry((zero, zero), (zero, zero))] == [
        0x6B200159,
        0x99BA4EFE,
    ]


def test_words_of_a_table_go_by_place():
    """All different, and the same in a table of other sizes."""
    key = jax.random.key(8)
    large = np.asarray(threefry.table_words(key, (5, 4, 3, 2)))
    assert np.unique(large).size == large.size
    np.testing.assert_array_equal(threefry.table_words(key, (3, 2, 3, 2)), large[:3, :2])
    np.testing.assert_array_equal(threefry.table_words(key, (5, 4)), large[:, :, 0, 0])


def test_fold_in_is_that_of_jax():
    ours = threefry.fold_in(threefry.key_words(KEYS), jnp.asarray(DATA))
    theirs = jax.random.key_data(jax.vmap(jax.random.fold_in)(KEYS, DATA))
    np.testing.assert_array_equal(np.stack(ours, -1), theirs)


def test_unit_float32_covers_the_half_open_interval():
    words = jnp.asarray([0, 2**9 - 1, 2**9, 2**31, 2**32 - 1], jnp.uint32)
    uniform = np.asarray(threefry.unit_float32(words))
    np.testing.assert_array_equal(uniform, np.float32([0, 0, 2**-23, 0.5, 1 - 2**-23]))
    # u * total < total even when the product is rounded, for totals on both sides of powers of 2.
    totals = np.float32([1.0, np.nextafter(np.float32(1), np.float32(0)), 0.3, 1e-30, 1.5, 3e38])
    assert (uniform[-1] * totals < totals).all()


def test_unit_float64_lies_strictly_inside():
    with x64():
        ends = jnp.asarray([0, 2**32 - 1], jnp.uint32)
        low, high = np.asarray(threefry.unit_float64(ends, ends))
        assert (low, high) == (2.0**-53, 1 - 2.0**-53)
        half = threefry.unit_float64(jnp.uint32(2**31), jnp.uint32(0))
        assert float(half) == 0.5 + 2.0**-53
