"""The text of a lowered function: all that it computes, and nothing of how it is written.

`lower` traces a function for arguments of given shapes and gives its StableHLO text, without locations. Closed-over
arrays, globals, defaults, files that were read: whatever reached the numbers stands in the text as a constant. What a
callback does on the host does not, so callbacks are named.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

OPAQUE = ("callback", "debug_print", "ffi_call", "infeed", "outfeed", "custom_partitioning")
"""Parts of the names of primitives whose text does not say what they do."""


class Lowered(NamedTuple):
    """A function as jax compiles it."""

    text: str
    """StableHLO."""
    callbacks: tuple[str, ...]
    """Primitives in it whose text does not say what they do."""
    digest: str
    """SHA-256 of the text and the arrays it is given; like no other if there are callbacks."""
    out: Any
    """Shapes and types of what the function returns."""


def lower(function: Callable, *args: Any) -> Lowered:
    """Traces and lowers ``function`` for arguments like these (arrays or shapes).

    Example:
        >>> import jax.numpy as jnp
        >>> one = jax.ShapeDtypeStruct((), jnp.float32)
        >>> twice, double = lower(lambda x: x + x, one), lower(lambda y: y + y, one)
        >>> twice.digest == double.digest, twice.digest == lower(lambda x: 2 * x, one).digest
        (True, False)
    """

    def f(*args):  # a new function with one name for all: jax's caches know functions by identity
        return function(*args)

    with fresh_traces():
        traced = jax.jit(f).trace(*args)
        text = traced.lower().as_text()
    found = sorted({name for name, _ in _equations(traced.jaxpr) if is_opaque(name)})
    out = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), traced.out_info)
    return Lowered(text, tuple(found), digest_of(text, traced.jaxpr, bool(found)), out)


def digest_of(text: str, jaxpr: Any, opaque: bool = False) -> str:
    """SHA-256 of a lowered program; like no other's if it is ``opaque``.

    Some releases of jax hand closed-over arrays to a program as hidden arguments, so their bytes are counted apart.
    """
    total = hashlib.sha256(text.encode())
    for _, arrays in _equations(jaxpr):
        for array in arrays:
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
    if opaque:
        total.update(uuid.uuid4().bytes)
    return total.hexdigest()


def is_opaque(primitive: str) -> bool:
    """Whether the text of a primitive leaves open what it does."""
    return any(part in primitive for part in OPAQUE)


def _equations(jaxpr: Any) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The primitives of a jaxpr and of those inside it, each with the arrays that it was given as constants."""
    yield "", [array for const in getattr(jaxpr, "consts", ()) for array in _arrays(const)]
    for eqn in jaxpr.eqns:
        literals = (each.val for each in eqn.invars if hasattr(each, "val"))
        yield eqn.primitive.name, [array for value in literals for array in _arrays(value)]
        for value in eqn.params.values():
            for each in value if isinstance(value, tuple | list) else (value,):
                if hasattr(each, "eqns"):
                    yield from _equations(each)


def _arrays(value: Any) -> list[np.ndarray]:
    """The value as an array with axes; numbers stand in the text."""
    if np.ndim(value) == 0:
        return []
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return [np.asarray(value)]


_CONTEXT: Any = jax.make_user_context(0) if hasattr(jax, "make_user_context") else None
_NUMBERS = itertools.count(1)


def fresh_traces() -> AbstractContextManager[Any]:
    """A context in which jax uses none of its earlier traces.

    jax knows functions by identity. Of one that reads a global which has changed since, as in a notebook, it would take
    the old trace. Releases without user contexts forget all traces instead.
    """
    if _CONTEXT is not None:
        return _CONTEXT(next(_NUMBERS))
    forget_traces()
    return nullcontext()


def forget_traces() -> None:
    """Clears jax's caches, again if another thread, which traces meanwhile, has added to them."""
    for _ in range(1000):
        try:
            return jax.clear_caches()
        except RuntimeError:  # a dictionary changed its size
            time.sleep(0.001)
    return jax.clear_caches()
