"""Input checks of the constructors. They run on the host and skip what is traced, so constructors vmap."""

from __future__ import annotations

import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any


def float_dtype() -> Any:
    """float32, or float64 under x64."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def is_concrete(*values: Any) -> bool:
    """Whether no value is being traced, so that its entries can be looked at."""
    return not any(isinstance(x, jax.core.Tracer) for x in values)


def count(name: str, value: Any, at_least: int = 1) -> int:
    """``value`` as a Python int; anything but an integer of at least ``at_least`` is an error."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < at_least:
        raise ValueError(f"{name}: {value!r}; accepted: an integer of at least {at_least}")
    return number


def single_key(key: Any) -> Array:
    """``key`` if it is one typed key, else an error."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not typed:
        raise ValueError(f"key: {key!r}; accepted: a typed key such as jax.random.key(0)")
    if key.ndim:
        raise ValueError(f"key: an array of shape {key.shape}; accepted: a single key (or jax.vmap)")
    return key


def matrix(name: str, value: Any, axes: str, like: tuple[int, ...] | None = None) -> Array:
    """``value`` as a two-dimensional float array; ``like`` is the shape it has to have, if any."""
    if not isinstance(value, jax.Array):
        try:
            value = np.asarray(value, np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{name}: cannot be made an array ({error}); accepted: numbers of shape {axes}; "
                "rows of unequal lengths are padded with entries of probability 0"
            ) from None
    if value.ndim != 2 or 0 in value.shape or (like is not None and value.shape != like):
        accepted = f"shape {axes}" if like is None else f"shape {axes} = {like}"
        raise ValueError(f"{name}: shape {value.shape}; accepted: {accepted}")
    if is_concrete(value) and not np.isfinite(np.asarray(value, np.float64)).all():
        stage, entry = np.argwhere(~np.isfinite(np.asarray(value, np.float64)))[0]
        raise ValueError(f"{name}: {_seen(value, stage, entry)}; accepted: finite numbers")
    return value


def nonnegative(name: str, value: Array) -> None:
    """An error if an entry [H, M] is negative."""
    if not is_concrete(value):
        return
    bad = np.argwhere(np.asarray(value) < 0)
    if bad.size:
        stage, entry = bad[0]
        raise ValueError(f"{name}: {_seen(value, stage, entry)}; accepted: numbers >= 0")


def integers(name: str, value: Array) -> None:
    """An error if an entry [H, M] is not a whole number."""
    if not is_concrete(value):
        return
    bad = np.argwhere(np.asarray(value) != np.floor(np.asarray(value)))
    if bad.size:
        stage, entry = bad[0]
        raise ValueError(f"{name}: {_seen(value, stage, entry)}; accepted: integers >= 0")


def _seen(value: Array, stage: int, entry: int) -> str:
    return f"{value[stage, entry]} at stage {stage + 1}, entry {entry}"


def distributions(name: str, value: Array) -> None:
    """An error unless every row [H, M] is a probability distribution (up to 1e-5)."""
    nonnegative(name, value)
    if not is_concrete(value):
        return
    sums = np.asarray(value, np.float64).sum(axis=1)
    bad = np.argwhere(np.abs(sums - 1) > 1e-5)
    if bad.size:
        stage = int(bad[0, 0])
        raise ValueError(f"{name}: entries of stage {stage + 1} sum to {sums[stage]:.7g}; they must sum to 1")


def scale(name: str, value: Any, largest: Any, what: str) -> None:
    """An error unless ``value`` is a positive number of at least ``largest`` (which is ``what``)."""
    if not is_concrete(value):
        return
    number = np.asarray(value, np.float64)
    if number.ndim or not np.isfinite(number) or number <= 0:
        raise ValueError(f"{name}: {value!r}; accepted: a positive number or None")
    if is_concrete(largest) and number < float(largest) * (1 - 1e-6):
        raise ValueError(f"{name}: {value!r}; accepted: at least {what}, {float(largest):.7g}, or None")


def simplex_rows(key: Array, shape: tuple[int, ...]) -> Array:
    """Probability vectors along the last axis, uniform on the simplex: normalised exponentials."""
    # Drawn flat: the same numbers, but random bits of four axes take four times as long to compile.
    weights = jax.random.exponential(key, (math.prod(shape),), float_dtype()).reshape(shape)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)
