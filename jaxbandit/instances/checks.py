"""What the constructors share: checks of arrays that may be traced, so that constructors vmap, and 32-bit arithmetic."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import carry
from jaxbandit.specs import Optional, Real, Values
from jaxbandit.types import Array
from jaxbandit.xla.compat import drawing

LARGEST, SMALLEST = 1e30, 1e-30
"""Float32 holds sums and quotients of numbers between these without overflow or underflow."""
MOST_ENTRIES = 2**28
"""Of a table of outcomes: about 1 GB in float32."""


def amounts(axes: str, low: float = 0.0) -> Values:
    """The spec of an array of values or rewards that float32 holds."""
    return Values(axes, low, LARGEST, least=SMALLEST)


def single_precision(constructor: Callable[..., MDP]) -> Callable[..., MDP]:
    """A constructor whose arguments give the same numbers in every process: they are computed in 32 bits, and under x64
    returned in 64 (so that planning there has its precision)."""

    @functools.wraps(constructor)
    def make(*args: Any, **parameters: Any) -> MDP:
        with drawing():
            mdp = constructor(*args, **parameters)
        wide = jax.dtypes.canonicalize_dtype(np.float64)
        if mdp.prob.dtype == wide:
            return mdp
        return carry(mdp, mdp._replace(prob=mdp.prob.astype(wide), reward=mdp.reward.astype(wide)))

    return make


def is_concrete(*values: Any) -> bool:
    """Whether no value is being traced, so that its entries can be looked at."""
    return not any(isinstance(x, jax.core.Tracer) for x in values)


def alike(**arrays: Array) -> None:
    """An error unless all arrays have the shape of the first one."""
    (first, wanted), *others = ((name, array.shape) for name, array in arrays.items())
    for name, shape in others:
        if shape != wanted:
            raise ValueError(f"{name}: shape {shape}; accepted: that of {first}, {wanted}")


def table(sizes: Mapping[str, int]) -> None:
    """An error if a table of these named sizes would not fit in memory."""
    entries = math.prod(sizes.values())
    if entries > MOST_ENTRIES:
        seen = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        raise ValueError(
            f"{', '.join(sizes)}: {seen} make {entries:,} outcomes; accepted: at most {MOST_ENTRIES:,}"
        )


def distinct(name: str, value: Array) -> None:
    """An error if two different entries of a row [H, M] are equal in float32."""
    if not is_concrete(value):
        return
    rows = np.sort(value, axis=1)
    equal = (rows[:, 1:] != rows[:, :-1]) & (np.diff(rows.astype(np.float32)) == 0)
    for stage, entry in np.argwhere(equal)[:1]:
        one, other = rows[stage, entry : entry + 2].tolist()
        raise ValueError(
            f"{name}: {one!r} and {other!r} at stage {stage + 1} are equal in float32; "
            "accepted: equal values, or values further apart"
        )


def distributions(name: str, value: Array, axes: str = "stage, entry") -> None:
    """An error unless every row is a probability distribution."""
    if is_concrete(value):
        checks.distributions(name, value, axes)


def scale(name: str, value: Any, largest: Any, what: str) -> Array | None:
    """``value`` as float32 if it is None, or a positive number of at least ``largest`` (which is ``what``)."""
    if is_concrete(value):
        seen = Optional(Real(SMALLEST, LARGEST)).check(name, value)
        if seen is not None and is_concrete(largest) and seen < float(largest) * (1 - 1e-6):
            least = f"at least {what}, {float(largest):.7g}, or None"
            raise ValueError(f"{name}: {value!r}; accepted: {least}")
    return None if value is None else jnp.asarray(value, jnp.float32)


def simplex_rows(key: Array, shape: tuple[int, ...]) -> Array:
    """Probability vectors along the last axis, uniform on the simplex: normalised exponentials."""
    # Drawn flat: the same numbers, but random bits of four axes take four times as long to compile.
    weights = jax.random.exponential(key, (math.prod(shape),), jnp.float32).reshape(shape)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)
