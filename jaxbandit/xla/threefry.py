"""Counter-based random words: Threefry-2x32 with 20 rounds, written out so that XLA makes one
vectorised kernel of it.

``jax.random`` uses the same cipher, but on CPU as a loop over its rounds. The engines draw billions
of uniforms, so they
call the cipher directly, with the number of the episode and of the draw as its counter: a word
depends on these and the key alone, whatever the tile, the chunk or the device. The tests compare
it with jax's own.

What is given as numpy arrays (of at least one axis) is computed by numpy: nothing is compiled for their shapes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def single_key(key: Any) -> jax.Array:
    """``key`` if it is one typed key, else an error."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not typed:
        raise ValueError(f"key: {key!r}; accepted: a typed key such as jax.random.key(0)")
    if key.ndim:
        raise ValueError(
            f"key: an array of shape {key.shape}; accepted: a single key (or jax.vmap)"
        )
    return key


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two uint32 words for every (key, counter) pair; arguments are uint32 arrays that
    broadcast."""
    k0, k1 = key
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def fold_in(key: tuple[Any, Any], data: Any) -> tuple[Any, Any]:
    """The key of ``jax.random.fold_in(key, data)``, as a pair of words."""
    return threefry(key, (np.uint32(0), data))


def key_words(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The two uint32 words of typed threefry keys of any shape."""
    words = jax.random.key_data(keys)
    return words[..., 0], words[..., 1]


def table_words(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """A random word uint32 for every place of a table of at most four axes, each shorter than 2^16.

    The word of a place depends on the key and the place alone: tables of other sizes have the same one there. Keys of
    several lanes give [*shape, *lanes].

    Example:
        >>> small, large = (table_words(jax.random.key(0), shape) for shape in ((2, 3), (4, 5)))
        >>> bool((large[:2, :3] == small).all())
        True
    """
    whole = (*shape, *key.shape)
    places = [jax.lax.broadcasted_iota(jnp.uint32, whole, axis) for axis in range(len(shape))]
    zero = jnp.zeros(whole, jnp.uint32)
    first, second, third, fourth = (*places, *[zero] * (4 - len(shape)))
    counter = ((first << jnp.uint32(16)) | second, (third << jnp.uint32(16)) | fourth)
    high, low = (word.reshape(*[1] * len(shape), *key.shape) for word in key_words(key))
    return threefry((high, low), counter)[0]


def unit_float32(words: jax.Array) -> jax.Array:
    """Uniform on {0, 1, ..., 2^23 - 1} / 2^23, so that u * total < total for every positive float32
    total."""
    return (words >> jnp.uint32(9)).astype(jnp.float32) * jnp.float32(2.0**-23)


def unit_float64(high: jax.Array, low: jax.Array) -> jax.Array:
    """Uniform on the open interval (0, 1), 52 bits; needs x64."""
    bits = (high.astype(jnp.uint64) << jnp.uint64(20)) | (low >> jnp.uint32(12)).astype(jnp.uint64)
    return (bits.astype(jnp.float64) + 0.5) * 2.0**-52
