"""Input checks of the constructors. They run on the host and skip what is traced, so constructors
vmap."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import number, real_array, whole
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import carry
from jaxbandit.types import Array
from jaxbandit.xla.compat import drawing
from jaxbandit.xla.threefry import single_key

__all__ = [
    "distinct",
    "distributions",
    "float_dtype",
    "is_concrete",
    "magnitudes",
    "matrix",
    "nonnegative",
    "number",
    "real_array",
    "scale",
    "simplex_rows",
    "single_key",
    "single_precision",
    "table",
    "whole",
    "whole_numbers",
]
LARGEST, SMALLEST = 1e30, 1e-30
"""Float32 holds sums and quotients of numbers between these without overflow or underflow."""
MOST_ENTRIES = 2**28
"""Of a table of outcomes: about 1 GB in float32."""


def float_dtype() -> Any:
    """float32, or float64 under x64."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def single_precision(constructor: Callable[..., MDP]) -> Callable[..., MDP]:
    """A constructor whose arguments give the same numbers in every process: they are computed in 32 bits, and under x64
    returned in 64 (so that planning there has its precision)."""

    @functools.wraps(constructor)
    def make(*args: Any, **parameters: Any) -> MDP:
        with drawing():
            mdp = constructor(*args, **parameters)
        wide = float_dtype()
        if mdp.prob.dtype == wide:
            return mdp
        return carry(mdp, mdp._replace(prob=mdp.prob.astype(wide), reward=mdp.reward.astype(wide)))

    return make


def is_concrete(*values: Any) -> bool:
    """Whether no value is being traced, so that its entries can be looked at."""
    return not any(isinstance(x, jax.core.Tracer) for x in values)


def matrix(name: str, value: Any, axes: str, like: tuple[int, ...] | None = None) -> Array:
    """``value`` as a two-dimensional float array; ``like`` is the shape it has to have, if any."""
    accepted = (
        f"numbers of shape {axes}; rows of unequal lengths are padded with entries of probability 0"
    )
    value = real_array(name, value, accepted)
    if not isinstance(value, jax.Array):
        value = np.asarray(value, np.float64)
    if value.ndim != 2 or 0 in value.shape or (like is not None and value.shape != like):
        accepted = f"shape {axes}" if like is None else f"shape {axes} = {like}"
        raise ValueError(f"{name}: shape {value.shape}; accepted: {accepted}")
    if is_concrete(value) and not np.isfinite(np.asarray(value, np.float64)).all():
        stage, entry = np.argwhere(~np.isfinite(np.asarray(value, np.float64)))[0]
        raise ValueError(f"{name}: {_seen(value, stage, entry)}; accepted: finite numbers")
    return value


def table(*sizes: tuple[str, int]) -> None:
    """An error if a table of these named sizes would not fit in memory."""
    entries = math.prod(size for _, size in sizes)
    if entries > MOST_ENTRIES:
        seen = ", ".join(f"{name} = {size}" for name, size in sizes)
        raise ValueError(
            f"{', '.join(name for name, _ in sizes)}: {seen} make {entries:,} outcomes; "
            f"accepted: at most {MOST_ENTRIES:,}"
        )


def magnitudes(name: str, value: Array) -> None:
    """An error if an entry [H, M] is so large or so small that float32 loses it."""
    if not is_concrete(value):
        return
    size = np.abs(np.asarray(value, np.float64))
    bad = np.argwhere((size > LARGEST) | ((size < SMALLEST) & (size > 0)))
    if bad.size:
        stage, entry = bad[0]
        raise ValueError(
            f"{name}: {_seen(value, stage, entry)}; accepted: 0, or {SMALLEST:g} to {LARGEST:g}"
        )


def distinct(name: str, value: Array) -> None:
    """An error if two different entries of a row [H, M] are equal in the precision that is run."""
    if not is_concrete(value):
        return
    rows = np.sort(np.asarray(value, np.float64), axis=1)
    rounded = rows.astype(float_dtype())
    bad = np.argwhere((rows[:, 1:] != rows[:, :-1]) & (rounded[:, 1:] == rounded[:, :-1]))
    if bad.size:
        stage, entry = bad[0]
        one, other = rows[stage, entry], rows[stage, entry + 1]
        raise ValueError(
            f"{name}: {one!r} and {other!r} at stage {stage + 1} are equal in {float_dtype()}; "
            "accepted: equal values, or values further apart"
        )


def nonnegative(name: str, value: Array) -> None:
    """An error if an entry [H, M] is negative."""
    if not is_concrete(value):
        return
    bad = np.argwhere(np.asarray(value) < 0)
    if bad.size:
        stage, entry = bad[0]
        raise ValueError(f"{name}: {_seen(value, stage, entry)}; accepted: numbers >= 0")


def whole_numbers(name: str, value: Array) -> None:
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
        raise ValueError(
            f"{name}: entries of stage {stage + 1} sum to {sums[stage]:.7g}; they must sum to 1"
        )


def scale(name: str, value: Any, largest: Any, what: str) -> None:
    """An error unless ``value`` is a positive number of at least ``largest`` (which is
    ``what``)."""
    if not is_concrete(value):
        return
    try:
        seen = number(name, value, low=SMALLEST, high=LARGEST)
    except ValueError:
        accepted = f"a positive number, {SMALLEST:g} to {LARGEST:g}, or None"
        raise ValueError(f"{name}: {value!r}; accepted: {accepted}") from None
    if is_concrete(largest) and seen < float(largest) * (1 - 1e-6):
        raise ValueError(
            f"{name}: {value!r}; accepted: at least {what}, {float(largest):.7g}, or None"
        )


def simplex_rows(key: Array, shape: tuple[int, ...]) -> Array:
    """Probability vectors along the last axis, uniform on the simplex: normalised exponentials."""
    # Drawn flat: the same numbers, but random bits of four axes take four times as long to compile.
    weights = jax.random.exponential(key, (math.prod(shape),), float_dtype()).reshape(shape)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)
